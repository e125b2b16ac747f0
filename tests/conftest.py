"""Tests are deterministic: hypothesis draws the same each time, and no test is judged by the clock.

Of the tests marked `rotating` a third runs, another each week, so that all of them together stay below their time.
CONFORMANCE_NIGHTLY runs all of them, CONFORMANCE_ROTATION names another third.
"""

import os
from hashlib import sha256

import pytest
from hypothesis import settings
from rotation import rotation

from conformance.cli import _guarded

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")


def pytest_collection_modifyitems(config, items):
    """Leave out two thirds of the rotating tests, unless it is night or a test was named."""
    if os.environ.get("CONFORMANCE_NIGHTLY") or any("::" in word for word in config.args):
        return
    week = rotation()
    out = [item for item in items if item.get_closest_marker("rotating") and _third(f"{week} {item.nodeid}")]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in set(out)]


def _third(name: str) -> bool:
    return int(sha256(name.encode()).hexdigest(), 16) % 3 != 0


@pytest.fixture
def conformance(capsys, tmp_path, monkeypatch):
    """The command line in a folder of its own: exit code, what it printed, what it complained of. Never a traceback."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = _guarded(list(arguments), debug=False)
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out, told.err

    return call
