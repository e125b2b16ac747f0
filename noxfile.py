"""Each session is named after the question it answers."""

import nox

nox.options.sessions = ["style", "types", "tests"]
DEV = ("-c", "constraints.txt", "-e", ".[dev]")


@nox.session
def tests(session: nox.Session) -> None:
    """Does the tool do what it says?"""
    session.install(*DEV)
    session.run("pytest", "-q", *session.posargs)


@nox.session
def style(session: nox.Session) -> None:
    """Does the code read as one?"""
    session.install("-c", "constraints.txt", "ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Do the parts fit?"""
    session.install(*DEV)
    session.run("mypy")


@nox.session
def wheel(session: nox.Session) -> None:
    """Does what is published work, away from the checkout?"""
    session.install("-c", "constraints.txt", "build")
    built = session.create_tmp()
    session.run("python", "-m", "build", "--wheel", "--outdir", built)
    session.install("-c", "constraints.txt", "--find-links", built, "completions-conformance")
    session.chdir(built)
    session.run("conformance", "run", "all")


@nox.session
def mutants(session: nox.Session) -> None:
    """Does each check notice what it is there for? (Up to an hour; keeps scores.json.)"""
    session.install(*DEV)
    session.run("python", "bench/mutants.py", "--store", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Are the stored scores those of this build? Run it after `mutants` and `mutators`."""
    session.install(*DEV)
    session.run("pytest", "-q", *session.posargs, env={"CONFORMANCE_NIGHTLY": "1"})


@nox.session
def mutators(session: nox.Session) -> None:
    """Which changes of a good reply does nobody notice?"""
    session.install(*DEV)
    session.run("python", "bench/mutators.py", "--store", *session.posargs)
