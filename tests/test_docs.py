"""The generated pages match the contracts, and no documented field is left without a requirement."""

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.contract import load, providers
from conformance.report.docs_pages import coverage, coverage_pages, requirements

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", sorted(coverage_pages()))
def test_a_committed_page_is_up_to_date(name):
    hint = "run `python -m conformance.report.docs_pages docs` and review the change"
    assert (DOCS / name).read_text("utf-8") == coverage_pages()[name], hint


@pytest.mark.parametrize("provider", providers())
def test_every_documented_field_is_bound_by_something(provider):
    assert [line for line in coverage(load(provider)).splitlines() if "**nothing**" in line] == []


def test_the_page_of_requirements_has_every_requirement_ambiguity_and_exclusion():
    contract = load("fireworks")
    page = requirements(contract)
    for requirement in contract.requirements:
        assert f"\n### {requirement.id}\n\n**{requirement.level}** · {requirement.layer} (" in page
    assert all(ambiguity.point in page for ambiguity in contract.ambiguities)
    assert all(exclusion.promise in page for exclusion in contract.exclusions)


def test_all_pages_are_written_below_a_folder(tmp_path):
    subprocess.run([sys.executable, "-m", "conformance.report.docs_pages", str(tmp_path)], check=True)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    assert written == {f"{kind}/{provider}.md" for kind in ("coverage", "requirements") for provider in providers()}
