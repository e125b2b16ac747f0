"""Rows of results.json → the level of each area: full, partial with the list of what is lacking, or none.

Only MUSTs in force decide. A feature that is claimed and was refused every time counts as lacking.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final

from conformance.report.tally import Row, by_area, scored

FULL, PARTIAL, NONE = "full", "partial", "none"
REFUSED: Final = "the target refused all "
"""The beginning of the reason of a verdict on a feature that is claimed and was refused every time."""


@cache
def areas() -> tuple[Mapping[str, Any], ...]:
    """The areas in the order in which they are matched."""
    text = files(__package__).joinpath("levels.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["area"])


def names() -> tuple[str, ...]:
    """The areas in the order in which they are shown."""
    first = ("core", "streaming", "logprobs", "sampling", "errors", "robustness")
    return (*first, *(area["name"] for area in areas() if area["name"] not in first))


@cache
def area_of(requirement_id: str) -> str:
    """The area that a requirement counts in."""
    matching = (area for area in areas() if any(fnmatchcase(requirement_id, glob) for glob in area["ids"]))
    return str(next(matching)["name"])


def absent(row: Row) -> bool:
    """Whether a feature that is claimed was refused every time."""
    return row["outcome"] == "not_applicable" and str(row["reason"]).startswith(REFUSED)


def levels(rows: Iterable[Row], claims: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Each area with its level, the number of MUSTs it is based on, and what is lacking."""
    in_areas = by_area({**row, "area": area_of(row["id"])} for row in rows if scored(row))
    return {name: _level(in_areas.get(name, []), claims) for name in names()}


def _level(rows: Sequence[Row], claims: Sequence[str]) -> dict[str, Any]:
    musts = [row for row in rows if row["level"] == "MUST"]
    applicable = [row for row in musts if row["outcome"] != "not_applicable" or absent(row)]
    passed = [row for row in applicable if row["outcome"] == "pass"]
    level = NONE if not passed else FULL if len(passed) == len(applicable) else PARTIAL
    area: dict[str, Any] = {
        "level": level,
        "passed": len(passed),
        "of": len(applicable),
        "lacking": sorted(row["id"] for row in applicable if row["outcome"] != "pass"),
        "silent": sorted(row["id"] for row in musts if row not in applicable),
        "warned": sorted(row["id"] for row in rows if row["level"] == "SHOULD" and row["outcome"] in {"warn", "flaky"}),
    }
    if not applicable and musts:
        area["because"] = f"no MUST applies: claimed is {', '.join(claims)}" if claims else "no MUST was triggered"
    elif not applicable:
        area["because"] = "the contract has no MUST here"
    return area


def overall(by_name: Mapping[str, Mapping[str, Any]]) -> str:
    """The level over all areas: full if no area lacks anything."""
    if not any(area["passed"] for area in by_name.values()):
        return NONE
    return PARTIAL if any(area["lacking"] for area in by_name.values()) else FULL
