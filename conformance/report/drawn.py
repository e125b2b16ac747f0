"""The drawn bodies of a run: how many were sent and judged, and which failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from conformance.model import BROKEN, Validity
from conformance.plan.drawn_requests import ORIGIN
from conformance.recording.drawn_failures import DrawnFailure, without_model

if TYPE_CHECKING:
    from conformance.model import RequestCase
    from conformance.run import Run

DRAWN_ROWS: Final = ".drawn."
NONE_SENT: Final = "no drawn body was sent, so nothing is known of inputs that nobody chose"


def counted(run: Run) -> dict[str, Any]:
    """What results.json says of drawn bodies: the numbers that were sent and judged, and those that failed."""
    sent = {x.case.id: x.case for x in run.exchanges if x.case.origin == ORIGIN and not x.case.repeats}
    invalid = sum(case.validity is Validity.INVALID for case in sent.values())
    judged = sum(verdict.examined for verdict in run.verdicts if DRAWN_ROWS in verdict.requirement.id)
    broke: dict[str, list[str]] = defaultdict(list)
    original = {x.case.id: x.case.repeats or x.case.id for x in run.exchanges}
    for verdict in run.verdicts:
        cases = list(dict.fromkeys(original.get(item.case, item.case) for item in verdict.evidence))
        # what other requests show as well is no failure of these bodies
        if verdict.outcome in BROKEN and (DRAWN_ROWS in verdict.requirement.id or all(case in sent for case in cases)):
            for case in cases:
                broke[case].append(verdict.requirement.id)
    failed = [
        {"body": without_model(sent[case].body), "control": _control(sent[case], sent), "broke": rows}
        for case, rows in broke.items()
        if case in sent and isinstance(sent[case].body, Mapping)
    ]
    return {"valid": len(sent) - invalid, "invalid": invalid, "judged": judged, "failed": failed}


def _control(case: RequestCase, sent: Mapping[str, RequestCase]) -> str:
    """The body of the control of an invalid case, as it is kept; empty for a valid one."""
    groups = {(part.kind, part.key) for part in case.groups if part.role == "probe"}
    if case.validity is not Validity.INVALID:
        return ""
    controls = (
        other.body
        for other in sent.values()
        if any((part.kind, part.key) in groups and part.role == "control" for part in other.groups)
    )
    return without_model(next(controls, {}))


def failures(results: Mapping[str, Any]) -> list[DrawnFailure]:
    """The drawn bodies that failed in a run, as they are kept for the next."""
    when = results["started_at"]
    drawn = results.get("drawn") or {"failed": ()}
    return [
        DrawnFailure(failure["body"], failure["control"], tuple(failure["broke"]), when, when)
        for failure in drawn["failed"]
    ]


def summary(results: Mapping[str, Any]) -> tuple[str, str]:
    """The drawn bodies of a run in words, and a warning where there were none of a kind."""
    drawn = results.get("drawn")
    if drawn is None:
        return "", ""
    failed = f", {len(drawn['failed'])} of them failed" if drawn["failed"] else ""
    text = f"drawn bodies: {drawn['valid']} valid and {drawn['invalid']} invalid sent, {drawn['judged']} judged{failed}"
    missing = [name for name in ("valid", "invalid") if not drawn[name]]
    if len(missing) == 2:
        return text, NONE_SENT
    return text, f"no drawn body that is {missing[0]} was sent" if missing else ""


__all__ = ["counted", "failures", "summary"]
