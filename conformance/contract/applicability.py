"""Which requests a requirement applies to, and which of them must show it.

The planner asks before anything is sent (which cases are worth their cost), the judge afterwards (which missing
occurrences are gaps). Both ask here, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from conformance.model import Contract, Credential, RequestCase, Requirement, Validity
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING, json_equal
from conformance.model.request_view import RequestView


class Scope(StrEnum):
    """Which exchanges a check looks at; all but ANY and ERROR leave out requests that break the contract."""

    ANY = "any"  # whatever came back, a broken connection included
    SUCCESS = "success"  # 2xx, complete
    PLAIN = "plain"  # 2xx, complete, to a request for one JSON body
    STREAM = "stream"  # 2xx, complete, to a request for an event stream
    ERROR = "error"  # 4xx or 5xx, complete
    GROUP = "group"  # exchanges that are judged together, see `Trigger.group`


@dataclass(frozen=True)
class CheckContext:
    """What a check may know besides its subject: the contract, and the parameters of the requirement.

    The last four concern the whole run, for checks that need it: the values by parameter, as JSON, that were refused in
    a request that otherwise equals an accepted one, and those that were accepted; the ids of cases whose server error
    others of their kind confirm, and of those that break off only beside others.
    """

    contract: Contract
    params: Mapping[str, Any] = field(default_factory=dict)
    views: dict[bytes, RequestView] = field(default_factory=dict, repr=False, compare=False)
    refused_alone: Mapping[str, frozenset[str]] = field(default_factory=dict)
    accepted_values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    failing_cases: frozenset[str] = frozenset()
    cut_beside_others: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        return self.params[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.params.get(name, otherwise)

    @property
    def length(self) -> str:
        """The finish reason of this provider for a text that was cut at its limit."""
        return self.contract.semantics.length_reason

    @property
    def stop(self) -> str:
        """The finish reason of this provider for a text that ended at a stop sequence or by itself."""
        return self.contract.semantics.stop_reason

    def request(self, subject: Exchange | RequestCase) -> RequestView:
        """The request under the contract's defaults; an empty request where the body is no object."""
        case = subject.case if isinstance(subject, Exchange) else subject
        view = self.views.get(case.content)
        if view is None:
            body = case.body
            view = RequestView(body if isinstance(body, Mapping) else {}, self.contract.defaults)
            self.views[case.content] = view
        return view


ExpectedWhen = Callable[[RequestView, CheckContext], bool]


class Trigger(Protocol):
    """The part of a check that says which requests must show an occurrence, see `judge.catalogue.Check`."""

    @property
    def area(self) -> str: ...

    @property
    def scope(self) -> Scope: ...

    @property
    def expected_when(self) -> ExpectedWhen | None: ...

    @property
    def group(self) -> str: ...

    @property
    def keyed(self) -> bool: ...


def always(request: RequestView, context: CheckContext) -> bool:
    """Expected on every valid request of the scope."""
    return True


def required_by_row(request: RequestView, context: CheckContext) -> bool:
    """Expected on every valid request of the scope, where the requirement says so."""
    return bool(context.get("due"))


INDEPENDENT_OF_REQUEST: Final = frozenset({always, required_by_row})


def applies(requirement: Requirement, request: RequestView) -> bool:
    """Whether the request has the values that the requirement's `when` names; a list names several."""
    for name, allowed in requirement.when.items():
        value = request.include_usage if name == "include_usage" else request.get(name)
        if not any(json_equal(value, option) for option in (allowed if isinstance(allowed, list) else [allowed])):
            return False
    return True


def expected(requirement: Requirement, trigger: Trigger, request: RequestView, context: CheckContext) -> bool:
    """Whether a correct reply to this request, which is in the check's scope, must contain an occurrence."""
    if trigger.expected_when is None or (trigger.scope is not Scope.ERROR and not applies(requirement, request)):
        return False
    return trigger.expected_when(request, context)


def expected_of_case(requirement: Requirement, trigger: Trigger, case: RequestCase, context: CheckContext) -> bool:
    """Whether a correct reply to this case, or its group, must contain an occurrence."""
    if trigger.scope is Scope.GROUP:
        subject = requirement.id if trigger.keyed else requirement.params.get("parameter")
        keys = (part.key.partition(" ")[0] for part in case.groups if part.kind == trigger.group)
        in_group = any(subject in {None, key} for key in keys)
        return in_group and (trigger.expected_when is None or trigger.expected_when(context.request(case), context))
    return trigger.scope in scopes(case, context) and expected(requirement, trigger, context.request(case), context)


def scopes(case: RequestCase, context: CheckContext) -> frozenset[Scope]:
    """The scopes that a correct reply to this case is in; cases without a normal reply are in none."""
    if case.credential is not Credential.KEY or case.hang_up_after is not None:
        return frozenset()
    if case.validity is Validity.INVALID and case.body is not MISSING:
        return _REFUSED
    if case.validity is not Validity.VALID or not isinstance(case.body, Mapping):
        return _ANSWERED[None]
    return _ANSWERED[context.request(case).stream]


_REFUSED: Final = frozenset({Scope.ERROR, Scope.ANY})
_ANSWERED: Final[Mapping[bool | None, frozenset[Scope]]] = {
    None: frozenset({Scope.ANY}),
    True: frozenset({Scope.ANY, Scope.SUCCESS, Scope.STREAM}),
    False: frozenset({Scope.ANY, Scope.SUCCESS, Scope.PLAIN}),
}

__all__ = [
    "INDEPENDENT_OF_REQUEST", "CheckContext", "ExpectedWhen", "Scope", "Trigger", "always", "applies", "expected",
    "expected_of_case", "required_by_row", "scopes",
]  # fmt: skip
