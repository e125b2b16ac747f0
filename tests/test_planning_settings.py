"""Each promise in each setting: what a plan shows, what it cannot show, and why."""

import pytest
from click.testing import CliRunner

from conformance.cli.plan import plan_command
from conformance.plan.context import part
from conformance.plan.setting_coverage import documented_settings, setting_coverage
from tests.planned import PROVIDERS, context, plan

SCORED = {"prompt": "a", "max_tokens": 5, "logprobs": 1}


def cells(target, *cases):
    return {(cell.requirement, cell.setting): cell for cell in setting_coverage(target, cases)}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_full_shows_each_promise_in_each_setting_or_says_why_not(provider):
    shown = plan(provider, "full")
    matrix = setting_coverage(shown.context, shown.cases)
    assert [(cell.requirement, cell.setting) for cell in matrix if cell.hole] == []


def test_a_promise_is_shown_in_the_settings_of_the_case_that_is_judged():
    target = context("openai", "full")
    found = cells(target, target.case("row", target.body(SCORED, {"n": 2})))
    assert found["logprobs.offsets", "n"].cases == 1
    assert found["logprobs.offsets", "streamed"].hole


def test_a_case_that_is_only_compared_with_shows_nothing():
    target = context("openai", "full")
    bodies = {"first": {"n": 2}, "second": {}}
    cases = [target.case("relation", target.body(body), part("repeat", "x", role)) for role, body in bodies.items()]
    found = cells(target, *cases)
    assert found["relations.repeat", "plain"].cases == 1
    assert found["relations.repeat", "n"].hole


def test_what_the_document_forbids_together_is_no_hole():
    target = context("openai", "full")
    found = cells(target, target.case("row", target.body({"stream": True})))
    assert found["chunk.object.type", "best_of"].reason.startswith("the document forbids it")
    assert found["chunk.object.type", "plain"].reason == "it does not occur there"


def test_a_setting_needs_documented_parameters():
    names = {provider: [setting.name for setting in documented_settings(context(provider))] for provider in PROVIDERS}
    assert "best_of" in names["openai"]
    assert "best_of" not in names["nebius"]


def test_the_command_prints_a_line_for_each_requirement_and_counts_the_holes():
    printed = CliRunner().invoke(plan_command, ["nebius", "--profile", "full", "--contexts"]).output
    assert "relations.repeat" in printed
    assert "0 are not and have no reason" in printed
