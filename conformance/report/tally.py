"""What the verdicts of a run add up to: conformant or not, how much was verified, what gates.

Index and score are never merged: a run that verified little and saw no failure has not shown conformance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from conformance.model.exit_codes import ExitCode
from conformance.report.verdict_words import (
    HEADLINES,
    INVALID_WAIVERS,
    OUTCOMES,
    RECORDED_HEADLINE,
    REFERENCE_HEADLINES,
    UNJUDGED_HEADLINE,
)
from conformance.run import EMBEDDED

Row: TypeAlias = Mapping[str, Any]
"""The result of one requirement: an entry of `requirements` in results.json."""

VERDICTS: Final = {
    ExitCode.CONFORMANT: "conformant",
    ExitCode.BROKEN: "broken",
    ExitCode.INCOMPLETE: "incomplete",
    ExitCode.SUITE_FAULT: "suite_fault",
}
VERIFIED: Final = frozenset({"pass", "fail", "flaky", "warn"})
_BROKEN: Final = frozenset({"fail", "flaky", "warn"})


def scored(row: Row) -> bool:
    """Whether this row counts: it was in force on the date that the run is pinned to."""
    return not row.get("not_scored")


def broken(row: Row) -> bool:
    """Whether the target was seen to break this requirement, waived or not, scored or not."""
    return row["outcome"] in _BROKEN


def gates(row: Row, *, strict: bool = False) -> bool:
    """Whether this row alone makes the target non-conformant."""
    binding = row["level"] == "MUST" or (strict and row["level"] == "SHOULD")
    return binding and scored(row) and broken(row) and not row.get("waiver")


def shown_as(row: Row, *, strict: bool = False) -> str:
    """What a test runner calls it: `failure`, `error`, `expected` (failure), `skipped` or `passed`.

    Failures are what makes the target non-conformant, so that every output counts the same; what is broken and does
    not gate is an expected failure. An error is a fault of the suite, or an inconclusive verdict without which the run
    is incomplete: a skipped test would look green.
    """
    outcome = row["outcome"]
    if outcome == "error":
        return "error" if scored(row) else "skipped"
    if gates(row, strict=strict):
        return "failure"
    if outcome == "inconclusive" and row["incomplete"]:
        return "error"
    if outcome in {"inconclusive", "not_run", "not_applicable"}:
        return "skipped"
    return "expected" if broken(row) else "passed"


def index(rows: Iterable[Row]) -> dict[str, int]:
    """Verified MUSTs of all applicable MUSTs: how far the score can be trusted."""
    applicable = [row for row in rows if row["level"] == "MUST" and row["outcome"] != "not_applicable" and scored(row)]
    return {"verified": sum(row["outcome"] in VERIFIED for row in applicable), "of": len(applicable)}


def score(rows: Iterable[Row]) -> dict[str, int]:
    """Passed MUSTs of the verified ones."""
    verified = [row for row in rows if row["level"] == "MUST" and row["outcome"] in VERIFIED and scored(row)]
    return {"passed": sum(row["outcome"] == "pass" for row in verified), "of": len(verified)}


def verified_and_passed(counted_musts: Mapping[str, Any]) -> str:
    """Index and score in words, of results or of a certificate."""
    index, score = counted_musts["index"], counted_musts["score"]
    return f"{index['verified']} of {plural(index['of'], 'MUST')} verified, {score['passed']} of these passed"


def waived(row: Row) -> bool:
    """Whether this requirement is broken, and that is waived."""
    return broken(row) and bool(row.get("waiver"))


def blocked(row: Row) -> bool:
    """Whether this requirement has no verdict because of a cause that decides the result: the run does not owe one."""
    return bool(row.get("blocked_by")) and not row["incomplete"]


def waiver_text(row: Row) -> str:
    """The waiver of a row in one line, or nothing."""
    waiver = row.get("waiver")
    return f"{waiver['reason']} ({waiver['owner']}, until {waiver['expires']}, {waiver['link']})" if waiver else ""


def targets_conform(targets: Sequence[tuple[bool, bool]]) -> str:
    """How many targets conform, from whether each does and whether it is the embedded reference, which is no target."""
    references = [conforms for conforms, is_reference in targets if is_reference]
    others = [conforms for conforms, is_reference in targets if not is_reference]
    of_reference = f"the embedded reference keeps {sum(references)} of {plural(len(references), 'contract')}"
    if not others:
        return f"{of_reference[:1].upper()}{of_reference[1:]}; no target was judged"
    verb = "conforms" if len(others) == 1 else "conform"
    of_targets = f"{sum(others)} of {plural(len(others), 'target')} {verb}"
    return f"{of_targets}; {of_reference}" if references else of_targets


def exit_code(
    rows: Sequence[Row], incomplete: Sequence[str] = (), *, strict: bool = False, waiver_faults: Sequence[str] = ()
) -> ExitCode:
    """The exit code of a run. A broken MUST is certain whatever else went wrong, so it outranks all others.

    An invalid waiver counts as a failure too: its owner must look at it again.
    """
    if waiver_faults or any(gates(row, strict=strict) for row in rows):
        return ExitCode.BROKEN
    if any(row["outcome"] == "error" and scored(row) for row in rows):
        return ExitCode.SUITE_FAULT
    settled = not incomplete and not any(row.get("incomplete") for row in rows)
    return ExitCode.CONFORMANT if settled else ExitCode.INCOMPLETE


def count(rows: Iterable[Row]) -> dict[str, int]:
    """How many rows have each outcome, in the order of OUTCOMES, none left out."""
    counts = Counter(row["outcome"] for row in rows)
    return {outcome: counts[outcome] for outcome in OUTCOMES}


def by_area(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by area, in order of first appearance."""
    areas: dict[str, list[Row]] = {}
    for row in rows:
        areas.setdefault(row["area"], []).append(row)
    return areas


def urgency(row: Row) -> tuple[int, int]:
    """A sort key: broken before unknown before kept, MUST before SHOULD before MAY."""
    return OUTCOMES.index(row["outcome"]), ("MUST", "SHOULD", "MAY").index(row["level"])


def most_urgent(rows: Iterable[Row]) -> list[Row]:
    """The rows that a reader must see: broken ones and faults of the suite, the most urgent first."""
    return sorted((row for row in rows if broken(row) or row["outcome"] == "error"), key=urgency)


def plural(number: int, noun: str) -> str:
    """`1 promise`, `2 promises`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def counted(number: int, noun: str, singular: str, several: str) -> str:
    """Number, noun and the verb that agrees: `1 MUST is broken`, `2 MUSTs are broken`."""
    return f"{plural(number, noun)} {singular if number == 1 else several}"


def embedded(results: Mapping[str, Any]) -> bool:
    """Whether the suite's own reference was judged, and no target."""
    return bool(results["target"].get("kind") == EMBEDDED)


def result_word(results: Mapping[str, Any]) -> str:
    """The result of a run in two or three words, from its `verdict`."""
    words = REFERENCE_HEADLINES if embedded(results) else HEADLINES
    return words[results["verdict"]]


def seen_in_recordings(results: Mapping[str, Any]) -> str:
    """How much the recordings of others show: never everything, because nobody planned them."""
    musts = sum(row["level"] == "MUST" and scored(row) for row in results["requirements"])
    recorded = results["recorded"]
    judged = f"{recorded['judged']:,} of {plural(recorded['exchanges'], 'exchange')} judged"
    return f"{results['index']['verified']} of {plural(musts, 'MUST')}, {judged}"


def unjudged(results: Mapping[str, Any]) -> str:
    """Why nothing at all was judged, such as a target that is down; empty where something was."""
    judged = any(row["outcome"] in VERIFIED | {"error"} for row in results["requirements"])
    return "" if judged else next(iter(results["incomplete"]), "")


def headline(results: Mapping[str, Any]) -> tuple[str, str]:
    """The result of a run in two or three words, and the sentences that explain it."""
    rows = [row for row in results["requirements"] if scored(row)]
    musts, shoulds = (
        sum(broken(row) and row["level"] == level and not row.get("waiver") for row in rows)
        for level in ("MUST", "SHOULD")
    )
    waived_musts = sum(row["level"] == "MUST" and waived(row) for row in rows)
    invalid = len(results.get("waiver_faults", ()))
    unsettled = bool(results["incomplete"]) or any(row.get("incomplete") for row in rows)

    word = result_word(results)
    waivers = f" {counted(invalid, 'waiver', 'is', 'are')} no longer valid." if invalid else ""
    also = f" {counted(shoulds, 'SHOULD', 'is', 'are')} broken." if shoulds else ""
    except_waived = f", except {counted(waived_musts, 'MUST', 'that is', 'that are')} waived" if waived_musts else ""
    blocked_musts = sum(row["level"] == "MUST" and blocked(row) for row in rows)
    if waived_musts and blocked_musts:
        except_waived += f"; {counted(blocked_musts, 'MUST', 'cannot', 'cannot')} be judged because of these"
    if results["verdict"] == "broken" and invalid and not musts and not (results["strict"] and shoulds):
        return INVALID_WAIVERS, f"{waivers.strip()} No MUST was seen broken{except_waived}.{also}"
    if results["verdict"] == "broken":
        level, number = ("MUST", musts) if musts else ("SHOULD", shoulds)
        rest = " The run is also incomplete." if unsettled else ""
        return word, f"{counted(number, level, 'is', 'are')} broken.{also if musts else ''}{waivers}{rest}"
    if results["verdict"] == "suite_fault":
        errors = sum(row["outcome"] == "error" for row in rows)
        return word, f"{plural(errors, 'check')} of this suite crashed: a fault of the suite, not of the target."
    if results["verdict"] == "conformant" and results.get("recorded"):
        return RECORDED_HEADLINE, f"In what was seen: {seen_in_recordings(results)}{except_waived}.{also}"
    if results["verdict"] == "incomplete" and (reason := unjudged(results)):
        return UNJUDGED_HEADLINE, f"{reason}."
    if results["verdict"] == "incomplete":
        return word, f"No MUST was seen broken{except_waived}; not everything was verified.{also}"
    return word, f"Every MUST that applies was verified and holds{except_waived}.{also}"
