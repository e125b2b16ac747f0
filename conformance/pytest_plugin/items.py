"""pytest plugin for `conformance run`: items tell their verdicts without the ceremony of fixtures and phases.

What was judged is known before the first item; an item looks it up. Under a user's own pytest, whose plugins may want
to see each phase, items run as all others do, and the reports are the same.
"""

from __future__ import annotations

from typing import Final

import pytest

from conformance.pytest_plugin.plugin import SESSION, dress, row_of

OUTCOMES: Final = {"failure": "failed", "skipped": "skipped"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Report what came of a requirement; our own fault as an error of the setup."""
    row = row_of(item)
    if row is None:
        return None
    shown, told = item.config.stash[SESSION].tell(row)
    fault = row["outcome"] == "error"
    location = (item.nodeid.partition("::")[0], None, item.name)
    whole = pytest.TestReport(
        item.nodeid,
        location,
        {},
        "failed" if fault else OUTCOMES.get(shown, "passed"),  # type: ignore[arg-type]
        (str(item.path), 0, f"Skipped: {told}") if shown == "skipped" else told or None,
        "setup" if fault else "call",
    )
    dress(whole, row)
    end = pytest.TestReport(item.nodeid, location, {}, "passed", None, "teardown", tells_nothing=True)
    for report in (whole, end):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
