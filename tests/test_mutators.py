"""Changes on the wire that no check was written for: who notices, what is right to pass, and what is kept of it."""

import importlib.util
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from conformance.contract import providers
from conformance.judge.fixtures import choice, completion, plain
from conformance.selftest import scores
from conformance.selftest.allowlist import Excuse, excuses, idle, reason
from conformance.selftest.json_mutations import changed, differs, general, walk
from conformance.selftest.mutation_score import stored
from conformance.selftest.mutation_testing import baseline
from conformance.selftest.wire_mutations import detecting_checks, mutators

ROWS = excuses()


@cache
def named(provider):
    return {one.name: one for one in mutators(baseline(provider, "gate").plain.exchanges)}


def wire(provider):
    return stored()["wire"][provider]["gate"]


def fell(provider, name):
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
def test_a_change_on_the_wire_is_noticed(name):
    assert fell("openai", name)


def test_a_member_that_is_free_may_go():
    assert not fell("openai", "header plain x-request-id drop")


def test_every_mutator_has_its_own_name_and_place():
    found = list(mutators(baseline("openai", "gate").plain.exchanges))
    assert len(found) == len(named("openai")) > 500
    assert {name.split()[0] for name in named("openai")} == {"plain", "chunk", "error", "event", "header"}
    assert {one.which for one in found} == {"", "first", "middle", "last"}


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
def test_the_stored_score_is_of_these_changes(provider):
    kept = wire(provider)
    assert abs(kept["of"] - len(named(provider))) <= 0.02 * kept["of"], "replies changed: run `nox -s mutators`"
    assert set(kept["unnoticed"]) <= named(provider).keys(), "replies changed: run `nox -s mutators`"
    assert kept["noticed"] + len(kept["unnoticed"]) == kept["of"]
    assert kept["rightly_not"] + kept["gaps"] == len(kept["unnoticed"])


@pytest.mark.parametrize("provider", providers())
def test_what_nobody_notices_is_right_or_a_known_gap(provider):
    left = [name for name in wire(provider)["unnoticed"] if not reason(ROWS, provider, *place(provider, name))]
    assert len(left) == wire(provider)["gaps"], "the list changed since: run `nox -s mutators`"
    assert not left, "mend a check, or say in unnoticed.yaml why that is right"


@pytest.mark.parametrize("provider", providers())
def test_what_is_listed_is_noticed_by_nobody(provider):
    once = {place(provider, name): name for name in wire(provider)["unnoticed"]}
    noticed = {name: sorted(fell(provider, name)) for name in once.values() if fell(provider, name)}
    assert not noticed, "take it out of unnoticed.yaml, and run `nox -s mutators`"


def test_every_reason_is_needed():
    everything = {(provider, *place(provider, name)): name for provider in providers() for name in named(provider)}
    unnoticed = {(name, *place(name, one)) for name in providers() for one in wire(name)["unnoticed"]}
    assert not list(idle(ROWS, unnoticed, everything.keys() - unnoticed))
    for row in ROWS:
        assert row.reason.strip()
        assert set(row.providers) <= set(providers())


def place(provider, name):
    return named(provider)[name].place, named(provider)[name].change


class TestReasons:
    ROW = Excuse("plain choices[].*", ("delete", "null"), ("a", "b"), "free", narrow=True)

    def test_a_reason_speaks_for_its_places_changes_and_contracts_only(self):
        assert reason([self.ROW], "a", "plain choices[].text", "null") == "free"
        assert not reason([self.ROW], "c", "plain choices[].text", "null")
        assert not reason([self.ROW], "a", "plain choices[].text", "swap")
        assert not reason([self.ROW], "a", "plain choicess.text", "null")

    def test_what_is_listed_and_noticed_is_told(self):
        text, index = "plain choices[].text", "plain choices[].index"
        passed = {("a", text, "delete"), ("a", text, "null"), ("b", text, "null")}
        assert not list(idle([self.ROW], passed, set()))
        assert list(idle([self.ROW], passed, {("b", index, "null")})) == [
            f"plain choices[].*: covers {index} null, which is noticed"
        ]
        assert not list(idle([self.ROW], passed, {("b", text, "delete")}))
        (line,) = idle([self.ROW], {one for one in passed if one[0] == "a"}, set())
        assert line.endswith("of no use under b")
        (line,) = idle([self.ROW], {one for one in passed if one[2] == "null"}, set())
        assert line.endswith("nobody lets delete pass")


class TestBench:
    def test_a_change_that_nobody_notices_is_told_with_its_reason_or_as_a_gap(self, capsys):
        bench = load_bench()
        found = [
            ("plain created", "+1", "", frozenset()),
            ("plain id", "null", "first", frozenset({"ids_are_unique"})),
            ("plain id", "null", "last", frozenset()),
        ]
        kept = bench.told("openai", found)
        told = capsys.readouterr().out
        assert "rightly not  plain created: +1 – clocks may differ" in told
        assert "GAP          plain id: null (last)\n" in told
        assert kept == {
            "noticed": 1,
            "of": 3,
            "rightly_not": 1,
            "gaps": 1,
            "unnoticed": ["plain created +1", "plain id null last"],
        }

    def test_its_score_is_kept_apart_from_that_of_the_faults(self, tmp_path, monkeypatch):
        file = tmp_path / "scores.json"
        file.write_text(json.dumps({"catalogue": "of yesterday", "scores": {"a": {"full": {"of": 9}}}}), "utf-8")
        monkeypatch.setattr(scores, "FILE", file)
        monkeypatch.setattr(scores, "stored", lambda: json.loads(file.read_text("utf-8")))
        counts = {"noticed": 1, "of": 2, "rightly_not": 1, "gaps": 0}
        scores.write_wire({"a": counts})
        kept = json.loads(file.read_text("utf-8"))
        assert kept == {
            "catalogue": "of yesterday",
            "scores": {"a": {"full": {"of": 9}}},
            "wire": {"a": {"gate": counts}},
        }
        scores.write({"b": {"full": {"of": 3}}})
        kept = json.loads(file.read_text("utf-8"))
        assert kept["scores"] == {"b": {"full": {"of": 3}}}, "a score of another catalogue is none"
        assert kept["wire"] == {"a": {"gate": counts}}
        assert scores.wire_table({"a": counts}).splitlines()[1].split() == ["a", "1/2", "1", "0"]


def load_bench():
    path = Path(__file__).parents[1] / "bench" / "mutators.py"
    spec = importlib.util.spec_from_file_location("bench_mutators", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_ground_without_a_plain_run_is_refused():
    bare = replace(baseline("openai", "gate"), plain=None)
    with pytest.raises(ValueError, match="no plain run"):
        detecting_checks(bare, named("openai")["event done drop"])
