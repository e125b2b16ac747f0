"""The catalogue of checks: small pure generators that yield one finding per occurrence and know no provider."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

from conformance.contract.applicability import CheckContext as CheckContext
from conformance.contract.applicability import ExpectedWhen
from conformance.contract.applicability import Scope as Scope
from conformance.contract.applicability import always as always
from conformance.contract.applicability import required_by_row as required_by_row
from conformance.model import Finding, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING

Findings = Iterator[Finding]
ExchangeCheck = Callable[[Exchange, CheckContext], Findings]
GroupCheck = Callable[[Group, CheckContext], Findings]
AnyCheck = TypeVar("AnyCheck", ExchangeCheck, GroupCheck)


@dataclass(frozen=True)
class Example:
    """A subject that its check must accept or reject, with the parameters of the requirement."""

    subject: Exchange | Group
    params: Mapping[str, Any] = field(default_factory=dict)


Examples = Callable[[], tuple[Example, ...]]


@dataclass(frozen=True)
class Check:
    """A check with what the judge, the planner and the documentation need to know about it.

    `expected_when(request, context)`: whether a correct reply to this valid request must contain an occurrence. None:
    a client cannot trigger an occurrence, so its absence is no gap. `group`: the kind of group that a GROUP check
    judges. `keyed`: a group belongs to the requirement whose id its key begins with. `needs_whole_run`: a finding on
    one exchange depends on others, through the last four members of `CheckContext`.
    """

    name: str
    area: str
    scope: Scope
    function: Callable[[Any, CheckContext], Findings]
    good: Examples
    bad: Examples
    expected_when: ExpectedWhen | None
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
        """How a server author fixes it."""
        return _paragraphs(self.function)[2].removeprefix("Fix: ")


def _paragraphs(function: Callable[..., Any]) -> list[str]:
    text = (function.__doc__ or "").strip()
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return [*parts, "", "", ""][:3]


CATALOGUE: dict[str, Check] = {}


def check(
    area: str,
    scope: Scope,
    *,
    good: Examples,
    bad: Examples,
    expected_when: ExpectedWhen | None = always,
    group: str = "",
    keyed: bool = False,
    needs_whole_run: bool = False,
) -> Callable[[AnyCheck], AnyCheck]:
    """Register a check in the catalogue under its function's name.

    Its docstring has three paragraphs: what holds (one sentence), why a client cares, `Fix:` for the server's author.
    """

    def register(function: AnyCheck) -> AnyCheck:
        name = function.__name__
        if name in CATALOGUE:
            raise ValueError(f"two checks have the name {name}")
        if (scope is Scope.GROUP) is not bool(group):
            raise ValueError(f"{name}: `group` is required with Scope.GROUP, and with no other scope")
        CATALOGUE[name] = Check(
            name=name,
            area=area,
            scope=scope,
            function=function,
            good=good,
            bad=bad,
            expected_when=expected_when,
            group=group,
            keyed=keyed,
            needs_whole_run=needs_whole_run,
        )
        return function

    return register


@cache
def load() -> Mapping[str, Check]:
    """The whole catalogue; imports every module of `conformance.judge.checks`."""
    package = importlib.import_module("conformance.judge.checks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return CATALOGUE


def expect(satisfied: bool, observed: str, expected: str, at: str = "") -> Finding:
    """One occurrence: `satisfied`, or else a violation with what was observed and what was expected."""
    return Satisfied(at) if satisfied else Violation(f"{observed}; expected {expected}", at)


def plural(number: int, noun: str) -> str:
    """`1 token`, `2 tokens`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def show(value: Any, limit: int = 120) -> str:
    """A value for a message: as JSON, bytes as text, printable characters only, cut in the middle."""
    try:
        text = _as_json(value)
    except (RecursionError, ValueError):  # nested too deep, or a number with thousands of digits
        text = f"{_JSON_TYPES.get(type(value), 'a value')}, too large to print"
    return excerpt(text, limit)


def excerpt(text: str, limit: int) -> str:
    """A text for a message without quotes, such as JSON: printable characters only, cut in the middle."""
    if len(text) > limit:
        text = f"{text[: limit * 2 // 3]}…{text[-(limit // 4) :]}"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in text)


_JSON_TYPES: Final = {list: "an array", tuple: "an array", dict: "an object", int: "a number"}


def _as_json(value: Any) -> str:
    if value is MISSING:
        return "absent"
    if isinstance(value, bytes):
        # bytes that are no UTF-8 become lone surrogates, which pass through JSON, and then escapes such as \xff
        text = _ENCODER.encode(value.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _ENCODER.encode(value)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, default=repr)
