"""Values of a parameter from its schema, limits and examples, where the table of parameters says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.contract.openapi import branches
from conformance.model import Contract, Limit, Validity
from conformance.model.json_text import MISSING, dumps

_NUMBERS: Final = (1, 2, 0, 0.5, 3, 10, -1, 64, 1000)
_LONGEST_LABEL: Final = 40


@dataclass(frozen=True)
class FactorLevel:
    """A factor level: its label, and the members of the body that make it."""

    label: str
    patch: Mapping[str, Any]

    @property
    def value(self) -> Any:
        """The value of a level with one member."""
        return next(iter(self.patch.values()))

    def holds(self, body: Mapping[str, Any]) -> bool:
        """Whether a body has this level; values compare by type too, so that 1, 1.0 and true differ."""
        return all(_same(body.get(name, MISSING), value) for name, value in self.patch.items())


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and value == other


def factor_level(name: str, value: Any) -> FactorLevel:
    """The level of a parameter with this value, named after both."""
    text = "absent" if value is MISSING else dumps(value)
    return FactorLevel(
        f"{name}={text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + '...'}", {name: value}
    )


def inside(limit: Limit | None, wanted: Iterable[float]) -> float | None:
    """The first of these numbers that a limit surely allows; else its middle, where that is allowed."""
    for number in wanted:
        if limit is None or limit.classify(number) is Validity.VALID:
            return number
    if limit is None or limit.low is None or limit.high is None:
        return None
    middle = (limit.low + limit.high) / 2
    return middle if limit.classify(middle) is Validity.VALID else None


def sample_levels(contract: Contract, name: str) -> list[FactorLevel]:
    """Levels of a parameter: the contract's examples where it gives some, else one or more for each of its shapes."""
    given = contract.examples.get(name)
    sample_values = list(given) if given else _of(contract.parameters[name].schema, contract.limit(name))
    unique = {dumps(value): value for value in sample_values}
    return [factor_level(name, value) for value in unique.values()]


def _of(schema: Mapping[str, Any], limit: Limit | None) -> list[Any]:
    if isinstance(listed := schema.get("enum"), list):
        return [value for value in listed if value is not None]
    if "const" in schema:
        return [schema["const"]]
    union = branches(schema)
    if len(union) != 1 or union[0] is not schema:
        return [value for branch in union for value in _of(branch, limit)]
    types = schema.get("type", "string")
    return [value for name in ([types] if isinstance(types, str) else types) for value in _typed(name, schema, limit)]


def _typed(name: str, schema: Mapping[str, Any], limit: Limit | None) -> Iterator[Any]:
    match name:
        case "boolean":
            yield from (True, False)
        case "integer":
            number = inside(limit, [number for number in _NUMBERS if number == int(number)])
            yield 1 if number is None else int(number)
        case "number":
            number = inside(limit, _NUMBERS)
            yield 1 if number is None else number
        case "string":
            yield "x" * max(1, schema.get("minLength", 0))
        case "array":
            # a list without a least length may be empty; what its items mean only the examples of a contract can say
            item = _of(schema.get("items", {}), None)[:1]
            yield item * schema.get("minItems", 0)
        case "object":
            yield _object(schema)


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    members = schema.get("properties", {})
    owed = {name: _of(members.get(name, {}), None)[0] for name in schema.get("required", ())}
    if not members and isinstance(values := schema.get("additionalProperties"), Mapping) and values:
        return {**owed, "1": _of(values, None)[0]}
    return owed


__all__ = ["FactorLevel", "factor_level", "inside", "sample_levels"]
