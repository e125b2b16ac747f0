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
    """Refuse a part that is closed: it forbids the members of all others, which no author of an `allOf` means."""
    members = set().union(*(part.get("properties", {}) for part in parts))
    for part in parts:
        foreign = sorted(members - set(part.get("properties", {})))
        if part.get("additionalProperties") is False and foreign:
            raise NotMergeableError(f"a part with additionalProperties: false forbids {foreign[0]!r} of another part")


def _merged_pair(first: Mapping[str, Any], second: Mapping[str, Any]) -> Schema:
    both = dict(first)
    for keyword, value in second.items():
        if keyword not in both or json_equal(both[keyword], value):
            both[keyword] = value
        elif keyword in _RULES:
            both[keyword] = _RULES[keyword](both[keyword], value)
        else:
            raise NotMergeableError(f"{keyword} differs: {dumps(both[keyword])[:80]} and {dumps(value)[:80]}")
    return both


def _properties(first: Mapping[str, Any], second: Mapping[str, Any]) -> Schema:
    return {
        name: merged([schema[name] for schema in (first, second) if name in schema])
        for name in dict.fromkeys((*first, *second))
    }


def _types(first: str | list[str], second: str | list[str]) -> str | list[str]:
    """The types that both allow; an integer is a number."""
    left, right = ({types} if isinstance(types, str) else set(types) for types in (first, second))
    common = left & right
    if {"integer"} <= left | right and _NUMERIC & left and _NUMERIC & right:
        common = (common - {"number"}) | {"integer"}
    if not common:
        raise NotMergeableError(f"no value is of type {dumps(first)} and of type {dumps(second)}")
    return next(iter(common)) if len(common) == 1 else sorted(common)


def _options(first: Iterable[Any], second: Sequence[Any]) -> list[Any]:
    common = [option for option in first if any(json_equal(option, candidate) for candidate in second)]
    if not common:
        raise NotMergeableError("two enums have no value in common")
    return common


def _open(first: Any, second: Any) -> Any:
    """Which further members are allowed: those that both allow."""
    if False in (first, second):
        return False
    schemas = [schema for schema in (first, second) if isinstance(schema, Mapping)]
    return merged(schemas) if schemas else True


_RULES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "properties": _properties,
    "required": lambda first, second: list(dict.fromkeys((*first, *second))),
    "type": _types,
    "enum": _options,
    "additionalProperties": _open,
    "items": lambda first, second: merged([first, second]),
    "default": lambda _, second: second,
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
            variants = members.setdefault(name, [])
            variants += [] if any(json_equal(member, variant) for variant in variants) else [member]
    of_branches = [branch.get("required", ()) for branch in choices]
    required_by_all = [name for name in of_branches[0] if all(name in names for names in of_branches)]
    properties = {
        name: variants[0] if len(variants) == 1 else {"anyOf": variants} for name, variants in members.items()
    }
    required = {"required": required_by_all} if required_by_all else {}
    combined = merged([{"type": "object", "properties": properties, **required}, rest])
    # branches of objects overlap where their members are optional, so that `oneOf` would allow next to nothing
    return {**combined, "anyOf": choices}


def _branches(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The branches of a choice, those of nested choices included."""
    word = next((choice for choice in CHOICES if choice in schema), "")
    return [inner for branch in schema[word] for inner in _branches(branch)] if word else [schema]


def needs_a_branch(schema: Mapping[str, Any]) -> bool:
    """Whether the members that all branches require suffice for none of them."""
    required = set(schema.get("required", ()))
    choices = [branch for branch in schema.get("anyOf", ()) if "properties" in branch]
    return bool(choices) and not any(set(branch.get("required", ())) <= required for branch in choices)
