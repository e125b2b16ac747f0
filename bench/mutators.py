"""Each change of a good reply, and who notices: path by path. `nox -s mutators` runs this."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from conformance.contract import providers
from conformance.selftest.allowlist import Place, excuses, idle, reason
from conformance.selftest.mutation_testing import baseline
from conformance.selftest.scores import wire_table, write_wire
from conformance.selftest.wire_mutations import detecting_checks, mutators

# Where, what, at which occurrence of several, and the checks that fall.
Found = tuple[str, str, str, frozenset[str]]


def tried(provider: str) -> tuple[str, list[Found]]:
    where = baseline(provider, "gate")
    found = []
    for one in mutators(where.plain.exchanges if where.plain else ()):
        checks, changed = detecting_checks(where, one)
        if not changed:
            raise SystemExit(f"{provider}: {one.name} changed nothing; the mutator is wrong")
        found.append((one.place, one.change, one.which, checks))
    return provider, found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--provider", action="append", default=[], choices=providers())
    asked.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked.add_argument("--store", action="store_true", help="keep the score, apart from that of the named faults")
    asked.add_argument("--all", action="store_true", help="print what is noticed too, and by which checks")
    given = asked.parse_args()
    kept = {}
    seen: set[Place] = set()
    missed: set[Place] = set()
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for provider, found in pool.map(tried, given.provider or providers()):
            kept[provider] = told(provider, found, whole=given.all)
            for place, change, _, checks in found:
                (seen if checks else missed).add((provider, place, change))
    print(f"\n{wire_table(kept)}")
    if not given.provider:
        for line in idle(excuses(), missed, seen):
            print(f"LISTED, BUT NOTICED {line}")
    if given.store:
        write_wire(kept)


def told(provider: str, found: Sequence[Found], *, whole: bool = False) -> dict[str, object]:
    """Print what nobody noticed, path by path, and why that is right; the counts, and the names of all of it."""
    rows = excuses()
    seen = {(place, change) for place, change, _, checks in found if checks}
    missed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for place, change, which, checks in found:
        if not checks:
            missed[place, change].append(which)
        elif whole:
            print(f"  noticed      {place}: {change} {which} – {', '.join(sorted(checks))}")
    lines: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    excused = 0
    for (place, change), which in missed.items():
        why = reason(rows, provider, place, change)
        excused += len(which) if why else 0
        word = "rightly not" if why else "GAP"
        lines[word, place, why].append(f"{change} ({', '.join(which)})" if (place, change) in seen else change)
    names = sorted(f"{place} {change} {one}".strip() for (place, change), which in missed.items() for one in which)
    print(f"\n{provider}: {len(found) - len(names)} of {len(found)} changes on the wire noticed")
    for (word, place, why), changes in lines.items():
        print(f"  {word:<12} {place}: {', '.join(changes)}{' – ' if why else ''}{why}")
    return {
        "noticed": len(found) - len(names),
        "of": len(found),
        "rightly_not": excused,
        "gaps": len(names) - excused,
        "unnoticed": names,
    }


if __name__ == "__main__":
    main()
