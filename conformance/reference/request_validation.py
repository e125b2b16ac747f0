"""The way in: route, method, key, media type, JSON, and then the contract. What does not pass is told why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.contract.validity import BOUNDS, COUNTS, any_of, combines, complaints, validity, without
from conformance.model import Combination, Contract, Limit, Validity
from conformance.model.json_text import MISSING, dumps, loads
from conformance.reference.messages import Problem, Refusal, Request

MOST_REMEMBERED: Final = 4096
LONGEST_REMEMBERED: Final = 4096
_REMEMBERED: Final[dict[tuple[int, str], tuple[Contract, Validity]]] = {}


def entrance(contract: Contract, key: str | None, request: Request) -> Refusal | None:
    """Refuse what never reaches the operation: an unknown path, another method, no key."""
    if request.path != contract.path:
        return Refusal(404, (Problem(f"there is nothing at {request.path}", kind="not_found"),))
    if request.method != contract.method:
        problem = Problem(f"{request.method} is not offered here, {contract.method} is", kind="method_not_allowed")
        return Refusal(405, (problem,), (("allow", contract.method),))
    scheme, _, given = request.fields.get("authorization", "").partition(" ")
    if key is not None and (scheme.lower() != "bearer" or given.strip() != key):
        told = "is not one of ours" if given else "is missing; send it as `Authorization: Bearer …`"
        return Refusal(
            401, (Problem(f"the API key {told}", kind="invalid_api_key"),), (("www-authenticate", "Bearer"),)
        )
    return None


def parse(request: Request) -> tuple[Any, Refusal | None]:
    """The body as JSON, or why it is none."""
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


def keeps(contract: Contract, body: Any, *, lenient: bool) -> Refusal | None:
    """Refuse what the contract calls INVALID, and what it leaves open too unless lenient."""
    found = _validity(contract, body)
    if found is Validity.VALID or (found is Validity.UNSPECIFIED and lenient):
        return None
    problems = tuple(_problems(contract, body)) or (Problem("the request is ambiguous", kind="ambiguous"),)
    return Refusal(invalid_status(contract), problems)


def _validity(contract: Contract, body: Any) -> Validity:
    """The same as `validity`, remembered: most requests come again."""
    try:
        text = dumps(body)
    except (TypeError, ValueError, RecursionError):  # a fault may make of it what is no JSON
        text = ""
    if not 0 < len(text) <= LONGEST_REMEMBERED:
        return validity(contract, body)
    found = _REMEMBERED.get((id(contract), text))
    if found is None or found[0] is not contract:
        if len(_REMEMBERED) >= MOST_REMEMBERED:
            _REMEMBERED.clear()
        found = _REMEMBERED[id(contract), text] = contract, validity(contract, body)
    return found[1]


def invalid_status(contract: Contract) -> int:
    """The documented status for what does not validate: 422 where only that is documented, else 400."""
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
        if (complaint := _complaint(contract, name, body[name])) is not None:
            yield complaint
    for combination in contract.combinations:
        if combination.validity is Validity.INVALID and combines(contract, combination, body):
            yield _excluded(combination, body)
    for name in () if contract.unknown_fields is not Validity.INVALID else body.keys() - contract.parameters.keys():
        yield Problem(f"{name} is not a parameter", name, "extra_forbidden")


def _excluded(combination: Combination, body: Mapping[str, Any]) -> Problem:
    """What the combination speaks of, the members that were sent for it first."""
    compared = [one for one in combination.compare or () if isinstance(one, str) and one in body]
    names = tuple(dict.fromkeys([*combination.given, *combination.shape, *compared, *combination.where]))
    told = " and ".join(f"{name} ({_brief(repr(body.get(name)))})" for name in names)
    which = "does not go with the rest" if len(names) == 1 else "do not go together"
    return Problem(f"{told} {which}", names[0] if names else None, "invalid_combination")


def _complaint(contract: Contract, name: str, value: Any) -> Problem | None:
    schema = any_of(without(contract.parameters[name].schema, BOUNDS | COUNTS))
    for at, message in complaints(schema, value):
        return Problem(f"{name}{at if at != '/' else ''}: {_brief(message)}", name, "invalid_type")
    for limit in contract.limits:
        if limit.parameter.rstrip("[]").removesuffix(".*") == name:
            for number in _numbers(limit, value):
                if limit.place(number) is Validity.INVALID:
                    told = f"{limit.parameter} must be between {limit.low} and {limit.high}, not {_brief(repr(number))}"
                    return Problem(told, name, "out_of_range")
    return None


def _numbers(limit: Limit, value: Any) -> Iterator[float]:
    if limit.parameter.endswith("[]"):
        yield from [len(value)] if isinstance(value, list) else []
        return
    values = value.values() if limit.parameter.endswith(".*") and isinstance(value, Mapping) else [value]
    yield from (one for one in values if isinstance(one, (int, float)) and not isinstance(one, bool))


def _brief(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:120]}…{text[-30:]}"
