"""Items of `conformance run` skip what they need not; nobody can tell from the outcome."""

import gc
import html
import json
import re

import fake_runs
import pytest
from test_plugin import suite

from conformance.cli.pytest_session import pytest_session

pytest_plugins = ("pytester",)
__all__ = ["suite"]


def table(result):
    page = (result.folder / "report.html").read_text("utf-8")
    found = json.loads(html.unescape(re.search(r'data-jsonblob="([^"]*)"', page)[1]))["tests"]
    return re.sub(r"\d+ ms", "", json.dumps(found))


@pytest.mark.parametrize("run", [fake_runs.failing, fake_runs.large, fake_runs.hostile])
def test_the_page_and_the_outcomes_are_the_same(suite, run):
    usual = suite(run())
    rows = table(usual)
    lean = suite(run(), "-p", "conformance.pytest_plugin.items")
    assert table(lean) == rows
    assert lean.ret == usual.ret
    assert lean.parseoutcomes() == {key: n for key, n in usual.parseoutcomes().items() if "warning" not in key}


def test_items_of_others_run_as_they_do(pytester):
    pytester.makepyfile("def test_one(tmp_path): assert tmp_path.exists()\ndef test_two(): assert False")
    pytester.runpytest_inprocess("-p", "conformance.pytest_plugin.items").assert_outcomes(passed=1, failed=1)


def test_a_session_leaves_the_collector_of_cycles_as_it_was(pytester):
    before = gc.get_threshold(), gc.get_freeze_count()
    pytest_session([str(pytester.path)], object())
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
