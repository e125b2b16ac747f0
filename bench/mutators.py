"""Wire mutations: each change of a good reply, and which checks detect it; `nox -s wire-mutations` stores them."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeAlias

from conformance.contract import providers
from conformance.selftest.allowlist import Place, allowlist, reason, unneeded
from conformance.selftest.mutation_testing import baseline
from conformance.selftest.scores import wire_table, write_wire
from conformance.selftest.wire_mutations import detecting_checks, mutators

Result: TypeAlias = tuple[str, str, str, frozenset[str]]
"""Place, change, which occurrence of several, and the checks that detect it."""


def mutated(provider: str) -> tuple[str, list[Result]]:
    where = baseline(provider, "gate")
    results = []
    for mutator in mutators(where.plain.exchanges if where.plain else ()):
        checks, changed = detecting_checks(where, mutator)
        if not changed:
            raise SystemExit(f"{provider}: {mutator.name} changed nothing; the mutator is wrong")
        results.append((mutator.place, mutator.change, mutator.occurrence, checks))
    return provider, results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", action="append", default=[], choices=providers())
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--store", action="store_true", help="store the counts, beside the scores of the faults")
    parser.add_argument("--all", action="store_true", help="print what is detected too, and by which checks")
    options = parser.parse_args()
    counts = {}
    detected: set[Place] = set()
    undetected: set[Place] = set()
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for provider, results in pool.map(mutated, options.provider or providers()):
            counts[provider] = report(provider, results, everything=options.all)
            for place, change, _, checks in results:
                (detected if checks else undetected).add((provider, place, change))
    print(f"\n{wire_table(counts)}")
    if not options.provider:
        for line in unneeded(allowlist(), undetected, detected):
            print(f"NOT NEEDED IN undetected.yaml: {line}")
    if options.store:
        write_wire(counts)


def report(provider: str, results: Sequence[Result], *, everything: bool = False) -> dict[str, object]:
    """Print what no check detects, by place, with the reason of the allowlist; return counts and names."""
    entries = allowlist()
    detected = {(place, change) for place, change, _, checks in results if checks}
    undetected: dict[tuple[str, str], list[str]] = defaultdict(list)
    for place, change, which, checks in results:
        if not checks:
            undetected[place, change].append(which)
        elif everything:
            print(f"  detected  {place}: {change} {which} – {', '.join(sorted(checks))}")
    lines: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    accepted = 0
    for (place, change), occurrences in undetected.items():
        why = reason(entries, provider, place, change)
        accepted += len(occurrences) if why else 0
        shown = f"{change} ({', '.join(occurrences)})" if (place, change) in detected else change
        lines["accepted" if why else "GAP", place, why].append(shown)
    names = sorted(f"{place} {change} {one}".strip() for (place, change), which in undetected.items() for one in which)
    print(f"\n{provider}: {len(results) - len(names)} of {len(results)} wire mutations detected")
    for (word, place, why), changes in lines.items():
        print(f"  {word:<8}  {place}: {', '.join(changes)}{' – ' if why else ''}{why}")
    return {
        "detected": len(results) - len(names),
        "of": len(results),
        "accepted": accepted,
        "gaps": len(names) - accepted,
        "undetected": names,
    }


if __name__ == "__main__":
    main()
