"""pytest plugin for `conformance run`: items report their verdicts without fixture setup and test phases.

All verdicts are known before the first item, so an item only looks up its own; skipping the phases saves time. In a
user's own pytest session, where other plugins may rely on each phase, items run as usual; the reports are the same.
"""

from __future__ import annotations

from typing import Final

import pytest

from conformance.pytest_plugin.plugin import SESSION, add_row, row_of

OUTCOMES: Final = {"failure": "failed", "error": "failed", "skipped": "skipped", "expected": "skipped"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Report the verdict of a requirement; an error is reported as one of the setup."""
    row = row_of(item)
    if row is None:
        return None
    appearance, message = item.config.stash[SESSION].shown(row)
    location = (item.nodeid.partition("::")[0], None, item.name)
    result = pytest.TestReport(
        item.nodeid,
        location,
        {},
        OUTCOMES.get(appearance, "passed"),  # type: ignore[arg-type]
        (str(item.path), 0, f"Skipped: {message}") if appearance == "skipped" else message or None,
        "setup" if appearance == "error" else "call",
    )
    if appearance == "expected":
        result.wasxfail = message
    add_row(result, row)
    teardown = pytest.TestReport(item.nodeid, location, {}, "passed", None, "teardown", omit_from_table=True)
    for report in (result, teardown):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
