"""Mutation testing of our own code: does a test fail when a line of the judge or the planner is changed?

`nox -s mutate` runs this. Each module is mutated with the tests that are about it, in a copy of the checkout, and only
a sample of the possible mutations is tried, so that it ends within about ten minutes. A mutation that survives is
either a missing test or a change without an effect (an equivalent mutant): read it and decide.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).parents[1]
TESTS = {
    "judge/verdicts.py": "tests/test_judge.py",
    "judge/outcome.py": "tests/test_judge.py",
    "judge/traffic.py": "tests/test_judge.py",
    "judge/comparison.py": "tests/test_agreement.py",
    "judge/near_ties.py": "tests/test_near_ties.py",
    "judge/determinism.py": "tests/test_steadiness.py",
    "judge/token_text.py": "tests/test_texts.py",
    "judge/checks/sampling_statistics.py": "tests/test_effects_statistics.py",
    "plan/covering_array.py": "tests/test_planning_covering.py",
    "plan/invalid_requests.py": "tests/test_planning_cases.py",
}
UNNEEDED = (".git", ".venv", ".nox", "__pycache__", ".*_cache", "reports")
SEED = 1
EACH = 15  # mutations of one module; a test file starts in one to three seconds
# Mostly annotations, which are never evaluated, and caches, whose removal changes no result.
IGNORED = ("BinaryOperator_BitOr", "RemoveDecorator")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(TESTS), metavar="MODULE", help=f"one of {', '.join(TESTS)}")
    parser.add_argument("--each", type=int, default=EACH, help="mutations of one module")
    parser.add_argument("--seed", type=int, default=SEED, help="another sample")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".nox", "__pycache__", ".*_cache", "reports")
        )
        totals = [mutated(copy, module, options.each, options.seed) for module in options.modules]
    killed, tried = (sum(column) for column in zip(*totals, strict=True))
    print(f"{killed} of {tried} mutations were detected ({killed / tried:.0%})")
    return 0


def mutated(copy: Path, module: str, each: int, seed: int) -> tuple[int, int]:
    """Try a sample of the mutations of one module: how many were detected, and how many were tried."""
    config, session = copy / "mutate.toml", copy / "mutate.sqlite"
    config.write_text(
        f'[cosmic-ray]\nmodule-path = "conformance/{module}"\ntimeout = 60.0\nexcluded-modules = []\n'
        f'test-command = "{sys.executable} -m pytest -x -q -p no:cacheprovider {TESTS[module]}"\n'
        '[cosmic-ray.distributor]\nname = "local"\n'
    )
    session.unlink(missing_ok=True)
    run = ("cosmic-ray", "--verbosity=ERROR")
    env = {**os.environ, "PYTHONPATH": str(copy)}  # the copy, also where the checkout is installed as editable
    subprocess.run([*run, "init", config.name, session.name], cwd=copy, env=env, check=True)
    subprocess.run([*run, "baseline", config.name], cwd=copy, env=env, check=True)
    with use_db(str(session), WorkDB.Mode.open) as database:
        keep_sample(database, each, seed)
    subprocess.run([*run, "exec", config.name, session.name], cwd=copy, env=env, check=True)
    with use_db(str(session), WorkDB.Mode.open) as database:
        items = {item.job_id: item for item in database.work_items}
        tried = [
            (items[job], result) for job, result in database.results if result.worker_outcome is WorkerOutcome.NORMAL
        ]
    survivors = [(item, result) for item, result in tried if result.test_outcome is TestOutcome.SURVIVED]
    print(f"{module}: {len(tried) - len(survivors)} of {len(tried)} detected by {TESTS[module]}", flush=True)
    for item, result in survivors:
        print(f"  survived: {place(item)}\n{changed(result)}", flush=True)
    return len(tried) - len(survivors), len(tried)


def keep_sample(database: WorkDB, each: int, seed: int) -> None:
    """Mark all mutations but a random sample as skipped."""
    items = sorted(database.pending_work_items, key=place)
    wanted = [item for item in items if not any(name in place(item) for name in IGNORED)]
    sample = {item.job_id for item in random.Random(seed).sample(wanted, min(each, len(wanted)))}
    for item in items:
        if item.job_id not in sample:
            database.set_result(item.job_id, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))


def place(item: WorkItem) -> str:
    """Line, column and operator of a mutation; the same in each session, unlike its id."""
    (mutation,) = item.mutations
    line, column = mutation.start_pos
    return f"line {line:>4}, column {column:>3}: {mutation.operator_name} {mutation.occurrence}"


def changed(result: WorkResult) -> str:
    lines = (result.diff or "").splitlines()
    return "\n".join(f"    {line}" for line in lines if line[:1] in "+-" and line[:3] not in {"+++", "---"})


if __name__ == "__main__":
    sys.exit(main())
