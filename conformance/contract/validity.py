"""The validity of a request body under its contract: its schema, its limits and its combinations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import jsonschema
import jsonschema_rs

from conformance.contract.bounds import top
from conformance.contract.openapi import BOUNDS, COUNTS
from conformance.model import Combination, Contract, Validity
from conformance.model.json_text import dumps, is_number, json_equal
from conformance.model.request_view import RequestView

_COMPARE: Final = {"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "gt": lambda a, b: a > b}


def allows_null(schema: Mapping[str, Any]) -> bool:
    """Whether null is an instance."""
    return bool(validator(dumps(schema)).is_valid(None))


def without(schema: Any, keywords: frozenset[str]) -> Any:
    """The schema with some keywords dropped at every depth, names of properties left alone."""
    if isinstance(schema, list):
        return [without(item, keywords) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: without(member, keywords) for name, member in value.items()}
        if key == "properties"
        else without(value, keywords)
        for key, value in schema.items()
        if key not in keywords
    }


def any_of(schema: Any) -> Any:
    """The schema with each `oneOf` read as `anyOf`: what is left when the branches of a union overlap."""
    if isinstance(schema, list):
        return [any_of(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {"anyOf" if key == "oneOf" else key: any_of(value) for key, value in schema.items()}


@lru_cache(maxsize=512)
def validator(schema: str) -> Any:
    """A compiled validator for a schema given as JSON text, by jsonschema-rs, because validation must be fast."""
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
    validity_so_far = Validity.VALID
    for verdict in _verdicts(contract, body):
        if verdict is Validity.INVALID:
            return verdict
        if verdict is Validity.UNSPECIFIED:
            validity_so_far = verdict
    return validity_so_far


def _verdicts(contract: Contract, body: Any) -> Iterator[Validity]:
    if not isinstance(body, Mapping):
        yield Validity.INVALID
        return
    yield from _by_schema(contract, body)
    for limit in contract.limits:
        for value in _measured(limit.parameter, body):
            yield limit.classify(value)
    for combination in contract.combinations:
        if combines(contract, combination, body):
            yield combination.validity


def _by_schema(contract: Contract, body: Mapping[str, Any]) -> Iterator[Validity]:
    strict, lax = _schemas(contract.request_json, tuple([limit.parameter for limit in contract.limits]))
    if not is_valid(lax, body):
        yield Validity.INVALID
    elif not is_valid(strict, body):
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


@lru_cache(maxsize=64)
def _schemas(request: str, limited: tuple[str, ...]) -> tuple[str, str]:
    """A request schema without what the limits judge: as written, and with overlapping branches of unions allowed."""
    schema = json.loads(request)
    for parameter in limited:
        name = top(parameter)
        drop = COUNTS if parameter.endswith("[]") else BOUNDS
        for part in (schema, *schema.get("anyOf", ())):
            if name in part.get("properties", {}):
                part["properties"][name] = without(part["properties"][name], drop)
    return dumps(schema), dumps(any_of(schema))


def _measured(parameter: str, body: Mapping[str, Any]) -> Iterator[float]:
    """The numbers that a limit restricts: the member itself, the values of a map, or the length of a list."""
    if parameter.endswith("[]"):
        value = body.get(parameter[:-2])
        if isinstance(value, list):
            yield len(value)
    elif parameter.endswith(".*"):
        value = body.get(parameter[:-2])
        yield from filter(is_number, value.values() if isinstance(value, Mapping) else ())
    else:
        yield from filter(is_number, [body.get(parameter)])


def combines(contract: Contract, combination: Combination, body: Mapping[str, Any]) -> bool:
    """Whether a body holds what the combination names."""
    for name in combination.given:
        if body.get(name) is None:
            return False
    for name, allowed in combination.where.items():
        value = body.get(name)
        if value is None:
            value = contract.defaults.get(name)
        if not any(
            json_equal(value, option) for option in (allowed if isinstance(allowed, (list, tuple)) else [allowed])
        ):
            return False
    if combination.compare is not None:
        left, operator, right = combination.compare
        request = RequestView(body, contract.defaults)
        left_value, right_value = request.get(left), request.get(right) if isinstance(right, str) else right
        if not (is_number(left_value) and is_number(right_value) and _COMPARE[operator](left_value, right_value)):
            return False
    for name, schema in combination.schemas.items():
        if name not in body or not is_valid(schema, body[name]):
            return False
    return True
