"""The words for verdicts and run results: one set for terminal, pages, summaries, badges and differences."""

from __future__ import annotations

from typing import Final

MEANINGS: Final = {
    "fail": "a MUST is broken, every time it was tested",
    "flaky": "broken in some replies to the same request and kept in others",
    "warn": "a SHOULD is broken",
    "error": "a check of this suite crashed: a fault of the suite, never of the target",
    "inconclusive": "a request was expected to show it, and no reply did",
    "not_run": "planned, but the budget or the run ended first",
    "pass": "kept in every occurrence that was examined, at least one",
    "not_applicable": "not promised for this target, or a client cannot trigger it",
}
"""What each verdict on a requirement means, the most urgent first: the order of every table and legend."""
OUTCOMES: Final = tuple(MEANINGS)
HEADLINES: Final = {
    "conformant": "Conforms",
    "broken": "Does not conform",
    "incomplete": "Incomplete",
    "suite_fault": "Suite fault",
}
"""The result of a run, by the `verdict` of results.json."""
REFERENCE_HEADLINES: Final = {
    "conformant": "The embedded reference conforms",
    "broken": "The embedded reference does not conform",
    "incomplete": "The embedded reference: incomplete",
    "suite_fault": "The embedded reference: suite fault",
}
"""The same where no target was judged, but the reference that this suite serves itself."""
UNJUDGED_HEADLINE: Final = "Not judged"
"""The result of a run in which nothing came back that could be judged."""
RECORDED_HEADLINE: Final = "Nothing broken"
"""The result of recordings that this suite did not make: they never show everything."""
INVALID_WAIVERS: Final = "Invalid waivers"
"""The result of a run that fails only because a waiver is no longer valid."""


def word(outcome: str) -> str:
    """A verdict as people read it: `not_run` → `not run`."""
    return outcome.replace("_", " ")
