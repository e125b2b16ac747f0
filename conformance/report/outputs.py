"""The files that a run leaves behind beside its recording, and the index above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from conformance.exchange import Exchange
from conformance.report import index, junit, page
from conformance.report.results import dumps

JUNIT: Final = "junit.xml"


def write(folder: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange] | None = ()) -> None:
    """Write everything that is made from results into a target's folder; no report.html where `exchanges` is None."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / index.RESULTS).write_text(dumps(results), "utf-8")
    (folder / JUNIT).write_text(junit.render(results), "utf-8")
    if exchanges is not None:
        (folder / index.REPORT).write_text(page.render(results, exchanges), "utf-8")


def write_index(out: Path) -> Path:
    """Write index.html over all targets below `out`."""
    return index.write(out)
