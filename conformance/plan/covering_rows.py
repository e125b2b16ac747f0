"""Covering arrays of the factors: rows in which every combination of a few levels occurs, and the share reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from conformance.contract.validity import combines
from conformance.model import Combination, Validity
from conformance.model.json_text import MISSING
from conformance.plan.context import PlanContext
from conformance.plan.covering_array import Banned, Row, array
from conformance.plan.factors import Factor


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many combinations of `strength` factor levels occurred, of those that the contract allows."""

    strength: int
    met: int
    of: int
    missed: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.met / self.of if self.of else 1.0


def rows(
    context: PlanContext,
    factors: Sequence[Factor],
    strength: int,
    begun: Iterable[Row] = (),
    without: Iterable[Banned] = (),
) -> list[Row]:
    """Rows in which every allowed combination of `strength` levels occurs, less what the rows `begun` already hold.

    A row names each level by its index in its factor. `without` are combinations that are left to other rows.
    """
    if len(factors) < strength:
        return [tuple(row) for row in product(*(range(len(factor.levels)) for factor in factors))] if factors else []
    sizes = tuple(len(factor.levels) for factor in factors)
    banned = tuple(sorted({*_banned(context, factors), *without}))
    return [*array(sizes, strength, banned, tuple(begun))]


def _banned(context: PlanContext, factors: Sequence[Factor]) -> Iterator[Banned]:
    """Combinations that the contract forbids or the target rejects, as pairs of factor and level."""
    owners = {name: index for index, factor in enumerate(factors) for name in factor.base.patch}
    for rule in context.contract.combinations:
        indices = sorted({owners[name] for name in _members(rule) if name in owners})
        if rule.validity is not Validity.INVALID and rule.id not in context.known.refused:
            continue
        for levels in product(*(range(len(factors[index].levels)) for index in indices)):
            patches = [factors[index].levels[level].patch for index, level in zip(indices, levels, strict=True)]
            if indices and combines(context.contract, rule, context.body(*patches)):
                yield tuple(zip(indices, levels, strict=True))

    for members in context.known.incompatible.values():
        indices = sorted({owners[name] for name in members if name in owners})
        for levels in product(*(range(len(factors[index].levels)) for index in indices)):
            patches = [factors[index].levels[level].patch for index, level in zip(indices, levels, strict=True)]
            if indices and all(context.body(*patches).get(name, MISSING) == value for name, value in members.items()):
                yield tuple(zip(indices, levels, strict=True))


def _members(rule: Combination) -> set[str]:
    compared = {name for name in (rule.compare or ()) if isinstance(name, str)}
    return {*rule.where, *rule.given, *rule.shape, *compared}


def body_of(context: PlanContext, factors: Sequence[Factor], row: Row) -> dict[str, Any]:
    """The request of a row."""
    return context.body(*(factor.levels[level].patch for factor, level in zip(factors, row, strict=True)))


def row_of(factors: Sequence[Factor], body: Mapping[str, Any]) -> tuple[int | None, ...]:
    """The level that a body has of each factor; None where it has a value that is no level."""
    held = [factor.of(body) for factor in factors]
    return tuple(
        None if level is None else factor.levels.index(level) for factor, level in zip(factors, held, strict=True)
    )


def coverage(
    context: PlanContext, factors: Sequence[Factor], bodies: Iterable[Mapping[str, Any]], strength: int
) -> Coverage:
    """The share of the allowed combinations of `strength` levels that occurs in these bodies."""
    banned = set(_banned(context, factors))
    met: set[Banned] = set()
    for row in {row_of(factors, body) for body in bodies}:
        held = [(index, level) for index, level in enumerate(row) if level is not None]
        met.update(combinations(held, strength))
    allowed = [
        tuple(zip(indices, levels, strict=True))
        for indices in combinations(range(len(factors)), strength)
        for levels in product(*(range(len(factors[index].levels)) for index in indices))
    ]
    wanted = [combination for combination in allowed if not _holds_banned(combination, banned)]
    missed = [combination for combination in wanted if combination not in met]
    labels = [[factors[index].levels[level].label for index, level in combination] for combination in missed[:20]]
    named = tuple(map(" + ".join, labels))
    return Coverage(strength, len(wanted) - len(missed), len(wanted), named)


def _holds_banned(chosen: tuple[tuple[int, int], ...], banned: set[Banned]) -> bool:
    return any(part in banned for size in range(1, len(chosen) + 1) for part in combinations(chosen, size))


__all__ = ["Banned", "Coverage", "Row", "body_of", "coverage", "row_of", "rows"]
