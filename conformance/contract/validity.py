"""OpenAPI 3.0 and 3.1 schemas → JSON Schema 2020-12, and the validity of a request body under its contract."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import jsonschema
import jsonschema_rs

from conformance.model import Combination, Contract, Validity
from conformance.model.json_text import dumps, json_equal
from conformance.model.request_view import RequestView

ANNOTATIONS: Final = frozenset(
    {"description", "title", "example", "examples", "externalDocs", "xml", "deprecated", "discriminator", "summary"}
)
BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
COUNTS: Final = frozenset({"minItems", "maxItems"})
_COMPARE: Final = {"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "gt": lambda a, b: a > b}

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
    value, at = document, "#"
    for token in pointer.removeprefix("#").split("/")[1:]:
        found = _within(document, value, at, token)
        if found is None:
            return at
        value, at = found
    return at


def _within(document: Mapping[str, Any], value: Any, at: str, token: str) -> tuple[Any, str] | None:
    if isinstance(value, Mapping) and "$ref" in value:
        at = str(value["$ref"])
        value = follow(document, at)
    key = token.replace("~1", "/").replace("~0", "~")
    if isinstance(value, list):
        return (value[int(key)], f"{at}/{token}") if key.isdigit() and int(key) < len(value) else None
    if not isinstance(value, Mapping):
        return None
    if key in value:
        return value[key], f"{at}/{token}"
    branches = ((word, place) for word in ("anyOf", "oneOf", "allOf") for place in range(len(value.get(word, ()))))
    tried = (_within(document, value[word][place], f"{at}/{word}/{place}", token) for word, place in branches)
    return next((found for found in tried if found is not None), None)


def json_schema(
    document: Mapping[str, Any], schema: Any, at: str = "#", _above: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A schema of an OpenAPI document as JSON Schema 2020-12, references inlined and `nullable` spelled out."""
    if not isinstance(schema, Mapping):
        raise SchemaError(at, f"a schema is an object, not {type(schema).__name__}")
    if "$ref" in schema:
        ref = str(schema["$ref"])
        if ref in _above:
            raise SchemaError(ref, "a schema that contains itself is not supported")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        found = json_schema(document, follow(document, ref), ref, (*_above, ref))
        return {**found, **json_schema(document, beside, at, _above)} if beside else found
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ANNOTATIONS or key.startswith("x-") or key == "nullable":
            continue
        out[key] = _keyword(document, key, value, f"{at}/{key}", _above)
    for strict, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if out.get(strict) is True and bound in out:  # OpenAPI 3.0 marks a bound as strict with a boolean
            out[strict] = out.pop(bound)
        elif isinstance(out.get(strict), bool):
            del out[strict]
    if len(out.get("allOf", ())) == 1:
        (only,) = out.pop("allOf")
        out = {**only, **out}
    return _nullable(out) if schema.get("nullable") is True else out


def _keyword(document: Mapping[str, Any], key: str, value: Any, at: str, above: tuple[str, ...]) -> Any:
    if key in {"properties", "patternProperties"}:
        if not isinstance(value, Mapping):
            raise SchemaError(at, f"is {type(value).__name__}; expected an object that names members")
        return {name: json_schema(document, one, f"{at}/{name}", above) for name, one in value.items()}
    if key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
        if not isinstance(value, list) or not value:
            raise SchemaError(at, f"is {type(value).__name__}; expected a list of schemas")
        return [json_schema(document, one, f"{at}/{place}", above) for place, one in enumerate(value)]
    if key in {"items", "additionalProperties", "not"} and isinstance(value, Mapping):
        return json_schema(document, value, at, above)
    return value


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with null allowed, also where strict OpenAPI 3.0 gives `nullable` beside `oneOf` no effect."""
    kept = {"default": schema["default"]} if "default" in schema else {}
    if isinstance(schema.get("type"), str):
        wider = {**schema, "type": [schema["type"], "null"]}
        if "enum" in wider and None not in wider["enum"]:
            wider["enum"] = [*wider["enum"], None]
        return wider
    return {"anyOf": [{key: value for key, value in schema.items() if key != "default"}, {"type": "null"}], **kept}


def sound(schema: Mapping[str, Any], at: str) -> None:
    """A SchemaError where a keyword has a value that it cannot have, such as a type that there is not."""
    error = jsonschema.exceptions.best_match(_META.iter_errors(schema))
    if error is not None:
        place = "".join(f"/{part}" for part in error.absolute_path)
        raise SchemaError(at + place, f"is no JSON Schema: {error.message[:200]}")


def error_entry(contract: Contract, status: int) -> str:
    """The documented response for an error status: its own, that of its class, `default`, or none (empty)."""
    names = (str(status), f"{status // 100}XX", "default")
    return next((name for name in names if name in contract.errors), "")


def branches(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The alternatives of a union, nested ones too, null left out; the schema itself where it is no union."""
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return tuple(found for one in schema[word] for found in branches(one) if found.get("type") != "null")
    return (schema,)


def allows_null(schema: Mapping[str, Any]) -> bool:
    """Whether null is an instance."""
    return bool(validator(dumps(schema)).is_valid(None))


def without(schema: Any, keywords: frozenset[str]) -> Any:
    """The schema with some keywords dropped at every depth, names of properties left alone."""
    if isinstance(schema, list):
        return [without(one, keywords) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: without(one, keywords) for name, one in value.items()}
        if key == "properties"
        else without(value, keywords)
        for key, value in schema.items()
        if key not in keywords
    }


def any_of(schema: Any) -> Any:
    """The schema with each `oneOf` read as `anyOf`: what is left when the branches of a union overlap."""
    if isinstance(schema, list):
        return [any_of(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {"anyOf" if key == "oneOf" else key: any_of(value) for key, value in schema.items()}


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396: `patch` laid over `target`."""
    if not isinstance(patch, Mapping):
        return patch
    out = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


@lru_cache(maxsize=512)
def validator(schema: str) -> Any:
    """A compiled validator for a schema given as JSON text; jsonschema-rs, where validation is hot."""
    return jsonschema_rs.Draft202012Validator(schema)


def complaints(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, str]]:
    """JSON pointer and message of each error, in jsonschema's words, for a person to read."""
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        yield "/" + "/".join(str(part) for part in error.absolute_path), error.message


def validity(contract: Contract, body: Any) -> Validity:
    """Whether a request body keeps to the contract: its schema, its limits, and what does not go together.

    INVALID wins over UNSPECIFIED. UNSPECIFIED: an unclear edge, a value beyond the common envelope where no bound is
    documented, a member that the document does not name, a union whose branches overlap, an integer written as 1.0.
    """
    found = Validity.VALID
    for verdict in _verdicts(contract, body):
        if verdict is Validity.INVALID:
            return verdict
        if verdict is Validity.UNSPECIFIED:
            found = verdict
    return found


def _verdicts(contract: Contract, body: Any) -> Iterator[Validity]:
    if not isinstance(body, Mapping):
        yield Validity.INVALID
        return
    yield from _by_schema(contract, body)
    for limit in contract.limits:
        for value in _measured(limit.parameter, body):
            yield limit.place(value)
    for combination in contract.combinations:
        if combines(contract, combination, body):
            yield combination.validity


def _by_schema(contract: Contract, body: Mapping[str, Any]) -> Iterator[Validity]:
    frame, lax = _frames(contract)
    if not is_valid(lax, body):
        yield Validity.INVALID
    elif not is_valid(frame, body):
        yield Validity.UNSPECIFIED
    if contract.unknown_fields is not Validity.VALID and not body.keys() <= contract.parameters.keys():
        yield Validity.UNSPECIFIED
    for name, parameter in contract.parameters.items():
        if isinstance(body.get(name), float) and "integer" in parameter.types and "number" not in parameter.types:
            yield Validity.UNSPECIFIED


def is_valid(schema: str, value: Any) -> bool:
    """Whether a value is an instance of a schema given as JSON text."""
    try:
        return bool(validator(schema).is_valid(value))
    except ValueError:  # integers beyond what the fast validator holds, lone surrogates
        return jsonschema.Draft202012Validator(json.loads(schema)).is_valid(value)


_FRAMES: dict[int, tuple[Any, str, str]] = {}


def _frames(contract: Contract) -> tuple[str, str]:
    """The request schema without what the limits judge: as printed, and with overlapping unions allowed."""
    found = _FRAMES.get(id(contract.request))
    if found is None or found[0] is not contract.request:
        schema = json.loads(dumps(contract.request))
        for limit in contract.limits:
            top = limit.parameter.partition("[")[0].partition(".")[0]
            if top in schema.get("properties", {}):
                drop = COUNTS if limit.parameter.endswith("[]") else BOUNDS
                schema["properties"][top] = without(schema["properties"][top], drop)
        found = contract.request, dumps(schema), dumps(any_of(schema))
        _FRAMES[id(contract.request)] = found
    return found[1], found[2]


def _measured(parameter: str, body: Mapping[str, Any]) -> Iterator[float]:
    """The numbers that a limit speaks of: the member itself, the values of a map, or the length of a list."""
    if parameter.endswith("[]"):
        value = body.get(parameter[:-2])
        if isinstance(value, list):
            yield len(value)
    elif parameter.endswith(".*"):
        value = body.get(parameter[:-2])
        yield from filter(_is_number, value.values() if isinstance(value, Mapping) else ())
    else:
        yield from filter(_is_number, [body.get(parameter)])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def combines(contract: Contract, combination: Combination, body: Mapping[str, Any]) -> bool:
    """Whether a body holds what the combination names."""
    for name in combination.given:
        if body.get(name) is None:
            return False
    for name, wanted in combination.where.items():
        value = body.get(name)
        if value is None:
            value = contract.defaults.get(name)
        if not any(json_equal(value, option) for option in (wanted if isinstance(wanted, (list, tuple)) else [wanted])):
            return False
    for name, shape in combination.shape.items():
        if name not in body or not is_valid(dumps(shape), body[name]):
            return False
    if combination.compare is None:
        return True
    left, how, right = combination.compare
    asked = RequestView(body, contract.defaults)
    a, b = asked.get(left), asked.get(right) if isinstance(right, str) else right
    return _is_number(a) and _is_number(b) and _COMPARE[how](a, b)
