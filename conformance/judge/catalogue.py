"""The catalogue of checks: small pure generators that yield one finding per occurrence and know no provider."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final, TypeVar

from conformance.model import Contract, Finding, RequestCase, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.request_view import RequestView


class Scope(StrEnum):
    """Which exchanges a check looks at; all but ANY and ERROR leave out requests that break the contract."""

    ANY = "any"  # whatever came back, a broken connection included
    SUCCESS = "success"  # 2xx, complete
    PLAIN = "plain"  # 2xx, complete, one JSON body asked for
    STREAM = "stream"  # 2xx, complete, an event stream asked for
    ERROR = "error"  # 4xx or 5xx, complete
    GROUP = "group"  # exchanges that are judged together, see `Check.group`


@dataclass(frozen=True)
class CheckContext:
    """The terms under which a subject is judged: the contract, and the parameters of the requirement."""

    contract: Contract
    params: Mapping[str, Any] = field(default_factory=dict)
    readings: dict[bytes, RequestView] = field(default_factory=dict, repr=False, compare=False)
    alone: Mapping[str, frozenset[str]] = field(default_factory=dict)  # see `Check.wide`
    taken: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.params[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.params.get(name, otherwise)

    @property
    def length(self) -> str:
        """What this provider calls the end of a text at its limit."""
        return self.contract.semantics.length_reason

    @property
    def stop(self) -> str:
        """What this provider calls the end of a text by a stop sequence or by itself."""
        return self.contract.semantics.stop_reason

    def request(self, subject: Exchange | RequestCase) -> RequestView:
        """What the request asks for under the contract's defaults; an empty request where the body is no object."""
        case = subject.case if isinstance(subject, Exchange) else subject
        found = self.readings.get(case.content)
        if found is None:
            body = case.body
            defaults = self.contract.defaults
            found = RequestView(body if isinstance(body, Mapping) else {}, defaults)
            self.readings[case.content] = found
        return found


Findings = Iterator[Finding]
ExchangeCheck = Callable[[Exchange, CheckContext], Findings]
GroupCheck = Callable[[Group, CheckContext], Findings]
AnyCheck = TypeVar("AnyCheck", ExchangeCheck, GroupCheck)


@dataclass(frozen=True)
class Example:
    """A subject beside its check, with the parameters under which it is good or bad."""

    subject: Exchange | Group
    params: Mapping[str, Any] = field(default_factory=dict)


Examples = Callable[[], tuple[Example, ...]]


@dataclass(frozen=True)
class Check:
    """A check with what the judge, the planner and the docs need to know of it.

    `expected_when(request, context)`: whether a valid request like this must give the check something to examine.
    None: a client cannot provoke an occurrence, so its absence is no gap. `group`: the kind of group that a GROUP check
    judges. `keyed`: a group belongs to the requirement whose id its key begins with. `needs_whole_run`: the finding on
    one exchange depends on others: `CheckContext.alone` are the values, as JSON, that the target refused by
    themselves, `taken` those it accepted.
    """

    name: str
    area: str
    scope: Scope
    function: Callable[[Any, CheckContext], Findings]
    good: Examples
    bad: Examples
    expected_when: Callable[[RequestView, CheckContext], bool] | None
    group: str = ""
    keyed: bool = False
    needs_whole_run: bool = False

    @property
    def holds(self) -> str:
        """Line one of the docstring: what holds."""
        return _paragraphs(self.function)[0]

    @property
    def why(self) -> str:
        """Why a client cares."""
        return _paragraphs(self.function)[1]

    @property
    def fix(self) -> str:
        """How a server author mends it."""
        return _paragraphs(self.function)[2].removeprefix("Fix: ")


def _paragraphs(function: Callable[..., Any]) -> list[str]:
    text = (function.__doc__ or "").strip()
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return [*parts, "", "", ""][:3]


CATALOGUE: dict[str, Check] = {}


def always(request: RequestView, context: CheckContext) -> bool:
    """Due on every valid request of the scope."""
    return True


def required_by_row(request: RequestView, context: CheckContext) -> bool:
    """Due on every valid request of the scope, where the requirement says so."""
    return bool(context.get("due"))


WHATEVER_IS_ASKED: Final = frozenset({always, required_by_row})


def check(
    area: str,
    scope: Scope,
    *,
    good: Examples,
    bad: Examples,
    expected_when: Callable[[RequestView, CheckContext], bool] | None = always,
    group: str = "",
    keyed: bool = False,
    needs_whole_run: bool = False,
) -> Callable[[AnyCheck], AnyCheck]:
    """Enter a check into the catalogue under its function's name.

    Its docstring has three paragraphs: what holds (one sentence), why a client cares, `Fix:` for the server's author.
    """

    def enter(function: AnyCheck) -> AnyCheck:
        name = function.__name__
        if name in CATALOGUE:
            raise ValueError(f"two checks are called {name}")
        if (scope is Scope.GROUP) is not bool(group):
            raise ValueError(f"{name}: `group` goes with Scope.GROUP, and only with it")
        CATALOGUE[name] = Check(name, area, scope, function, good, bad, expected_when, group, keyed, needs_whole_run)
        return function

    return enter


@cache
def load() -> Mapping[str, Check]:
    """The whole catalogue, every module of `conformance.judge.checks` imported."""
    package = importlib.import_module("conformance.judge.checks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return CATALOGUE


def expect(held: bool, observed: str, expected: str, at: str = "") -> Finding:
    """One occurrence: held, or a violation that says what was observed and what was expected."""
    return Satisfied(at) if held else Violation(f"{observed}; expected {expected}", at)


def show(value: Any, most: int = 120) -> str:
    """A value for a message: its repr, printable characters only, cut in the middle."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number with thousands of digits
        text = f"{type(value).__name__}, too large to print"
    if len(text) > most:
        text = f"{text[: most * 2 // 3]}…{text[-(most // 4) :]}"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in text)
