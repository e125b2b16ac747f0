"""Tests are deterministic: hypothesis draws the same each time, and no test is judged by the clock."""

import pytest
from hypothesis import settings

from conformance.cli import _guarded

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")


@pytest.fixture
def conformance(capsys, tmp_path, monkeypatch):
    """The command line in a folder of its own: exit code, what it printed, what it complained of. Never a traceback."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = _guarded(list(arguments), debug=False)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        return code, printed.out, printed.err

    return call
