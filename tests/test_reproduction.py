"""Each curl command of a report shows the violation again, or the report says why it need not."""

import json
import os
import re
import shutil

import pytest
from reproduction import KEY, not_reproduced

from conformance.contract import load
from conformance.selftest.faults import FAULTS

EVERY = bool(os.environ.get("CONFORMANCE_EVERY_FAULT"))
"""Set by `nox -s reproduction`; it takes half an hour."""
REPRESENTATIVE = (
    "chunk_follows_done", "completion_tokens_are_summed_up_when_plain", "default_is_another_n",
    "errors_come_with_200", "errors_are_flat", "n_is_ignored_when_plain",
)  # fmt: skip
BY_CHANCE = "_when_sometimes"
"""Faults that show in some replies only, whatever the request: sending it once need not show them."""
NAMES = sorted(name for name, fault in FAULTS.items() if fault.applies(load("openai")) and not name.endswith(BY_CHANCE))

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.mark.parametrize("name", NAMES if EVERY else REPRESENTATIVE)
def test_each_printed_command_shows_the_violation_again(name, tmp_path):
    count, missed = not_reproduced(FAULTS[name], "openai", tmp_path)
    assert missed == []
    assert count or EVERY
    assert not any(KEY in path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["done_is_left_out_when_sometimes", "logprobs_stay_null_when_sometimes"])
def test_what_shows_by_chance_is_said_to_show_not_each_time(name, tmp_path):
    not_reproduced(FAULTS[name], "openai", tmp_path)
    document = json.loads(next(tmp_path.rglob("results.json")).read_text("utf-8"))
    (row,) = (row for row in document["requirements"] if row["check"] == FAULTS[name].check and row["evidence"])
    notes = [entry["repeats"] for entry in (row["smallest"], *row["evidence"])]
    assert all(re.fullmatch(r"not each time: \d of the \d times that .* was sent", note) for note in notes)


def test_a_command_is_only_counted_where_the_violation_shows(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.shows", lambda *_: False)
    count, missed = not_reproduced(FAULTS["errors_are_flat"], "openai", tmp_path)
    assert len(missed) == count > 0
