"""The generated pages are what the data says now, and no documented field is forgotten."""

from pathlib import Path

import pytest

from conformance.contract import load, providers
from conformance.judge.catalogue import load as catalogue
from conformance.report.docs_pages import coverage, pages
from conformance.report.requirement_card import card, examples

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_is_up_to_date(name):
    told = "run `python -m conformance.report.docs_pages docs` and look at the change"
    assert (DOCS / name).read_text("utf-8") == pages()[name], told


@pytest.mark.parametrize("provider", providers())
def test_no_documented_field_is_bound_by_nothing(provider):
    holes = [line for line in coverage(load(provider)).splitlines() if "**nothing**" in line]
    assert holes == []


def test_a_card_says_promise_reason_and_mending():
    contract = load("openai")
    row = next(row for row in contract.requirements if row.check == "usage_adds_up")
    told = card(contract, row)
    check = catalogue()[row.check]
    assert row.promise in told
    assert check.why in told
    assert check.fix in told
    assert "HTTP/1.1 200" in examples(contract, row)
