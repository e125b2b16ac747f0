"""Each session is documented by the question it answers."""

import nox

nox.options.sessions = ["lint", "types", "tests"]
DEV = ("-c", "constraints.txt", "-e", ".[dev]")


@nox.session
def tests(session: nox.Session) -> None:
    """Does the tool do what it says?"""
    session.install(*DEV)
    session.run("pytest", "-q", "-n", "auto", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Is the code formatted, and free of lint?"""
    session.install("-c", "constraints.txt", "ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Do the types agree?"""
    session.install(*DEV)
    session.run("mypy")


@nox.session
def wheel(session: nox.Session) -> None:
    """Does the published package work without the checkout?"""
    session.install("-c", "constraints.txt", "build")
    built = session.create_tmp()
    session.run("python", "-m", "build", "--wheel", "--outdir", built)
    session.install("-c", "constraints.txt", "--find-links", built, "completions-conformance")
    session.chdir(built)
    session.run("conformance", "run", "all")


@nox.session
def coverage(session: nox.Session) -> None:
    """Which lines of our code does no test run? (Without the slow tests; prints a table and the total.)"""
    session.install(*DEV)
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "-q", "-m", "not slow", *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def mutate(session: nox.Session) -> None:
    """Which changes of our code does no test detect? (A sample of judge and plan, about ten minutes.)"""
    session.install("-c", "constraints.txt", "-e", ".[dev,mutate]")
    session.run("python", "bench/mutate_code.py", *session.posargs)


@nox.session
def faults(session: nox.Session) -> None:
    """Does each check detect its faults, and accept every legal variant? (Up to an hour; stores scores.json.)"""
    session.install(*DEV)
    session.run("python", "bench/mutants.py", "--store", *session.posargs)


@nox.session(name="wire-mutations")
def wire_mutations(session: nox.Session) -> None:
    """Which changes of a good reply does no check detect? (Up to an hour; stores scores.json.)"""
    session.install(*DEV)
    session.run("python", "bench/mutators.py", "--store", *session.posargs)


@nox.session
def reproduction(session: nox.Session) -> None:
    """Does each curl command of a report show the violation again, for every fault? (Half an hour; needs curl.)"""
    session.install(*DEV)
    session.run("pytest", "-q", "tests/test_reproduction.py", *session.posargs, env={"CONFORMANCE_EVERY_FAULT": "1"})


@nox.session
def causes(session: nox.Session) -> None:
    """Is each fault shown as one or two causes, the right one first? (Every fault, about twenty minutes.)"""
    session.install(*DEV)
    session.run("pytest", "-q", "tests/test_causes_faults.py", *session.posargs, env={"CONFORMANCE_EVERY_FAULT": "1"})


@nox.session
def nightly(session: nox.Session) -> None:
    """Were the stored scores measured on this build, and do they hold? (After `faults` and `wire-mutations`.)"""
    session.install(*DEV)
    scores = ("tests/test_mutation_testing.py", "tests/test_wire_mutations.py")
    session.run("pytest", "-q", *scores, *session.posargs, env={"CONFORMANCE_NIGHTLY": "1"})
