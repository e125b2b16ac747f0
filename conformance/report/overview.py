"""Several targets in one table, for a terminal and as Markdown. A target without results of this run shows as such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from conformance.report.markdown import plain, table
from conformance.report.tally import gates, headline, waived
from conformance.report.text import visible

Line: TypeAlias = tuple[str, ...]
HEADS: Final = ("Target", "Verdict", "Verified", "Kept", "Broken", "Waived", "Exit code")


def row(name: str, results: Mapping[str, Any] | None, code: int) -> Line:
    """One target; `results` is None where the run wrote none."""
    if results is None:
        return (name, "Not judged", "", "", "", "", str(code))
    index, score, rows = results["index"], results["score"], results["requirements"]
    broken = sum(gates(one, strict=results["strict"]) for one in rows)
    return (
        name,
        headline(results)[0],
        f"{index['verified']} of {index['of']}",
        f"{score['passed']} of {score['of']}",
        str(broken),
        str(sum(map(waived, rows))),
        str(code),
    )


def said(rows: Sequence[Line]) -> str:
    """How many of the targets conform."""
    return f"{sum(one[-1] == '0' for one in rows)} of {len(rows)} targets conform"


def lines(rows: Sequence[Line]) -> Iterator[str]:
    """The table for a terminal."""
    shown = [HEADS, *(tuple(visible(cell) for cell in one) for one in rows)]
    widths = [max(len(one[place]) for one in shown) for place in range(len(HEADS))]
    for one in shown:
        yield "  ".join(cell.ljust(width) for cell, width in zip(one, widths, strict=True)).rstrip()
    yield said(rows)


def markdown(rows: Sequence[Line]) -> str:
    """The table as Markdown."""
    told = table(HEADS, [[plain(cell) for cell in one] for one in rows])
    return "\n".join([f"## Conformance: {said(rows)}\n", *told]) + "\n"
