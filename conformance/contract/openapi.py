"""OpenAPI 3.0 and 3.1 → JSON Schema 2020-12: references inlined, `nullable` spelled out, places found by JSON pointer.

`referencing` and `jsonschema-path` resolve references as well. They are not used here because three things are needed
that they do not give: the pointer as it is written, through references and the branches of unions (`locate`), an
error with that pointer for each of the mistakes a person makes in openapi.yaml, and schemas with every reference
inlined, since overlays are RFC 7396 merge patches on the inlined schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema

from conformance.contract.composition import NotMergeableError, merged, with_all_members
from conformance.model import Contract

ANNOTATIONS: Final = frozenset(
    {"description", "title", "example", "examples", "externalDocs", "xml", "deprecated", "discriminator", "summary"}
)
BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
RULES: Final = BOUNDS | {"minItems", "maxItems", "items", "enum", "pattern", "format"}
"""Keywords that may stand beside a union."""
COUNTS: Final = frozenset({"minItems", "maxItems"})

_META: Final = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)


class SchemaError(ValueError):
    """A schema that cannot be read; `at` is the JSON pointer of the place."""

    def __init__(self, at: str, message: str) -> None:
        super().__init__(f"{at}: {message}")
        self.at = at
        self.message = message


def follow(document: Mapping[str, Any], pointer: str) -> Any:
    """The value at a JSON pointer such as `#/components/schemas/Usage`."""
    value: Any = document
    for token in pointer.removeprefix("#").split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise SchemaError(pointer, f"there is no {key!r} here") from None
    return value


def locate(document: Mapping[str, Any], pointer: str) -> str:
    """Where a place of a schema stands as it is written, found through references and in the branches of unions.

    What an overlay adds is not written anywhere: the pointer leads to the deepest place that is.
    """
    positions: list[tuple[Any, str]] = [(document, "#")]  # several parts of an `allOf` may have `properties`
    for token in pointer.removeprefix("#").split("/")[1:]:
        deeper = [match for value, at in positions for match in _within(document, value, at, token)]
        if not deeper:
            break
        positions = deeper
    return positions[0][1]


def _within(document: Mapping[str, Any], value: Any, at: str, token: str) -> list[tuple[Any, str]]:
    """What a token leads to, in each part or branch that has it."""
    if isinstance(value, Mapping) and "$ref" in value:
        at = str(value["$ref"])
        value = follow(document, at)
    key = token.replace("~1", "/").replace("~0", "~")
    if isinstance(value, list):
        return [(value[int(key)], f"{at}/{token}")] if key.isdigit() and int(key) < len(value) else []
    if not isinstance(value, Mapping):
        return []
    direct = [(value[key], f"{at}/{token}")] if key in value else []
    branches = ((word, index) for word in ("anyOf", "oneOf", "allOf") for index in range(len(value.get(word, ()))))
    inner = (_within(document, value[word][index], f"{at}/{word}/{index}", token) for word, index in branches)
    return [*direct, *(match for values in inner for match in values)]


def json_schema(
    document: Mapping[str, Any], schema: Any, at: str = "#", _above: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A schema of an OpenAPI document as JSON Schema 2020-12, references inlined and `nullable` spelled out."""
    if not isinstance(schema, Mapping):
        raise SchemaError(at, f"a schema is an object, not {type(schema).__name__}")
    if "$ref" in schema:
        return _referred(document, schema, at, _above)
    converted: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ANNOTATIONS or key.startswith("x-") or key == "nullable":
            continue
        converted[key] = _keyword(document, key, value, f"{at}/{key}", _above)
    for strict, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if converted.get(strict) is True and bound in converted:  # OpenAPI 3.0 marks a bound as strict with a boolean
            converted[strict] = converted.pop(bound)
        elif isinstance(converted.get(strict), bool):
            del converted[strict]
    if len(converted.get("allOf", ())) == 1:
        (part,) = converted.pop("allOf")
        both_have_properties = "properties" in part and "properties" in converted
        converted = _all_of([part, converted], at) if both_have_properties else {**part, **converted}
    elif "allOf" in converted:
        parts = converted.pop("allOf")
        converted = _all_of([*parts, converted], f"{at}/allOf")
    return _nullable(converted) if schema.get("nullable") is True else converted


def _referred(
    document: Mapping[str, Any], schema: Mapping[str, Any], at: str, above: tuple[str, ...]
) -> dict[str, Any]:
    """The schema that a reference leads to, with the keywords beside the reference."""
    ref = str(schema["$ref"])
    if ref in above:
        raise SchemaError(ref, "a schema that contains itself is not supported; end it at a depth that is meant")
    siblings = {key: value for key, value in schema.items() if key != "$ref"}
    target = json_schema(document, follow(document, ref), ref, (*above, ref))
    added = json_schema(document, siblings, at, above) if siblings else {}
    return _all_of([target, added], at) if "properties" in added else {**target, **added}


def _all_of(parts: list[dict[str, Any]], at: str) -> dict[str, Any]:
    """The parts of an `allOf` as one schema; side by side where that cannot be and no members would be lost."""
    try:
        return merged(parts)
    except NotMergeableError as error:
        if any("properties" in part for part in parts):
            raise SchemaError(
                at, f"cannot be merged into one object: {error}; write the object that is meant"
            ) from None
        *others, last = parts
        return {**last, "allOf": others}


def _keyword(document: Mapping[str, Any], key: str, value: Any, at: str, above: tuple[str, ...]) -> Any:
    if key in {"properties", "patternProperties"}:
        if not isinstance(value, Mapping):
            raise SchemaError(at, f"is {type(value).__name__}; expected an object that names members")
        return {name: json_schema(document, schema, f"{at}/{name}", above) for name, schema in value.items()}
    if key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
        if not isinstance(value, list) or not value:
            raise SchemaError(at, f"is {type(value).__name__}; expected a list of schemas")
        return [json_schema(document, schema, f"{at}/{index}", above) for index, schema in enumerate(value)]
    if key in {"items", "additionalProperties", "not"} and isinstance(value, Mapping):
        return json_schema(document, value, at, above)
    return value


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with null allowed, also where strict OpenAPI 3.0 gives `nullable` beside `oneOf` no effect."""
    default = {"default": schema["default"]} if "default" in schema else {}
    if isinstance(schema.get("type"), str):
        wider = {**schema, "type": [schema["type"], "null"]}
        if "enum" in wider and None not in wider["enum"]:
            wider["enum"] = [*wider["enum"], None]
        return wider
    return {"anyOf": [{key: value for key, value in schema.items() if key != "default"}, {"type": "null"}], **default}


def object_schema(document: Mapping[str, Any], schema: Any, at: str) -> dict[str, Any]:
    """The schema of a whole body, with the members of all branches where it is a choice between objects."""
    try:
        return with_all_members(json_schema(document, schema, at))
    except NotMergeableError as error:
        raise SchemaError(at, f"is a choice that has no common form: {error}; write the object that is meant") from None


def check_schema(schema: Mapping[str, Any], at: str) -> None:
    """A SchemaError where a keyword has a value that it cannot have, such as a type that there is not."""
    error = jsonschema.exceptions.best_match(_META.iter_errors(schema))
    if error is not None:
        path = "".join(f"/{part}" for part in error.absolute_path)
        raise SchemaError(at + path, f"is no JSON Schema: {error.message[:200]}")


def error_entry(contract: Contract, status: int) -> str:
    """The documented response for an error status: its own, that of its class, `default`, or none (empty)."""
    names = (str(status), f"{status // 100}XX", "default")
    return next((name for name in names if name in contract.errors), "")


def branches(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The alternatives of a union, nested ones too, null left out; the schema itself where it is no union.

    Bounds and other rules that stand beside the union hold for each alternative.
    """
    for word in ("anyOf", "oneOf"):
        if word in schema:
            siblings = {key: value for key, value in schema.items() if key in RULES}
            alternatives = (
                branch for option in schema[word] for branch in branches(option) if branch.get("type") != "null"
            )
            return tuple({**siblings, **branch} if siblings else branch for branch in alternatives)
    return (schema,)


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396: `patch` laid over `target`."""
    if not isinstance(patch, Mapping):
        return patch
    merged_object = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged_object.pop(key, None)
        else:
            merged_object[key] = merge(merged_object.get(key), value)
    return merged_object
