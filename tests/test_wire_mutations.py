"""Changes of good replies that no check was written for: which are detected, and which may go undetected."""

import importlib.util
import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from conformance.contract import providers
from conformance.judge.fixtures import choice, completion, plain
from conformance.selftest import scores
from conformance.selftest.allowlist import Entry, allowlist, reason, unneeded
from conformance.selftest.json_mutations import changed, differs, general, walk
from conformance.selftest.mutation_score import source_hash, stored
from conformance.selftest.mutation_testing import baseline
from conformance.selftest.wire_mutations import detecting_checks, mutators

ALLOWLIST = allowlist()


@cache
def named(provider):
    return {one.name: one for one in mutators(baseline(provider, "gate").plain.exchanges)}


def wire(provider):
    """The stored score; where replies have changed since it was measured, there is nothing to compare it with."""
    score = stored()["wire"][provider]["gate"]
    if score["build"] != source_hash() and not set(score["undetected"]) <= named(provider).keys():
        message = "replies changed since the stored score was measured: run `nox -s wire-mutations`"
        if os.environ.get("CONFORMANCE_NIGHTLY"):
            pytest.fail(message)
        pytest.skip(f"{message} (CONFORMANCE_NIGHTLY=1 makes this a failure)")
    return score


def detecting(provider, name):
    checks, touched = detecting_checks(baseline(provider, "gate"), named(provider)[name])
    assert touched, f"{name} changes nothing"
    return checks


@pytest.mark.parametrize(
    "name",
    [
        "plain choices[].text delete first",
        "plain usage.total_tokens +1",
        "chunk choices[].index other type middle",
        "chunk choices[].logprobs.top_logprobs[] null last",
        "event done drop",
        "event middle corrupt",
        "header chunk content-type change",
    ],
)
def test_a_mutation_is_detected(name):
    assert detecting("openai", name)


def test_an_optional_header_may_be_absent():
    assert not detecting("openai", "header plain x-request-id drop")


def test_every_mutator_has_its_own_name_and_place():
    found = list(mutators(baseline("openai", "gate").plain.exchanges))
    assert len(found) == len(named("openai")) > 500
    assert {name.split()[0] for name in named("openai")} == {"plain", "chunk", "error", "event", "header"}
    assert {mutator.occurrence for mutator in found} == {"", "first", "middle", "last"}


def test_what_occurs_several_times_is_changed_at_its_first_its_middle_and_its_last_place():
    x = plain(completion(choice(), choice(index=1), choice(index=2)))
    told = {}
    for which in ("first", "middle", "last"):
        (one,) = [one for one in mutators([x]) if one.name == f"plain choices[].text null {which}"]
        told[which] = [item["text"] is None for item in one.apply(x).json["choices"]]
    assert told == {"first": [True, False, False], "middle": [False, True, False], "last": [False, False, True]}


def test_values_that_are_alike_are_not_swapped():
    assert not differs([-1.12124, -1.12123], (1,), "swap")
    assert not differs([{"a": -1.0}, {"a": -1.001}], (1,), "swap")
    assert changed([{"a": -1.0}, {"b": -1.0}], (1,), "swap") == [{"b": -1.0}, {"a": -1.0}]
    assert changed([-1.5, -1.0], (1,), "swap") == [-1.0, -1.5]


def test_numbers_and_data_are_left_out_of_a_path():
    value = {"choices": [{"logprobs": {"top_logprobs": [{"any token": -1.0}]}}]}
    assert [general(path) for path, _ in walk(value)][-1] == "choices[].logprobs.top_logprobs[].*"


@pytest.mark.parametrize("provider", providers())
def test_the_stored_score_counts_these_mutations(provider):
    score = wire(provider)
    assert abs(score["of"] - len(named(provider))) <= 0.02 * score["of"], "replies changed: run `nox -s wire-mutations`"
    assert set(score["undetected"]) <= named(provider).keys()
    assert score["detected"] + len(score["undetected"]) == score["of"]
    assert score["accepted"] + score["gaps"] == len(score["undetected"])


@pytest.mark.parametrize("provider", providers())
def test_an_undetected_mutation_is_allowed(provider):
    left = [name for name in wire(provider)["undetected"] if not reason(ALLOWLIST, provider, *place(provider, name))]
    assert len(left) == wire(provider)["gaps"], "the list changed since: run `nox -s wire-mutations`"
    assert not left, "fix a check, or give the reason in undetected.yaml"


@pytest.mark.parametrize("provider", providers())
def test_what_is_stored_as_undetected_is_undetected(provider):
    once = {place(provider, name): name for name in wire(provider)["undetected"]}
    detected = {name: sorted(checks) for name in once.values() if (checks := detecting(provider, name))}
    assert not detected, "remove it from undetected.yaml, and run `nox -s wire-mutations`"


def test_every_entry_of_the_allowlist_is_needed():
    everything = {(provider, *place(provider, name)): name for provider in providers() for name in named(provider)}
    undetected = {(name, *place(name, one)) for name in providers() for one in wire(name)["undetected"]}
    assert not list(unneeded(ALLOWLIST, undetected, everything.keys() - undetected))
    for row in ALLOWLIST:
        assert row.reason.strip()
        assert set(row.providers) <= set(providers())


def place(provider, name):
    return named(provider)[name].place, named(provider)[name].change


class TestAllowlist:
    ENTRY = Entry(
        at="plain choices[].*", changes=("delete", "null"), providers=("a", "b"), reason="free", names_providers=True
    )

    def test_an_entry_covers_its_places_changes_and_contracts_only(self):
        assert reason([self.ENTRY], "a", "plain choices[].text", "null") == "free"
        assert not reason([self.ENTRY], "c", "plain choices[].text", "null")
        assert not reason([self.ENTRY], "a", "plain choices[].text", "swap")
        assert not reason([self.ENTRY], "a", "plain choicess.text", "null")

    def test_what_is_listed_and_detected_is_reported(self):
        text, index = "plain choices[].text", "plain choices[].index"
        passed = {("a", text, "delete"), ("a", text, "null"), ("b", text, "null")}
        assert not list(unneeded([self.ENTRY], passed, set()))
        assert list(unneeded([self.ENTRY], passed, {("b", index, "null")})) == [
            f"plain choices[].*: covers {index} null, which is detected"
        ]
        assert not list(unneeded([self.ENTRY], passed, {("b", text, "delete")}))
        (line,) = unneeded([self.ENTRY], {one for one in passed if one[0] == "a"}, set())
        assert line.endswith("not needed under b")
        (line,) = unneeded([self.ENTRY], {one for one in passed if one[2] == "null"}, set())
        assert line.endswith("delete is detected under every contract")


class TestBench:
    def test_an_undetected_mutation_is_printed_with_its_reason_or_as_a_gap(self, capsys):
        bench = load_bench()
        found = [
            ("plain created", "+1", "", frozenset()),
            ("plain id", "null", "first", frozenset({"ids_are_unique"})),
            ("plain id", "null", "last", frozenset()),
        ]
        counts = bench.report("openai", found)
        out = capsys.readouterr().out
        assert "accepted  plain created: +1 – clocks may differ" in out
        assert "GAP       plain id: null (last)\n" in out
        assert counts == {
            "detected": 1,
            "of": 3,
            "accepted": 1,
            "gaps": 1,
            "undetected": ["plain created +1", "plain id null last"],
        }

    def test_scores_are_stored_with_their_build_and_others_are_kept(self, tmp_path, monkeypatch):
        file = tmp_path / "scores.json"
        file.write_text(json.dumps({"scores": {"a": {"full": {"of": 9, "build": "earlier"}}}}), "utf-8")
        monkeypatch.setattr(scores, "FILE", file)
        monkeypatch.setattr(scores, "stored", lambda: json.loads(file.read_text("utf-8")))
        counts = {"detected": 1, "of": 2, "accepted": 1, "gaps": 0}
        scores.write_wire({"a": counts})
        scores.write({"b": {"full": {"of": 3}}})
        assert json.loads(file.read_text("utf-8")) == {
            "scores": {
                "a": {"full": {"of": 9, "build": "earlier"}},
                "b": {"full": {"of": 3, "build": source_hash()}},
            },
            "wire": {"a": {"gate": {**counts, "build": source_hash()}}},
        }
        assert scores.wire_table({"a": counts}).splitlines()[1].split() == ["a", "1/2", "1", "0"]


def load_bench():
    path = Path(__file__).parents[1] / "bench" / "mutators.py"
    spec = importlib.util.spec_from_file_location("bench_mutators", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_baseline_without_a_plain_run_is_refused():
    bare = replace(baseline("openai", "gate"), plain=None)
    with pytest.raises(ValueError, match="no plain run"):
        detecting_checks(bare, named("openai")["event done drop"])
