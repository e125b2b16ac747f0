"""Shrinking: members of a failing request are dropped and values simplified, as long as the failure still shows.

Only failures that one reply shows, by itself or beside an accepted control, are shrunk; a relation needs all the
requests that it compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from conformance.judge.catalogue import load as load_checks
from conformance.model import BROKEN, Contract, Outcome, Phase, RequestCase, Requirement, Validity, Verdict
from conformance.model.exchange import Exchange
from conformance.plan.context import PlanContext, identity
from conformance.run.reproducer import (
    SHRINK,
    SIMPLEST,
    controls,
    fits,
    shows,
    shrinkable,
    slow,
    smallest_in_evidence,
    tried_members,
)

PER_FAILURE: Final = 12
"""Requests for one failure at most: halving isolates one of a few dozen members in fewer."""
PER_RUN: Final = 60
"""Requests in all at most: half of what the gate profile may send."""
AT_ONCE: Final = 5
"""Failures that are shrunk at the same time, so that a phase fills the connections."""
URGENCY: Final = (Outcome.FAIL, Outcome.FLAKY, Outcome.WARN)
Body = dict[str, Any]


@dataclass
class Search:
    """The shrinking of one failing request. `required` members are never dropped, `fixed` ones keep their value too.

    The request is sent `again` first: one that does not fail each time cannot be shrunk, and the report says so.
    """

    context: PlanContext
    requirement: Requirement
    smallest: RequestCase
    required: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    controls: tuple[Exchange, ...] = ()
    sent: int = 0
    again: RequestCase | None = None
    unsteady: bool = False
    tried: set[bytes] = field(default_factory=set)

    def next_candidate(self) -> RequestCase | None:
        """The next smaller request to try, large steps first; None where there is none."""
        if self.unsteady:
            return None
        for body in _smaller(dict(self.smallest.body), self.required, self.fixed):
            candidate = self._case(body)
            if candidate.content not in self.tried and candidate.validity is self.smallest.validity:
                return candidate
        return None

    def tested(self, candidate: RequestCase, replies: Iterable[Exchange]) -> None:
        """Continue from the candidate if a reply shows the failure too."""
        if candidate is self.again:
            self.again = None
            self.unsteady = not all(shows(self.requirement, x, self.controls, self.context.contract) for x in replies)
            return
        self.tried.add(candidate.content)
        if any(shows(self.requirement, x, self.controls, self.context.contract) for x in replies):
            self.smallest = candidate

    def _case(self, body: Body) -> RequestCase:
        case = self.smallest
        # a case that is unspecified because of its text would be computed as valid
        fixed: dict[str, Any] = {"validity": case.validity} if case.validity is Validity.UNSPECIFIED else {}
        wire = {"method": case.method, "path": case.path, "headers": case.headers, "credential": case.credential}
        return self.context.case(SHRINK, body, **wire, **fixed)


def shrinking(
    contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]
) -> Generator[Phase, tuple[Exchange, ...], None]:
    """Phases of smaller requests. What the run has sent already is not sent again; failures share requests."""
    waiting = _searches(contract, verdicts, exchanges)
    answered: dict[str, list[Exchange]] = defaultdict(list)
    for x in exchanges:
        if x.case.hang_up_after is None and not slow(x):
            answered[identity(x.case)].append(x)
    running: list[Search] = []
    remaining = PER_RUN
    while True:
        while len(running) < AT_ONCE and (search := next(waiting, None)) is not None:
            running.append(search)
        next_cases = [(search, case) for search in running if (case := _unanswered(search, answered)) is not None]
        running = [search for search, _ in next_cases]
        cases = list({case.id: case for _, case in next_cases}.values())[:remaining]
        if not cases:
            return
        remaining -= len(cases)
        exchanges_by_id = {x.case.id: x for x in (yield Phase(SHRINK, tuple(cases)))}
        if not exchanges_by_id:  # nothing more can be sent: the budget is spent, or the target is gone
            return
        sent = {case.id for case in cases}
        for search, case in next_cases:
            if case.id in sent:
                search.sent += 1
                replies = [exchanges_by_id[case.id]] if case.id in exchanges_by_id else []
                answered[identity(case)] += replies
                search.tested(case, replies)


def _unanswered(search: Search, answered: Mapping[str, list[Exchange]]) -> RequestCase | None:
    """The next request of a search that must be sent; candidates that were answered before are tested at once."""
    if search.again is not None:
        return search.again
    while (case := search.next_candidate()) is not None:
        name = identity(case)
        if name in answered:
            search.tested(case, answered[name])
        else:
            return case if search.sent < PER_FAILURE else None
    return None


def _searches(contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]) -> Iterator[Search]:
    """One search for each failure that can be shrunk, by outcome."""
    by_id = {x.case.id: x for x in exchanges}
    failed = [verdict for verdict in verdicts if verdict.outcome in BROKEN and shrinkable(verdict.requirement)]
    contexts: dict[str, PlanContext] = {}
    for verdict in sorted(failed, key=lambda verdict: URGENCY.index(verdict.outcome)):
        original = smallest_in_evidence(verdict, by_id)
        if original is not None and fits(original):
            accepted_controls = controls(original, verdict.requirement, exchanges)
            model = str(original.case.body.get("model", ""))
            context = contexts.setdefault(model, PlanContext(contract, load_checks(), model))
            fixed = frozenset(tried_members(original, accepted_controls))
            yield Search(
                context=context,
                requirement=verdict.requirement,
                smallest=original.case,
                required=fixed | _required_members(contract),
                fixed=fixed,
                controls=accepted_controls,
                again=_copy(original.case),
                tried={original.case.content},
            )


def _copy(case: RequestCase) -> RequestCase:
    return replace(case, id=f"{SHRINK}/{identity(case, 1)}", origin=SHRINK, groups=())


def _required_members(contract: Contract) -> frozenset[str]:
    """Members that are never dropped: required ones, and `max_tokens` where nothing else limits the reply."""
    required = {name for name, parameter in contract.parameters.items() if parameter.required}
    return frozenset(required | (set() if contract.default("max_tokens") is not None else {"max_tokens"}))


def _smaller(body: Body, required: frozenset[str], fixed: frozenset[str]) -> Iterator[Body]:
    """Bodies that are one step smaller, large steps first."""
    optional = [name for name in body if name not in required]
    if "prompt" in body.keys() - fixed:  # it seldom matters, and without it all further requests are easier to read
        yield {**body, "prompt": SIMPLEST}
    size = len(optional)
    while size > 0:
        for start in range(0, len(optional), size):
            dropped = optional[start : start + size]
            yield {name: value for name, value in body.items() if name not in dropped}
        size //= 2
    for name, value in body.items():
        if name != "model" and name not in fixed:
            yield from ({**body, name: simple} for simple in _simpler(value))


def _simpler(value: Any) -> Iterator[Any]:
    """Simpler values of the same shape."""
    if isinstance(value, str) and len(value) > 1:
        yield from dict.fromkeys((SIMPLEST, value[: len(value) // 2], value[len(value) // 2 :]))
    elif isinstance(value, list) and len(value) > 1:
        yield from (value[:1], value[: len(value) // 2])
    elif isinstance(value, list) and value and isinstance(value[0], (str, list)):
        yield from ([simple] for simple in _simpler(value[0]))
    elif isinstance(value, dict) and value:
        yield from ({name: item for name, item in value.items() if name != dropped} for dropped in value)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 2:
        yield from dict.fromkeys((1, 2, value // 2))


__all__ = ["PER_FAILURE", "PER_RUN", "Search", "shrinking"]
