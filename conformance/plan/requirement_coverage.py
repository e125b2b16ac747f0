"""Which requirements a case serves, and what it may cost."""

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
from conformance.model import Contract, Level, RequestCase, Requirement, Validity
from conformance.model.budget import Cost, worst_case
from conformance.model.json_text import dumps
from conformance.model.request_view import RequestView
from conformance.plan.case_group import CaseGroup

# Roles that give something to compare with: a group shows nothing before the other role is there.
PREPARES: Final = frozenset({"control", "without", "first", "one", "short", "greedy", "forced", "hostile", "plain"})


@dataclass
class RequirementCoverage:
    """Which requirements a case serves. Rows that look at the same thing in the same way are asked once."""

    contract: Contract
    checks: Mapping[str, Trigger]
    _found: dict[tuple[Any, ...], frozenset[str]] = field(default_factory=dict)
    _costs: dict[tuple[bytes, bool, bool], Cost] = field(default_factory=dict)

    def of(self, case: RequestCase) -> frozenset[str]:
        """The ids of the requirements that a case is due to show."""
        return self._by_content(case).union(self._by_group(case))

    def by(self, bundle: CaseGroup) -> frozenset[str]:
        """The ids of the requirements that a bundle serves, with what follows from it."""
        if bundle.served is None:
            later = bundle.then.cases if bundle.then else ()
            found = frozenset(one for case in (*bundle.cases, *later) for one in self.of(case))
            object.__setattr__(bundle, "served", found)
            return found
        return bundle.served

    def cost(self, case: RequestCase) -> Cost:
        """What a case may cost."""
        key = case.content, case.validity is Validity.INVALID, case.hostile
        found = self._costs.get(key)
        if found is None:
            found = self._costs[key] = cost(case, self.contract.defaults)
        return found

    def _by_content(self, case: RequestCase) -> frozenset[str]:
        key = case.credential, case.hang_up_after, case.validity, case.content
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = frozenset(self._asked(case))
        return found

    def _asked(self, case: RequestCase) -> Iterator[str]:
        request = self._reading.request(case)
        for scope in scopes(case, self._reading):
            always, others = self._in_scope.get(scope, ((), ()))
            yield from always
            for row, ids, check, check_context in others:
                if expected(row, check, request, check_context):
                    yield from ids

    def _by_group(self, case: RequestCase) -> Iterable[str]:
        for one in case.groups:
            if one.role in PREPARES or one.role.startswith(("solo-", "single-")):
                continue
            first, _, _ = one.key.partition(" ")
            for row in self._groups.get(one.kind, ()):
                check = self.checks[row.check]
                named = row.id if check.keyed else row.params.get("parameter")
                if named in {None, first} and (
                    check.expected_when is None or check.expected_when(self._reading.request(case), self._reading)
                ):
                    yield row.id

    @property
    def all(self) -> tuple[str, ...]:
        """Every requirement that is more than an observation."""
        return tuple(row.id for row in self.contract.requirements if row.level is not Level.MAY)

    @cached_property
    def _alike(self) -> list[tuple[Requirement, tuple[str, ...]]]:
        alike: dict[str, list[Requirement]] = {}
        for row in self.contract.requirements:
            if self.checks[row.check].scope is not Scope.GROUP and self.checks[row.check].expected_when is not None:
                alike.setdefault(dumps([row.check, dict(row.when), dict(row.params)]), []).append(row)
        return [(rows[0], tuple(row.id for row in rows)) for rows in alike.values()]

    @cached_property
    def _in_scope(
        self,
    ) -> Mapping[Scope, tuple[list[str], list[tuple[Requirement, tuple[str, ...], Trigger, CheckContext]]]]:
        """Requirements by scope: those that every request shows that has it, and those that are to be asked."""
        found: dict[Scope, tuple[list[str], list[tuple[Requirement, tuple[str, ...], Trigger, CheckContext]]]] = {}
        for row, ids in self._alike:
            check = self.checks[row.check]
            check_context = CheckContext(self.contract, row.params, self._reading.readings)
            always, others = found.setdefault(check.scope, ([], []))
            if row.when or check.expected_when not in INDEPENDENT_OF_REQUEST:
                others.append((row, ids, check, check_context))
            elif check.expected_when(RequestView({}, {}), check_context):
                always.extend(ids)
        return found

    @cached_property
    def _reading(self) -> CheckContext:
        return CheckContext(self.contract)

    @cached_property
    def _groups(self) -> Mapping[str, list[Requirement]]:
        found: dict[str, list[Requirement]] = {}
        for row in self.contract.requirements:
            found.setdefault(self.checks[row.check].group, []).append(row)
        return found


def cost(case: RequestCase, defaults: Mapping[str, Any]) -> Cost:
    """What a case may cost: nothing where it must be refused; a hostile prompt is counted apart."""
    if case.validity is Validity.INVALID:
        return Cost()
    found = worst_case(RequestView(case.body if isinstance(case.body, Mapping) else {}, defaults))
    return Cost(0 if case.hostile else found.prompt, found.completion)


def must(contract: Contract) -> frozenset[str]:
    """The requirements that a run owes a verdict on."""
    return frozenset(row.id for row in contract.requirements if row.level is Level.MUST)


__all__ = ["RequirementCoverage", "cost", "must"]
