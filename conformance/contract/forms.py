"""The forms of a parameter, such as a text and a list of token ids: servers may parse each in a place of its own.

A form is a JSON type, for a list with the type of its items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.contract.openapi import branches
from conformance.model import Contract, Requirement, json_types
from conformance.model.json_text import is_number

_NAMES: Final[Mapping[type, str]] = {bool: "boolean", str: "string", list: "array", dict: "object"}


def documented_forms(requirement: Requirement, contract: Contract) -> list[str]:
    """The forms that a requirement on the documented values of a parameter covers; empty where there is only one."""
    parameter = contract.parameters.get(str(requirement.params.get("parameter")))
    if parameter is None or requirement.params.get("keyword") != "accepts":
        return []
    documented = list(dict.fromkeys(form for branch in branches(parameter.schema) for form in _documented(branch)))
    return documented if len(documented) > 1 else []


def _documented(branch: Mapping[str, Any]) -> list[str]:
    """The forms of one branch of a schema."""
    items = branch.get("items")
    inner = sorted(json_types(items) - {"null"}) if isinstance(items, Mapping) else []
    forms = []
    for name in sorted(json_types(branch) - {"null"}):
        forms += [f"array of {item}" for item in inner] if name == "array" and inner else [name]
    return forms


def forms_of(value: Any) -> set[str]:
    """The forms that a value has; an integer is a number too, and a list counts by its items as well."""
    names = _types(value)
    if isinstance(value, list):
        return names | {f"array of {name}" for item in value for name in _types(item)}
    return names


def _types(value: Any) -> set[str]:
    if is_number(value):
        return {"integer", "number"} if isinstance(value, int) or value.is_integer() else {"number"}
    return {_NAMES[type(value)]} if type(value) in _NAMES else set()


__all__ = ["documented_forms", "forms_of"]
