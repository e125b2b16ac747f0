"""A schema → the smallest honest instance of it: for members that only a contract names, for errors, for JSON mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.contract.validity import branches
from conformance.model.json_text import MISSING
from conformance.reference.messages import Problem, Refusal

Known = Callable[[str, Mapping[str, Any]], Any]


def nothing_known(name: str, schema: Mapping[str, Any]) -> Any:
    """Know no member by its name."""
    return MISSING


def fill(schema: Any, name: str = "", known: Known = nothing_known) -> Any:
    """An instance: what `known` says of a member by name, else the first of what the schema allows."""
    if not isinstance(schema, Mapping):
        return name or "value"
    if (value := known(name, schema)) is not MISSING:
        return value
    for word in ("const", "default"):
        if word in schema and schema[word] is not None:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    narrow = branches(schema)
    if narrow and narrow[0] is not schema:
        return fill(narrow[0], name, known)
    if not narrow:
        return None
    return _by_type(schema, name, known)


def _by_type(schema: Mapping[str, Any], name: str, known: Known) -> Any:
    told = schema.get("type", "object" if "properties" in schema else "string")
    kind = next((one for one in ([told] if isinstance(told, str) else told) if one != "null"), "null")
    match kind:
        case "object":
            owed = schema.get("required", ()) or tuple(schema.get("properties", ()))
            properties = schema.get("properties", {})
            return {one: fill(properties.get(one, {"type": "string"}), one, known) for one in owed}
        case "array":
            return [fill(schema.get("items", {}), name, known) for _ in range(max(1, schema.get("minItems", 1)))]
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


def complaint(schema: Mapping[str, Any], refusal: Refusal) -> Any:
    """A refusal in the shape that a schema documents, one item a problem where the shape is a list."""
    whole = fill(schema, "", _teller(refusal, refusal.first))
    if isinstance(whole, dict):
        for name, part in schema.get("properties", {}).items():
            if name in whole and isinstance(whole[name], list):
                items = part.get("items", {})
                whole[name] = [fill(items, "", _teller(refusal, problem)) for problem in refusal.problems]
    return whole


def _teller(refusal: Refusal, problem: Problem) -> Known:
    def tell(name: str, schema: Mapping[str, Any]) -> Any:
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

    return tell
