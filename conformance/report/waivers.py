"""Waivers applied to the results of a run, and drafts of new ones. A waiver that is no longer valid fails the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from hashlib import sha256
from typing import Any, Final

from conformance.config.waivers import Waiver
from conformance.report.diff import fingerprints
from conformance.report.tally import Row, broken, gates
from conformance.report.text import visible

DRAFT_VALID_FOR: Final = timedelta(days=30)


def apply(
    rows: Sequence[Row], waivers: Sequence[Waiver], target: str, day: date
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows with `waiver` filled in where a broken requirement is waived, and the faults of the waivers."""
    of_target = [waiver for waiver in waivers if waiver.target == target]
    in_force = [waiver for waiver in of_target if day <= waiver.expires]
    marked = [{**row, "waiver": _waiver_of(row, in_force)} for row in rows]
    return marked, [fault for waiver in of_target for fault in _faults(waiver, marked, day)]


def _waiver_of(row: Row, waivers: Sequence[Waiver]) -> dict[str, Any] | None:
    if not broken(row):
        return None
    fitting = (waiver for waiver in waivers if waiver.covers(row["id"]) and not _other_evidence(waiver, row))
    return next((waiver.as_json() for waiver in fitting), None)


def _other_evidence(waiver: Waiver, row: Row) -> list[str]:
    """What was observed and is not among the accepted evidence."""
    if not waiver.fingerprint:
        return []
    return [message for mark, message in marks(row).items() if mark not in waiver.fingerprint]


def _faults(waiver: Waiver, rows: Sequence[Row], day: date) -> Iterator[str]:
    name = f"the waiver of {waiver.requirement} for {waiver.target} ({waiver.owner})"
    covered = [row for row in rows if waiver.covers(row["id"])]
    if day > waiver.expires:
        yield f"{name} expired on {waiver.expires}; fix the target, or renew the waiver: {waiver.link}"
        return
    outcomes = {row["outcome"] for row in covered}
    if "pass" in outcomes and outcomes <= {"pass", "not_applicable"}:  # what was not verified may still be broken
        examined = sum(row["examined"] for row in covered)
        yield f"{name} is stale: what it waives passes, with {examined} examined; delete the waiver"
    for row in covered:
        messages = _other_evidence(waiver, row) if not row["waiver"] else []
        if messages:
            yield (
                f"{name} does not match: {row['id']} fails in another way, {visible(messages[0])};"
                " fix the target, or waive this as well with `conformance waivers`"
            )


def marks(row: Row) -> dict[str, str]:
    """The message of each piece of evidence in a broken row, by the 12 hexadecimal digits that a waiver stores."""
    return {
        sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]: message
        for name, message in fingerprints(row).items()
    }


def drafts(results: Mapping[str, Any], day: date, *, strict: bool = False) -> Iterator[str]:
    """A waiver for each failure that gates, as TOML; reason, owner and link are left for the owner to fill in."""
    for row in results["requirements"]:
        if not gates(row, strict=strict):
            continue
        evidence = marks(row)
        fields: dict[str, Any] = {
            "requirement": row["id"],
            "target": visible(results["target"]["name"]),
            "reason": "",
            "owner": "",
            "link": "",
            "fingerprint": sorted(evidence),
        }
        message = visible(next(iter(evidence.values()), row["reason"]))
        lines = [f"# {row['level']}: {row['promise']}", f"# observed: {message[:300]}", "[[waiver]]"]
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
        yield "\n".join([*lines, f"expires = {day + DRAFT_VALID_FOR}"]) + "\n"
