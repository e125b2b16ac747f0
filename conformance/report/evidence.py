"""Which exchanges a report has to show: those that evidence names, and what they were compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any, Final

from conformance.judge.catalogue import load
from conformance.model.exchange import Exchange
from conformance.report.tally import Row

MOST_OCCURRENCES: Final = 1_500
"""Occurrences in one report, shared by the rows that have any."""
MOST_COMPANIONS: Final = 3


@dataclass(frozen=True)
class CitedTraffic:
    """The exchanges of a run by case, and by the groups that they are judged in."""

    exchanges: Mapping[str, Exchange]

    @cached_property
    def members(self) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
        """Role and case of the members of each group."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for x in self.exchanges.values():
            for part in x.case.groups:
                found[part.kind, part.key].append((part.role, x.case.id))
        return found

    def companions(self, row: Row, case: str) -> list[tuple[str, str]]:
        """Role and case of what an exchange was compared with for this row: its twin, its control."""
        check, x = load().get(row["check"]), self.exchanges.get(case)
        if check is None or x is None or not check.group:
            return []
        groups = (self.exchanges[x.case.repeats].case if x.case.repeats in self.exchanges else x.case).groups
        found = (
            member
            for part in groups
            if part.kind == check.group and (not check.keyed or part.key.partition(" ")[0] == row["id"])
            for member in self.members[part.kind, part.key]
            if member != (part.role, x.case.id) and member[0] != part.role
        )
        return list(dict.fromkeys(found))[:MOST_COMPANIONS]


def with_companions(rows: Sequence[Row], traffic: CitedTraffic) -> list[Row]:
    """The rows with no more occurrences than one page can hold, each with what it was compared with."""
    most = max(MOST_OCCURRENCES // max(sum(bool(row["evidence"]) for row in rows), 1), 2)
    return [{**row, "evidence": list(_told(row, traffic, most))} if row["evidence"] else row for row in rows]


def _told(row: Row, traffic: CitedTraffic, most: int) -> Iterator[dict[str, Any]]:
    """Occurrences; `again` where the same was said before, so that it need not be said twice."""
    said: set[str] = set()
    for one in row["evidence"][:most]:
        yield {**one, "again": one["message"] in said, "beside": traffic.companions(row, one["case"])}
        said.add(one["message"])


def citations(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Cited cases with the places cited in them: the first of each row, then the second of each, and so on."""
    found: dict[str, list[str]] = {}
    for one in chain.from_iterable(zip_longest(*map(_cited, rows))):
        for case, at in one or ():
            places = found.setdefault(case, [])
            places += [at] if at is not None else []
    return found


def _cited(row: Row) -> Iterator[list[tuple[str, str | None]]]:
    """What a row cites: its first occurrence, its smallest request, the other occurrences."""
    told = [[(one["case"], one["at"]), *((case, None) for _, case in one["beside"])] for one in row["evidence"]]
    smallest = row.get("smallest")
    yield from told[:1]
    if smallest:
        yield [(smallest["case"], None)]
    yield from told[1:]
