"""What is refused and why: route, method, key, media type and JSON first, then the body under the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.contract.openapi import BOUNDS, COUNTS
from conformance.contract.validity import any_of, combines, complaints, validity, without
from conformance.model import Combination, Contract, Limit, Validity
from conformance.model.json_text import MISSING, dumps, loads
from conformance.reference.messages import Problem, Refusal, Request

MOST_CACHED: Final = 4096  # bodies
LONGEST_CACHED: Final = 4096  # characters
_CACHE: Final[dict[tuple[int, str], tuple[Contract, Validity]]] = {}


def check_transport(contract: Contract, key: str | None, request: Request) -> Refusal | None:
    """The refusal of a request with another path or method, or without a valid key."""
    if request.path != contract.path:
        return Refusal(404, (Problem(f"there is nothing at {request.path}", kind="not_found"),))
    if request.method != contract.method:
        problem = Problem(f"{request.method} is not offered here, {contract.method} is", kind="method_not_allowed")
        return Refusal(405, (problem,), (("allow", contract.method),))
    if sum(name.lower() == "authorization" for name, _ in request.headers) > 1:
        return Refusal(400, (Problem("the header Authorization occurs more than once", kind="invalid_api_key"),))
    scheme, _, given = request.fields.get("authorization", "").partition(" ")
    if key is not None and (scheme.lower() != "bearer" or given.strip() != key):
        reason = "is not one of ours" if given else "is missing; send it as `Authorization: Bearer …`"
        problem = Problem(f"the API key {reason}", kind="invalid_api_key")
        return Refusal(401, (problem,), (("www-authenticate", "Bearer"),))
    return None


def parse(request: Request) -> tuple[Any, Refusal | None]:
    """The body as JSON, or MISSING and the refusal of what is not JSON."""
    media_type = request.fields.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        problem = Problem(
            f"the content type is {media_type or 'absent'}, application/json is needed", kind="media_type"
        )
        return MISSING, Refusal(415, (problem,))
    try:
        return loads(request.body), None
    except ValueError as error:
        return MISSING, Refusal(400, (Problem(f"the body is not JSON: {error}", kind="json_invalid"),))


def check_body(contract: Contract, body: Any, *, lenient: bool) -> Refusal | None:
    """The refusal of a body that is INVALID under the contract, or UNSPECIFIED unless `lenient`."""
    validity = _validity(contract, body)
    if validity is Validity.VALID or (validity is Validity.UNSPECIFIED and lenient):
        return None
    problems = tuple(_problems(contract, body)) or (Problem("the request is ambiguous", kind="ambiguous"),)
    return Refusal(invalid_status(contract), problems)


def _validity(contract: Contract, body: Any) -> Validity:
    """The validity of a body, cached, because many requests are sent again."""
    try:
        text = dumps(body)
    except (TypeError, ValueError, RecursionError):  # a fault may replace the body by something that is not JSON
        text = ""
    if not 0 < len(text) <= LONGEST_CACHED:
        return validity(contract, body)
    cached = _CACHE.get((id(contract), text))
    if cached is None or cached[0] is not contract:
        if len(_CACHE) >= MOST_CACHED:
            _CACHE.clear()
        cached = _CACHE[id(contract), text] = contract, validity(contract, body)
    return cached[1]


def invalid_status(contract: Contract) -> int:
    """The status for an invalid request: 422 where only that is documented, else 400."""
    return 422 if "422" in contract.errors and "400" not in contract.errors else 400


def _problems(contract: Contract, body: Any) -> Iterator[Problem]:
    if not isinstance(body, Mapping):
        yield Problem("the body must be a JSON object", kind="object_type")
        return
    for name, parameter in contract.parameters.items():
        if name not in body:
            if parameter.required:
                yield Problem(f"{name} is required", name, "missing")
            continue
        if (problem := _value_problem(contract, name, body[name])) is not None:
            yield problem
    for combination in contract.combinations:
        if combination.validity is Validity.INVALID and combines(contract, combination, body):
            yield _combination_problem(combination, body)
    for name in () if contract.unknown_fields is not Validity.INVALID else body.keys() - contract.parameters.keys():
        yield Problem(f"{name} is not a parameter", name, "extra_forbidden")


def _combination_problem(combination: Combination, body: Mapping[str, Any]) -> Problem:
    """Names the members of the combination, those that must be absent first."""
    compared = [item for item in combination.compare or () if isinstance(item, str) and item in body]
    names = tuple(dict.fromkeys([*combination.given, *combination.shape, *compared, *combination.where]))
    members = " and ".join(f"{name} ({_brief(repr(body.get(name)))})" for name in names)
    conflict = "does not go with the rest" if len(names) == 1 else "do not go together"
    return Problem(f"{members} {conflict}", names[0] if names else None, "invalid_combination")


def _value_problem(contract: Contract, name: str, value: Any) -> Problem | None:
    schema = any_of(without(contract.parameters[name].schema, BOUNDS | COUNTS))
    for at, message in complaints(schema, value):
        return Problem(f"{name}{at if at != '/' else ''}: {_brief(message)}", name, "invalid_type")
    for limit in contract.limits:
        if limit.parameter.rstrip("[]").removesuffix(".*") == name:
            for number in _limited_numbers(limit, value):
                if limit.classify(number) is Validity.INVALID:
                    bounds = f"between {limit.low} and {limit.high}"
                    message = f"{limit.parameter} must be {bounds}, not {_brief(repr(number))}"
                    return Problem(message, name, "out_of_range")
    return None


def _limited_numbers(limit: Limit, value: Any) -> Iterator[float]:
    """The numbers that a limit bounds: the length of a list, the values of a map, or the value itself."""
    if limit.parameter.endswith("[]"):
        yield from [len(value)] if isinstance(value, list) else []
        return
    values = value.values() if limit.parameter.endswith(".*") and isinstance(value, Mapping) else [value]
    yield from (number for number in values if isinstance(number, (int, float)) and not isinstance(number, bool))


def _brief(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:120]}…{text[-30:]}"
