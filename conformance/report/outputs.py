"""The files that a run leaves behind beside its recording, and the index above them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from conformance.model.exchange import Exchange
from conformance.report import badge, ctrf, index, junit, markdown, page
from conformance.report.results import dumps

MADE: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "junit.xml": junit.render,
    "ctrf.json": ctrf.render,
    "summary.md": markdown.render,
    "badge.json": badge.endpoint,
    "badge.svg": badge.drawing,
}
"""What is made from results alone."""
STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def write(folder: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange] | None = ()) -> None:
    """Write everything that is made from results into a target's folder; no report.html where `exchanges` is None."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / index.RESULTS).write_text(dumps(results), "utf-8")
    derive(folder, results, exchanges)


def derive(folder: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange] | None = ()) -> None:
    """Write what results.json is the source of, and leave results.json alone."""
    for name, made in MADE.items():
        (folder / name).write_text(made(results), "utf-8")
    if exchanges is not None:
        (folder / index.REPORT).write_text(page.render(results, exchanges), "utf-8")


def write_index(out: Path) -> Path:
    """Write index.html over all targets below `out`."""
    return index.write(out)


def publish(results: Mapping[str, Any]) -> None:
    """Append the summary to the file that GitHub shows on the job's page, where there is one."""
    publish_all("", [results])


def publish_all(overview: str, found: Iterable[Mapping[str, Any]]) -> None:
    """Append an overview and the summary of each target."""
    where = os.environ.get(STEP_SUMMARY)
    if where:
        with suppress(OSError), Path(where).open("a", encoding="utf-8") as file:  # no verdict is lost over this
            file.write("\n".join([overview, *map(markdown.render, found)]))
