"""The reproducer: the smallest request that shows a failure.

Failing requests are shrunk after the verdicts are known. Replies to shrunk requests only decide whether the failure is
still shown; they are never judged, so a run has the same verdicts with and without them, and so has the audit of its
recording. Shrunk requests are recorded, so the reproducer is found again without sending anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from conformance.judge import Traffic, judge
from conformance.judge.catalogue import Scope, load
from conformance.judge.finding_cache import FindingCache
from conformance.judge.outcome import NEEDS_CONFIRMATION
from conformance.model import BROKEN, Contract, Ending, Evidence, Membership, Outcome, RequestCase, Requirement, Verdict
from conformance.model.budget import reported
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING, dumps

SHRINK: Final = "shrink"
"""The origin of shrunk requests."""
MOST_TOKENS: Final = 200
MOST_BYTES: Final = 50_000
"""Replies beyond these are not requested a dozen times more: that would cost a good part of the gate's 2,000 tokens."""
SIMPLEST: Final = "a"
"""The simplest text: it may replace any text, and a prompt of any form."""
MOST_COMPARED: Final = 8
"""Replies to one request that are looked at for how often it fails; recordings may have thousands of the same."""
_COMPARED: Final = frozenset({"accept", "refuse", "drawn-invalid"})
"""Kinds of groups in which one reply is judged beside a control that was accepted."""
_ALONE: Final = frozenset({"drawn"})
"""Kinds of groups in which one reply is judged by itself."""


def traffic(
    exchanges: Iterable[Exchange], planned: Iterable[RequestCase] = (), cache: FindingCache | None = None
) -> Traffic:
    """What is judged: everything but shrunk requests."""
    return Traffic(
        tuple(x for x in exchanges if x.case.origin != SHRINK),
        tuple(case for case in planned if case.origin != SHRINK),
        cache or FindingCache(),
    )


def shrinkable(requirement: Requirement) -> bool:
    """Whether one reply can show that the requirement is broken, by itself or beside an accepted control.

    A relation between replies needs all of them.
    """
    check = load()[requirement.check]
    return check.scope is not Scope.GROUP or (check.keyed and check.group in _COMPARED | _ALONE)


def smallest_in_evidence(verdict: Verdict, exchanges: Mapping[str, Exchange]) -> Exchange | None:
    """The smallest exchange that the evidence names, if possible one that can be shrunk."""
    in_evidence = [exchanges[evidence.case] for evidence in verdict.evidence if evidence.case in exchanges]
    return min(in_evidence, key=lambda x: (not fits(x), *readable_first(x.case)), default=None)


def readable_first(case: RequestCase) -> tuple[bool, tuple[int, int]]:
    """A sort key: JSON requests before others, which prove less; then small ones before large ones."""
    return case.body is MISSING, size(case)


def fits(x: Exchange) -> bool:
    """Whether a request can be shrunk: it has members, and its reply was completed, not timed out, and cheap."""
    case = x.case
    completed = case.hang_up_after is None and not case.hostile and not slow(x)
    return completed and _written_plainly(case) and not _expensive(x)


def _written_plainly(case: RequestCase) -> bool:
    """Whether the body is an object in the bytes that an encoder gives: written again, it breaks the same rules."""
    body = case.body
    return isinstance(body, Mapping) and dumps(body).encode() == case.content


def breaks_same_rules(case: RequestCase, original: RequestCase) -> bool:
    """Whether a case breaks the same rules as another, so that it may stand for it: only members differ.

    Credential, method, path and header fields are what many requests were sent to try; without them, a smaller request
    is another request, and its reply proves something else.
    """
    return all(
        getattr(case, name) == getattr(original, name)
        for name in ("method", "path", "headers", "credential", "hang_up_after", "hostile", "validity")
    ) and (case.content == original.content or (_written_plainly(case) and _written_plainly(original)))


def _expensive(x: Exchange) -> bool:
    """Whether the reply is too long to be requested a dozen times more."""
    cost = reported(x.usage) if x.successful else None
    return cost.completion > MOST_TOKENS if cost else len(x.content) > MOST_BYTES


def size(case: RequestCase) -> tuple[int, int]:
    """The size of a request as a reader sees it: the number of members, then of bytes."""
    body = case.body
    return len(body) if isinstance(body, Mapping) else 0, len(case.content)


def slow(x: Exchange) -> bool:
    """Whether the reply timed out or never came: the request is not sent again."""
    return x.status is None or x.last.ending is Ending.TIMED_OUT


def controls(original: Exchange, requirement: Requirement, exchanges: Iterable[Exchange]) -> tuple[Exchange, ...]:
    """The controls of a request that was refused, or should have been."""
    kind = load()[requirement.check].group
    keys = {
        membership.key
        for membership in original.case.groups
        if membership.kind == kind and membership.key.partition(" ")[0] == requirement.id
    }
    memberships = {(kind, key, "control") for key in keys} if kind in _COMPARED else set()
    return tuple(x for x in exchanges if any((m.kind, m.key, m.role) in memberships for m in x.case.groups))


def shows(requirement: Requirement, x: Exchange, accepted_controls: Sequence[Exchange], contract: Contract) -> bool:
    """Whether a reply shows the failure as well, if need be after confirmation."""
    verdict = _verdict(requirement, x, accepted_controls, contract)
    return verdict is not None and (verdict.outcome in BROKEN or bool(verdict.repeat))


def _verdict(
    requirement: Requirement, x: Exchange, accepted_controls: Sequence[Exchange], contract: Contract
) -> Verdict | None:
    """The verdict on one reply, with its controls where it needs any; None where it needs them and has none."""
    check = load()[requirement.check]
    if check.scope is Scope.GROUP:
        if not accepted_controls and check.group in _COMPARED:
            return None
        group = check.group, _key(requirement, check.group, accepted_controls)
        members = [*(_as(control, *group, "control") for control in accepted_controls), _as(x, *group, "probe")]
    else:
        members = [x]
    return judge(requirement, Traffic(members), contract)


def evidence_of_reproducer(
    contract: Contract, verdict: Verdict, case: str, exchanges: Mapping[str, Exchange]
) -> Evidence | None:
    """The evidence in the reply to the reproducer; its message may differ from that of the original request."""
    recorded = next((evidence for evidence in verdict.evidence if evidence.case == case), None)
    original, x = smallest_in_evidence(verdict, exchanges), exchanges.get(case)
    if recorded or original is None or x is None:
        return recorded
    requirement = verdict.requirement
    judged = _verdict(requirement, x, controls(original, requirement, exchanges.values()), contract)
    if judged is None or not (judged.evidence or judged.repeat):
        return None
    if judged.evidence:
        return replace(judged.evidence[0], case=case)
    return Evidence(case, "", judged.reason.removeprefix(NEEDS_CONFIRMATION))  # the original request was confirmed


def reproduction_caveat(contract: Contract, verdict: Verdict, x: Exchange, exchanges: Mapping[str, Exchange]) -> str:
    """Why sending this request once may not show the failure; empty where its reply shows it."""
    requirement = verdict.requirement
    if x.case.hang_up_after is not None:
        return "not by this command: the request was one whose client closes the connection early"
    if not shows(requirement, x, controls_of(x, verdict, exchanges), contract):
        return "not by this request alone: its reply is judged beside other replies"
    if rate := _rate(contract, verdict, x, exchanges):
        return f"not each time: {rate}"
    if verdict.outcome is Outcome.FLAKY:
        return f"not each time: {verdict.violations} of {verdict.examined} occurrences broke the promise"
    if x.case.hostile or slow(x):
        return "perhaps not at once: the reply depends on the load of the target"
    return ""


def controls_of(x: Exchange, verdict: Verdict, exchanges: Mapping[str, Exchange]) -> tuple[Exchange, ...]:
    """The controls of a request; those of the request that it was made from, where it was made smaller."""
    original = smallest_in_evidence(verdict, exchanges) if x.case.origin == SHRINK else x
    return controls(original or x, verdict.requirement, exchanges.values())


def _rate(contract: Contract, verdict: Verdict, x: Exchange, exchanges: Mapping[str, Exchange]) -> str:
    """How often one request showed the failure, where it did not each time it was sent; empty where none is known.

    Where another request of the evidence did not, this one need not either.
    """
    if not shrinkable(verdict.requirement):
        return ""
    original = smallest_in_evidence(verdict, exchanges)
    for tried, name in ((x, "this request"), (original, "another request that showed it")):
        same_requests = (other for other in exchanges.values() if tried and _is_same_request(other.case, tried.case))
        same = list(islice(same_requests, MOST_COMPARED))
        if tried is None or len(same) < 2:
            continue
        accepted_controls = controls_of(tried, verdict, exchanges)
        count = sum(shows(verdict.requirement, other, accepted_controls, contract) for other in same)
        if count < len(same):
            return f"{count} of the {len(same)} times that {name} was sent"
    return ""


def _is_same_request(case: RequestCase, other: RequestCase) -> bool:
    """Whether a target gets the same bytes for both cases."""
    names = ("method", "path", "headers", "credential", "hang_up_after")
    return case.content == other.content and all(getattr(case, name) == getattr(other, name) for name in names)


def _key(requirement: Requirement, kind: str, accepted_controls: Iterable[Exchange]) -> str:
    """The key of the group that the controls are members of: it says what the original request tries."""
    keys = (membership.key for x in accepted_controls for membership in x.case.groups if membership.kind == kind)
    return next((key for key in keys if key.partition(" ")[0] == requirement.id), requirement.id)


def _as(x: Exchange, kind: str, key: str, role: str) -> Exchange:
    case = replace(x.case, id=f"{role} {x.case.id}", repeats="", groups=(Membership(kind, key, role),))
    return Exchange(case, x.attempts)


def tried_members(original: Exchange, accepted_controls: Iterable[Exchange]) -> Mapping[str, Any]:
    """The members in which a request differs from its controls: what it was sent to try."""
    body = original.case.body
    others = [x.case.body for x in accepted_controls if isinstance(x.case.body, Mapping)]
    if not isinstance(body, Mapping):
        return {}
    return {name: body[name] for name in body for other in others if name not in other or other[name] != body[name]}


def smallest(contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]) -> dict[str, str]:
    """The id of the reproducer of each broken requirement, by the requirement's id."""
    by_id = {x.case.id: x for x in exchanges}
    answered = [x for x in exchanges if x.case.hang_up_after is None and not slow(x)]
    smaller = [x for x in answered if x.case.origin == SHRINK]
    reproducers: dict[str, str] = {}
    for verdict in verdicts:
        original = smallest_in_evidence(verdict, by_id)
        if verdict.outcome not in BROKEN or original is None:
            continue
        best, requirement = original.case, verdict.requirement
        if shrinkable(requirement):
            accepted_controls = controls(original, requirement, exchanges)
            tried = tried_members(original, accepted_controls)
            # The number of pieces of evidence is limited; beyond it, any reply may show the failure. A shrunk request
            # was made from an earlier one, so of two with the same size the later one counts.
            for x in answered if verdict.violations > len(verdict.evidence) and not accepted_controls else smaller:
                is_reduction = (
                    x.case.content != original.case.content
                    and breaks_same_rules(x.case, original.case)
                    and _reduces(x.case.body, original.case.body)
                    and _contains(x.case, tried)
                )
                if is_reduction and _no_larger(x.case, best) and shows(requirement, x, accepted_controls, contract):
                    best = x.case
        reproducers[requirement.id] = best.id
    return reproducers


def _no_larger(case: RequestCase, best: RequestCase) -> bool:
    return size(case) < size(best) or (size(case) == size(best) and case.origin == SHRINK)


def _reduces(new: Any, old: Any) -> bool:
    """Whether a value is the old one with members left out and values cut; otherwise it would show another failure."""
    if new == SIMPLEST and isinstance(old, (str, list)):
        return True
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return all(name in old and _reduces(new[name], old[name]) for name in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) <= len(old) and all(any(_reduces(item, other) for other in old) for item in new)
    if isinstance(new, str) and isinstance(old, str):
        return new in old
    if isinstance(new, int) and isinstance(old, int) and not isinstance(old, bool):
        return new == old or 0 < new < old
    return bool(new == old)


def _contains(case: RequestCase, members: Mapping[str, Any]) -> bool:
    body = case.body
    return isinstance(body, Mapping) and all(name in body and body[name] == members[name] for name in members)


__all__ = [
    "SHRINK",
    "SIMPLEST",
    "breaks_same_rules",
    "controls",
    "evidence_of_reproducer",
    "fits",
    "readable_first",
    "reproduction_caveat",
    "shows",
    "shrinkable",
    "size",
    "slow",
    "smallest",
    "smallest_in_evidence",
    "traffic",
    "tried_members",
]  # fmt: skip
