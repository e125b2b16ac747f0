"""Every fault and oddity on every contract; `nox -s mutants` runs this and keeps scores.json."""

from __future__ import annotations

import argparse
import os
import time
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from conformance.contract import providers
from conformance.selftest.mutation_score import stored
from conformance.selftest.mutation_testing import PLANTED, PROFILES, Trial, home, pairs, trials
from conformance.selftest.scores import merged, table, wire_table, write

HERE = Path(__file__).parents[1] / "conformance" / "selftest"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("names", nargs="?", default="*", help="glob of faults and oddities")
    asked.add_argument("--provider", action="append", default=[], choices=providers())
    asked.add_argument("--profile", action="append", default=[], choices=PROFILES)
    asked.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked.add_argument("--home", action="store_true", help="each on one contract only, as the tests have it")
    asked.add_argument("--store", action="store_true", help="keep the scores of what was run whole")
    given = asked.parse_args()
    began = time.monotonic()
    wanted = pairs(given.names, given.profile or PROFILES, given.provider)
    if given.home:
        wanted = [one for one in wanted if home(PLANTED[one[2]]) == one[0]]
    found = []
    for one in trials(wanted, given.jobs):
        found.append(one)
        if len(found) % 100 == 0:
            print(f"{len(found)} of {len(wanted)} after {time.monotonic() - began:.0f} s", flush=True)
    reasons = yaml.safe_load((HERE / "survivors.yaml").read_text("utf-8"))
    told(found, reasons)
    print(table(found))
    print(f"{len(found)} trials in {time.monotonic() - began:.0f} s with {given.jobs} processes")
    wire = {name: one["gate"] for name, one in stored().get("wire", {}).items()}
    if wire and given.names == "*":
        print(f"\nApart from these faults, as `nox -s mutators` left it:\n{wire_table(wire)}")
    if given.store and given.names == "*" and not given.home:
        write(merged(found))


def told(found: list[Trial], reasons: list[dict[str, str]]) -> None:
    """What survived, what fell that was not said to, and what was held against an oddity."""
    for one in found:
        where = f"{one.provider} {one.profile} {one.name}"
        if not one.check:
            if one.fell or one.broke:
                print(f"HELD AGAINST {where}: {one.why}")
        elif not one.killed:
            print(f"SURVIVED {where} ({one.check}, fired {one.fired}): {reason_of(one, reasons) or one.why}")
        elif one.broke:
            print(f"CRASHED {where}: {one.why}")
        elif one.beyond:
            print(f"beyond {where} ({one.check}): {', '.join(one.beyond)}")
        if one.killed and reason_of(one, reasons):
            print(f"LISTED BUT KILLED {where}")


def reason_of(one: Trial, reasons: list[dict[str, str]]) -> str:
    for row in reasons:
        here = fnmatchcase(one.name, row["fault"]) and one.profile == row["profile"]
        if here and one.provider in row.get("providers", [one.provider]):
            return row["reason"]
    return ""


if __name__ == "__main__":
    main()
