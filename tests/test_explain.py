"""Each requirement can be explained: where it stands, why it matters, how it is seen, what is good, bad, and mended."""

from __future__ import annotations

import pytest

from conformance.contract import load, providers
from conformance.judge.catalogue import CheckContext, Scope
from conformance.judge.catalogue import load as catalogue
from conformance.model import Level, Satisfied, Violation
from conformance.report.requirement_card import KINDS, SCOPES, card, examples, exercised
from conformance.report.requirement_examples import exhibits
from tests.test_sixth_provider import written

PROVIDERS = providers()


def row_of(provider, name):
    return next(row for row in load(provider).requirements if row.id == name)


# Cards and exhibits


def test_every_kind_of_exercise_has_words():
    assert {check.group for check in catalogue().values() if check.group} == KINDS.keys()
    assert {scope for scope in Scope if scope is not Scope.GROUP} == SCOPES.keys()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_card_has_all_that_a_reader_asks_for(provider):
    contract = load(provider)
    for row in contract.requirements:
        told = card(contract, row)
        check = catalogue()[row.check]
        assert all(part and part in told for part in (row.id, row.promise, check.why, check.fix, row.source.at)), row.id
        assert str(row.level) in told.splitlines()[2]
        assert exercised(check, row) in told


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_shown_as_good_is_good_and_what_is_shown_as_bad_is_bad(provider):
    contract = load(provider)
    like = []
    for row in contract.requirements:
        good, bad = exhibits(contract, row)
        function, context = catalogue()[row.check].function, CheckContext(contract, row.params)
        if bad is None:
            assert row.level is Level.MAY, row.id
        elif bad.own:
            assert any(isinstance(one, Violation) for one in function(bad.subject, context)), row.id
        else:
            like.append(row.id)
        if good.own and bad is not None:
            kinds = {type(one) for one in function(good.subject, context)}
            assert Satisfied in kinds, row.id
            assert Violation not in kinds, row.id
    assert len(like) < 0.05 * len(contract.requirements), like


def test_a_refusal_is_shown_with_the_request_of_this_very_row():
    text = examples(load("openai"), row_of("openai", "request.temperature.maximum"))
    good, bad = text.split("**Bad**")
    assert '"temperature":2.' in good
    assert "HTTP/1.1 400" in good
    assert '"param":"temperature"' in good
    assert '"temperature":2.' in bad
    assert "HTTP/1.1 400" not in bad


def test_an_acceptance_is_shown_refused():
    text = examples(load("nebius"), row_of("nebius", "request.echo.accepts"))
    assert "HTTP/1.1 4" not in text.split("**Bad**")[0]
    assert "HTTP/1.1 4" in text.split("**Bad**")[1]


def test_a_field_is_shown_spoilt():
    row = row_of("openai", "response.choices[].finish_reason.enum")
    assert '"finish_reason":"something_else"' in examples(load("openai"), row).split("**Bad**")[1]
    row = row_of("interactive", "error.401.error.message.required")
    good, bad = examples(load("interactive"), row).split("**Bad**")
    assert '"message":"' in good
    assert '"message"' not in bad
    assert "HTTP/1.1 401" in bad


def test_a_point_that_is_left_open_is_shown_and_judges_nobody():
    text = examples(load("fireworks"), row_of("fireworks", "request.temperature.edge"))
    assert "**Bad**" not in text
    assert "judges nobody" in text


def test_what_goes_over_the_wire_is_shown_without_a_key():
    for name in ("auth.no-key", "auth.wrong-key", "protocol.wrong-content-type", "protocol.wrong-method"):
        text = examples(load("openai"), row_of("openai", name))
        assert "sk-" not in text
        assert "HTTP/1.1 4" in text
    assert "(without a key)" in examples(load("openai"), row_of("openai", "auth.no-key"))
    assert "PUT /completions" in examples(load("openai"), row_of("openai", "protocol.wrong-method"))


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


def test_a_provider_of_ones_own_is_explained_in_its_own_words(conformance, tmp_path):
    code, out, _ = conformance("explain", "finish.length", "madeup", "--specs", str(written(tmp_path)))
    assert code == 0
    assert "POST /v9/generate/text" in out
    assert '"finish_reason":"limit"' in out or "reason = 'limit'" in out


def test_an_id_that_is_near_is_suggested(conformance):
    code, _, err = conformance("explain", "usage.totl", "openai")
    assert code == 2
    assert "did you mean usage.total" in err
    assert err.count("\n") == 1


def test_numbers_are_told_by_area_level_and_layer(conformance):
    code, out, _ = conformance("list", "openai", "--counts")
    assert code == 0
    rows = load("openai").requirements
    head, *areas, total, last = out.splitlines()
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
    assert "no provider is named; expected `conformance list PROVIDER`, or --checks" in err
