"""Mutation tests: every fault and every legal variant under every contract; `nox -s faults` stores the scores."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from conformance.contract import providers
from conformance.selftest.mutation_score import stored
from conformance.selftest.mutation_testing import PLANTED, PROFILES, Trial, home, pairs, trials
from conformance.selftest.scores import merged, table, wire_table, write

SURVIVORS = Path(__file__).parents[1] / "conformance" / "selftest" / "survivors.yaml"
Row = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="?", default="*", help="glob of faults and legal variants")
    parser.add_argument("--provider", action="append", default=[], choices=providers())
    parser.add_argument("--profile", action="append", default=[], choices=PROFILES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--home", action="store_true", help="each under one contract only, as in the tests")
    parser.add_argument("--store", action="store_true", help="store the scores; only without a glob and --home")
    options = parser.parse_args()
    start = time.monotonic()
    wanted = pairs(options.names, options.profile or PROFILES, options.provider)
    if options.home:
        wanted = [(provider, profile, name) for provider, profile, name in wanted if home(PLANTED[name]) == provider]
    results = []
    for result in trials(wanted, options.jobs):
        results.append(result)
        if len(results) % 100 == 0:
            print(f"{len(results)} of {len(wanted)} after {time.monotonic() - start:.0f} s", flush=True)
    print_exceptions(results, yaml.safe_load(SURVIVORS.read_text("utf-8")))
    print(table(results))
    print(f"{len(results)} trials in {time.monotonic() - start:.0f} s with {options.jobs} processes")
    wire = {name: profiles["gate"] for name, profiles in stored().get("wire", {}).items()}
    if wire and options.names == "*":
        print(f"\nStored scores of wire mutations (`nox -s wire-mutations`):\n{wire_table(wire)}")
    if options.store and options.names == "*" and not options.home:
        write(merged(results))


def print_exceptions(results: Sequence[Trial], survivors: Sequence[Row]) -> None:
    """Print which faults survived or crashed, which checks failed unexpectedly, and which flagged a legal variant."""
    for result in results:
        where = f"{result.provider} {result.profile} {result.name}"
        listed = listed_reason(result, survivors)
        if not result.check:
            if not result.accepted:
                print(f"FLAGGED {where}: {result.why}")
        elif not result.killed:
            print(f"SURVIVED {where} ({result.check}, triggered {result.triggered}): {listed or result.why}")
        elif result.crashed:
            print(f"CRASHED {where}: {result.why}")
        elif result.unexpected:
            print(f"unexpected {where} ({result.check}): {', '.join(result.unexpected)}")
        if result.killed and listed:
            print(f"LISTED BUT KILLED {where}")


def listed_reason(result: Trial, survivors: Sequence[Row]) -> str:
    """Why this fault may survive, according to survivors.yaml; empty where it may not."""
    for row in survivors:
        matches = fnmatchcase(result.name, row["fault"]) and result.profile == row["profile"]
        if matches and result.provider in row.get("providers", [result.provider]):
            return row["reason"]
    return ""


if __name__ == "__main__":
    main()
