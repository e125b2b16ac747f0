"""One faulty target, and everything that counts its verdicts: all outputs count the same, in the same words."""

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest

from conformance.cli import _guarded
from conformance.contract import load
from conformance.reference import serve
from conformance.report import overview, terminal
from conformance.report.results import read
from conformance.report.verdict_words import word
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS

PLANTED = ("done_is_left_out", "too_high_is_accepted_temperature", "errors_are_flat")
"""A MUST that hides others, a MUST of its own, a SHOULD."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The reports of one run of the gate, as `conformance run` writes them."""
    out = tmp_path_factory.mktemp("reports")
    faults = tuple(FAULTS[name] for name in PLANTED)
    with serve(altered_reference(load("openai"), faults=faults, models=("reference",))) as base_url:
        target = ("--base-url", base_url, "--model", "reference", "--name", "faulty")
        _guarded(["run", "openai", *target, "--out", str(out), "--no-shrink", "-q"], debug=False)
    return out / "faulty"


@pytest.fixture(scope="module")
def results(folder):
    return read(folder / "results.json")


@pytest.fixture(scope="module")
def outcomes(results):
    """How many requirements have each verdict, in the words of people."""
    return Counter(word(row["outcome"]) for row in results["requirements"])


@pytest.fixture(scope="module")
def broken_musts(results):
    return sum(row["level"] == "MUST" and row["outcome"] in {"fail", "flaky"} for row in results["requirements"])


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def junit(folder):
    return ElementTree.parse(folder / "junit.xml").getroot().find("testsuite")


@pytest.fixture(scope="module")
def ctrf(folder):
    return json.loads((folder / "ctrf.json").read_text("utf-8"))["results"]


def test_the_target_breaks_a_must_and_a_should_and_leaves_a_must_open(outcomes, broken_musts):
    assert broken_musts
    assert outcomes["warn"]
    assert outcomes["inconclusive"]


def test_the_filters_of_the_page_have_the_number_of_each_verdict(page, outcomes):
    chips = re.findall(r'data-key="o" data-value="(\w+)"[^>]*>.*?<b>(\d+)</b>', page)
    assert {word(name): int(number) for name, number in chips} == outcomes


def test_the_terminal_has_the_number_of_each_verdict(results, outcomes):
    (line,) = [line for line in terminal.summary(results).splitlines() if re.match(r"  \d+ fail", line)]
    counts = re.findall(r"(\d+) ([a-z ]+)", line.partition(";")[0])
    assert {name: int(number) for number, name in counts} == outcomes


def test_the_markdown_summary_has_the_number_of_each_verdict(folder, outcomes):
    lines = (folder / "summary.md").read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| Area |"))
    heads, _, *rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines[start:] if line[:1] == "|"]
    sums = [sum(int(cell or 0) for cell in column) for column in zip(*rows, strict=True)]
    assert dict(zip(heads, sums, strict=True)) == outcomes


def test_junit_fails_as_many_as_are_broken_and_passes_as_many_as_passed(junit, outcomes, broken_musts):
    counts = {name: int(junit.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    assert counts["failures"] == broken_musts
    assert counts["errors"] == len(list(junit.iter("error")))
    assert counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"] == outcomes["pass"]
    told = [one.get("value") for one in junit.iter("property") if one.get("name") == "outcome"]
    assert Counter(map(word, told)) == outcomes


def test_ctrf_fails_as_many_as_are_broken_and_passes_as_many_as_passed(ctrf, outcomes, broken_musts):
    assert ctrf["summary"]["failed"] == broken_musts
    assert ctrf["summary"]["passed"] == outcomes["pass"]
    assert Counter(word(test["rawStatus"]) for test in ctrf["tests"]) == outcomes


def test_pytests_own_table_fails_as_many_as_are_broken_and_passes_as_many_as_passed(page, outcomes, junit):
    tests = json.loads(html.unescape(re.search(r'data-jsonblob="([^"]*)"', page)[1]))["tests"]
    told = Counter(test["result"] for listed in tests.values() for test in listed)
    assert told["Passed"] == outcomes["pass"]
    assert told["Failed"] == int(junit.get("failures"))
    assert told["Error"] == int(junit.get("errors"))
    assert told["XFailed"] == outcomes["warn"]
    assert told.total() == outcomes.total()


def test_headline_badge_and_overview_have_the_number_of_broken_musts(folder, results, page, broken_musts):
    assert f"{broken_musts} MUSTs are broken." in page
    assert f"{broken_musts} MUSTs broken" in (folder / "badge.svg").read_text("utf-8")
    assert f"{broken_musts} MUSTs are broken." in (folder / "summary.md").read_text("utf-8")
    row = dict(zip(overview.HEADS, overview.row("faulty", results, 1), strict=True))
    assert row["Broken"] == str(broken_musts)


def test_the_message_of_a_broken_requirement_is_a_finding_and_no_doubt(results):
    broken = [row for row in results["requirements"] if row["outcome"] in {"fail", "warn", "flaky"}]
    for row in broken:
        assert "; expected " in row["reason"], row["reason"]
        assert not re.search(r"\bunconfirmed\b|\bsmaller:|\bbase:", row["reason"]), row["reason"]
        assert all("; expected " in piece["message"] for piece in row["evidence"])
