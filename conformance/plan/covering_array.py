"""Covering arrays by their sizes. Those of all plans for conforming targets are stored beside this file.

covertable takes a second for the triples of a large contract and is deterministic, so its results are stored. Where a
target rejects values, arrays are computed during the run. `python bench/covering.py` computes the stored ones again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import covertable  # type: ignore[import-untyped]

from conformance.model.json_text import dumps

Row = tuple[int, ...]
Banned = tuple[tuple[int, int], ...]
ArraySpec = tuple[tuple[int, ...], int, tuple[Banned, ...], tuple[Row, ...]]
FILE: Final = Path(__file__).with_name("covering_array.json")
DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"  # one for each level


@lru_cache(maxsize=256)
def array(sizes: tuple[int, ...], strength: int, banned: tuple[Banned, ...], begun: tuple[Row, ...]) -> tuple[Row, ...]:
    """Rows in which all combinations of `strength` levels occur that are not banned, less what `begun` holds."""
    kept = stored().get(key((sizes, strength, banned, begun)))
    return make(sizes, strength, banned, begun) if kept is None else tuple(map(_row, kept))


def key(request: ArraySpec) -> str:
    """The key of a stored array."""
    return sha256(dumps(request).encode()).hexdigest()[:16]


@cache
def stored() -> Mapping[str, list[str]]:
    """The stored arrays, each row as one word."""
    return dict(json.loads(FILE.read_text("ascii"))) if FILE.exists() else {}


def _row(word: str) -> Row:
    return tuple([DIGITS.index(level) for level in word])


def make(sizes: tuple[int, ...], strength: int, banned: tuple[Banned, ...], begun: tuple[Row, ...]) -> tuple[Row, ...]:
    """The array, computed by covertable."""
    names = [f"d{index}" for index in range(len(sizes))]
    factors = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    constraints = [_apart(indices, frozenset(levels)) for indices, levels in _by_places(banned).items()]
    presets = [dict(zip(names, row, strict=True)) for row in begun]
    made = covertable.make(factors, strength=strength, constraints=constraints or None, presets=presets or None)
    every_row = [tuple(row[name] for name in names) for row in made]
    return tuple(row for row in every_row if row not in begun)


def _by_places(banned: Iterable[Banned]) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    by_positions: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for together in banned:
        by_positions.setdefault(tuple(index for index, _ in together), []).append(tuple(level for _, level in together))
    return by_positions


def _apart(indices: tuple[int, ...], levels: frozenset[tuple[int, ...]]) -> dict[str, Any]:
    """One constraint for all levels of the same factors: covertable evaluates each constraint very often."""
    names = [f"d{index}" for index in indices]

    def allowed(row: Mapping[str, int]) -> bool:
        return tuple([row[name] for name in names]) not in levels

    return {"operator": "fn", "requires": names, "evaluate": allowed}


__all__ = ["DIGITS", "FILE", "ArraySpec", "Banned", "Row", "array", "key", "make", "stored"]
