"""Two runs → what changed between them. A new requirement is no regression; what was not verified is not fixed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.model.exit_codes import ExitCode
from conformance.report.tally import VERIFIED, Row, broken, gates, urgency
from conformance.report.text import visible

BROKEN, FIXED, CHANGED, FLAKY, UNSETTLED, NEW, GONE = (
    "newly broken", "fixed", "changed evidence", "flaky", "no longer verified", "new requirement", "gone",
)  # fmt: skip
MEANING: Final = {
    BROKEN: "broken now, and not seen broken before",
    FIXED: "broken before, and no longer",
    CHANGED: "broken in both runs, but with other evidence",
    FLAKY: "flaky in one of the runs",
    UNSETTLED: "verified before and not now: neither fixed nor broken",
    NEW: "not judged before: no regression, whatever its verdict",
    GONE: "no longer judged",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One requirement whose verdict or evidence changed."""

    kind: str
    id: str
    before: Row | None
    after: Row | None
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The newer of the two."""
        newer = self.after or self.before
        assert newer is not None  # noqa: S101 - a change has at least one side
        return newer

    def gates(self, *, strict: bool = False) -> bool:
        """Whether this is a new failure that makes the comparison fail."""
        return self.kind == BROKEN and gates(self.row, strict=strict)


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes, the most urgent kind first, and what makes the two runs less comparable."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    unchanged: int

    def of(self, kind: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    def exit_code(self, *, strict: bool = False) -> ExitCode:
        """BROKEN for a new failure of a MUST, with `strict` of a SHOULD too; CONFORMANT otherwise."""
        return ExitCode.BROKEN if any(change.gates(strict=strict) for change in self.changes) else ExitCode.CONFORMANT


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """What changed from `before` to `after`, both the content of a results.json."""
    old = {row["id"]: row for row in before["requirements"]}
    new = {row["id"]: row for row in after["requirements"]}
    changes = [change for name in old | new if (change := _change(name, old.get(name), new.get(name)))]
    kinds = list(MEANING)
    changes.sort(key=lambda change: (kinds.index(change.kind), urgency(change.row), change.id))
    notes = list(_notes(before, after))
    if not old.keys() & new.keys():
        notes.append("the runs have no requirement in common")
    return Difference(before, after, tuple(changes), tuple(notes), len(old | new) - len(changes))


def _change(id: str, before: Row | None, after: Row | None) -> Change | None:  # noqa: A002
    if before is None or after is None:
        return Change(NEW if before is None else GONE, id, before, after)
    now, then = fingerprints(after), fingerprints(before)
    appeared = tuple(message for mark, message in now.items() if mark not in then)
    vanished = tuple(message for mark, message in then.items() if mark not in now)
    kind = _kind(before, after, other_evidence=bool(appeared or vanished))
    return Change(kind, id, before, after, appeared, vanished) if kind else None


def _kind(before: Row, after: Row, *, other_evidence: bool) -> str:
    if broken(after) and not broken(before):
        return BROKEN
    if before["outcome"] in VERIFIED and after["outcome"] not in VERIFIED:
        return UNSETTLED
    if "flaky" in {before["outcome"], after["outcome"]}:
        return FLAKY
    if broken(before) and not broken(after):
        return FIXED
    return CHANGED if broken(after) and other_evidence else ""


def fingerprints(row: Row) -> dict[str, str]:
    """The evidence of a broken row: each message by the part of it that is the same in every run."""
    if not broken(row):
        return {}
    messages = [evidence["message"] for evidence in row["evidence"]] or [row["reason"]]
    return {f"{row['id']}: {normalised(message)}": message for message in reversed(messages)}


_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_.\-\[\]]{0,23}")
_REQUEST: Final = re.compile(r"(?<=to the request )\{.*?(?=; expected |$)")
_VARIABLE: Final = re.compile(r"\b(?=\w*\d)\w{8,}\b|-?\d[\d.,]*(?:[eE][+-]?\d+)?")


def normalised(message: str) -> str:
    """A message without what differs from run to run: texts, ids, numbers. Names of members and types remain."""
    return " ".join(_VARIABLE.sub("#", _QUOTED.sub(_quoted, _REQUEST.sub("…", visible(message)))).split())


def _quoted(match: re.Match[str]) -> str:
    inside = match.group()[1:-1]
    return f"'{inside}'" if _NAME.fullmatch(inside) else "'…'"


def _notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, note in (
        ("provider", "contracts of different providers"),
        ("contract_sha256", "the contract changed"),
        ("suite_version", "different versions of the suite"),
        ("profile", "different profiles"),
        ("plan_sha256", "different planned requests"),
    ):
        if before[name] != after[name]:
            values = f" ({before[name]}, then {after[name]})" if not name.endswith("sha256") else ""
            yield f"{note}{values}"
    for ordinal, results in (("first", before), ("second", after)):
        yield from (f"the {ordinal} run is incomplete: {reason}" for reason in results["incomplete"])
    earlier_faults = before.get("waiver_faults", ())
    yield from (fault for fault in after.get("waiver_faults", ()) if fault not in earlier_faults)
    if before["started_at"] > after["started_at"]:
        yield "the second run is the older one"
