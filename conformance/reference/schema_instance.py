"""A schema → a small instance of it: for members that only one contract has, for errors, and for JSON formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from conformance.contract.openapi import branches
from conformance.model.json_text import MISSING
from conformance.reference.messages import Problem, Refusal

MemberValue: TypeAlias = Callable[[str, Mapping[str, Any]], Any]  # a member's name and schema → its value, or MISSING


def no_value(name: str, schema: Mapping[str, Any]) -> Any:
    """Leave the value of every member to its schema."""
    return MISSING


def instance_of(schema: Any, name: str = "", value_of: MemberValue = no_value) -> Any:
    """An instance of a schema: the values that `value_of` gives to members, and the first that the schema allows."""
    if not isinstance(schema, Mapping):
        return name or "value"
    if (value := value_of(name, schema)) is not MISSING:
        return value
    for keyword in ("const", "default"):
        if keyword in schema and schema[keyword] is not None:
            return schema[keyword]
    if schema.get("enum"):
        return schema["enum"][0]
    narrow = branches(schema)
    if narrow and narrow[0] is not schema:
        return instance_of(narrow[0], name, value_of)
    if not narrow:
        return None
    return _by_type(schema, name, value_of)


def _by_type(schema: Mapping[str, Any], name: str, value_of: MemberValue) -> Any:
    types = schema.get("type", "object" if "properties" in schema else "string")
    match next((kind for kind in ([types] if isinstance(types, str) else types) if kind != "null"), "null"):
        case "object":
            members = schema.get("required", ()) or tuple(schema.get("properties", ()))
            schemas = schema.get("properties", {})
            return {
                member: instance_of(schemas.get(member, {"type": "string"}), member, value_of) for member in members
            }
        case "array":
            count = max(1, schema.get("minItems", 1))
            return [instance_of(schema.get("items", {}), name, value_of) for _ in range(count)]
        case "boolean":
            return True
        case "integer" | "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 2))
            return low if "minimum" in schema or "exclusiveMinimum" not in schema else (low + high) / 2
        case "null":
            return None
    return (name or "value").ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 4096)]


ENVELOPE: Mapping[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 500: "server_error"}


def error_document(schema: Mapping[str, Any], refusal: Refusal) -> Any:
    """A refusal in the shape of a schema; where the schema has a list, with one item for each problem."""
    document = instance_of(schema, "", _values_of(refusal, refusal.first))
    if isinstance(document, dict):
        for name, part in schema.get("properties", {}).items():
            if name in document and isinstance(document[name], list):
                items = part.get("items", {})
                document[name] = [instance_of(items, "", _values_of(refusal, problem)) for problem in refusal.problems]
    return document


def _values_of(refusal: Refusal, problem: Problem) -> MemberValue:
    """The values of an error's members, recognised by their usual names."""

    def value_of(name: str, schema: Mapping[str, Any]) -> Any:
        if "properties" in schema or name == "":
            return MISSING
        types = schema.get("type", "string")
        match name.lower():
            case "loc" | "location" | "path":
                return ["body"] if problem.param is None else ["body", problem.param]
            case "param" | "field" | "parameter":
                return problem.param if problem.param is not None or "null" in types else ""
            case "type":
                return _TYPES.get(refusal.status, "invalid_request_error")
            case "status" | "status_code" | "code" if "string" not in types:
                return refusal.status
            case "code" | "kind":
                return problem.kind
            case "message" | "reason" | "msg" | "detail" | "error" | "title" | "description":
                return problem.message if "items" not in schema else MISSING
        return MISSING

    return value_of
