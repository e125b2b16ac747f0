"""The input model: every class of value that a documented input can take, valid and invalid, derived from the contract.

A class is a kind of value that servers are likely to treat alike: a number in quotes, text with combining marks, a list
one item too long. Classes follow from the JSON Schema, the limits and the examples of each input; whether one is valid
is computed from a request that has it, never assumed. `full` sends every class, so a server that gets a whole kind of
input wrong is caught whatever the parameter is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.contract.derived_rows import fields
from conformance.contract.openapi import branches
from conformance.model import Contract, Limit, json_types
from conformance.model.json_text import MISSING, dumps
from conformance.plan.parameter_values import inside

Labelled = tuple[str, Any]


@dataclass(frozen=True)
class InputClass:
    """A kind of value of one input. `path` is `temperature`, `stop[]` or `logit_bias.*`; `value` is the whole member.

    `look_alike`: the value of another JSON type that a lenient parser converts, such as `"5"` for 5.
    """

    path: str
    name: str
    value: Any
    look_alike: bool = False

    @property
    def patch(self) -> dict[str, Any]:
        """The members of a request body that have this class."""
        return {top(self.path): self.value}


# Text that a server must carry through unchanged. Each is a class of its own: code that is right for one may be wrong
# for another.
TEXTS: Final[Mapping[str, str]] = {
    "ASCII": "plain words",
    "characters of two bytes": "Grüße",
    "characters of three bytes": "東京",
    "characters of four bytes": "\N{ROCKET}\N{EVERGREEN TREE}",
    "composed accents (NFC)": "caf\u00e9",
    "combining accents (NFD)": "cafe\u0301",
    "joined emoji": "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}",
    "right-to-left text": "\u05e9\u05dc\u05d5\u05dd",
    "tab": "a\tb",
    "line feed": "a\nb",
    "carriage return": "a\rb",
    "CR LF": "a\r\nb",
    "line separator U+2028": "a\u2028b",
    "byte order mark": "a\ufeffb",
    "HTML special characters": '<b>&amp; "q"</b>',
    "JSON special characters": '{"a": "\\\\"}',
    "SQL special characters": "'; -- %",
    "regular expression": "[a-z]+(.*)\\d$",
    "event stream field": "data: [DONE]",
    "backslashes": "a\\nb",
    "surrounding white space": "  a  ",
    "URL escapes": "a%20b+c",
    "compatibility characters": "\ufb01 \u2460 \uff21",
    "non-breaking and zero-width space": "a\u00a0b\u200bc",
    "NUL": "a\0b",
    "control characters": "a\x01b\x1b[0mc\x7fd",
}
LONG_TEXT: Final = "One, two, three, four, five, six, seven, eight, nine, ten. " * 20
MANY_ITEMS: Final = 17

WRONG_NAMES: Final[Mapping[str, str]] = {
    "string": "a word",
    "number": "a fraction",
    "integer": "a number",
    "boolean": "a boolean",
    "array": "a list in a list",
    "object": "an object",
}
WRONG_TYPES: Final[Mapping[str, Any]] = {
    "string": "many",
    "number": 1.5,
    "integer": 1,
    "boolean": True,
    "array": [[True]],
    "object": {"value": 1},
}
NUMERIC: Final = frozenset({"integer", "number"})


def nodes(contract: Contract) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every documented input of the body with its schema: members, and what is one level inside them."""
    for name, parameter in contract.parameters.items():
        yield name, parameter.schema
        for branch in branches(parameter.schema):
            for field in fields(branch, name):
                if field.path != name and field.path.count(".") + field.path.count("[") == 1:
                    yield field.path, field.schema


def member(path: str, value: Any) -> Any:
    """The top-level member's value in which `value` stands at the end of a path."""
    rest = path[len(top(path)) :]
    if rest == "[]":
        return [value]
    if rest.startswith("."):
        return {"100" if rest == ".*" else rest[1:]: value}
    return value


def invalid_classes(contract: Contract, path: str, schema: Mapping[str, Any]) -> Iterator[InputClass]:
    """The classes that break the type of an input: every look-alike of a valid value, and every other JSON type."""
    alike = dict(_look_alikes(schema, contract.limit(path)))
    yield from (InputClass(path, name, member(path, value), look_alike=True) for name, value in alike.items())
    seen = {dumps(value) for value in alike.values()}
    for name, value in _wrong_types(schema):
        if dumps(value) not in seen:
            yield InputClass(path, name, member(path, value))


def _wrong_types(schema: Mapping[str, Any]) -> Iterator[Labelled]:
    types = json_types(schema)
    for name, value in WRONG_TYPES.items():
        if (
            name not in types
            and not (name in {"integer", "number"} and types & {"integer", "number"})
            and name != "null"
        ):
            yield WRONG_NAMES[name], value
    items = [branch for branch in branches(schema) if "items" in branch]
    if items:
        yield from (("a list of objects", [{"value": 1}]), ("a list of nulls", [None]), ("a list of booleans", [True]))
        yield from (
            ("a list of fractions", [72.5]),
            ("a list of lists of words", [["many"]]),
            ("a list of lists of fractions", [[72.5]]),
            ("a list of lists of booleans", [[True]]),
        )


def _look_alikes(schema: Mapping[str, Any], limit: Limit | None) -> Iterator[Labelled]:
    """Values of another type that lenient parsers convert into a valid one."""
    types = json_types(schema) - {"null"}
    if types & NUMERIC:
        number = inside(limit, (1, 2, 0.5, 0, 3, 10))
        number = 1 if number is None else number
        whole = int(number) if number == int(number) else number
        yield "a number in quotes", dumps(whole)
        yield "a number in quotes with spaces", f" {dumps(whole)} "
        yield "a number in a list", [whole]
        yield "an empty string for a number", ""
        if "boolean" not in types:
            yield "true for a number", True
        if "number" not in types:
            yield "a fraction for an integer", whole + 0.5
    if types == {"boolean"}:
        yield from (("true in quotes", "true"), ("false in quotes", "false"), ("yes for true", "yes"))
        yield from (("1 for true", 1), ("0 for false", 0), ("1 in quotes", "1"), ("an empty string for false", ""))
    if types == {"object"}:
        yield from (("a list for a map", []), ("a list of pairs for a map", [["100", 1]]), ("a map in quotes", "{}"))
    if types == {"string"}:
        yield from (("a number for a string", 1), ("true for a string", True), ("a string in a list", ["a"]))
    if types == {"array"}:
        yield from (("an item for a list", "a"), ("a map for a list", {"0": "a"}), ("a list in quotes", '["a"]'))


def inputs(contract: Contract) -> dict[str, Mapping[str, Any]]:
    """The inputs of the body by path, the first schema of each."""
    found: dict[str, Mapping[str, Any]] = {}
    for path, schema in nodes(contract):
        found.setdefault(path, schema)
    return found


def valid_classes(contract: Contract, name: str) -> Iterator[InputClass]:
    """The kinds of values that the schema of a parameter allows; whether a request with one is valid is not said."""
    parameter = contract.parameters[name]
    limit = contract.limit(name)
    yield InputClass(name, "null", None)
    if parameter.default is not MISSING:
        yield InputClass(name, "its default, named", parameter.default)
    for branch in branches(parameter.schema):
        for value in branch.get("enum", ()):
            yield InputClass(name, f"the value {dumps(value)}", value)
        types = json_types(branch)
        if "boolean" in types:
            yield from (InputClass(name, dumps(value), value) for value in (True, False))
        if types & NUMERIC:
            yield from (InputClass(name, label, value) for label, value in _numbers(limit, whole="number" not in types))
        if "string" in types and "enum" not in branch:
            yield InputClass(name, "text of every kind", " ".join(TEXTS.values()))
            yield InputClass(name, "an empty text", "")
        if "array" in types:
            yield InputClass(name, "an empty list", [])
            yield from _lists(name, branch, contract.limit(f"{name}[]"))
        if "object" in types:
            yield from _maps(name, branch)


def _numbers(limit: Limit | None, *, whole: bool) -> Iterator[Labelled]:
    step = 1 if whole else 0.01
    low, high = (limit.low, limit.high) if limit is not None else (None, None)
    for label, bound, sign in (("lowest", low, 1), ("highest", high, -1)):
        if bound is not None:
            value = int(bound) if whole else bound
            yield f"the {label} value", value
            yield f"a step inside of the {label} value", round(value + sign * step, 6)
    yield from (("zero", 0), ("a negative number", -1), ("2^31", 2**31), ("2^53", 2**53))
    if not whole:
        yield from (("a fraction", 0.5), ("a fraction of many digits", 0.123456789012345))


def _lists(name: str, schema: Mapping[str, Any], limit: Limit | None) -> Iterator[InputClass]:
    items = schema.get("items", {})
    if json_types(items) != {"string"}:
        return
    most = int(limit.high) if limit is not None and limit.high is not None else MANY_ITEMS
    for size in sorted({1, 2, 3, most}):
        yield InputClass(f"{name}[]", f"{size} items", [f"item {place}" for place in range(size)])
    yield InputClass(f"{name}[]", "an item twice", ["item", "item"])
    texts = list(TEXTS.items())
    for start in range(0, len(texts), most):
        some = texts[start : start + most]
        yield InputClass(f"{name}[]", f"items: {', '.join(label for label, _ in some)}", [text for _, text in some])


def _maps(name: str, schema: Mapping[str, Any]) -> Iterator[InputClass]:
    values = schema.get("additionalProperties")
    types = json_types(values) if isinstance(values, Mapping) else set()
    value: Any = 1 if types & NUMERIC else "text" if types == {"string"} else None
    if value is not None:
        for size in (1, 2, 3, MANY_ITEMS):
            yield InputClass(f"{name}.*", f"{size} entries", {str(100 + place): value for place in range(size)})
