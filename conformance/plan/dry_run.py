"""The plan without a target: what would be sent if every documented value were accepted, and what that covers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from conformance.model import Contract, Phase, RequestCase, Validity
from conformance.model.budget import Cost
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.model.json_text import dumps
from conformance.plan.context import PlanContext
from conformance.plan.covering_rows import Coverage, coverage
from conformance.plan.factors import factors
from conformance.plan.input_classes import Exercised, exercised
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.planner import CaseGroups, Drawn, Planner
from conformance.plan.requirement_coverage import RequirementCoverage, cost, must
from conformance.plan.row_requests import DRAWN

_ACCEPTED: Final = b'{"choices":[{"index":0,"text":", five, six, seven, eight,","finish_reason":"length"}]}'


@dataclass(frozen=True)
class Plan:
    """The phases of a run as far as they are known beforehand."""

    context: PlanContext
    phases: tuple[Phase, ...]
    drawn: Drawn
    known: LearnedTarget

    @property
    def contract(self) -> Contract:
        return self.context.contract

    @cached_property
    def cases(self) -> tuple[RequestCase, ...]:
        return tuple(case for phase in self.phases for case in phase.cases)

    @property
    def origins(self) -> Mapping[str, int]:
        """The number of cases of each origin, in the order in which they first occur."""
        return Counter(case.origin for case in self.cases)

    @cached_property
    def covered(self) -> frozenset[str]:
        """The requirements that some case is expected to show."""
        serving = RequirementCoverage(self.contract, self.context.checks)
        return frozenset(row for case in self.cases for row in serving.of(case))

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """The MUSTs, and the forms of values in them, that some request could show and none of these cases does."""
        serving = RequirementCoverage(self.contract, self.context.checks)
        able = {goal for case_group in CaseGroups(self.drawn).of(self.context) for goal in serving.goals(case_group)}
        sent = self.covered.union(*map(serving.forms, self.cases))
        return tuple(sorted((able & serving.goals_of(must(self.contract))) - sent))

    @cached_property
    def worst(self) -> Cost:
        """The most tokens that a conforming target can charge for."""
        costs = [cost(case, self.context.defaults) for case in self.cases]
        return Cost(sum(worst.prompt for worst in costs), sum(worst.completion for worst in costs))

    @cached_property
    def drawn_cases(self) -> tuple[RequestCase, ...]:
        """The cases with drawn values: whole bodies, and rows that carry some."""
        return tuple(case for case in self.cases if case.origin == "sample" or case.note == DRAWN)

    @property
    def drawn_parameters(self) -> Mapping[str, int]:
        """How many drawn cases have each documented parameter."""
        counts = Counter(name for case in self.drawn_cases for name in case.body)
        return {name: counts[name] for name in self.contract.parameters}

    def coverage(self, strength: int) -> Coverage:
        """The share of the combinations of `strength` factor levels that occurs in these cases."""
        bodies = [case.body for case in self.cases if case.validity is not Validity.INVALID]
        return _coverage(self.context, self.known, bodies, strength)

    @cached_property
    def classes(self) -> Exercised:
        """The classes of the input model that these cases exercise."""
        return exercised(self.context, self.cases)

    @cached_property
    def sha256(self) -> str:
        """The hash of all requests in their order."""
        requests = [
            [phase.name, [[case.id, case.content.decode("latin-1")] for case in phase.cases]] for phase in self.phases
        ]
        return hashlib.sha256(dumps(requests).encode()).hexdigest()


def simulate(planner: Planner) -> Plan:
    """The plan for a target that accepts every valid request and refuses every invalid one."""
    simulated: list[Phase] = []
    plan = planner.phases()
    exchanges: tuple[Exchange, ...] | None = None
    while True:
        try:
            phase = next(plan) if exchanges is None else plan.send(exchanges)
        except StopIteration:
            return Plan(planner.context, tuple(simulated), planner.drawn, planner.known)
        simulated.append(phase)
        exchanges = tuple(_answer(case) for case in phase.cases)


def _answer(case: RequestCase) -> Exchange:
    if case.validity is Validity.INVALID:
        return Exchange(case, (Attempt(0.0, 400),))
    return Exchange(case, (Attempt(0.0, 200, (("content-type", "application/json"),), (Piece(0.0, _ACCEPTED),)),))


def reached(context: PlanContext, exchanges: Iterable[Exchange], strength: int) -> Coverage:
    """The share of the combinations that was sent and answered, of those that this target does not reject."""
    known = LearnedTarget()
    answered = list(exchanges)
    known.learn(answered)
    bodies: list[Any] = [x.case.body for x in answered if x.successful]
    return _coverage(context, known, bodies, strength)


def _coverage(context: PlanContext, known: LearnedTarget, bodies: Iterable[Any], strength: int) -> Coverage:
    now = Planner(context, (), known=known).now
    return coverage(now, factors(now), (body for body in bodies if isinstance(body, Mapping)), strength)


__all__ = ["Plan", "reached", "simulate"]
