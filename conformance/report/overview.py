"""Several targets in one table, for a terminal and as Markdown; it shows which targets have no results of this run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from conformance.model.exit_codes import ExitCode
from conformance.report.markdown import plain, table
from conformance.report.tally import gates, headline, targets_conform, waived
from conformance.report.text import visible
from conformance.report.verdict_words import REFERENCE_HEADLINES

Line: TypeAlias = tuple[str, ...]
HEADS: Final = ("Target", "Result", "Verified", "Passed", "Broken", "Waived", "Exit code")


def row(name: str, results: Mapping[str, Any] | None, code: int) -> Line:
    """One target; `results` is None where the run wrote none."""
    if results is None:
        return (name, "Not judged", "", "", "", "", str(code))
    index, score, rows = results["index"], results["score"], results["requirements"]
    broken = sum(gates(entry, strict=results["strict"]) for entry in rows)
    return (
        name,
        headline(results)[0],
        f"{index['verified']} of {index['of']}",
        f"{score['passed']} of {score['of']}",
        str(broken),
        str(sum(map(waived, rows))),
        str(code),
    )


def _conforming(rows: Sequence[Line]) -> str:
    conformant = str(int(ExitCode.CONFORMANT))
    return targets_conform([(row[-1] == conformant, row[1] in REFERENCE_HEADLINES.values()) for row in rows])


def lines(rows: Sequence[Line]) -> Iterator[str]:
    """The table for a terminal."""
    table = [HEADS, *(tuple(visible(cell) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    yield _conforming(rows)


def markdown(rows: Sequence[Line]) -> str:
    """The table as Markdown."""
    lines = table(HEADS, [[plain(cell) for cell in row] for row in rows])
    return "\n".join([f"## Conformance: {_conforming(rows)}\n", *lines]) + "\n"
