"""The level of each row follows from the words that it quotes, by the same rule on every contract."""

from fnmatch import fnmatchcase
from functools import cache

import pytest

from conformance.contract.levels import departure, hedge
from conformance.contract.loader import folders, load, providers, read_yaml
from conformance.model import Layer, Level, Requirement, Source

SPECS = folders()[-1]


@cache
def reasons(provider):
    """The reasons that a contract records beside its rows, by id."""
    raw = read_yaml(SPECS / provider / "contract.yaml")
    listed = [row for name in ("requirements", "combinations", "derived") for row in raw.get(name, ())]
    return {row["id"]: row["reason"] for row in listed if "reason" in row}


def reason_of(provider, row):
    """The reason recorded for a row; those of derived rows stand under globs, in which brackets are names."""
    recorded = reasons(provider).items()
    return next((reason for glob, reason in recorded if fnmatchcase(row, glob.replace("[", "[[]"))), "")


@pytest.mark.parametrize("provider", providers())
def test_every_level_follows_from_the_words_or_has_a_reason(provider):
    found = {row.id: departure(row, reason_of(provider, row.id)) for row in load(provider).requirements}
    assert {row: said for row, said in found.items() if said} == {}


@pytest.mark.parametrize("provider", providers())
def test_no_reason_is_recorded_where_none_is_needed(provider):
    rows = {row.id: row for row in load(provider).requirements}
    raw = read_yaml(SPECS / provider / "contract.yaml")
    own = [row["id"] for name in ("requirements", "combinations") for row in raw.get(name, ()) if "reason" in row]
    assert [row for row in own if not departure(rows[row])] == []


def of(level, quote, **changes):
    fields = {"id": "a.b", "check": "id_is_not_empty", "layer": Layer.CONTRACT, "promise": "", **changes}
    return Requirement(level=level, source=Source("#/", "", quote), **fields)


def test_plain_words_bind_at_must_and_hedged_ones_below():
    plain, hedged = "The API will stop.", "values like -100 should result in a ban"
    assert not departure(of(Level.MUST, plain))
    assert departure(of(Level.SHOULD, plain))
    assert departure(of(Level.MUST, hedged)) == "MUST, though the quotation hedges: 'should'"
    assert not departure(of(Level.SHOULD, hedged))
    assert not departure(of(Level.MAY, hedged))
    assert not departure(of(Level.SHOULD, plain), "For a reason.")


def test_advice_to_the_client_binds_at_most_at_should():
    advice = "Only set this when you set `stream: true`."
    assert departure(of(Level.MUST, advice))
    assert not departure(of(Level.MAY, advice))


def test_leniency_is_a_reason_of_its_own():
    for keyword in ("coercion", "nullable", "not_null"):
        assert not departure(of(Level.SHOULD, "type: integer", params={"keyword": keyword}))
    assert departure(of(Level.SHOULD, "type: integer", params={"keyword": "type"}))


def test_clients_and_standards_follow_rules_of_their_own():
    for layer in (Layer.STANDARD, Layer.ECOSYSTEM):
        assert not departure(of(Level.SHOULD, "", layer=layer))


@pytest.mark.parametrize("word", ["best effort", "may", "can", "should", "typically", "recommended"])
def test_the_words_that_hedge(word):
    assert hedge(f"a text {word} repeat") == word
    assert hedge("the mayor canned shoulders") == ""


def test_an_optional_member_may_be_left_out_on_every_contract():
    for provider in providers():
        (row,) = [row for row in load(provider).requirements if row.id == "request.together.accepts"]
        assert (row.level, row.layer) == (Level.MUST, Layer.CONTRACT)
        assert row.source.quote.startswith("required:")


def test_what_clients_expect_yields_to_the_providers_own_document():
    levels = {
        provider: row.level
        for provider in providers()
        for row in load(provider).requirements
        if row.id == "logprobs.unasked"
    }
    required = {"openai", "interactive", "novita"}  # log probabilities are a required member of each choice
    assert {provider for provider, level in levels.items() if level is Level.MAY} == required
