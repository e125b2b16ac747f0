"""What a doubtful verdict asks for: the same exchanges again, a bounded number of times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from conformance.model import Level, Phase, RequestCase, Verdict
from conformance.model.exchange import Exchange

COPIES: Final = 3  # of each exchange, the first included
MOST_CASES: Final = 120  # of a run


def repeats(
    verdicts: Iterable[Verdict], phases: Sequence[Phase], exchanges: Iterable[Exchange], room: int = MOST_CASES
) -> tuple[Phase, ...]:
    """Waves that send again what verdicts are in doubt about; what went out as a burst goes out as a burst."""
    by_id = {x.case.id: x.case for x in exchanges}
    made = Counter(case.repeats or case.id for case in by_id.values())
    again = {by_id[name]: COPIES - made[name] for name in _chosen(_doubts(verdicts, by_id), made, room)}
    bursts = [phase.cases[: phase.burst] for phase in phases if phase.burst]
    found: list[Phase] = []
    alone = [case for case in again if not any(case in burst for burst in bursts)]
    for members, crowd in ((alone, False), *(([one for one in again if one in burst], True) for burst in bursts)):
        for turn in range(COPIES - 1):
            cases = tuple(_copy(case, made[case.id] + turn) for case in members if turn < again[case])[:room]
            room -= len(cases)
            if cases:
                found.append(Phase(f"repeat {turn + 1}", cases, burst=len(cases) if crowd else 0))
    return tuple(found)


def _doubts(verdicts: Iterable[Verdict], by_id: Mapping[str, RequestCase]) -> list[tuple[str, ...]]:
    """What is in doubt, each as the cases that would settle it: one doubt of each row before a second of any."""
    found = []
    for verdict in verdicts:
        for turn, cases in enumerate(verdict.repeat):
            names = dict.fromkeys(by_id[name].repeats or name for name in cases if name in by_id)
            rank = turn, list(Level).index(verdict.requirement.level), len(names)
            found.append((rank, tuple(name for name in names if name in by_id)))
    return [names for _, names in sorted(found, key=lambda one: one[0])]


def _chosen(doubts: Iterable[tuple[str, ...]], made: Mapping[str, int], room: int) -> dict[str, None]:
    """The cases of as many doubts as there is room to settle: half of what one takes settles nothing."""
    chosen: dict[str, None] = {}
    for names in doubts:
        new = [name for name in names if name not in chosen and made[name] < COPIES]
        price = sum(COPIES - made[name] for name in new)
        if price <= room:
            room -= price
            chosen.update(dict.fromkeys(new))
    return chosen


def _copy(case: RequestCase, number: int) -> RequestCase:
    return replace(case, id=f"{case.id}~{number}", repeats=case.id, groups=())
