"""What a set of verdicts amounts to: conformant or not, how much was verified, what gates.

Index and score are never merged: a suite that verified little and saw no failure has not shown conformance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from conformance.model.exit_codes import ExitCode

Row: TypeAlias = Mapping[str, Any]
"""One entry of `requirements` in results.json."""

VERDICTS: Final = {
    ExitCode.CONFORMANT: "conformant",
    ExitCode.BROKEN: "broken",
    ExitCode.INCOMPLETE: "incomplete",
    ExitCode.SUITE_FAULT: "suite_fault",
}
OUTCOMES: Final = ("fail", "flaky", "warn", "error", "inconclusive", "not_run", "pass", "not_applicable")
"""All outcomes, the most urgent first: the order of every table and legend."""

_VERIFIED: Final = frozenset({"pass", "fail", "flaky", "warn"})
_CONFORMING: Final = frozenset({"fail", "flaky", "warn"})


def observed(row: Row) -> Mapping[str, Any] | None:
    """The occurrence to begin with: what the request that is to be pasted showed; else the first that is told."""
    least = row.get("smallest")
    return least if least and "message" in least else next(iter(row["evidence"]), None)


def scored(row: Row) -> bool:
    """Whether this row counts: it was in force on the date that the run was asked to judge by."""
    return not row.get("not_scored")


def broken(row: Row) -> bool:
    """Whether the target was seen to break this promise, waived or not, scored or not."""
    return row["outcome"] in _CONFORMING


def gates(row: Row, *, strict: bool = False) -> bool:
    """Whether this row alone makes the target non-conformant."""
    binding = row["level"] == "MUST" or (strict and row["level"] == "SHOULD")
    return binding and scored(row) and broken(row) and not row.get("waiver")


def shown_as(row: Row, *, strict: bool = False) -> str:
    """What a test runner calls it: `failure`, `error` (ours), `warning`, `skipped` or `passed`.

    An occasion that was due and showed nothing is a failure where the run owes the verdict: a skip would read green.
    """
    outcome = row["outcome"]
    if outcome == "error":
        return "error" if scored(row) else "skipped"
    if gates(row, strict=strict) or (outcome == "inconclusive" and row["incomplete"]):
        return "failure"
    if outcome in {"inconclusive", "not_run", "not_applicable"}:
        return "skipped"
    return "warning" if broken(row) else "passed"


def index(rows: Iterable[Row]) -> dict[str, int]:
    """Verified MUSTs of all MUSTs that apply: how far the rest can be trusted."""
    applicable = [row for row in rows if row["level"] == "MUST" and row["outcome"] != "not_applicable" and scored(row)]
    return {"verified": sum(row["outcome"] in _VERIFIED for row in applicable), "of": len(applicable)}


def score(rows: Iterable[Row]) -> dict[str, int]:
    """Passed MUSTs of the verified ones: how the target did where it was seen."""
    verified = [row for row in rows if row["level"] == "MUST" and row["outcome"] in _VERIFIED and scored(row)]
    return {"passed": sum(row["outcome"] == "pass" for row in verified), "of": len(verified)}


def waived(row: Row) -> bool:
    """Whether this promise is broken, and that is accepted for a time."""
    return broken(row) and bool(row.get("waiver"))


def accepted(row: Row) -> str:
    """The waiver of a row in one line, or nothing."""
    one = row.get("waiver")
    return f"{one['reason']} ({one['owner']}, until {one['expires']}, {one['link']})" if one else ""


def exit_code(
    rows: Sequence[Row], reasons: Sequence[str] = (), *, strict: bool = False, waiver_faults: Sequence[str] = ()
) -> ExitCode:
    """The process's answer. A broken MUST is certain whatever else went wrong, so it outranks all others.

    So is a waiver that no longer fits: who accepted a failure must look at it again.
    """
    if waiver_faults or any(gates(row, strict=strict) for row in rows):
        return ExitCode.BROKEN
    if any(row["outcome"] == "error" and scored(row) for row in rows):
        return ExitCode.SUITE_FAULT
    settled = not reasons and not any(row.get("incomplete") for row in rows)
    return ExitCode.CONFORMANT if settled else ExitCode.INCOMPLETE


def count(rows: Iterable[Row]) -> dict[str, int]:
    """How many rows have each outcome, in the order of OUTCOMES, none left out."""
    found = Counter(row["outcome"] for row in rows)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def by_area(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by area, in order of first appearance."""
    areas: dict[str, list[Row]] = {}
    for row in rows:
        areas.setdefault(row["area"], []).append(row)
    return areas


def urgency(row: Row) -> tuple[int, int]:
    """A sort key: broken before unknown before kept, MUST before SHOULD before MAY."""
    return OUTCOMES.index(row["outcome"]), ("MUST", "SHOULD", "MAY").index(row["level"])


def worst(rows: Iterable[Row]) -> str:
    """The most urgent outcome among the rows; `not_applicable` where there is none."""
    return min((row["outcome"] for row in rows), key=OUTCOMES.index, default="not_applicable")


def plural(number: int, noun: str) -> str:
    """`1 promise`, `2 promises`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def headline(results: Mapping[str, Any]) -> tuple[str, str]:
    """The verdict in two or three words, and the sentence that backs it."""
    rows = [row for row in results["requirements"] if scored(row)]
    musts, shoulds = (
        [row for row in rows if broken(row) and row["level"] == level and not row.get("waiver")]
        for level in ("MUST", "SHOULD")
    )
    unsettled = bool(results["incomplete"]) or any(row.get("incomplete") for row in rows)
    also = f" {plural(len(shoulds), 'SHOULD')} {'is' if len(shoulds) == 1 else 'are'} not met." if shoulds else ""
    accepted = sum(row["level"] == "MUST" and waived(row) for row in rows)
    but = f", but for {plural(accepted, 'MUST')} that {'is' if accepted == 1 else 'are'} waived" if accepted else ""
    unfit = len(results.get("waiver_faults", ()))
    renew = f" {plural(unfit, 'waiver')} no longer {'fits' if unfit == 1 else 'fit'}." if unfit else ""
    if results["verdict"] == "broken" and unfit and not musts and not (results["strict"] and shoulds):
        return "Waivers to renew", renew.strip() + f" No MUST was seen broken{but}." + also
    if results["verdict"] == "broken":
        named = plural(len(musts), "MUST") if musts else plural(len(shoulds), "SHOULD")
        said = f"{named} {'is' if (len(musts) or len(shoulds)) == 1 else 'are'} broken."
        rest = " The run is also incomplete." if unsettled else ""
        return "Does not conform", said + (also if musts else "") + renew + rest
    if results["verdict"] == "suite_fault":
        faults = sum(row["outcome"] == "error" for row in rows)
        return "The suite failed", f"{plural(faults, 'check')} of this suite crashed: its own fault, not the target's."
    if results["verdict"] == "incomplete":
        return "Not settled", f"No MUST was seen broken{but}; the run is incomplete." + also
    return "Conforms", f"Every MUST that applies was verified and holds{but}." + also
