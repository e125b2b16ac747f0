"""The allowlist of wire mutations: which changes of a good reply no check need detect, and why (undetected.yaml)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from conformance.contract import providers
from conformance.contract.yaml_file import read_yaml

FILE: Final = Path(__file__).parent / "undetected.yaml"
Place: TypeAlias = tuple[str, str, str]
"""Provider, place in a reply, and change."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Changes at a place that do not matter to a client, under these contracts."""

    at: str
    changes: tuple[str, ...]
    providers: tuple[str, ...]
    reason: str
    names_providers: bool = False

    def covers(self, provider: str, place: str, change: str) -> bool:
        pattern = self.at.replace("[", "[[]")  # a bracket stands for itself
        return provider in self.providers and change in self.changes and fnmatchcase(place, pattern)


def allowlist() -> tuple[Entry, ...]:
    """All entries; the first that covers a change gives its reason."""
    everybody = tuple(providers())
    return tuple(
        Entry(
            at=row["at"],
            changes=tuple(row["changes"]),
            providers=tuple(row.get("providers", everybody)),
            reason=row["reason"],
            names_providers="providers" in row,
        )
        for row in read_yaml(FILE)
    )


def reason(entries: Iterable[Entry], provider: str, place: str, change: str) -> str:
    """Why this change may go undetected; empty where no entry covers it."""
    return next((entry.reason for entry in entries if entry.covers(provider, place, change)), "")


def unneeded(entries: Iterable[Entry], undetected: Collection[Place], detected: Collection[Place]) -> Iterator[str]:
    """Entries that the allowlist does not need: changes that some check detects, or that no contract lets pass."""
    for entry in entries:
        used = {place for place in undetected if entry.covers(*place)}
        named_providers = set(entry.providers if entry.names_providers else ())
        for provider in sorted(named_providers - {place[0] for place in used}):
            yield f"{entry.at} {', '.join(entry.changes)}: not needed under {provider}"
        needed = {place[1:] for place in used}
        for at, change in sorted({place[1:] for place in detected if entry.covers(*place)} - needed):
            yield f"{entry.at}: covers {at} {change}, which is detected"
        for change in sorted(set(entry.changes) - {place[2] for place in used}):
            yield f"{entry.at}: {change} is detected under every contract"
