"""The waves of a run: what is sent, in which order, within which budget, and what replies change."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from planned import (
    PROVIDERS,
    TEXT,
    answered,
    bodies,
    cases,
    checks,
    context,
    contract,
    drawn,
    obedient,
    plan,
    planned,
    planner,
    refusing,
)
from planned import coverage as sent_share

from conformance import plan as planning
from conformance.judge.fixtures import error
from conformance.model import Credential, Validity
from conformance.model.budget import PROFILES, Budget, worst_case
from conformance.model.request_view import RequestView
from conformance.plan.covering_rows import coverage
from conformance.plan.expected_defects import contexts
from conformance.plan.factors import factors
from conformance.plan.profiles import plannable
from conformance.plan.requirement_coverage import RequirementCoverage, must

BOTH = [(provider, profile) for provider in PROVIDERS for profile in PROFILES]


def _holds(case, name):
    return isinstance(case.body, dict) and case.body.get(name) is not None and case.validity is not Validity.INVALID


def price(found, provider):
    defaults = {name: contract(provider).default(name) for name in contract(provider).parameters}
    valid = [case for case in found if case.validity is not Validity.INVALID and isinstance(case.body, dict)]
    return [worst_case(RequestView(case.body, defaults)) for case in valid if not case.hostile]


class TestBudgets:
    @pytest.mark.parametrize(("provider", "profile"), BOTH)
    def test_a_plan_stays_within_what_its_profile_may_spend_less_the_reserve(self, provider, profile):
        found, limits = plan(provider, profile).cases, plannable(PROFILES[profile], profile)
        costs = price(found, provider)
        assert len(found) <= limits.requests
        assert sum(cost.completion for cost in costs) <= limits.completion_tokens
        assert limits.prompt_tokens is None or sum(cost.prompt for cost in costs) <= limits.prompt_tokens

    def test_the_gate_is_as_large_as_promised(self):
        assert PROFILES["gate"] == Budget(120, 2_000, 6_000)
        assert PROFILES["full"].requests == 1_000
        assert PROFILES["full"].completion_tokens == 25_000

    @pytest.mark.parametrize("most", [10, 40])
    def test_a_lower_ceiling_sends_less_and_plans_the_rest_as_left_out(self, most):
        phases = planner("openai", budget=Budget(requests=most))
        assert phases[-1].name == planning.LEFT_OUT
        assert len(cases(phases[:-1])) <= most * (1 - planning.RESERVE["gate"])
        assert len(cases(phases)) > most

    def test_a_ceiling_on_tokens_holds_as_well(self):
        phases = planner("openai", budget=Budget(completion_tokens=100))
        assert sum(cost.completion for cost in price(cases(phases[:-1]), "openai")) <= 100 * (
            1 - planning.RESERVE["gate"]
        )

    def test_a_higher_ceiling_does_not_change_the_profile(self):
        assert cases(planner("nebius", budget=Budget(requests=5000))) == cases(planner("nebius"))


def stop_of(case):
    return case.body.get("stop") if isinstance(case.body, dict) else None


class TestReach:
    @pytest.mark.parametrize(("provider", "profile"), BOTH)
    def test_every_must_that_a_request_can_show_is_shown(self, provider, profile):
        assert plan(provider, profile).uncovered == ()

    def test_a_form_of_a_value_that_is_not_sent_is_uncovered(self):
        whole = plan("interactive")
        kept = [
            replace(phase, cases=tuple(case for case in phase.cases if not isinstance(stop_of(case), str)))
            for phase in whole.phases
        ]
        assert any(isinstance(stop_of(case), str) for case in whole.cases)
        assert replace(whole, phases=tuple(kept)).uncovered == ("request.stop.accepts string",)

    @pytest.mark.parametrize(("provider", "profile"), BOTH)
    def test_every_refusal_that_a_row_needs_has_its_control(self, provider, profile):
        roles = {(part.key, part.role) for case in plan(provider, profile).cases for part in case.groups}
        tried = {key for key, role in roles if role in {"probe", "look-alike"} and key.startswith("request.")}
        assert {key for key in tried if (key, "control") not in roles and ".type " in key} == set()

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_gate_meets_all_pairs(self, provider):
        found = plan(provider).coverage(2)
        assert (found.met, found.missed) == (found.of, ())
        assert found.of > 400

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_full_meets_all_triples(self, provider):
        found = plan(provider, "full").coverage(3)
        assert (found.met, found.missed) == (found.of, ())
        assert found.of > 5000

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_full_meets_all_triples_where_there_is_text(self, provider):
        found = plan(provider, "full")
        valid = bodies(case for case in found.cases if case.validity is not Validity.INVALID)
        context = replace(found.context, known=found.known)
        places = [one for one in factors(context) if one.name != "max_tokens"]
        reached = coverage(context, places, [body for body in valid if body.get("max_tokens") != 0], 3)
        assert (reached.met, reached.missed) == (reached.of, ())

    def test_coverage_counts_what_was_answered_only(self):
        found = answered(planner("openai"))
        whole = sent_share("openai", found)
        half = sent_share("openai", found[::2])
        assert whole.share == 1
        assert half.met < whole.met

    def test_every_documented_parameter_is_sent(self):
        for provider in PROVIDERS:
            sent = {name for body in bodies(plan(provider).cases) for name in body}
            assert contract(provider).parameters.keys() <= sent


class TestSameness:
    @pytest.mark.parametrize("profile", PROFILES)
    def test_the_same_seed_gives_the_same_plan(self, profile):
        one, other = (planned(contract("novita"), profile=profile, seed=5) for _ in range(2))
        assert one.sha256 == other.sha256
        assert [case.id for case in one.cases] == [case.id for case in other.cases]

    def test_another_seed_gives_other_values(self):
        assert plan("openai", seed=1).sha256 != plan("openai").sha256

    @pytest.mark.parametrize(("provider", "profile"), BOTH)
    def test_ids_are_unique_and_told_from_what_is_sent(self, provider, profile):
        found = plan(provider, profile).cases
        assert max(Counter(case.id for case in found).values()) == 1
        assert all(case.id.partition("/")[0] == case.origin for case in found)

    def test_a_plan_does_not_depend_on_how_the_process_hashes_text(self):
        told = json.dumps(drawn("openai", "gate"))
        script = (
            "import json, sys; from planned import contract, planned;"
            "print(planned(contract('openai'), drawn=json.loads(sys.stdin.read())).sha256)"
        )
        hashes = {
            subprocess.run(
                [sys.executable, "-c", script],
                input=told, capture_output=True, text=True, check=True,
                env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            ).stdout
            for number in ("1", "2")
        }  # fmt: skip
        assert len(hashes) == 1

    def test_stored_bodies_make_the_plan_without_drawing(self):
        bodies_of_another = [{"model": "m", "prompt": "stored", "max_tokens": 1}]
        found = planned(contract("nebius"), profile="full", drawn=bodies_of_another)
        assert [case.body for case in found.cases if case.origin == "sample"] == bodies_of_another


class TestOrder:
    def test_waves_come_in_an_order_in_which_each_can_learn_from_the_last(self):
        names = [phase.name for phase in plan("openai", "full").phases]
        assert names == ["base", "values", "rows", "learned", "hostile"]

    def test_the_very_first_case_is_one_that_any_target_takes(self):
        for provider in PROVIDERS:
            first = next(case for case in plan(provider).cases if case.validity is Validity.VALID)
            assert first.origin == "base"

    def test_hostile_cases_go_one_by_one_and_a_burst_at_once(self):
        told = {phase.name: (phase.serial, phase.burst) for phase in plan("openai", "full").phases}
        assert told["hostile"] == (True, 0)
        assert told["learned"] == (False, 8)
        assert told["rows"] == (False, 0)

    def test_a_plain_request_stands_behind_each_batch_of_hostile_ones(self):
        parts = [part for case in plan("openai", "full").cases for part in case.groups if part.kind == "alive"]
        for key in {part.key for part in parts}:
            roles = [part.role for part in parts if part.key == key]
            assert roles[-1] == "probe"
            assert set(roles[:-1]) == {"hostile"}

    def test_numbers_that_may_fill_a_server_go_last_and_not_at_all_where_hostile_cases_do_not(self):
        def oversized_counts(found):
            wide = [(phase, case) for phase in found.phases for case in phase.cases if isinstance(case.body, dict)]
            asked = [(phase, case, case.body.get(name)) for phase, case in wide for name in ("n", "best_of")]
            return [(phase.name, case.hostile) for phase, case, value in asked
                    if isinstance(value, (int, float)) and value >= 2**31]  # fmt: skip

        assert oversized_counts(plan("openai", "full")) == [("hostile", True)] * 2
        assert oversized_counts(plan("openai", "full", hostile=False)) == []

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_every_group_has_its_roles_by_the_end(self, provider):
        roles = {}
        for case in plan(provider, "full").cases:
            for part in case.groups:
                roles.setdefault((part.kind, part.key), set()).add(part.role)
        pairs = {"twin": {"plain", "stream"}, "refuse": {"control", "probe"}, "echo": {"without", "with"},
                 "many": {"one", "many"}, "repeat": {"first", "second"}, "channel": {"plain", "stream"},
                 "default": {"absent", "explicit"}, "cut": {"without", "with"}}  # fmt: skip
        # how many classes of stop sequences occur is known from the text that is compared with, which is sent before
        lame = [
            (kind, key)
            for (kind, key), found in roles.items()
            if found != pairs.get(kind, found)
            and not (key.startswith("stop of class") and found == {"without"})
            and not (kind == "default" and found == {"absent", "joint"})
        ]
        assert not lame


class TestOptions:
    def test_without_a_key_no_case_is_about_keys(self):
        assert not [case for case in planned(contract("openai"), drawn=()).cases
                    if case.credential is not Credential.KEY]  # fmt: skip
        assert [case for case in plan("openai").cases if case.credential is not Credential.KEY]

    def test_hostile_cases_can_be_left_out(self):
        found = plan("openai", "full", hostile=False).cases
        assert not [case for case in found if case.hostile or case.origin in {"hostile", "alive"}]

    @pytest.mark.parametrize("profile", PROFILES)
    def test_what_is_not_claimed_is_in_no_valid_request(self, profile):
        found = planner("openai", profile=profile, claims=("no echo", "no best_of"))
        assert not [body for body in bodies(cases(found)) if {"echo", "best_of"} & body.keys()]

    def test_a_claim_that_nobody_knows_is_named(self):
        with pytest.raises(ValueError, match=r"'no ecco'; expected 'no PARAMETER'.*echo"):
            context("openai", claims=("no ecco",))

    def test_a_profile_that_nobody_knows_is_named(self):
        with pytest.raises(ValueError, match="'fast'; expected one of gate, full"):
            context("openai", "fast")

    def test_selection_sends_what_serves_it_and_the_base(self):
        found = planned(contract("openai"), select=("request.n.*",), drawn=())
        origins = Counter(case.origin for case in found.cases)
        rows = [row for row in found.contract.requirements if row.id.startswith("request.n.")]
        refusals = [row for row in rows if row.check == "invalid_is_refused"]
        assert origins["invalid"] == len(refusals) - 1  # a look-alike that is refused shows the row on the type as well
        assert len(found.cases) < 40

    @pytest.mark.parametrize("area", ["framing", "usage", "finish", "relations", "auth"])
    def test_a_selection_is_shown_as_in_the_whole_run_by_few_requests(self, area):
        whole, found = (plan("openai"), planned(contract("openai"), has_key=True, select=(f"{area}.*",)))
        selected = {row.id for row in found.contract.requirements if row.area == area}
        assert selected & set(found.uncovered) <= set(whole.uncovered)
        assert len(found.cases) * 3 < len(whole.cases)

    def test_what_any_stream_shows_is_shown_in_each_context_once(self):
        whole, found = plan("openai"), planned(contract("openai"), select=("framing.done",))
        beside = [{name for case in some.cases for name in contexts(case.body)} for some in (whole, found)]
        assert {"batch", "n", "echo", "stop", "logit_bias", "with usage"} <= beside[1] <= beside[0]
        assert len(found.cases) < 10


class TestLearning:
    def test_a_refused_value_leaves_all_combinations(self):
        phases = planner("openai", refusing(lambda body: "suffix" in body))
        tried = [phase.name for phase in phases for body in bodies(phase.cases) if isinstance(body.get("suffix"), str)]
        assert Counter(tried) == {"values": 1, "alone": 1}  # on the base, then on the bare request

    def test_a_refused_value_does_not_take_pairs_of_others_with_it(self):
        answer = refusing(lambda body: "suffix" in body)
        reached = sent_share("openai", answered(planner("openai", answer), answer))
        whole = sent_share("openai", answered(planner("openai")))
        assert reached.share == 1
        assert reached.of < whole.of

    def test_what_is_refused_in_company_is_sent_alone_and_only_the_guilty_leaves(self):
        phases = planner("openai", refusing(lambda body: body.get("presence_penalty") is not None))
        alone = [place for place, phase in enumerate(phases) if phase.name == "alone"]
        told = [part.key for place in alone for case in phases[place].cases for part in case.groups]
        assert any("presence_penalty" in key for key in told)
        later = bodies(cases(phases[alone[-1] + 1 :]))
        assert not [body for body in later if body.get("presence_penalty") is not None]
        assert [body for body in later if body.get("frequency_penalty") is not None]

    def test_a_value_that_is_refused_at_temperature_0_only_stays_and_the_two_do_not_meet_again(self):
        def asks_for_several(body):
            return isinstance(body.get("n"), int) and body["n"] > 1

        phases = planner("openai", refusing(lambda body: asks_for_several(body) and body.get("temperature") == 0))
        rows = bodies(case for phase in phases if phase.name == "rows" for case in phase.cases)
        several = [body for body in rows if asks_for_several(body)]
        assert len(several) >= 3
        assert not [body for body in several if body.get("temperature") == 0]

    def test_what_is_apart_is_told_from_what_was_left_out_when_it_was_taken(self):
        phases = planner("openai", refusing(lambda body: body.get("echo") is True and body.get("temperature") == 0))
        told = [body for body in bodies(cases(phases[-6:])) if body.get("echo") is True]
        assert [body for body in told if body.get("temperature") != 0]

    def test_what_a_refusal_names_is_sent_alone_first(self):
        named = error("top_p must not be given").attempts
        phases = planner("openai", lambda case: type("Named", (), {"attempts": named}) if _holds(case, "top_p")
                        else obedient(case))  # fmt: skip
        first = next(phase for phase in phases if phase.name == "alone")
        # a combination that the document leaves open is tried without what leaves it open as well
        values = [case for case in first.cases if case.origin != "row"]
        alone = {name for body in bodies(values) for name in body} - {"model", "prompt", "max_tokens"}
        assert alone == {"top_p"}

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_a_target_that_refuses_every_null_is_still_asked_for_every_must(self, provider):
        phases = planner(provider, refusing(lambda body: None in body.values()))
        serving, whole = RequirementCoverage(contract(provider), checks()), plan(provider)
        shown = {one for case in cases(phases) for one in serving.of(case)}
        assert len(cases(phases)) <= PROFILES["gate"].requests
        assert must(contract(provider)) & whole.covered <= shown

    def test_a_row_that_says_nothing_when_it_is_refused_is_sent_without_what_the_document_leaves_open(self):
        phases = planner("novita", refusing(lambda body: body.get("stream") is True and "stop" not in body
                                           and isinstance(body.get("prompt"), list)))  # fmt: skip
        again = [case for phase in phases if phase.name == "alone" for case in phase.cases if case.origin == "row"]
        assert again
        assert {case.validity for case in again} == {Validity.VALID}
        assert not [case for case in again if case.body.get("temperature") == 0]

    def test_where_temperature_0_is_refused_a_very_low_one_serves(self):
        def temperatures(phases):
            later = bodies(case for phase in phases for case in phase.cases if case.origin == "base")
            return {body.get("temperature") for body in later}

        phases = planner("openai", refusing(lambda body: body.get("temperature") == 0))
        assert [phase.name for phase in phases[:3]] == ["base", "base", "values"]
        assert temperatures(planner("openai")) == {0, None}, "null is sent whatever 0 does"
        assert temperatures(phases[2:]) == {0.01, None}

    def test_where_replies_cannot_repeat_nothing_is_built_on_it(self):
        phases = planner("openai", refusing(lambda body: body.get("temperature") == 0))
        kinds = {part.kind for case in cases(phases[1:]) for part in case.groups}
        assert "twin" in kinds
        assert not kinds & {"repeat", "prefix", "never", "cut"}

    def test_a_plan_goes_on_when_nothing_comes_back(self):
        phases = planner("openai", hears=lambda _: False)
        assert {"base", "values", "rows"} <= {phase.name for phase in phases}

    def test_a_plan_goes_on_when_only_some_exchanges_come_back(self):
        odd = planner("openai", hears=lambda x: int(x.case.id[-1], 16) % 2 == 0)
        assert max(Counter(case.id for case in cases(odd)).values()) == 1

    def test_stop_sequences_are_cut_from_what_the_model_said(self):
        stops = [case.body["stop"] for case in cases(planner("openai")) if case.origin == "cut"]
        flat = [stop for told in stops for stop in (told if isinstance(told, list) else [told])]
        assert [stop for stop in flat if stop in TEXT and stop.strip()]

    def test_no_request_of_the_plan_is_changed_by_what_does_not_matter(self):
        told = [replace(case, groups=()) for case in cases(planner("openai"))]
        assert told == [replace(case, groups=()) for case in cases(planner("openai"))]
