"""Rows of results.json → the level of each area: full, partial with the list of what lacks, or none.

Only MUSTs in force decide. What was asked for as claimed and refused each time counts as lacking: absence is no excuse.
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
"""How the reason of a verdict begins where a feature that is claimed was asked for and never given."""


@cache
def areas() -> tuple[Mapping[str, Any], ...]:
    """The areas in the order in which they are tried."""
    found: list[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("levels.toml").read_text("utf-8"))["area"]
    return tuple(found)


def names() -> tuple[str, ...]:
    """The areas in the order in which they are shown."""
    shown = ("core", "streaming", "logprobs", "sampling", "errors", "robustness")
    return (*shown, *(one["name"] for one in areas() if one["name"] not in shown))


@cache
def area_of(id: str) -> str:  # noqa: A002
    """The area that a requirement counts in."""
    return str(next(one["name"] for one in areas() if any(fnmatchcase(id, glob) for glob in one["ids"])))


def absent(row: Row) -> bool:
    """Whether a feature that is claimed was refused each time it was asked for."""
    return row["outcome"] == "not_applicable" and str(row["reason"]).startswith(REFUSED)


def levels(rows: Iterable[Row], claims: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Each area with its level, how many MUSTs it rests on, and what lacks."""
    sorted_in = by_area({**row, "area": area_of(row["id"])} for row in rows if scored(row))
    return {name: _level(sorted_in.get(name, []), claims) for name in names()}


def _level(rows: Sequence[Row], claims: Sequence[str]) -> dict[str, Any]:
    musts = [row for row in rows if row["level"] == "MUST"]
    due = [row for row in musts if row["outcome"] != "not_applicable" or absent(row)]
    passed = [row for row in due if row["outcome"] == "pass"]
    level = NONE if not passed else FULL if len(passed) == len(due) else PARTIAL
    told: dict[str, Any] = {
        "level": level,
        "passed": len(passed),
        "of": len(due),
        "lacking": sorted(row["id"] for row in due if row["outcome"] != "pass"),
        "silent": sorted(row["id"] for row in musts if row not in due),
        "warned": sorted(row["id"] for row in rows if row["level"] == "SHOULD" and row["outcome"] in {"warn", "flaky"}),
    }
    if not due:
        why = f"no MUST applies: claimed is {', '.join(claims)}" if musts and claims else ""
        told["because"] = why or ("no occasion for a MUST came up" if musts else "the contract has no MUST here")
    return told


def overall(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The level of the whole: full where no area lacks anything."""
    if not any(one["passed"] for one in found.values()):
        return NONE
    return PARTIAL if any(one["lacking"] for one in found.values()) else FULL
