"""Waiver files: broken requirements that are accepted for one target until a date, each with a reason and an owner."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from conformance.config.settings import SettingsError
from conformance.config.toml_file import read as read_toml

SCHEMA: Final = "config/waivers.schema.json"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One waiver: a requirement id or a glob of ids, for one target, until the end of a day in UTC.

    `fingerprint` identifies the accepted evidence; other evidence is another failure. Empty: any evidence.
    """

    requirement: str
    target: str
    reason: str
    owner: str
    link: str
    expires: date
    fingerprint: tuple[str, ...] = ()

    def covers(self, requirement_id: str) -> bool:
        """Whether this waiver is for the requirement with this id."""
        return requirement_id == self.requirement or fnmatchcase(requirement_id, self.requirement)

    def as_json(self) -> dict[str, Any]:
        """The waiver as results.json shows it."""
        facts = {name: getattr(self, name) for name in ("requirement", "reason", "owner", "link")}
        return {**facts, "expires": self.expires.isoformat()}


def read(path: Path) -> tuple[Waiver, ...]:
    """The waivers of a file. SettingsError says in one line what is wrong with it."""
    waivers = []
    for number, entry in enumerate(read_toml(path, SCHEMA).get("waiver", ()), 1):
        try:
            expires = date.fromisoformat(entry["expires"])
        except ValueError:
            raise SettingsError(
                f"{path}: waiver {number} expires {entry['expires']}; expected a date that exists"
            ) from None
        waivers.append(Waiver(**{**entry, "expires": expires, "fingerprint": tuple(entry.get("fingerprint", ()))}))
    return tuple(waivers)


def check(waivers: Sequence[Waiver], target: str, requirement_ids: Collection[str]) -> None:
    """Refuse a waiver of this target for a requirement that its contract does not have."""
    for waiver in waivers:
        if waiver.target == target and not any(map(waiver.covers, requirement_ids)):
            number = len(requirement_ids)
            raise SettingsError(
                f"the waiver of {waiver.requirement!r} for {target} matches none of {number} requirements;"
                " correct the id, or delete the waiver"
            )


def check_targets(waivers: Sequence[Waiver], targets: Collection[str]) -> None:
    """Refuse a waiver for a target that does not exist."""
    for waiver in waivers:
        if waiver.target not in targets:
            expected = ", ".join(sorted(targets))
            raise SettingsError(
                f"the waiver of {waiver.requirement!r} is for {waiver.target!r}; expected one of {expected}"
            )
