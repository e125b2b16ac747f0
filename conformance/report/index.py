"""All targets of a folder side by side: areas by target, then requirements by target, with links to the reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from conformance.report.page import rendered, shell, summed
from conformance.report.results import read
from conformance.report.tally import Row, by_area, embedded, gates, headline, targets_conform
from conformance.report.verdict_words import AREAS, MEANINGS

Results = Mapping[str, Any]
RESULTS: Final = "results.json"
REPORT: Final = "report.html"
MOST_BESIDE: Final = 6
"""Targets whose columns fit a screen; the table of more is scrolled in a frame of its own."""
_FIRST: Final = ("broken", "suite_fault", "incomplete", "conformant")


def collect(folder: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The results of each target below the folder by the name of its directory, and why others are left out."""
    by_directory, left_out = {}, []
    for path in sorted(folder.glob(f"*/{RESULTS}")):
        try:
            by_directory[path.parent.name] = read(path)
        except ValueError as error:
            left_out.append(str(error))
    return by_directory, left_out


def write(folder: Path) -> Path:
    """Write index.html from the results.json files below the folder."""
    page = folder / "index.html"
    page.write_text(render(*collect(folder)), "utf-8")
    return page


def render(by_directory: Mapping[str, Results], left_out: Sequence[str] = ()) -> str:
    """The page; `by_directory` has the results, `left_out` the files that could not be read, with the reason."""
    heads = sorted((_head(directory, results) for directory, results in by_directory.items()), key=_urgency)
    areas = _areas([head["results"] for head in heads], [head["href"] for head in heads])
    conforming = [(results["verdict"] == "conformant", embedded(results)) for results in by_directory.values()]
    title = targets_conform(conforming) if by_directory else "No results yet"
    body = rendered(
        "index.jinja2",
        title=title,
        verdict=heads[0]["results"]["verdict"] if heads else "",
        heads=heads,
        areas=areas,
        many=len(heads) > MOST_BESIDE,
        legend=MEANINGS.items(),
        left_out=left_out,
    )
    return shell(f"Conformance: {title}", body)


def _head(directory: str, results: Results) -> dict[str, Any]:
    verdict, because = headline(results)
    return {
        "href": f"{quote(directory)}/{REPORT}",
        "verdict": verdict,
        "because": because,
        "embedded": embedded(results),
        "broken": sum(gates(row, strict=results["strict"]) for row in results["requirements"]),
        "incomplete": [reason for reason in results["incomplete"] if not because.startswith(reason)],
        "results": results,
    }


def _urgency(head: Mapping[str, Any]) -> tuple[int, int]:
    """Failing targets first, those that break most at the top; then what could not be judged; then by name."""
    return _FIRST.index(head["results"]["verdict"]), -head["broken"]


def _areas(targets: Sequence[Results], links: Sequence[str]) -> list[dict[str, Any]]:
    """One entry for each area: a cell for each target, and the requirements of the area."""
    grouped = [by_area(results["requirements"]) for results in targets]
    names = sorted({name for areas in grouped for name in areas})
    return [
        {
            "name": name,
            "about": AREAS.get(name, ""),
            "cells": [summed(areas[name]) if name in areas else None for areas in grouped],
            "rows": _rows([areas.get(name, []) for areas in grouped], links),
        }
        for name in names
    ]


def _rows(columns: Sequence[Sequence[Row]], links: Sequence[str]) -> list[dict[str, Any]]:
    by_id = [{row["id"]: row for row in rows} for rows in columns]
    ids = dict.fromkeys(row["id"] for rows in columns for row in rows)
    return [
        {
            "id": name,
            "levels": "/".join(dict.fromkeys(rows[name]["level"] for rows in by_id if name in rows)),
            "anchor": quote(name),
            "cells": [(rows.get(name), link) for rows, link in zip(by_id, links, strict=True)],
        }
        for name in ids
    ]
