"""Facts about a run in the words that every output uses: when it was, what it cost, how much it verified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.report.tally import plural

Results = Mapping[str, Any]


def when(results: Results) -> str:
    """The start of a run to the minute, in UTC."""
    started: str = results["started_at"][:16]
    return started.replace("T", " ")


def requests(results: Results) -> str:
    """Requests, and the attempts that they took."""
    totals = results["totals"]
    sent = totals.get("requests", 0)
    return f"{sent:,} in {plural(totals.get('attempts', sent), 'attempt')}"


def tokens(results: Results) -> str:
    """Tokens of prompts and of completions."""
    totals = results["totals"]
    return f"{totals.get('prompt_tokens', 0):,} prompt, {totals.get('completion_tokens', 0):,} completion"


def duration(results: Results) -> str:
    """How long it took."""
    return f"{results['duration_s']:,.1f} s"


def classes(results: Results) -> str:
    """How many classes of inputs the requests have, of all; nothing where they were not counted."""
    reached = results.get("classes")
    return f"{reached['exercised']:,} of {reached['of']:,}" if reached else ""
