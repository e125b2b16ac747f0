"""A whole run against the reference in process: plan, play, judge, doubts settled; what the kill matrix is made of."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass

from conformance.judge import Traffic, judge_all
from conformance.judge.finding_cache import FindingCache
from conformance.model import BROKEN, Phase, RequestCase, Verdict
from conformance.model.exchange import Exchange
from conformance.reference.core import Reference
from conformance.run.confirm import MOST_CASES, repeats
from conformance.selftest.in_process import play


@dataclass(frozen=True)
class InProcessRun:
    """What was planned, what came back, and the verdicts on it."""

    planned: tuple[RequestCase, ...]
    exchanges: tuple[Exchange, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> frozenset[str]:
        """The ids of all requirements that failed, warned or flickered."""
        return frozenset(verdict.requirement.id for verdict in self.verdicts if verdict.outcome in BROKEN)

    @property
    def checks(self) -> frozenset[str]:
        """The checks behind them."""
        return frozenset(verdict.requirement.check for verdict in self.verdicts if verdict.outcome in BROKEN)


def run_in_process(
    provider: Reference,
    plan: Generator[Phase, tuple[Exchange, ...], None],
    known: Mapping[str, Exchange] | None = None,
    cache: FindingCache | None = None,
    attempts: int | None = None,
) -> InProcessRun:
    """Play a plan and the repeats that its verdicts ask for, `attempts` in all where there is a limit.

    `known` are exchanges by case: what comes back the same again is taken from there, read already; and `cache` has
    what was concluded of them.
    """
    cache = cache or FindingCache()
    known = known or {}
    phases: list[Phase] = []
    exchanges: list[Exchange] = []

    def send(phase: Phase) -> tuple[Exchange, ...]:
        phases.append(phase)
        found = tuple(known[x.case.id] if known.get(x.case.id) == x else x for x in play(provider, [phase]))
        exchanges.extend(found)
        return found

    try:
        found = send(next(plan))
        while True:
            found = send(plan.send(found))
    except StopIteration:
        pass
    room = MOST_CASES if attempts is None else min(MOST_CASES, attempts - len(exchanges))
    while True:
        planned = tuple(case for phase in phases for case in phase.cases)
        verdicts = judge_all(provider.contract, Traffic(exchanges, planned, cache))
        again = repeats(verdicts, phases, exchanges, room)
        if not again:
            return InProcessRun(planned, tuple(exchanges), verdicts)
        for phase in again:
            room -= len(phase.cases)
            send(phase)
