"""The curve of `gate`: how many faults of the reference it finds with how many requests.

python bench/gate.py [PROVIDER …] [--requests N …] [--faults GLOB] [--each N]

Each ceiling is planned anew, with requests chosen by expected defects and, to compare, by rank, and every N-th fault is
tried. A fault is found when a check fails that does not fail without it, whether that is its primary check or another.
"""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase

from conformance.contract import providers
from conformance.model.budget import Budget
from conformance.model.exchange import Exchange
from conformance.plan.planner import LEFT_OUT, Phases, Planner
from conformance.reference.core import Reference
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.fault import Fault
from conformance.selftest.faults import FAULTS
from conformance.selftest.in_process_run import InProcessRun, run_in_process
from conformance.selftest.mutation_testing import FIXED_TIME, KEY, Baseline, baseline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("providers", nargs="*", default=providers())
    parser.add_argument("--requests", nargs="*", type=int, default=[40, 60, 80, 100, 120])
    parser.add_argument("--faults", default="*", help="glob of faults")
    parser.add_argument("--each", type=int, default=1, help="only every N-th fault")
    options = parser.parse_args()
    print(f"{'contract':<12} {'chosen by':<17} requests   found  primary      of")
    for provider in options.providers:
        where = baseline(provider, "gate")
        named = [fault for fault in FAULTS.values() if fnmatchcase(fault.name, options.faults)]
        faults = [fault for fault in named if fault.applies(where.contract)][:: options.each]
        for by_rank in (True, False):
            for requests in options.requests:
                print(point(where, faults, requests, by_rank=by_rank), flush=True)


def point(where: Baseline, faults: list[Fault], requests: int, *, by_rank: bool) -> str:
    """One point of the curve."""
    plain = run(where, (), requests, by_rank=by_rank)
    failed = [run(where, (fault,), requests, by_rank=by_rank).checks - plain.checks for fault in faults]
    primary = sum(fault.check in checks for fault, checks in zip(faults, failed, strict=True))
    found = sum(map(bool, failed))
    how = "rank" if by_rank else "expected defects"
    return f"{where.contract.provider:<12} {how:<17} {requests:>8} {found:>7} {primary:>8} {len(faults):>7}"


def run(where: Baseline, faults: tuple[Fault, ...], requests: int, *, by_rank: bool) -> InProcessRun:
    """A run of `gate` with at most `requests` requests."""
    reference: Reference = altered_reference(where.contract, KEY, now=lambda: FIXED_TIME, faults=faults)
    plan = Planner(where.context, where.drawn, Budget(requests), serving=where.coverage, by_rank=by_rank).phases()
    return run_in_process(reference, within_ceiling(plan), attempts=requests)


def within_ceiling(plan: Phases) -> Phases:
    """A plan without what its ceiling left out."""
    exchanges: tuple[Exchange, ...] | None = None
    while True:
        try:
            phase = next(plan) if exchanges is None else plan.send(exchanges)
        except StopIteration:
            return
        if phase.name == LEFT_OUT:
            return
        exchanges = yield phase


if __name__ == "__main__":
    main()
