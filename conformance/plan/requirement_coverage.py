"""Which requirements a case shows, and what it may cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from conformance.contract.applicability import (
    INDEPENDENT_OF_REQUEST,
    CheckContext,
    Scope,
    Trigger,
    expected,
    scopes,
)
from conformance.contract.forms import documented_forms, forms_of
from conformance.model import Contract, Level, RequestCase, Requirement, Validity
from conformance.model.budget import LARGE, Cost, is_large, worst_case
from conformance.model.json_text import dumps
from conformance.model.request_view import RequestView
from conformance.plan.case_group import CaseGroup

# Roles that serve only for comparison: a group shows nothing until it has its other role as well.
PREPARES: Final = frozenset(
    {"control", "without", "first", "one", "short", "greedy", "forced", "hostile", "plain", "alone"}
)


@dataclass(frozen=True)
class Alike:
    """Requirements with the same check, condition and parameters: what shows one of them shows all."""

    requirement: Requirement
    ids: tuple[str, ...]
    trigger: Trigger
    context: CheckContext


@dataclass
class RequirementCoverage:
    """Which requirements a case shows; computed once for each request, and once for requirements that are alike."""

    contract: Contract
    checks: Mapping[str, Trigger]
    _shown: dict[tuple[Any, ...], frozenset[str]] = field(default_factory=dict)
    _costs: dict[tuple[bytes, bool, bool], Cost] = field(default_factory=dict)

    def of(self, case: RequestCase) -> frozenset[str]:
        """The ids of the requirements that a case is expected to show."""
        return self._by_content(case).union(self._by_group(case))

    def forms(self, case: RequestCase) -> frozenset[str]:
        """The documented forms of values that a valid case has: a row on several forms needs each of them."""
        if case.validity is not Validity.VALID or not isinstance(case.body, Mapping):
            return frozenset()
        documented = [(forms, case.body[name]) for name, forms in self._forms.items() if name in case.body]
        return frozenset(forms[form] for forms, value in documented for form in forms_of(value) & forms.keys())

    def goals(self, case_group: CaseGroup) -> frozenset[str]:
        """The ids of the requirements that a case group shows, and the documented forms of values that it has.

        Those of its follow-ups are included.
        """
        if case_group.goals is None:
            cases = (*case_group.cases, *(case_group.then.cases if case_group.then else ()))
            goals = frozenset[str]().union(*map(self.of, cases), *map(self.forms, cases))
            object.__setattr__(case_group, "goals", goals)
            return goals
        return case_group.goals

    def goals_of(self, requirements: Iterable[str]) -> frozenset[str]:
        """These requirements, and each form of the values that they are about."""
        names = frozenset(requirements)
        return names | {
            goal for forms in self._forms.values() for goal in forms.values() if goal.split(" ")[0] in names
        }

    def cost(self, case: RequestCase) -> Cost:
        """What a case may cost."""
        key = case.content, case.validity is Validity.INVALID, case.hostile
        case_cost = self._costs.get(key)
        if case_cost is None:
            case_cost = self._costs[key] = cost(case, self.contract.defaults)
        return case_cost

    @property
    def all(self) -> tuple[str, ...]:
        """Every requirement that is more than an observation."""
        return tuple(row.id for row in self.contract.requirements if row.level is not Level.MAY)

    def _by_content(self, case: RequestCase) -> frozenset[str]:
        key = case.credential, case.hang_up_after, case.validity, case.content
        shown = self._shown.get(key)
        if shown is None:
            shown = self._shown[key] = frozenset(self._expected(case))
        return shown

    def _expected(self, case: RequestCase) -> Iterator[str]:
        request = self._context.request(case)
        for scope in scopes(case, self._context):
            always, others = self._by_scope.get(scope, ((), ()))
            yield from always
            for alike in others:
                if expected(alike.requirement, alike.trigger, request, alike.context):
                    yield from alike.ids

    def _by_group(self, case: RequestCase) -> Iterable[str]:
        for part in case.groups:
            if part.role in PREPARES or part.role.startswith(("solo-", "single-")):
                continue
            by_name = self._by_kind.get(part.kind, {})
            for name in (None, part.key.partition(" ")[0]):
                for row in by_name.get(name, ()):
                    expected_when = self.checks[row.check].expected_when
                    if expected_when is None or expected_when(self._context.request(case), self._context):
                        yield row.id

    @cached_property
    def _alike(self) -> list[Alike]:
        """The requirements that single exchanges can be expected to show."""
        alike: dict[str, list[Requirement]] = {}
        for row in self.contract.requirements:
            trigger = self.checks[row.check]
            if trigger.scope is not Scope.GROUP and trigger.expected_when is not None:
                alike.setdefault(dumps([row.check, dict(row.when), dict(row.params)]), []).append(row)
        return [
            Alike(
                requirement=rows[0],
                ids=tuple(row.id for row in rows),
                trigger=self.checks[rows[0].check],
                context=CheckContext(self.contract, rows[0].params, self._context.views),
            )
            for rows in alike.values()
        ]

    @cached_property
    def _forms(self) -> Mapping[str, Mapping[str, str]]:
        """The documented forms of parameters that have several, by parameter and form: the goal of sending it."""
        return {
            str(row.params["parameter"]): {form: f"{row.id} {form}" for form in forms}
            for row in self.contract.requirements
            if (forms := documented_forms(row, self.contract))
        }

    @cached_property
    def _by_scope(self) -> Mapping[Scope, tuple[list[str], list[Alike]]]:
        """Requirements by scope: the ids of those that every request in it shows, and those to be evaluated."""
        by_scope: dict[Scope, tuple[list[str], list[Alike]]] = {}
        for alike in self._alike:
            always, others = by_scope.setdefault(alike.trigger.scope, ([], []))
            expected_when = alike.trigger.expected_when
            if alike.requirement.when or expected_when not in INDEPENDENT_OF_REQUEST:
                others.append(alike)
            elif expected_when(RequestView({}, {}), alike.context):
                always.extend(alike.ids)
        return by_scope

    @cached_property
    def _context(self) -> CheckContext:
        return CheckContext(self.contract)

    @cached_property
    def _by_kind(self) -> Mapping[str, Mapping[str | None, list[Requirement]]]:
        """Requirements by the kind of group that their check looks at, and by what names it: None where any does."""
        by_kind: dict[str, dict[str | None, list[Requirement]]] = {}
        for row in self.contract.requirements:
            trigger = self.checks[row.check]
            name = row.id if trigger.keyed else row.params.get("parameter")
            by_kind.setdefault(trigger.group, {}).setdefault(name, []).append(row)
        return by_kind


def cost(case: RequestCase, defaults: Mapping[str, Any]) -> Cost:
    """What a case may cost: nothing where it must be refused; large prompts have no part in the prompt budget."""
    if case.validity is Validity.INVALID:
        return Cost()
    request = RequestView(case.body if isinstance(case.body, Mapping) else {}, defaults)
    worst = worst_case(request)
    return Cost(0, worst.completion) if len(case.content) > LARGE and is_large(request) else worst


def must(contract: Contract) -> frozenset[str]:
    """The requirements that a run must give a verdict on."""
    return frozenset(row.id for row in contract.requirements if row.level is Level.MUST)


__all__ = ["RequirementCoverage", "cost", "must"]
