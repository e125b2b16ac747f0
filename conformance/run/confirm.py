"""Confirmation: what a doubtful verdict depends on is sent again, a bounded number of times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from conformance.model import ENOUGH_REPLIES, Level, Phase, RequestCase, Verdict
from conformance.model.exchange import Exchange

COPIES: Final = ENOUGH_REPLIES
"""Exchanges of one request at most, the first included: as many as a comparison needs to tell flaky from broken."""
PAIR: Final = 2
"""A case and the one before it."""
MOST_CASES: Final = 120
"""Requests for confirmation in one run at most: as many attempts as the gate profile has in all."""


def confirmation_phases(
    verdicts: Iterable[Verdict], phases: Sequence[Phase], exchanges: Iterable[Exchange], room: int = MOST_CASES
) -> tuple[Phase, ...]:
    """Phases that send again what verdicts are doubtful about.

    Cases of a burst go out as a burst again. A case of a serial phase goes out after a copy of the one before it, which
    may be what made its reply wrong.
    """
    by_id = {exchange.case.id: exchange.case for exchange in exchanges}
    sent = Counter(case.repeats or case.id for case in by_id.values())
    missing = {by_id[name]: COPIES - sent[name] for name in _affordable(_doubts(verdicts, by_id), sent, room)}
    bursts = [phase.cases[: phase.burst] for phase in phases if phase.burst]
    follows = _predecessors(phases)
    single = [case for case in missing if case not in follows and not any(case in burst for burst in bursts)]
    groups = [(single, False), *(([case for case in missing if case in burst], True) for burst in bursts)]
    confirmation: list[Phase] = []
    for cases, as_burst in groups:
        for turn in range(COPIES - 1):
            copies = tuple(copy_of(case, sent[case.id] + turn) for case in cases if turn < missing[case])[:room]
            room -= len(copies)
            if copies:
                confirmation.append(Phase(f"repeat {turn + 1}", copies, burst=len(copies) if as_burst else 0))
    for case in (case for case in missing if case in follows):
        for turn in range(missing[case]):
            if room >= PAIR:
                before = copy_of(follows[case], sent[follows[case].id])
                sent[follows[case].id] += 1
                pair = (before, copy_of(case, sent[case.id] + turn))
                confirmation.append(Phase(f"repeat {turn + 1} in order", pair, serial=True))
                room -= PAIR
    return tuple(confirmation)


def _predecessors(phases: Sequence[Phase]) -> dict[RequestCase, RequestCase]:
    """The case before each of those that were sent one after another and that are judged by what came before them."""
    return {
        case: before
        for phase in phases
        if phase.serial
        for before, case in pairwise(phase.cases)
        if any(part.role == "after" for part in case.groups)
    }


def _doubts(verdicts: Iterable[Verdict], by_id: Mapping[str, RequestCase]) -> list[tuple[str, ...]]:
    """Each doubt as the ids of the cases that settle it: the first of each verdict, by level, before any second."""
    ranked = []
    for verdict in verdicts:
        for turn, cases in enumerate(verdict.repeat):
            originals = dict.fromkeys(by_id[name].repeats or name for name in cases if name in by_id)
            rank = turn, list(Level).index(verdict.requirement.level), len(originals)
            ranked.append((rank, tuple(name for name in originals if name in by_id)))
    return [names for _, names in sorted(ranked, key=lambda item: item[0])]


def _affordable(doubts: Iterable[tuple[str, ...]], sent: Mapping[str, int], room: int) -> dict[str, None]:
    """The cases of the doubts that there is room to settle entirely: half of what one needs settles nothing."""
    chosen: dict[str, None] = {}
    for names in doubts:
        added = [name for name in names if name not in chosen and sent[name] < COPIES]
        price = sum(COPIES - sent[name] for name in added)
        if price <= room:
            room -= price
            chosen.update(dict.fromkeys(added))
    return chosen


def copy_of(case: RequestCase, number: int) -> RequestCase:
    """The case once more, with an id of its own."""
    return replace(case, id=f"{case.id}~{number}", repeats=case.id, groups=())
