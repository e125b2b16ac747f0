"""The input model as a list, and which of its classes a set of requests exercises.

A class is exercised by a request that has it: a member with its value, a text that contains it, a credential, a body
that is no JSON. Invalid classes come from the requirements on refusal, valid and open ones from the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.model import Credential, RequestCase, Validity
from conformance.model.json_text import dumps, is_number
from conformance.plan.adversarial import adversarial_bodies
from conformance.plan.context import PlanContext
from conformance.plan.input_model import EVERY_TEXT, InputClass, TextClass, text_classes, valid_classes, wrong_type
from conformance.plan.invalid_requests import breaking_classes, is_oversized
from conformance.plan.protocol import probes
from conformance.plan.valid_inputs import COSTLY, MOST_COSTLY

LONGEST_READ: Final = 10_000  # bytes of a body that is searched for numbers in another spelling
NUMBER: Final = re.compile(rb'"(\w+)":(-?[0-9][0-9.eE+-]*)')
ABSENT: Final = " absent"


@dataclass(frozen=True)
class ListedClass:
    """A class with what is expected of a request that has it; `excluded` says why none is sent, empty where one is."""

    path: str
    name: str
    expected: Validity
    key: str
    excluded: str = ""


@dataclass(frozen=True)
class Exercised:
    """The classes of the input model, and the request that exercises each, by the key of the class."""

    classes: tuple[ListedClass, ...]
    by: Mapping[str, str]

    @property
    def wanted(self) -> tuple[ListedClass, ...]:
        return tuple(listed for listed in self.classes if not listed.excluded)

    @property
    def missed(self) -> tuple[ListedClass, ...]:
        return tuple(listed for listed in self.wanted if listed.key not in self.by)

    @property
    def met(self) -> int:
        return len(self.wanted) - len(self.missed)


def exercised(context: PlanContext, cases: Iterable[RequestCase]) -> Exercised:
    """Which classes of the input model these requests exercise."""
    by: dict[str, str] = {}
    for case in cases:
        for key in keys(case, context.contract.parameters):
            by.setdefault(key, case.id)
    return Exercised(input_classes(context), by)


def input_classes(context: PlanContext) -> tuple[ListedClass, ...]:
    """Every class of every input that the contract documents, invalid ones as far as their refusal is promised."""
    classes: tuple[ListedClass, ...] | None = context.memo.get("input classes")
    if classes is None:
        every = (*_of_the_body(context), *_of_the_rest(context))
        by_key = {listed.key: listed for listed in reversed(every)}
        classes = context.memo["input classes"] = tuple(by_key.values())[::-1]
    return classes


def _of_the_body(context: PlanContext) -> Iterator[ListedClass]:
    texts = [input_class for input_class in text_classes(context.contract) if _fits(context, input_class)]
    breaking = list(breaking_classes(context))
    for name in context.contract.parameters:
        if not context.has(name):
            continue
        for input_class in valid_classes(context.contract, name):
            expected = _expected(context, input_class)
            if expected is not Validity.INVALID:
                yield ListedClass(
                    input_class.path, input_class.name, expected, input_class.key, _excluded(context, input_class)
                )
        for text in texts:
            if top(text.path) == name:
                yield ListedClass(text.path, text.name, Validity.VALID, text.key)
        for path, label, patch, key in breaking:
            if top(path) == name:
                excluded = "could exhaust the memory of a server" if is_oversized(context, patch) else ""
                yield ListedClass(path, label, Validity.INVALID, key, excluded)


def _expected(context: PlanContext, input_class: InputClass) -> Validity:
    """The validity of a request that has the class; an option of streams needs a stream."""
    streamed = {"stream": True} if top(input_class.path) == "stream_options" and context.has("stream") else {}
    return context.validity_alone({**streamed, **input_class.patch})


def _fits(context: PlanContext, text: TextClass) -> bool:
    value: Any = text.value
    if text.path.endswith("[]"):
        value = [text.value]
    elif text.path.endswith(".*"):
        value = {"1": text.value}
    return context.validity_alone({top(text.path): value}) is Validity.VALID


def _excluded(context: PlanContext, input_class: InputClass) -> str:
    """Why no request has the class."""
    name = top(input_class.path)
    if name == "model":
        return "does not name the model of the run"
    if name in COSTLY and is_number(input_class.value) and input_class.value > MOST_COSTLY:
        return "costs more than it shows"
    return ""


def _of_the_rest(context: PlanContext) -> Iterator[ListedClass]:
    for row, case in probes(context):
        if row in context.rows:
            path = "credential" if row.startswith("auth.") else "request"
            name = case.note or row.partition(".")[2].replace("-", " ")
            yield ListedClass(path, name, case.validity, f"{row} {case.note or 'base'}")
    if context.hostile and "alive" in context.kinds:
        for case in adversarial_bodies(context):
            yield ListedClass("request", case.note, case.validity, f"hostile {case.note}")


def keys(case: RequestCase, names: Iterable[str] = ()) -> Iterator[str]:
    """The keys of the classes that a request has; `names` are the members that may be absent."""
    yield from (group.key for group in case.groups if group.role == "probe" and group.kind in {"refuse", "accept"})
    if case.hostile:
        yield f"hostile {case.note}"
    if case.credential is not Credential.KEY or case.method != "POST" or not isinstance(case.body, Mapping):
        return
    for name, value in case.body.items():
        yield f"{name}={dumps(value)}"
        if case.validity is Validity.INVALID:
            yield f"{name} is {wrong_type(value)}"
        for path, text in _strings(name, value):
            yield from (f"{path} has {class_name}" for class_name in _names(text))
    if len(case.content) < LONGEST_READ and dumps(case.body).encode() != case.content:
        yield from (f"{name.decode()}={number.decode()}" for name, number in NUMBER.findall(case.content))
    yield from (f"{name}{ABSENT}" for name in names if name not in case.body)


def _strings(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The strings in a value, each with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(f"{path}[]", item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(f"{path}.*", item)


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    """The classes of text that a string contains."""
    return tuple(name for name, part in EVERY_TEXT.items() if part in text)


__all__ = ["Exercised", "ListedClass", "exercised", "input_classes"]
