"""Composed schemas: the parts of `allOf` become one schema, and a choice between objects one with all their members.

Parameters and fields are looked up in `properties`. What stands behind `allOf`, `anyOf` or `oneOf` would not be found
there, and its promises would be lost; so it is merged, or refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from conformance.model.json_text import dumps, json_equal

Schema = dict[str, Any]
CHOICES: Final = ("anyOf", "oneOf")
_NUMERIC: Final = {"integer", "number"}


class NotMergeableError(ValueError):
    """Why schemas cannot become one."""


def merged(parts: Sequence[Mapping[str, Any]]) -> Schema:
    """One schema whose instances are those of all parts; NotMergeableError where none can be written."""
    _refuse_closed_parts(parts)
    return reduce(_merged_pair, parts, {})


def _refuse_closed_parts(parts: Sequence[Mapping[str, Any]]) -> None:
    """A part that is closed forbids the members of all others, which nobody who writes `allOf` means."""
    members = set().union(*(part.get("properties", {}) for part in parts))
    for part in parts:
        foreign = sorted(members - set(part.get("properties", {})))
        if part.get("additionalProperties") is False and foreign:
            raise NotMergeableError(f"a part with additionalProperties: false forbids {foreign[0]!r} of another part")


def _merged_pair(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    out = dict(one)
    for keyword, value in other.items():
        if keyword not in out or json_equal(out[keyword], value):
            out[keyword] = value
        elif keyword in _RULES:
            out[keyword] = _RULES[keyword](out[keyword], value)
        else:
            raise NotMergeableError(f"{keyword} differs: {dumps(out[keyword])[:80]} and {dumps(value)[:80]}")
    return out


def _properties(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    return {
        name: merged([each[name] for each in (one, other) if name in each]) for name in dict.fromkeys((*one, *other))
    }


def _types(one: str | list[str], other: str | list[str]) -> str | list[str]:
    """The types that both allow; an integer is a number."""
    left, right = ({types} if isinstance(types, str) else set(types) for types in (one, other))
    common = left & right
    if {"integer"} <= left | right and _NUMERIC & left and _NUMERIC & right:
        common = (common - {"number"}) | {"integer"}
    if not common:
        raise NotMergeableError(f"no value is of type {dumps(one)} and of type {dumps(other)}")
    return next(iter(common)) if len(common) == 1 else sorted(common)


def _options(one: Iterable[Any], other: Sequence[Any]) -> list[Any]:
    common = [option for option in one if any(json_equal(option, second) for second in other)]
    if not common:
        raise NotMergeableError("two enums have no value in common")
    return common


def _open(one: Any, other: Any) -> Any:
    """Which further members are allowed: those that both allow."""
    if False in (one, other):
        return False
    schemas = [each for each in (one, other) if isinstance(each, Mapping)]
    return merged(schemas) if schemas else True


_RULES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "properties": _properties,
    "required": lambda one, other: list(dict.fromkeys((*one, *other))),
    "type": _types,
    "enum": _options,
    "additionalProperties": _open,
    "items": lambda one, other: merged([one, other]),
    "default": lambda _, other: other,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def with_all_members(schema: Schema) -> Schema:
    """The schema of an object, with the members of each branch of a choice beside the choice; others as they are.

    A member that several branches have may be what any of them allows; one is required if each branch requires it.
    """
    word = next((choice for choice in CHOICES if choice in schema), "")
    choices = _branches(schema) if word else []
    if not any("properties" in branch for branch in choices):
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword != word}
    if not all("properties" in branch for branch in choices):
        raise NotMergeableError("some branches are objects with properties and others are not")
    members: dict[str, list[Any]] = {}
    for branch in choices:
        for name, member in branch["properties"].items():
            known = members.setdefault(name, [])
            known += [] if any(json_equal(member, each) for each in known) else [member]
    always = [name for name in choices[0].get("required", ()) if all(name in b.get("required", ()) for b in choices)]
    properties = {name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in members.items()}
    whole = merged([{"type": "object", "properties": properties, **({"required": always} if always else {})}, rest])
    # branches of objects overlap where their members are optional, so that `oneOf` would allow next to nothing
    return {**whole, "anyOf": choices}


def _branches(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The branches of a choice, those of nested choices included."""
    word = next((choice for choice in CHOICES if choice in schema), "")
    return [found for branch in schema[word] for found in _branches(branch)] if word else [schema]


def needs_a_branch(schema: Mapping[str, Any]) -> bool:
    """Whether the members that all branches require suffice for none of them."""
    required = set(schema.get("required", ()))
    choices = [branch for branch in schema.get("anyOf", ()) if "properties" in branch]
    return bool(choices) and not any(set(branch.get("required", ())) <= required for branch in choices)
