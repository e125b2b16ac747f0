"""Each change of a good reply, and who notices: path by path. `nox -s mutators` runs this."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

import yaml

from conformance.contract import providers
from conformance.reference.mutators import mutators, notice
from conformance.reference.proof import ground
from conformance.reference.scores import write_wire

REASONS = Path(__file__).parents[1] / "conformance" / "reference" / "unnoticed.yaml"
Found = tuple[str, str, str, list[str], bool]


def tried(provider: str) -> list[Found]:
    where = ground(provider, "gate")
    found = []
    for one in mutators(where.plain.exchanges if where.plain else ()):
        checks, changed = notice(where, one)
        found.append((provider, one.place, one.change, sorted(checks), changed))
    return found


def reason_of(provider: str, name: str, rows: list[dict[str, object]]) -> str:
    for row in rows:
        if fnmatchcase(name, str(row["at"]).replace("[", "[[]")) and provider in row.get("providers", [provider]):  # type: ignore[operator]
            return str(row["reason"])
    return ""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--provider", action="append", default=[], choices=providers())
    asked.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked.add_argument("--store", action="store_true", help="keep the score, apart from that of the named faults")
    given = asked.parse_args()
    rows = yaml.safe_load(REASONS.read_text("utf-8"))
    kept = {}
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for found in pool.map(tried, given.provider or providers()):
            kept[found[0][0]] = told(found, rows)
    if given.store:
        write_wire(kept)


def told(found: list[Found], rows: list[dict[str, object]]) -> dict[str, int]:
    """Print what nobody noticed, path by path; the counts."""
    provider, noticed, gaps, right = found[0][0], 0, defaultdict(list), defaultdict(list)
    for _, place, change, checks, changed in found:
        if not changed:
            raise SystemExit(f"{provider}: {place} {change} changed nothing; the mutator is wrong")
        if checks:
            noticed += 1
            continue
        reason = reason_of(provider, f"{place} {change}", rows)
        (right[place, reason] if reason else gaps[place, ""]).append(change)
    print(f"\n{provider}: {noticed} of {len(found)} noticed")
    for (place, reason), changes in right.items():
        print(f"  rightly not  {place}: {', '.join(changes)} – {reason}")
    for (place, _), changes in gaps.items():
        print(f"  GAP          {place}: {', '.join(changes)}")
    excused = sum(map(len, right.values()))
    return {"noticed": noticed, "of": len(found), "rightly_not": excused, "gaps": len(found) - noticed - excused}


if __name__ == "__main__":
    main()
