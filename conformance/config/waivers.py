"""Failures that are accepted for a time: known, owned, dated. What is no longer true of them fails the run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from conformance.config.settings import SettingsError
from conformance.config.toml_file import read as read_toml
from conformance.report.diff import fingerprints
from conformance.report.tally import Row, broken, gates
from conformance.report.text import visible

SCHEMA: Final = "config/waivers.schema.json"
DRAFT_HOLDS: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted failure: a requirement's id or a glob of ids, for one target, until the end of a day in UTC.

    `fingerprint` has the marks of the accepted evidence: other evidence is another failure. Empty: any evidence.
    """

    requirement: str
    target: str
    reason: str
    owner: str
    link: str
    expires: date
    fingerprint: tuple[str, ...] = ()

    def speaks_of(self, id: str) -> bool:  # noqa: A002
        return id == self.requirement or fnmatchcase(id, self.requirement)

    def told(self) -> dict[str, Any]:
        """What results.json says of it."""
        facts = {name: getattr(self, name) for name in ("requirement", "reason", "owner", "link")}
        return {**facts, "expires": self.expires.isoformat()}


def read(path: Path) -> tuple[Waiver, ...]:
    """The waivers of a file. SettingsError says in one line what is wrong with it."""
    found = []
    for place, one in enumerate(read_toml(path, SCHEMA).get("waiver", ()), 1):
        try:
            expires = date.fromisoformat(one["expires"])
        except ValueError:
            raise SettingsError(
                f"{path}: waiver {place} expires {one['expires']}; expected a day that exists"
            ) from None
        found.append(Waiver(**{**one, "expires": expires, "fingerprint": tuple(one.get("fingerprint", ()))}))
    return tuple(found)


def check(waivers: Sequence[Waiver], target: str, ids: Collection[str]) -> None:
    """Refuse a waiver of this target for a requirement that its contract does not have."""
    for one in waivers:
        if one.target == target and not any(map(one.speaks_of, ids)):
            raise SettingsError(
                f"the waiver of {one.requirement!r} for {target} speaks of none of {len(ids)} requirements;"
                " correct the id, or delete the waiver"
            )


def check_targets(waivers: Sequence[Waiver], targets: Collection[str]) -> None:
    """Refuse a waiver for a target that nobody judges."""
    for one in waivers:
        if one.target not in targets:
            raise SettingsError(
                f"the waiver of {one.requirement!r} is for {one.target!r}; expected one of {', '.join(sorted(targets))}"
            )


def today() -> date:
    """The day in UTC, so that a waiver ends everywhere at once."""
    return datetime.now(UTC).date()


def apply(
    rows: Sequence[Row], waivers: Sequence[Waiver], target: str, day: date
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows with `waiver` filled in where a failure is accepted, and what is no longer true of the waivers."""
    ours = [one for one in waivers if one.target == target]
    valid = [one for one in ours if day <= one.expires]
    marked = [{**row, "waiver": _accepted(row, valid)} for row in rows]
    return marked, [said for one in ours for said in _faults(one, marked, day)]


def _accepted(row: Row, waivers: Sequence[Waiver]) -> dict[str, Any] | None:
    if not broken(row):
        return None
    return next((one.told() for one in waivers if one.speaks_of(row["id"]) and not _strange(one, row)), None)


def _strange(waiver: Waiver, row: Row) -> list[str]:
    """What was observed beyond what was accepted."""
    if not waiver.fingerprint:
        return []
    return [said for mark, said in marks(row).items() if mark not in waiver.fingerprint]


def _faults(waiver: Waiver, rows: Sequence[Row], day: date) -> Iterator[str]:
    name = f"the waiver of {waiver.requirement} for {waiver.target} ({waiver.owner})"
    about = [row for row in rows if waiver.speaks_of(row["id"])]
    if day > waiver.expires:
        yield f"{name} expired on {waiver.expires}; mend the target, or accept the failure anew: {waiver.link}"
        return
    outcomes = {row["outcome"] for row in about}
    if "pass" in outcomes and outcomes <= {"pass", "not_applicable"}:  # what was not seen may be broken still
        examined = sum(row["examined"] for row in about)
        yield f"{name} is stale: what it waives passes, with {examined} examined; delete the waiver"
    for row in about:
        strange = _strange(waiver, row) if not row["waiver"] else []
        if strange:
            yield (
                f"{name} does not fit: {row['id']} fails in another way than was accepted, {visible(strange[0])};"
                " mend the target, or accept this as well with `conformance waivers`"
            )


def marks(row: Row) -> dict[str, str]:
    """The marks of what a broken row was seen to do, and the message behind each."""
    return {
        sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]: said for name, said in fingerprints(row).items()
    }


def drafts(results: Mapping[str, Any], day: date, *, strict: bool = False) -> Iterator[str]:
    """A waiver for each failure that gates, as TOML: reason, owner and link are left to the one who accepts it."""
    for row in results["requirements"]:
        if not gates(row, strict=strict):
            continue
        found = marks(row)
        facts: dict[str, Any] = {
            "requirement": row["id"],
            "target": visible(results["target"]["name"]),
            "reason": "",
            "owner": "",
            "link": "",
            "fingerprint": sorted(found),
        }
        said = visible(next(iter(found.values()), row["reason"]))
        lines = [f"# {row['level']}: {row['promise']}", f"# observed: {said[:300]}", "[[waiver]]"]
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
        yield "\n".join([*lines, f"expires = {day + DRAFT_HOLDS}"]) + "\n"
