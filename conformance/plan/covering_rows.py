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
    found: Sequence[Factor],
    strength: int,
    begun: Iterable[Row] = (),
    without: Iterable[Banned] = (),
) -> list[Row]:
    """Rows in which every allowed combination of `strength` levels occurs, less what the rows `begun` already hold.

    A row names each level by its index in its factor. `without` are combinations that are left to other rows.
    """
    if len(found) < strength:
        return [tuple(row) for row in product(*(range(len(one.levels)) for one in found))] if found else []
    sizes = tuple(len(one.levels) for one in found)
    banned = tuple(sorted({*_banned(context, found), *without}))
    return [*array(sizes, strength, banned, tuple(begun))]


def _banned(context: PlanContext, found: Sequence[Factor]) -> Iterator[Banned]:
    """Combinations that the contract forbids or the target rejects, as pairs of factor and level."""
    owners = {name: place for place, one in enumerate(found) for name in one.base.patch}
    for rule in context.contract.combinations:
        places = sorted({owners[name] for name in _members(rule) if name in owners})
        if rule.validity is not Validity.INVALID and rule.id not in context.known.refused:
            continue
        for levels in product(*(range(len(found[place].levels)) for place in places)):
            patches = [found[place].levels[level].patch for place, level in zip(places, levels, strict=True)]
            if places and combines(context.contract, rule, context.body(*patches)):
                yield tuple(zip(places, levels, strict=True))

    for members in context.known.incompatible.values():
        places = sorted({owners[name] for name in members if name in owners})
        for levels in product(*(range(len(found[place].levels)) for place in places)):
            patches = [found[place].levels[level].patch for place, level in zip(places, levels, strict=True)]
            if places and all(context.body(*patches).get(name, MISSING) == one for name, one in members.items()):
                yield tuple(zip(places, levels, strict=True))


def _members(rule: Combination) -> set[str]:
    compared = {one for one in (rule.compare or ()) if isinstance(one, str)}
    return {*rule.where, *rule.given, *rule.shape, *compared}


def body_of(context: PlanContext, found: Sequence[Factor], row: Row) -> dict[str, Any]:
    """The request of a row."""
    return context.body(*(one.levels[level].patch for one, level in zip(found, row, strict=True)))


def row_of(found: Sequence[Factor], body: Mapping[str, Any]) -> tuple[int | None, ...]:
    """The level that a body has of each factor; None where it has a value that is no level."""
    held = [one.of(body) for one in found]
    return tuple(None if level is None else one.levels.index(level) for one, level in zip(found, held, strict=True))


def coverage(
    context: PlanContext, found: Sequence[Factor], bodies: Iterable[Mapping[str, Any]], strength: int
) -> Coverage:
    """The share of the allowed combinations of `strength` levels that occurs in these bodies."""
    banned = set(_banned(context, found))
    met: set[Banned] = set()
    for row in {row_of(found, body) for body in bodies}:
        held = [(place, level) for place, level in enumerate(row) if level is not None]
        met.update(combinations(held, strength))
    allowed = [
        tuple(zip(places, levels, strict=True))
        for places in combinations(range(len(found)), strength)
        for levels in product(*(range(len(found[place].levels)) for place in places))
    ]
    wanted = [one for one in allowed if not _holds_banned(one, banned)]
    missed = [one for one in wanted if one not in met]
    named = tuple(" + ".join(found[place].levels[level].label for place, level in one) for one in missed[:20])
    return Coverage(strength, len(wanted) - len(missed), len(wanted), named)


def _holds_banned(chosen: tuple[tuple[int, int], ...], banned: set[Banned]) -> bool:
    return any(part in banned for size in range(1, len(chosen) + 1) for part in combinations(chosen, size))


__all__ = ["Banned", "Coverage", "Row", "body_of", "coverage", "row_of", "rows"]
