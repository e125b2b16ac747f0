"""Each requirement can be explained: source, reason, exchanges that exercise it, examples, how to fix a server."""

from __future__ import annotations

import re

import pytest

from conformance.contract import load, providers
from conformance.judge.catalogue import Scope
from conformance.judge.catalogue import load as catalogue
from conformance.model import Level
from conformance.report.docs_pages import requirements
from conformance.report.requirement_card import GROUPS, SCOPES, card, examples, exercised
from tests.test_sixth_provider import written

PROVIDERS = providers()


def requirement_of(provider, name):
    return next(each for each in load(provider).requirements if each.id == name)


# Cards and examples


def test_every_group_and_scope_has_a_description():
    assert {check.group for check in catalogue().values() if check.group} == GROUPS.keys()
    assert {scope for scope in Scope if scope is not Scope.GROUP} == SCOPES.keys()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_card_has_promise_reason_fix_and_source(provider):
    contract = load(provider)
    for requirement in contract.requirements:
        text = card(contract, requirement)
        check = catalogue()[requirement.check]
        parts = (requirement.id, requirement.promise, check.why, requirement.fix or check.fix, requirement.source.at)
        assert all(part and part in text for part in parts), requirement.id
        assert str(requirement.level) in text.splitlines()[2]
        assert exercised(check, requirement) in text


def test_the_good_and_the_bad_example_are_those_beside_the_check():
    text = examples(load("openai"), requirement_of("openai", "usage.total"))
    good, bad = text.split("**Bad ")
    assert good.startswith("**Good example of `usage_adds_up`**")
    for example in (good, bad):
        assert "POST /completions" in example
        assert "HTTP/1.1 200" in example
    assert '"total_tokens":8' in good
    assert '"total_tokens":8' not in bad


def test_the_example_nearest_to_the_requirement_is_shown_with_its_parameters():
    text = examples(load("openai"), requirement_of("openai", "response.choices[].finish_reason.enum"))
    good, bad = text.split("**Bad ")
    assert '(where path = "choices[].finish_reason", keyword = "enum"' in good
    assert '"finish_reason":"stop"' in good
    assert '"finish_reason":"eos_token"' in bad


def test_members_of_a_group_are_shown_by_role():
    text = examples(load("openai"), requirement_of("openai", "request.temperature.maximum"))
    good, bad = text.split("**Bad ")
    for example in (good, bad):
        assert "# control\nPOST /completions" in example
        assert "# probe\nPOST /completions" in example


def test_a_may_is_said_to_fail_no_target():
    assert "no target fails because of it" in examples(
        load("fireworks"), requirement_of("fireworks", "request.temperature.edge")
    )


def test_examples_of_authentication_and_protocol_show_a_refusal_and_never_a_key():
    for name in ("auth.no-key", "auth.wrong-key", "protocol.wrong-content-type", "protocol.wrong-method"):
        text = examples(load("openai"), requirement_of("openai", name))
        assert "sk-" not in text
        assert "HTTP/1.1 4" in text


# The commands


def test_a_requirement_is_explained_for_one_provider_or_beside_others(conformance):
    code, out, _ = conformance("explain", "usage.total", "openai")
    assert code == 0
    assert out.startswith("OpenAI, POST /completions\n\n### usage.total\n")
    assert "Of others" not in out
    assert conformance("explain", "usage.total", "--provider", "openai")[1] == out
    code, out, _ = conformance("explain", "usage.total")
    assert code == 0
    for name in set(PROVIDERS) - {min(PROVIDERS)}:
        assert f"- {name} (" in out


def test_all_requirements_of_a_provider_are_explained_when_no_id_is_given(conformance):
    code, out, _ = conformance("explain", "openai")
    assert (code, out) == (0, requirements(load("openai")))
    assert conformance("explain", "openai", "usage.total") == conformance("explain", "usage.total", "openai")


def test_a_provider_of_ones_own_is_explained_in_its_own_words(conformance, tmp_path):
    code, out, _ = conformance("explain", "finish.length", "madeup", "--specs", str(written(tmp_path)))
    assert code == 0
    assert "POST /v9/generate/text" in out
    assert "Made-up" in out


def test_an_id_that_is_near_is_suggested(conformance):
    code, _, err = conformance("explain", "usage.totl", "openai")
    assert code == 2
    assert "did you mean usage.total" in err
    assert err.count("\n") == 1


def test_numbers_are_told_by_area_level_and_layer(conformance):
    code, out, _ = conformance("list", "openai", "--counts")
    assert code == 0
    rows = load("openai").requirements
    head, *areas, total, members, last = out.splitlines()
    assert re.fullmatch(r"members in the schemas: request \d{2}, response \d{2}, chunk \d{2}", members)
    assert head.split() == ["area", "rows", "MUST", "SHOULD", "MAY", "contract", "standard", "ecosystem"]
    assert [line.split()[0] for line in areas] == sorted({row.area for row in rows})
    assert total.split()[:2] == ["all", str(len(rows))]
    usage = next(line for line in areas if line.startswith("usage")).split()
    found = [row for row in rows if row.area == "usage"]
    assert usage[1:3] == [str(len(found)), str(sum(row.level is Level.MUST for row in found))]
    assert f"{len(rows)} requirements of OpenAI" in last
    assert "promises excluded" in last
    for column in range(1, 8):
        numbers = [int(line.split()[column].replace("·", "0")) for line in areas]
        assert sum(numbers) == int(total.split()[column].replace("·", "0"))


def test_a_list_can_be_piped_and_shows_its_numbers_beside(conformance):
    code, out, err = conformance("list", "nebius", "--layer", "ecosystem")
    assert code == 0
    assert all(line.split()[1] in {"SHOULD", "MAY"} and line.split()[2] == "ecosystem" for line in out.splitlines())
    assert err.splitlines()[0].startswith("area ")


def test_checks_are_listed_alone_or_with_the_rows_that_bind_them(conformance):
    code, out, err = conformance("list", "--checks")
    assert code == 0
    assert len(out.splitlines()) == len(catalogue())
    assert {line.split()[0] for line in out.splitlines()} == catalogue().keys()
    assert f"{len(catalogue())} checks" in err
    code, out, _ = conformance("list", "fireworks", "--checks")
    rows = load("fireworks").requirements
    assert sum(int(line.split()[0]) for line in out.splitlines()) == len(rows)
    assert {line.split()[1] for line in out.splitlines()} == {row.check for row in rows}


def test_a_list_needs_a_provider(conformance):
    code, _, err = conformance("list")
    assert code == 2
    assert "no provider is given; expected `conformance list PROVIDER`, or --checks" in err
