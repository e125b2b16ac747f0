"""The row of a requirement in sentences: what was observed and expected, how often, what it means for a client.

Terminal, pages, summaries and machine formats take their sentences from here, so that all of them say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.report.tally import Row, broken, plural

_SEPARATOR = "; expected "


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken requirement in a sentence; `share` is how often (18 of 18), `means` the consequence for a client."""

    observed: str
    expected: str
    share: str
    means: str

    @property
    def often(self) -> str:
        """The share with its noun."""
        return f"{self.share} occurrence{'' if self.share.endswith(' of 1') else 's'}" if self.share else ""


def split(message: str) -> tuple[str, str]:
    """A message as what was observed and what was expected."""
    observed, separator, expected = message.rpartition(_SEPARATOR)
    return (observed, expected) if separator else (message, "")


def evidence_first(row: Row) -> Mapping[str, Any] | None:
    """The evidence to show first: that of the smallest request if it has any, else the first that is listed."""
    smallest = row.get("smallest")
    return smallest if smallest and "message" in smallest else next(iter(row["evidence"]), None)


def message(row: Row) -> str:
    """What was observed and expected, or the reason of the verdict where no evidence is kept."""
    first = evidence_first(row)
    text: str = first["message"] if first else row["reason"]
    return text


def finding(row: Row) -> Finding:
    """The finding of a row."""
    observed, expected = split(message(row))
    share = f"{row['violations']:,} of {row['examined']:,}" if row["violations"] else ""
    return Finding(observed, expected, share, row.get("why", "") if broken(row) else "")


def examined(row: Row) -> str:
    """How much was examined, and how much of it broke the promise."""
    if not row["examined"]:
        return "no occurrence"
    in_exchanges = f"in {plural(row['exchanges'], 'exchange')}"
    if row["violations"]:
        return f"{finding(row).often} {in_exchanges} broke the promise"
    return f"{plural(row['examined'], 'occurrence')} {in_exchanges}, each kept the promise"
