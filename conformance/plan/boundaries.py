"""The ends of documented ranges: values on and just inside of an end must be accepted; an open end is observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.contract.bounds import top
from conformance.model import Edge, Limit, Validity
from conformance.plan.context import BIAS_TOKENS, PlanContext
from conformance.plan.parameter_values import FactorLevel, factor_level

Labelled = tuple[str, Any]


def ends(context: PlanContext, limit: Limit) -> Iterator[FactorLevel]:
    """Levels on the closed ends of a range and one step inside of every end, the low ones first."""
    for value in _steps(context, limit):
        if limit.classify(value) is Validity.VALID:
            yield _level(limit, value)


def open_ends(limit: Limit) -> Iterator[FactorLevel]:
    """Levels on the ends that the document leaves open."""
    for bound, edge in ((limit.low, limit.low_edge), (limit.high, limit.high_edge)):
        if bound is not None and edge is Edge.UNSPECIFIED:
            yield _level(limit, bound)


def beyond(context: PlanContext, limit: Limit, keyword: str) -> Iterator[Any]:
    """Values outside of a range, on the side that the keyword names: the nearest first, then one far away."""
    step = _step(context, limit)
    low = keyword in {"minimum", "min-items"}
    bound, edge = (limit.low, limit.low_edge) if low else (limit.high, limit.high_edge)
    if bound is None:
        return
    sign = -1 if low else 1
    if edge is Edge.OPEN:
        yield rounded(bound, step)
    yield rounded(bound + sign * step, step)
    if not limit.parameter.endswith("[]"):
        yield rounded(bound + sign * 1000, step)


def shaped(parameter: str, value: Any, key: str = BIAS_TOKENS[0]) -> Any:
    """The member whose value, map value or list length is this number."""
    if parameter.endswith(".*"):
        return {key: value}
    if parameter.endswith("[]"):
        return [f"\u241f{index}" for index in range(max(0, int(value)))]
    return value


def _steps(context: PlanContext, limit: Limit) -> list[float]:
    step = _step(context, limit)
    values = []
    for bound, sign in ((limit.low, 1), (limit.high, -1)):
        if bound is not None:
            values += [rounded(bound, step), rounded(bound + sign * step, step)]
    return list(dict.fromkeys(values))


def _step(context: PlanContext, limit: Limit) -> float:
    owner = context.contract.parameters[top(limit.parameter)]
    counted = limit.parameter.endswith(("[]", ".*")) or "number" not in owner.types
    return 1 if counted else 0.01


def rounded(value: float, step: float) -> float:
    """The value as an integer where the parameter counts, else without binary rounding errors."""
    return int(value) if step == 1 else round(value, 6)


def _level(limit: Limit, value: float) -> FactorLevel:
    return factor_level(
        top(limit.parameter), shaped(limit.parameter, value, "0")
    )  # the first token, which is easily overlooked


__all__ = ["beyond", "ends", "open_ends", "rounded", "shaped"]
