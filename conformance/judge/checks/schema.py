"""Schema: one keyword of one field of the documented shapes, wherever the field occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from conformance.contract.validity import error_entry, validator
from conformance.judge.catalogue import CheckContext, Findings, Scope, check, required_by_row, show
from conformance.judge.fixtures import choice, completion, error, example, plain, stream
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps

Place = tuple[str, Any]


@cache
def _split(path: str) -> tuple[str, str]:
    """A path as the path above it and its last step."""
    if path.endswith("[]"):
        return path[:-2], "[]"
    above, _, step = path.rpartition(".")
    return above, step


def instances(x: Exchange, path: str) -> tuple[Place, ...]:
    """All values at a path such as `choices[].logprobs.tokens[]`, in all documents, each with its JSON pointer."""
    found: tuple[Place, ...] | None = x.places.get(path)
    if found is None:
        above, step = _split(path)
        found = tuple(place for one in instances(x, above) for place in _step(one, step))
        x.places[path] = found
    return found


def _step(place: Place, step: str) -> Iterator[Place]:
    at, value = place
    if step == "[]" and isinstance(value, list):
        yield from ((f"{at}/{number}", item) for number, item in enumerate(value))
    elif step == "*" and isinstance(value, dict):
        yield from ((f"{at}/{name}", item) for name, item in value.items())
    elif isinstance(value, dict) and step in value:
        yield f"{at}/{step}", value[step]


def _is_type(value: Any, name: str) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "integer":  # 1.0 is an integer to JSON Schema
            return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
        case _:
            return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


RULES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "type": lambda value, names: any(_is_type(value, name) for name in names),
    # a value of another type is the type's row
    "enum": lambda value, values: value in values or type(value) not in {type(one) for one in values},
    "const": lambda value, wanted: bool(value == wanted),
    "minimum": lambda value, bound: not _number(value) or value >= bound,
    "maximum": lambda value, bound: not _number(value) or value <= bound,
    "minItems": lambda value, count: not isinstance(value, list) or len(value) >= count,
    "maxItems": lambda value, count: not isinstance(value, list) or len(value) <= count,
    "pattern": lambda value, text: bool(validator(dumps({"pattern": text})).is_valid(value)),
    "not_null": lambda value, _: value is not None,
    "schema": lambda value, shape: bool(validator(dumps(shape)).is_valid(value)),
}


def _says(keyword: str, expected: Any) -> str:
    told = {"schema": "one of its documented shapes", "not_null": "a value, or no such member"}
    if keyword in told:
        return told[keyword]
    if isinstance(expected, list):
        return " or ".join("null" if one is None else str(one) for one in expected)
    return f"{keyword} {expected}"


def _conforms(x: Exchange, context: CheckContext) -> Findings:
    """The findings of one row on all documents of an exchange."""
    path, keyword, expected = context["path"], context["keyword"], context["expected"]
    held = 0
    if keyword == "required":
        above, name = _split(path)
        for at, parent in instances(x, above):
            if isinstance(parent, dict) and name in parent:
                held += 1
            elif isinstance(parent, dict) and context.get("unless") in parent:
                continue  # another object than the row speaks of
            elif isinstance(parent, dict):
                yield Violation(f"{name!r} is missing; expected it among {show(list(parent))}", at)
    else:
        rule = RULES[keyword]
        for at, value in instances(x, path):
            if rule(value, expected):
                held += 1
            else:
                yield Violation(f"{path} is {show(value)}; expected {_says(keyword, expected)}", at)
    if held:
        yield Satisfied(count=held)


FINISH = {"path": "choices[].finish_reason", "keyword": "enum", "expected": ["stop", "length", None]}


@check(
    "schema",
    Scope.PLAIN,
    expected_when=required_by_row,
    good=lambda: example(plain(completion(choice(finish="stop"))), **FINISH),
    bad=lambda: example(plain(completion(choice(finish="eos_token"))), **FINISH),
)
def plain_field_conforms(x: Exchange, context: CheckContext) -> Findings:
    """A field of the body is as its schema says.

    Typed clients are generated from the schema: a member that is missing or of another type raises there.

    Fix: compare the field with its place in the provider's OpenAPI document and send what is written there.
    """
    if not x.streamed:
        yield from _conforms(x, context)


@check(
    "schema",
    Scope.STREAM,
    expected_when=required_by_row,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice(finish="stop"))), **FINISH),
    bad=lambda: example(stream(completion(choice(finish=""))), **FINISH),
)
def chunk_field_conforms(x: Exchange, context: CheckContext) -> Findings:
    """A field of a chunk is as the schema of the completion says.

    A streaming client parses each chunk with the type of the completion; one odd chunk ends it with an exception.

    Fix: build chunks from the same type as the plain body, with null where a value is not known yet.
    """
    if x.streamed:
        yield from _conforms(x, context)


@check(
    "schema",
    Scope.ERROR,
    expected_when=required_by_row,
    good=lambda: example(error(), path="error.message", keyword="type", expected=["string"], status="400"),
    bad=lambda: example(
        plain({"error": {"message": 7}}, status=400),
        path="error.message",
        keyword="type",
        expected=["string"],
        status="400",
    ),
)
def error_field_conforms(x: Exchange, context: CheckContext) -> Findings:
    """A field of an error body is as the documented schema for its status says.

    Clients show or branch on the documented members of an error; without them a person reads only a status code.

    Fix: send every refusal through the one function that builds the documented error body.
    """
    if x.status is not None and context["status"] in {str(x.status), error_entry(context.contract, x.status)}:
        yield from _conforms(x, context)
