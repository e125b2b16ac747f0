"""Why it is right that nobody notices a change on the wire: unnoticed.yaml, read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from conformance.contract import providers
from conformance.contract.yaml_file import read_yaml

FILE: Final = Path(__file__).parent / "undetected.yaml"


@dataclass(frozen=True)
class Excuse:
    """The changes at a place that a client has no reason to mind, under these contracts."""

    at: str
    changes: tuple[str, ...]
    providers: tuple[str, ...]
    reason: str
    narrow: bool = False  # whether it names its contracts

    def covers(self, provider: str, place: str, change: str) -> bool:
        pattern = self.at.replace("[", "[[]")  # a bracket is a bracket here
        return provider in self.providers and change in self.changes and fnmatchcase(place, pattern)


def excuses() -> tuple[Excuse, ...]:
    """All of them; the first that covers a change speaks for it."""
    everybody = tuple(providers())
    return tuple(
        Excuse(
            row["at"], tuple(row["changes"]), tuple(row.get("providers", everybody)), row["reason"], "providers" in row
        )
        for row in read_yaml(FILE)
    )


def reason(rows: Iterable[Excuse], provider: str, place: str, change: str) -> str:
    """Why this change may go unnoticed; empty where nobody says."""
    return next((row.reason for row in rows if row.covers(provider, place, change)), "")


Place = tuple[str, str, str]  # provider, place, change


def idle(rows: Iterable[Excuse], unnoticed: Collection[Place], noticed: Collection[Place]) -> Iterator[str]:
    """What is listed and noticed all the same: a place that no contract of its row lets pass, a contract of no use."""
    for row in rows:
        used = {one for one in unnoticed if row.covers(*one)}
        for provider in sorted(set(row.providers if row.narrow else ()) - {one[0] for one in used}):
            yield f"{row.at} {', '.join(row.changes)}: of no use under {provider}"
        covered = {one[1:] for one in noticed if row.covers(*one)} | {one[1:] for one in used}
        for place, change in sorted(covered - {one[1:] for one in used}):
            yield f"{row.at}: covers {place} {change}, which is noticed"
        for change in sorted(set(row.changes) - {one[2] for one in used}):
            yield f"{row.at}: nobody lets {change} pass"
