"""Schema: one keyword of one field of the documented shapes, wherever the field occurs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from conformance.contract.openapi import error_entry
from conformance.contract.validity import is_valid
from conformance.judge.catalogue import CheckContext, Findings, Scope, check, required_by_row, show
from conformance.judge.fixtures import choice, completion, error, example, plain, stream
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange, split_path
from conformance.model.json_text import dumps, json_equal

JSON_TYPES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def json_type(value: Any) -> str:
    """The JSON type of a parsed value; integers are numbers."""
    return JSON_TYPES[type(value)]


def _has_type(value: Any, names: Collection[str]) -> bool:
    """Whether a value is of one of these types as JSON Schema names them; 1.0 is an integer there."""
    actual = json_type(value)
    return actual in names or (actual == "number" and "integer" in names and bool(value == value // 1))


def _in_enum(value: Any, options: list[Any]) -> bool:
    """Whether an enum lists the value, or has no option of its type: then the requirement on the type judges it."""
    same_type = [option for option in options if json_type(option) == json_type(value)]
    return not same_type or any(json_equal(value, option) for option in same_type)


RULES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "type": _has_type,
    "enum": _in_enum,
    "const": json_equal,
    "minimum": lambda value, bound: json_type(value) != "number" or value >= bound,
    "maximum": lambda value, bound: json_type(value) != "number" or value <= bound,
    "minItems": lambda value, count: not isinstance(value, list) or len(value) >= count,
    "maxItems": lambda value, count: not isinstance(value, list) or len(value) <= count,
    "pattern": lambda value, pattern: is_valid(dumps({"pattern": pattern}), value),
    "not_null": lambda value, _: value is not None,
    "schema": lambda value, shape: is_valid(dumps(shape), value),
}


def _described(keyword: str, expected: Any) -> str:
    """What a keyword expects, for a message."""
    if keyword == "schema":
        return "one of its documented shapes"
    if keyword == "not_null":
        return "a value, or no such member at all"
    if isinstance(expected, list):
        return " or ".join("null" if option is None else str(option) for option in expected)
    return f"{keyword} {expected}"


def _field_findings(x: Exchange, context: CheckContext) -> Findings:
    """The findings of one requirement on all documents of an exchange."""
    path, keyword, expected = context["path"], context["keyword"], context["expected"]
    satisfied = 0
    if keyword == "required":
        above, name = split_path(path)
        for at, parent in x.values_at(above):
            if not isinstance(parent, dict) or (name not in parent and context.get("unless") in parent):
                continue  # not the object that the requirement is about
            if name in parent:
                satisfied += 1
            else:
                yield Violation(
                    f"{name} is absent from the members {show(list(parent))}; expected {name} among them", at
                )
    else:
        rule = RULES[keyword]
        for at, value in x.values_at(path):
            if rule(value, expected):
                satisfied += 1
            else:
                yield Violation(f"{path} is {show(value)}; expected {_described(keyword, expected)}", at)
    if satisfied:
        yield Satisfied(count=satisfied)


FINISH = {"path": "choices[].finish_reason", "keyword": "enum", "expected": ["stop", "length", None]}


@check(
    "schema",
    Scope.PLAIN,
    expected_when=required_by_row,
    good=lambda: example(plain(completion(choice(finish="stop"))), **FINISH),
    bad=lambda: example(plain(completion(choice(finish="eos_token"))), **FINISH),
)
def plain_field_conforms(x: Exchange, context: CheckContext) -> Findings:
    """A field of the body conforms to its schema.

    Typed clients are generated from the schema: they raise an exception on a missing member or another type.

    Fix: compare the field with its schema in the provider's OpenAPI document, and send what is documented.
    """
    if not x.streamed:
        yield from _field_findings(x, context)


@check(
    "schema",
    Scope.STREAM,
    expected_when=required_by_row,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice(finish="stop"))), **FINISH),
    bad=lambda: example(stream(completion(choice(finish=""))), **FINISH),
)
def chunk_field_conforms(x: Exchange, context: CheckContext) -> Findings:
    """A field of a chunk conforms to the documented schema of chunks.

    A streaming client parses each chunk with a generated type, and raises an exception on one that does not conform.

    Fix: build chunks from the same type as the plain body, with null for values that are not known yet.
    """
    if x.streamed:
        yield from _field_findings(x, context)


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
    """A field of an error body conforms to the documented schema for its status.

    Clients show the documented members of an error or branch on them; without them a user sees only a status code.

    Fix: build every error body with one function that follows the documented schema.
    """
    if x.status is not None and context["status"] in {str(x.status), error_entry(context.contract, x.status)}:
        yield from _field_findings(x, context)
