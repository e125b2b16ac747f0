"""Drawn bodies as requests: enough of them in each profile, invalid ones beside their control, and each judged."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from planned import PROVIDERS, context, contract, drawn, plan, planned

from conformance.contract.validity import validity
from conformance.model import Validity
from conformance.model.budget import Budget
from conformance.model.json_text import MISSING
from conformance.plan import samples
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.drawn_requests import (
    ACCEPTS,
    COERCION,
    MINIMUM,
    ORIGIN,
    REFUSES,
    again,
    changes,
    is_look_alike,
    is_sure,
)
from conformance.plan.requirement_coverage import RequirementCoverage
from conformance.plan.set_cover import GUARANTEED, RemainingBudget, choose
from conformance.selftest.faults import FAULTS
from conformance.selftest.mutation_testing import baseline, trial

BOTH = [(provider, profile) for provider in PROVIDERS for profile in MINIMUM]


def sent(provider, profile):
    return [case for case in plan(provider, profile).cases if case.origin == ORIGIN]


def counts(provider, profile):
    return Counter(case.validity is Validity.INVALID for case in sent(provider, profile))


class TestHowMany:
    @pytest.mark.parametrize(("provider", "profile"), BOTH)
    def test_a_profile_sends_as_many_as_it_guarantees(self, provider, profile):
        least, found = MINIMUM[profile], counts(provider, profile)
        assert found.total() >= least.valid + least.invalid
        assert found[False] >= least.valid / 2
        assert found[True] >= least.invalid / 2

    def test_the_minimum_is_twelve_and_a_hundred_and_twenty(self):
        assert {name: least.valid + least.invalid for name, least in MINIMUM.items()} == {"gate": 12, "full": 120}

    @pytest.mark.parametrize(("provider", "profile"), BOTH)
    def test_each_row_on_drawn_bodies_is_shown(self, provider, profile):
        assert {ACCEPTS, REFUSES, COERCION} <= plan(provider, profile).covered

    def test_what_is_guaranteed_leaves_a_low_budget_most_of_its_requests(self):
        where = context("openai")
        cases = [where.case("t", {"prompt": f"{number}"}) for number in range(40)]
        groups = [CaseGroup("rows", Rank.NORMAL, (case,), guaranteed=number >= 20) for number, case in enumerate(cases)]
        serving = RequirementCoverage(where.contract, where.checks)
        chosen = choose(groups, RemainingBudget(Budget(requests=8)), serving, (), ())
        assert len(chosen) == 8
        assert sum(group.guaranteed for group in chosen) == 8 * GUARANTEED


@pytest.mark.parametrize(("provider", "profile"), BOTH)
class TestEach:
    def test_a_valid_one_is_valid_by_our_own_reckoning_and_cheap(self, provider, profile):
        where = context(provider, profile)
        for case in sent(provider, profile):
            if case.validity is Validity.VALID:
                assert validity(contract(provider), case.body) is Validity.VALID
                assert is_sure(where, case.body)

    def test_an_invalid_one_differs_from_its_valid_control_in_one_member(self, provider, profile):
        cases = {case.content: case for case in plan(provider, profile).cases}
        controls = {part.key: case for case in cases.values() for part in case.groups if part.role == "control"}
        for case in sent(provider, profile):
            if case.validity is Validity.INVALID:
                (part,) = (part for part in case.groups if part.kind == "drawn-invalid")
                assert validity(contract(provider), case.body) is Validity.INVALID
                assert controls[part.key].validity is Validity.VALID
                assert changes(controls[part.key].body, case.body) == [part.key.split(" ")[1]]
                assert case.breaks == (part.key.split(" ")[0],)


class TestSources:
    """Without one of the libraries the plan would be another, and say so."""

    def values(self, monkeypatch, **gone):
        for name, value in gone.items():
            monkeypatch.setattr(samples, name, value)
        return {json.dumps(body, sort_keys=True) for body in samples.draw(context("openai"))}

    def test_schemathesis_and_hypothesis_each_contribute_valid_and_invalid_bodies(self, monkeypatch):
        everything = self.values(monkeypatch)
        with monkeypatch.context() as without:
            less = self.values(without, coverage_classes=lambda _: ())
        assert everything - less
        where = context("openai", "full")
        known = [one for one in samples.coverage_classes(where) if one.value is not MISSING]
        enumerated = {json.dumps([one.member, one.value]) for one in known}
        bodies = [body for body in drawn("openai", "full") if "model" in body]
        pairs = [
            (validity(contract("openai"), body), json.dumps([name, value]) in enumerated)
            for host, body in pairwise(bodies)
            for name, value in ((name, body.get(name)) for name in changes(host, body)[:1])
        ]
        assert pairs.count((Validity.INVALID, True)) > 20
        assert pairs.count((Validity.INVALID, False)) > 20

    def test_a_library_that_gives_nothing_is_warned_of(self, monkeypatch):
        monkeypatch.setattr(samples, "coverage_classes", lambda _: ())
        with pytest.warns(RuntimeWarning, match="schemathesis enumerated no classes"):
            samples.draw(context("openai"))
        monkeypatch.setattr(samples, "_collect", lambda *_: [])
        with pytest.warns(RuntimeWarning, match="hypothesis drew no bodies"):
            samples.draw(context("openai"))


class TestLookAlikes:
    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"type": "integer"}, "5"), ({"type": "integer"}, True), ({"type": "integer"}, 1.5),
            ({"type": "integer"}, [1]), ({"type": "boolean"}, "yes"), ({"type": "boolean"}, 1),
            ({"type": "string"}, 5), ({"type": "object"}, []), ({"type": "array", "items": {"type": "string"}}, "a"),
            ({"type": "array", "items": {"type": "string"}}, [1]),
            ({"type": "object", "properties": {"a": {"type": "boolean"}}}, {"a": 0}),
        ],
    )  # fmt: skip
    def test_a_lenient_parser_converts_it(self, schema, value):
        assert is_look_alike(schema, value)

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"type": "integer"}, "many"), ({"type": "integer"}, {}), ({"type": "integer"}, [1, 2]),
            ({"type": "boolean"}, "many"), ({"type": "string"}, {"a": 1}), ({"type": "number"}, 1.5),
            ({"type": "string", "enum": ["a"]}, "b"), ({"type": "integer", "maximum": 3}, 4),
        ],
    )  # fmt: skip
    def test_no_parser_converts_it(self, schema, value):
        assert not is_look_alike(schema, value)


class TestAgain:
    """What failed in an earlier run comes first, and leaves room for new draws."""

    def test_bodies_that_failed_are_sent_before_others(self):
        failed = {"model": "m", "prompt": "it failed", "max_tokens": 1}
        found = planned(contract("openai"), failed=(failed,))
        cases = [case for case in found.cases if case.origin == ORIGIN]
        assert cases[0].body == failed
        assert found.drawn[0] == failed

    def test_they_take_half_of_what_is_guaranteed_at_most(self):
        failed = [{"model": "m", "prompt": f"it failed {number}", "max_tokens": 1} for number in range(50)]
        assert len(again(context("openai"), failed)) == MINIMUM["gate"].valid // 2


class TestFaults:
    @pytest.mark.parametrize("name", ["rare_alphabets_are_refused", "rare_alphabets_are_not_validated"])
    def test_what_only_drawn_bodies_show_is_found_with_them_alone(self, name):
        where = baseline("nebius", "gate")
        assert trial(where, FAULTS[name]).killed
        assert not trial(replace(where, drawn=(), case_groups=None), FAULTS[name]).killed
