"""The forms of a parameter, such as a text and a list of token ids: a row that speaks of all passes only if each came.

A form is a JSON type, for a list with the type of its items. A server may parse each in a place of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from conformance.contract.openapi import branches
from conformance.judge.checks.acceptance import accepted
from conformance.model import Contract, Requirement, json_types
from conformance.model.exchange import Exchange
from conformance.model.json_text import is_number

_NAMES: Final[Mapping[type, str]] = {bool: "boolean", str: "string", list: "array", dict: "object"}


def unseen_forms(requirement: Requirement, exchanges: Iterable[Exchange], contract: Contract) -> list[str]:
    """The documented forms of the parameter that no accepted request had; empty for a row that speaks of no forms."""
    parameter = contract.parameters.get(str(requirement.params.get("parameter")))
    if parameter is None or requirement.params.get("keyword") != "accepts":
        return []
    documented = dict.fromkeys(form for branch in branches(parameter.schema) for form in _documented(branch))
    if len(documented) < 2:
        return []
    bodies = (x.case.body for x in exchanges if accepted(x) and isinstance(x.case.body, Mapping))
    seen = {form for body in bodies if parameter.name in body for form in _of_value(body[parameter.name])}
    return [form for form in documented if form not in seen]


def _documented(branch: Mapping[str, Any]) -> list[str]:
    """The forms of one branch of a schema."""
    items = branch.get("items")
    inner = sorted(json_types(items) - {"null"}) if isinstance(items, Mapping) else []
    forms = []
    for name in sorted(json_types(branch) - {"null"}):
        forms += [f"array of {item}" for item in inner] if name == "array" and inner else [name]
    return forms


def _of_value(value: Any) -> set[str]:
    """The forms that a value has; an integer is a number too, and a list counts by its items as well."""
    names = _types(value)
    if isinstance(value, list):
        return names | {f"array of {name}" for item in value for name in _types(item)}
    return names


def _types(value: Any) -> set[str]:
    if is_number(value):
        return {"integer", "number"} if isinstance(value, int) or value.is_integer() else {"number"}
    return {_NAMES[type(value)]} if type(value) in _NAMES else set()
