"""What a doubtful verdict asks for: the same exchanges again, a bounded number of times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from conformance.exchange import Exchange
from conformance.model import RequestCase, Verdict, Wave

COPIES: Final = 3  # of each exchange, the first included
MOST_CASES: Final = 120  # of a run


def repeats(
    verdicts: Iterable[Verdict], waves: Sequence[Wave], exchanges: Iterable[Exchange], room: int = MOST_CASES
) -> tuple[Wave, ...]:
    """Waves that send again what verdicts are in doubt about; what went out as a burst goes out as a burst."""
    by_id = {x.case.id: x.case for x in exchanges}
    originals = dict.fromkeys(
        by_id[wanted].repeats or wanted for verdict in verdicts for wanted in verdict.repeat if wanted in by_id
    )
    made = Counter(case.repeats or case.id for case in by_id.values())
    again = {by_id[original]: COPIES - made[original] for original in originals if original in by_id}
    bursts = [wave for wave in waves if wave.burst]
    found: list[Wave] = []
    alone = [case for case in again if not any(case in wave.cases for wave in bursts)]
    for members, burst in ((alone, False), *(([one for one in again if one in wave.cases], True) for wave in bursts)):
        for turn in range(COPIES - 1):
            cases = tuple(_copy(case, made[case.id] + turn) for case in members if turn < again[case])[:room]
            room -= len(cases)
            if cases:
                found.append(Wave(f"repeat {turn + 1}", cases, burst=burst))
    return tuple(found)


def _copy(case: RequestCase, number: int) -> RequestCase:
    return replace(case, id=f"{case.id}~{number}", repeats=case.id, groups=())
