"""Two runs → what changed between them. A promise that is new is not a regression; what was not seen is not mended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.model.exit_codes import ExitCode
from conformance.report.tally import Row, broken, gates, urgency
from conformance.report.text import visible

BROKEN, FIXED, CHANGED, FLAKY, UNSETTLED, NEW, GONE = (
    "newly broken", "fixed", "changed evidence", "flaky", "no longer verified", "new requirement", "gone",
)  # fmt: skip
MEANING: Final = {
    BROKEN: "broken now, and not seen broken before",
    FIXED: "broken before, and kept each time now",
    CHANGED: "broken both times, but what was observed is another thing",
    FLAKY: "broken at some times and kept at others, in one of the runs",
    UNSETTLED: "verified before, and now nothing showed it: neither mended nor broken",
    NEW: "not judged before: no regression, whatever its outcome",
    GONE: "not judged any more",
}
_SEEN: Final = frozenset({"pass", "fail", "warn", "flaky"})


@dataclass(frozen=True, slots=True)
class Change:
    """One requirement whose standing is another than before."""

    kind: str
    id: str
    before: Row | None
    after: Row | None
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The newer of the two."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - a change has at least one side
        return found

    def gates(self, *, strict: bool = False) -> bool:
        """Whether this is a new failure that must stop somebody."""
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
    """What is another thing in `after`, both being the content of a results.json."""
    old = {row["id"]: row for row in before["requirements"]}
    new = {row["id"]: row for row in after["requirements"]}
    found = [change for id in old | new if (change := _change(id, old.get(id), new.get(id)))]  # noqa: A001
    kinds = list(MEANING)
    found.sort(key=lambda change: (kinds.index(change.kind), urgency(change.row), change.id))
    notes = [
        *_notes(before, after),
        *(["the runs have no requirement in common"] if not old.keys() & new.keys() else []),
    ]
    return Difference(before, after, tuple(found), tuple(notes), len(old | new) - len(found))


def _change(id: str, before: Row | None, after: Row | None) -> Change | None:  # noqa: A002
    if before is None or after is None:
        return Change(NEW if before is None else GONE, id, before, after)
    now, then = fingerprints(after), fingerprints(before)
    appeared = tuple(said for mark, said in now.items() if mark not in then)
    vanished = tuple(said for mark, said in then.items() if mark not in now)
    kind = _kind(before, after, moved=bool(appeared or vanished))
    return Change(kind, id, before, after, appeared, vanished) if kind else None


def _kind(before: Row, after: Row, *, moved: bool) -> str:
    if broken(after) and not broken(before):
        return BROKEN
    if before["outcome"] in _SEEN and after["outcome"] not in _SEEN:
        return UNSETTLED
    if "flaky" in {before["outcome"], after["outcome"]}:
        return FLAKY
    if broken(before) and not broken(after):
        return FIXED
    return CHANGED if broken(after) and moved else ""


def fingerprints(row: Row) -> dict[str, str]:
    """What a broken row was seen to do: messages by what stays of them from run to run."""
    if not broken(row):
        return {}
    said = [one["message"] for one in row["evidence"]] or [row["reason"]]
    return {f"{row['id']}: {normalised(message)}": message for message in reversed(said)}


_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_.\-\[\]]{0,23}")
_MARK: Final = re.compile(r"\b(?=\w*\d)\w{8,}\b|-?\d[\d.,]*(?:[eE][+-]?\d+)?")


def normalised(message: str) -> str:
    """A message without what differs each time: texts, ids, numbers. Names of members and types stay."""
    return " ".join(_MARK.sub("#", _QUOTED.sub(_quoted, visible(message))).split())


def _quoted(found: re.Match[str]) -> str:
    inside = found.group()[1:-1]
    return f"'{inside}'" if _NAME.fullmatch(inside) else "'…'"


def _notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, called in (
        ("provider", "contracts of different providers"),
        ("contract_sha256", "the contract was changed"),
        ("suite_version", "different versions of the suite"),
        ("profile", "different profiles"),
        ("plan_sha256", "different requests were planned"),
    ):
        if before[name] != after[name]:
            told = f" ({before[name]}, then {after[name]})" if not name.endswith("sha256") else ""
            yield f"{called}{told}"
    for which, results in (("the earlier", before), ("the later", after)):
        yield from (f"{which} run is incomplete: {reason}" for reason in results["incomplete"])
    known = before.get("waiver_faults", ())
    yield from (fault for fault in after.get("waiver_faults", ()) if fault not in known)
    if before["started_at"] > after["started_at"]:
        yield "the second run is the older one"
