"""The files that a run writes beside its recording, and the index of all targets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from conformance.model.exchange import Exchange
from conformance.recording import drawn_failures
from conformance.report import badge, ctrf, drawn, index, junit, markdown
from conformance.report import page as report_page
from conformance.report.evidence import CitedTraffic, citations, with_counterparts
from conformance.report.replay_commands import BODIES, body_file, is_long
from conformance.report.results import dumps

MADE: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "junit.xml": junit.render,
    "ctrf.json": ctrf.render,
    "summary.md": markdown.render,
    "badge.json": badge.endpoint,
    "badge.svg": badge.drawing,
}
"""The files made from results.json alone, and how."""
STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def write(folder: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange], *, page: bool = True) -> None:
    """Write results.json and everything made from it and the recording into a target's folder.

    Without `page`, report.html is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / index.RESULTS, dumps(results))
    _keep_failures(folder / drawn_failures.NAME, drawn.failures(results))
    derive(folder, results, exchanges, page=page)


def _keep_failures(path: Path, failures: Sequence[drawn_failures.DrawnFailure]) -> None:
    """Add the drawn bodies that failed to those of earlier runs; a file of another kind is left as it is."""
    with suppress(ValueError):
        drawn_failures.write(path, drawn_failures.merged(drawn_failures.read(path), failures))


def derive(folder: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange], *, page: bool = True) -> None:
    """Write everything that is made from results.json, without changing results.json."""
    recorded = tuple(exchanges)
    for name, render in MADE.items():
        _write(folder / name, render(results))
    _write_bodies(folder, results, recorded)
    if page:
        _write(folder / index.REPORT, report_page.render(results, recorded, str(folder)))


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all: if the disk is full, the old one stays."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, "utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _write_bodies(folder: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange]) -> None:
    """Write the request bodies that commands of the report read from files, and remove those of an earlier run."""
    shutil.rmtree(folder / BODIES, ignore_errors=True)
    traffic = CitedTraffic({exchange.case.id: exchange for exchange in exchanges})
    cited = citations(with_counterparts(results["requirements"], traffic))
    for case in (x.case for x in traffic.exchanges.values() if x.case.id in cited and is_long(x.case)):
        (folder / BODIES).mkdir(exist_ok=True)
        (folder / body_file(case)).write_bytes(case.content)


def write_index(out: Path) -> Path:
    """Write the index.html of all targets below `out`."""
    return index.write(out)


def publish(results: Mapping[str, Any]) -> None:
    """Append the summary to the file that GitHub shows on the job's page, if there is one."""
    publish_all("", [results])


def publish_all(overview: str, results: Iterable[Mapping[str, Any]]) -> None:
    """Append an overview and the summary of each target."""
    path = os.environ.get(STEP_SUMMARY)
    if path:
        with suppress(OSError), Path(path).open("a", encoding="utf-8") as file:  # an unwritable summary fails no run
            file.write("\n".join([overview, *map(markdown.render, results)]))
