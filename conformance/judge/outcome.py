"""The counted findings of one requirement → its outcome, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from conformance.contract.applicability import expected_of_case
from conformance.judge.catalogue import Check, CheckContext, Scope
from conformance.judge.forms import having_form, unseen_forms
from conformance.judge.tally import Tally, cases_of
from conformance.judge.traffic import Traffic
from conformance.judge.unrecorded import is_unrecorded
from conformance.model import Level, Outcome, Requirement, Validity
from conformance.model.exchange import Exchange, Group

NEEDS_CONFIRMATION: Final = "needs confirmation: "


@dataclass(frozen=True)
class Decision:
    """The outcome of a tally; `incomplete`: the run needs this verdict and has none. `due`: see `Verdict`."""

    outcome: Outcome
    reason: str = ""
    incomplete: bool = False
    due: tuple[tuple[str, ...], ...] = ()


def decide(
    requirement: Requirement,
    check: Check,
    traffic: Traffic,
    context: CheckContext,
    tally: Tally,
    expected: Sequence[Exchange] | None = None,
) -> Decision:
    """The outcome, in this order: a violation, a confirmation that is missing, a pass, or why nothing was seen.

    `expected` are the exchanges that were expected to show the requirement, if that is known already.
    """
    if tally.violations:
        return _broken(requirement, tally)
    if tally.repeat:
        reason = f"{NEEDS_CONFIRMATION}{tally.unconfirmed[0]}"
        must = requirement.level is Level.MUST
        return Decision(Outcome.INCONCLUSIVE, reason, must, tuple(dict.fromkeys(tally.repeat)))
    if tally.examined:
        unseen = unseen_forms(requirement, traffic.exchanges, context.contract)
        if unseen:
            reason = f"no accepted request had the documented form {', '.join(unseen)}"
            due = tuple((x.case.id,) for x in having_form(requirement, unseen, traffic.exchanges))
            return Decision(Outcome.INCONCLUSIVE, reason, requirement.level is Level.MUST, due)
        return Decision(Outcome.PASS)
    if expected is None:
        expected = _were_expected(requirement, check, traffic, context)
    return _nothing_seen(requirement, check, traffic, context, tally, expected)


def _broken(requirement: Requirement, tally: Tally) -> Decision:
    first = tally.evidence[0]
    reason = f"{first.at}: {first.message}" if first.at else first.message
    if requirement.level is Level.MAY:
        return Decision(Outcome.PASS, f"left to the provider; {reason}")
    if not tally.reproducible:
        return Decision(Outcome.FLAKY, f"not every time: {reason}")
    return Decision(Outcome.FAIL if requirement.level is Level.MUST else Outcome.WARN, reason)


def _nothing_seen(
    requirement: Requirement,
    check: Check,
    traffic: Traffic,
    context: CheckContext,
    tally: Tally,
    expected: Sequence[Exchange],
) -> Decision:
    """No occurrence is never a pass: whether none was possible, none was requested, or one was expected."""
    must = requirement.level is Level.MUST
    if not expected or check.scope is Scope.GROUP:  # an incomplete group shows nothing
        unsent = [case for case in traffic.unsent if expected_of_case(requirement, check, case, context)]
        if unsent:
            return Decision(Outcome.NOT_RUN, f"{len(unsent)} of the planned requests that show it were not sent", True)
    if check.expected_when is None and not (expected and tally.unproved):
        return Decision(Outcome.NOT_APPLICABLE, "not triggered; a client cannot trigger it")
    if not expected:
        return Decision(Outcome.NOT_APPLICABLE, "no request in this run triggers it")
    compared = traffic.subjects(requirement, check) if check.scope is Scope.GROUP and not check.keyed else ()
    if compared and all(_refused_in_part(known.subject) for known in compared):
        return _refused("a part of each comparison")
    due = tuple(_due(requirement, check, traffic, context, expected))
    if tally.unproved:
        return Decision(Outcome.INCONCLUSIVE, tally.unproved[0], must, due)
    refused = [x for x in expected if x.refused and x.case.validity is not Validity.INVALID]
    if len(refused) == len(expected) and check.scope is not Scope.ERROR:
        statuses = ", ".join(sorted({str(x.status) for x in refused}))
        return _refused(f"all {len(expected)} requests that trigger it (HTTP {statuses})")
    reason = f"{len(expected)} requests were expected to show it, and none did"
    return Decision(Outcome.INCONCLUSIVE, reason, must, due)


def _refused(requests: str) -> Decision:
    reason = f"the target refused {requests}; the requirements on accepting such requests judge that"
    return Decision(Outcome.NOT_APPLICABLE, reason)


def _refused_in_part(group: Exchange | Group) -> bool:
    """Whether each request in a role of the group was refused, though it is neither invalid nor adversarial."""
    return isinstance(group, Group) and any(
        all(x.refused and x.case.validity is not Validity.INVALID and not x.case.hostile for x in replies)
        for replies in group.members.values()
    )


def _were_expected(requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext) -> list[Exchange]:
    """The exchanges whose correct replies must contain an occurrence for the requirement."""
    if check.scope is Scope.GROUP:
        subjects = (known.subject for known in traffic.subjects(requirement, check))
        groups = [list(chain(*known.members.values())) for known in subjects if isinstance(known, Group)]
        return [x for group in groups if _some_expected(requirement, check, group, context) for x in group]
    if check.expected_when is None:
        return []
    expected = []
    for x, known in zip(traffic.exchanges, traffic.conclusions, strict=True):
        if requirement.id not in known.expected:
            known.expected[requirement.id] = is_expected(requirement, check, x, context)
        if known.expected[requirement.id]:
            expected.append(x)
    return expected


def is_expected(requirement: Requirement, check: Check, x: Exchange, context: CheckContext) -> bool:
    """Whether a correct reply must contain an occurrence, and the recording would show it."""
    return not is_unrecorded(requirement, check, x) and expected_of_case(requirement, check, x.case, context)


def _due(
    requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext, expected: Sequence[Exchange]
) -> Iterator[tuple[str, ...]]:
    """The cases of each exchange, or of each group, that was expected to show the requirement."""
    if check.scope is not Scope.GROUP:
        yield from ((x.case.id,) for x in expected)
        return
    ids = {x.case.id for x in expected}
    for known in traffic.subjects(requirement, check):
        cases = tuple(cases_of(known.subject))
        if ids.intersection(cases):
            yield cases


def _some_expected(requirement: Requirement, check: Check, group: Sequence[Exchange], context: CheckContext) -> bool:
    """Whether a group shows the requirement: a plain/streamed pair without log probabilities says nothing of them."""
    return any(expected_of_case(requirement, check, x.case, context) for x in group)
