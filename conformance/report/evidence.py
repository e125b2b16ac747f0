"""Which exchanges a report shows: those that evidence cites, and those they were compared with."""

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
"""Occurrences in one report, shared by the rows that have any; more would make the page too large to open."""
MOST_COUNTERPARTS: Final = 3


@dataclass(frozen=True)
class CitedTraffic:
    """The exchanges of a run by case, and by the groups that they are judged in."""

    exchanges: Mapping[str, Exchange]

    @cached_property
    def members(self) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
        """Role and case of the members of each group."""
        members: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for exchange in self.exchanges.values():
            for membership in exchange.case.groups:
                members[membership.kind, membership.key].append((membership.role, exchange.case.id))
        return members

    def counterparts(self, row: Row, case: str) -> list[tuple[str, str]]:
        """Role and case of the exchanges that this one was compared with for this row, such as its control."""
        check, exchange = load().get(row["check"]), self.exchanges.get(case)
        if check is None or exchange is None or not check.group:
            return []
        original = self.exchanges.get(exchange.case.repeats, exchange)
        others = (
            (role, other)
            for membership in original.case.groups
            if membership.kind == check.group and (not check.keyed or membership.key.partition(" ")[0] == row["id"])
            for role, other in self.members[membership.kind, membership.key]
            if role != membership.role
        )
        return list(dict.fromkeys(others))[:MOST_COUNTERPARTS]


def with_counterparts(rows: Sequence[Row], traffic: CitedTraffic) -> list[Row]:
    """The rows with no more evidence than one page can hold, each piece with what it was compared with."""
    limit = max(MOST_OCCURRENCES // max(sum(bool(row["evidence"]) for row in rows), 1), 2)
    return [{**row, "evidence": list(_evidence(row, traffic, limit))} if row["evidence"] else row for row in rows]


def _evidence(row: Row, traffic: CitedTraffic, limit: int) -> Iterator[dict[str, Any]]:
    """Evidence with its counterparts; `again` marks a message that an earlier piece has as well."""
    messages: set[str] = set()
    for entry in row["evidence"][:limit]:
        yield {**entry, "again": entry["message"] in messages, "beside": traffic.counterparts(row, entry["case"])}
        messages.add(entry["message"])


def citations(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Cited cases with the places cited in them: the first of each row, then the second of each, and so on."""
    cited: dict[str, list[str]] = {}
    for citation in chain.from_iterable(zip_longest(*map(_cited, rows))):
        for case, at in citation or ():
            cited_places = cited.setdefault(case, [])
            cited_places += [at] if at is not None else []
    return cited


def _cited(row: Row) -> Iterator[list[tuple[str, str | None]]]:
    """What a row cites: its first evidence, its smallest request, the other evidence."""
    cited = [
        [(entry["case"], entry["at"]), *((case, None) for _, case in entry["beside"])] for entry in row["evidence"]
    ]
    smallest = row.get("smallest")
    yield from cited[:1]
    if smallest:
        yield [(smallest["case"], None)]
    yield from cited[1:]
