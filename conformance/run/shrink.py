"""A failing request made smaller: members dropped, values simplified, as long as the failure still shows.

Only failures that one reply shows are shrunk, where need be beside a control that was accepted. A relation between
replies is told by the requests that stand in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.judge.catalogue import load as load_checks
from conformance.model import BROKEN, Contract, Outcome, Phase, RequestCase, Requirement, Validity, Verdict
from conformance.model.exchange import Exchange
from conformance.plan.context import PlanContext, identity
from conformance.run.reproducer import SHRINK, SIMPLEST, blamed, controls, fits, probed, shows, shrinkable, slow

PER_FAILURE: Final = 12
PER_RUN: Final = 60
AT_ONCE: Final = 5
URGENCY: Final = (Outcome.FAIL, Outcome.FLAKY, Outcome.WARN)
Body = dict[str, Any]


@dataclass
class Search:
    """The way down from one failing request. `kept` are members that must not go, `fixed` those that stay the same."""

    scene: PlanContext
    requirement: Requirement
    smallest: RequestCase
    kept: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    beside: tuple[Exchange, ...] = ()
    sent: int = 0
    tried: set[bytes] = field(default_factory=set)

    def ahead(self) -> RequestCase | None:
        """The boldest smaller request that was not tried yet; None where there is none."""
        for body in _smaller(dict(self.smallest.body), self.kept, self.fixed):
            candidate = self._case(body)
            if candidate.content not in self.tried and candidate.validity is self.smallest.validity:
                return candidate
        return None

    def heard(self, candidate: RequestCase, replies: Iterable[Exchange]) -> None:
        """Go on from the candidate where it fails too. One that did not come back, or kept its promise, is none."""
        self.tried.add(candidate.content)
        if any(shows(self.requirement, x, self.beside, self.scene.contract) for x in replies):
            self.smallest = candidate

    def _case(self, body: Body) -> RequestCase:
        case = self.smallest
        # what was called unspecified for its text stays so
        fixed: dict[str, Any] = {"validity": case.validity} if case.validity is Validity.UNSPECIFIED else {}
        wire = {"method": case.method, "path": case.path, "headers": case.headers, "credential": case.credential}
        return self.scene.case(SHRINK, body, **wire, **fixed)


def shrinking(
    contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]
) -> Generator[Phase, tuple[Exchange, ...], None]:
    """Waves of smaller requests. What the run has sent already is not sent again, and failures share what they ask."""
    waiting = _searches(contract, verdicts, exchanges)
    answered: dict[str, list[Exchange]] = defaultdict(list)
    for x in exchanges:
        if x.case.hang_up_after is None and not slow(x):
            answered[identity(x.case)].append(x)
    running: list[Search] = []
    left = PER_RUN
    while True:
        while len(running) < AT_ONCE and (search := next(waiting, None)) is not None:
            running.append(search)
        asked = [(search, case) for search in running if (case := _unanswered(search, answered)) is not None]
        running = [search for search, _ in asked]
        cases = list({case.id: case for _, case in asked}.values())[:left]
        if not cases:
            return
        left -= len(cases)
        back = {x.case.id: x for x in (yield Phase(SHRINK, tuple(cases)))}
        if not back:  # nothing more is sent: the budget is spent, or the target is gone
            return
        sent = {case.id for case in cases}
        for search, case in asked:
            if case.id in sent:
                search.sent += 1
                replies = [back[case.id]] if case.id in back else []
                answered[identity(case)] += replies
                search.heard(case, replies)


def _unanswered(search: Search, answered: Mapping[str, list[Exchange]]) -> RequestCase | None:
    """The next request of a search that must be sent; what is known by now is taken from there."""
    while (case := search.ahead()) is not None:
        name = identity(case)
        if name in answered:
            search.heard(case, answered[name])
        else:
            return case if search.sent < PER_FAILURE else None
    return None


def _searches(contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]) -> Iterator[Search]:
    """One search for each failure that can be shrunk, the gravest first."""
    by_id = {x.case.id: x for x in exchanges}
    failed = [one for one in verdicts if one.outcome in BROKEN and shrinkable(one.requirement)]
    scenes: dict[str, PlanContext] = {}
    for verdict in sorted(failed, key=lambda one: URGENCY.index(one.outcome)):
        worst = blamed(verdict, by_id)
        if worst is not None and fits(worst):
            beside = controls(worst, verdict.requirement, exchanges)
            model = str(worst.case.body.get("model", ""))
            scene = scenes.setdefault(model, PlanContext(contract, load_checks(), model))
            fixed = frozenset(probed(worst, beside))
            kept = fixed | _kept(contract)
            yield Search(scene, verdict.requirement, worst.case, kept, fixed, beside, tried={worst.case.content})


def _kept(contract: Contract) -> frozenset[str]:
    """What must not be dropped: required members, and a limit that nothing would take the place of."""
    required = {name for name, one in contract.parameters.items() if one.required}
    return frozenset(required | (set() if contract.default("max_tokens") is not None else {"max_tokens"}))


def _smaller(body: Body, kept: frozenset[str], fixed: frozenset[str]) -> Iterator[Body]:
    """Bodies one step smaller, the boldest steps first."""
    optional = [name for name in body if name not in kept]
    if "prompt" in body.keys() - fixed:  # it seldom matters, and everything after is easier to read
        yield {**body, "prompt": SIMPLEST}
    size = len(optional)
    while size > 0:
        for start in range(0, len(optional), size):
            gone = optional[start : start + size]
            yield {name: value for name, value in body.items() if name not in gone}
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
        yield from ({name: one for name, one in value.items() if name != gone} for gone in value)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 2:
        yield from dict.fromkeys((1, 2, value // 2))


__all__ = ["PER_FAILURE", "PER_RUN", "Search", "shrinking"]
