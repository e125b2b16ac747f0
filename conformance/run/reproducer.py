"""The smallest request that shows a failure, and what verdicts rest on.

Failing requests are made smaller after the verdicts are there. What comes back is asked one question, whether that
failure still shows, and is never judged for anything else: a run says the same with and without it, and so does the
audit of its recording. The requests are recorded, so the smallest is found again without sending anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conformance.judge import Traffic, judge
from conformance.judge.catalogue import Scope, load
from conformance.judge.finding_cache import FindingCache
from conformance.model import BROKEN, Contract, Ending, Evidence, Membership, RequestCase, Requirement, Verdict
from conformance.model.budget import reported
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING

SHRINK: Final = "shrink"
"""The origin of requests that were made smaller."""
MOST_TOKENS: Final = 200
MOST_BYTES: Final = 50_000
SIMPLEST: Final = "a"
"""What any text, and any form of a prompt, may be cut to."""
_COMPARED: Final = frozenset({"accept", "refuse"})
"""Kinds of groups in which one reply is judged beside a control that was accepted."""


def traffic(
    exchanges: Iterable[Exchange], planned: Iterable[RequestCase] = (), cache: FindingCache | None = None
) -> Traffic:
    """What is judged: everything but requests that were made smaller."""
    return Traffic(
        tuple(x for x in exchanges if x.case.origin != SHRINK),
        tuple(case for case in planned if case.origin != SHRINK),
        cache or FindingCache(),
    )


def shrinkable(requirement: Requirement) -> bool:
    """Whether one reply shows a failure of this: alone, or beside a control that was accepted.

    A relation between replies needs all of them.
    """
    check = load()[requirement.check]
    return check.scope is not Scope.GROUP or (check.keyed and check.group in _COMPARED)


def blamed(verdict: Verdict, exchanges: Mapping[str, Exchange]) -> Exchange | None:
    """The smallest request that evidence names; one that can be shown again at leisure, where there is any."""
    found = [exchanges[one.case] for one in verdict.evidence if one.case in exchanges]
    return min(found, key=lambda x: (not fits(x), *readable_first(x.case)), default=None)


def readable_first(case: RequestCase) -> tuple[bool, tuple[int, int]]:
    """The order in which requests are shown: what is no JSON proves less, and comes last; then the small ones first."""
    return case.body is MISSING, size(case)


def fits(x: Exchange) -> bool:
    """Whether a request can be made smaller: it has members, and its reply is read to an end, in time and not dear."""
    case = x.case
    whole = case.hang_up_after is None and not case.hostile and not slow(x)
    return whole and isinstance(case.body, Mapping) and not _dear(x)


def _dear(x: Exchange) -> bool:
    """Whether the reply is too long to be asked for a dozen times more."""
    told = reported(x.usage) if x.successful else None
    return told.completion > MOST_TOKENS if told else len(x.content) > MOST_BYTES


def size(case: RequestCase) -> tuple[int, int]:
    """How much there is to read in a request: its members first, then its bytes."""
    body = case.body
    return len(body) if isinstance(body, Mapping) else 0, len(case.content)


def slow(x: Exchange) -> bool:
    """Whether the reply was waited for in vain: once is enough."""
    return x.status is None or x.last.ending is Ending.TIMED_OUT


def controls(original: Exchange, requirement: Requirement, exchanges: Iterable[Exchange]) -> tuple[Exchange, ...]:
    """What a request that was refused, or ought to have been, was compared with."""
    kind = load()[requirement.check].group
    keys = {one.key for one in original.case.groups if one.kind == kind and one.key.partition(" ")[0] == requirement.id}
    beside = {(kind, key, "control") for key in keys} if kind in _COMPARED else set()
    return tuple(x for x in exchanges if any((m.kind, m.key, m.role) in beside for m in x.case.groups))


def shows(requirement: Requirement, x: Exchange, beside: Sequence[Exchange], contract: Contract) -> bool:
    """Whether a reply shows the failure as well; one that would, if it came again, does."""
    found = _alone(requirement, x, beside, contract)
    return found is not None and (found.outcome in BROKEN or bool(found.repeat))


def _alone(requirement: Requirement, x: Exchange, beside: Sequence[Exchange], contract: Contract) -> Verdict | None:
    """The verdict on one reply, beside its controls where it needs any; None where it needs them and has none."""
    check = load()[requirement.check]
    if check.scope is Scope.GROUP:
        if not beside:
            return None
        group = check.group, f"{requirement.id} smaller"
        members = [*(_as(one, *group, "control") for one in beside), _as(x, *group, "probe")]
    else:
        members = [x]
    return judge(requirement, Traffic(members), contract)


def seen(contract: Contract, verdict: Verdict, case: str, exchanges: Mapping[str, Exchange]) -> Evidence | None:
    """What the smallest request showed: other words, perhaps, than those of the request that it was made of."""
    told = next((one for one in verdict.evidence if one.case == case), None)
    first, x = blamed(verdict, exchanges), exchanges.get(case)
    if told or first is None or x is None:
        return told
    row = verdict.requirement
    found = _alone(row, x, controls(first, row, exchanges.values()), contract)
    if found is None or not (found.evidence or found.repeat):
        return None
    return replace(found.evidence[0], case=case) if found.evidence else Evidence(case, "", found.reason)


def _as(x: Exchange, kind: str, key: str, role: str) -> Exchange:
    case = replace(x.case, id=f"{role} {x.case.id}", repeats="", groups=(Membership(kind, key, role),))
    return Exchange(case, x.attempts)


def probed(original: Exchange, beside: Iterable[Exchange]) -> Mapping[str, Any]:
    """The members that make a request another one than its controls: what it was sent for."""
    body = original.case.body
    others = [x.case.body for x in beside if isinstance(x.case.body, Mapping)]
    if not isinstance(body, Mapping):
        return {}
    return {name: body[name] for name in body for one in others if name not in one or one[name] != body[name]}


def smallest(contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]) -> dict[str, str]:
    """The id of the smallest request that shows it, for each requirement that is broken."""
    by_id = {x.case.id: x for x in exchanges}
    answered = [x for x in exchanges if x.case.hang_up_after is None and not slow(x)]
    smaller = [x for x in answered if x.case.origin == SHRINK]
    found: dict[str, str] = {}
    for verdict in verdicts:
        first = blamed(verdict, by_id)
        if verdict.outcome not in BROKEN or first is None:
            continue
        best, row = first.case, verdict.requirement
        if shrinkable(row):
            beside = controls(first, row, exchanges)
            value = probed(first, beside)
            # evidence is told up to a number; each smaller one was made of one before it, so of two the later counts
            for x in answered if verdict.violations > len(verdict.evidence) and not beside else smaller:
                made_of = _of(x.case.body, first.case.body) and _holds(x.case, value)
                if made_of and _no_larger(x.case, best) and shows(row, x, beside, contract):
                    best = x.case
        found[row.id] = best.id
    return found


def _no_larger(case: RequestCase, best: RequestCase) -> bool:
    mine, others = size(case), size(best)
    return mine < others or (mine == others and case.origin == SHRINK)


def _of(new: Any, old: Any) -> bool:
    """Whether a value was made of another by leaving out and cutting: what fails otherwise is another failure."""
    if new == SIMPLEST and isinstance(old, (str, list)):
        return True
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return all(name in old and _of(new[name], old[name]) for name in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) <= len(old) and all(any(_of(one, other) for other in old) for one in new)
    if isinstance(new, str) and isinstance(old, str):
        return new in old
    if isinstance(new, int) and isinstance(old, int) and not isinstance(old, bool):
        return new == old or 0 < new < old
    return bool(new == old)


def _holds(case: RequestCase, members: Mapping[str, Any]) -> bool:
    body = case.body
    return isinstance(body, Mapping) and all(name in body and body[name] == members[name] for name in members)


__all__ = [
    "SHRINK", "SIMPLEST", "blamed", "controls", "fits", "probed", "readable_first", "seen", "shows", "shrinkable",
    "size", "slow", "smallest", "traffic",
]  # fmt: skip
