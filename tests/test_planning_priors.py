"""What `gate` sends first: what is most often broken in public, each kind of value and credential, rich requests."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from planned import PROVIDERS, cases, checks, context, contract, obedient, plan, planner

from conformance.judge.fixtures import choice, completion, plain, stream
from conformance.model import Validity
from conformance.model.budget import Budget
from conformance.plan.case_group import CaseGroup
from conformance.plan.expected_defects import ExpectedDefects, contexts, defects
from conformance.plan.input_model import inputs, invalid_classes
from conformance.plan.invalid_requests import LOOK_ALIKE
from conformance.plan.requirement_coverage import RequirementCoverage, must
from conformance.plan.set_cover import RemainingBudget, choose

ROOT = Path(__file__).parents[1]


def memberships(found, kind):
    return [(case, part) for case in found for part in case.groups if part.kind == kind]


class TestPriors:
    @pytest.mark.skipif("CONFORMANCE_CORPUS" not in os.environ, reason="CONFORMANCE_CORPUS names no folder")
    def test_the_file_is_what_the_script_makes_of_the_corpus(self, tmp_path):
        stored = (ROOT / "conformance" / "plan" / "priors.yaml").read_text("utf-8")
        script = "import sys; sys.path.insert(0, 'bench'); import priors; from pathlib import Path; "
        script += f"priors.TARGET = Path({str(tmp_path / 'priors.yaml')!r}); priors.main()"
        subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
        assert (tmp_path / "priors.yaml").read_text("utf-8") == stored

    def test_what_is_reported_often_weighs_more(self):
        assert defects("usage_chunk_is_sent", "usage", "with usage") > defects("usage_chunk_is_sent", "usage", "plain")
        assert defects("no_server_error", "robustness", "any") > defects("greedy_repeats", "relations", "any") > 0

    def test_the_contexts_of_a_request_are_those_of_its_members(self):
        body = {"prompt": ["é", "b"], "stream": True, "stream_options": {}, "n": 2, "temperature": 0, "max_tokens": 0}
        assert set(contexts(body)) == {"any", "streamed", "batch", "not ASCII", "nothing generated", "n"}
        assert set(contexts({"prompt": [[1], [2]]})) == {"any", "plain", "batch", "token ids", "sampled"}
        assert set(contexts("no object")) == {"any", "plain", "sampled"}


class TestChoice:
    def group(self, **members):
        body = {"model": "m", "prompt": "p", "max_tokens": 1, "temperature": 0, **members}
        return CaseGroup("rows", 3, (context("openai").case("value", body),))

    def chosen(self, groups, most):
        coverage = RequirementCoverage(contract("openai"), checks())
        return choose(groups, RemainingBudget(Budget(requests=most)), coverage, (), (), ExpectedDefects(coverage))

    def test_a_rich_request_goes_before_a_poor_one(self):
        poor, rich = self.group(), self.group(n=2, logprobs=1, stream=True, stream_options={"include_usage": True})
        assert self.chosen([poor, rich], 1) == [rich]

    def test_a_new_context_goes_before_one_that_was_seen(self):
        plain_group, again, streamed = self.group(), self.group(max_tokens=2), self.group(stream=True)
        assert self.chosen([plain_group, again, streamed], 2) == [plain_group, streamed]

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_every_must_is_shown_though_kinds_share_requests(self, provider):
        found = plan(provider)
        assert must(found.contract) & RequirementCoverage(found.contract, checks()).of(found.cases[0]) <= found.covered
        assert found.uncovered == ()


class TestLookAlikes:
    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_each_kind_that_parsers_convert_to_a_number_is_sent(self, provider):
        sent = {part.key.partition(" ")[2].partition(",")[0] for _, part in memberships(plan(provider).cases, "refuse")}
        numeric = {
            found.name
            for path, schema in inputs(contract(provider)).items()
            if f"request.{path}.coercion" in {row.id for row in contract(provider).requirements}
            and path in contract(provider).parameters
            and contract(provider).parameters[path].types <= {"integer", "number"}
            for found in invalid_classes(contract(provider), path, schema)
            if found.look_alike
        }
        assert numeric <= sent

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_most_are_sent_in_a_streamed_batch_with_several_choices(self, provider):
        rich = [
            case
            for case, part in memberships(plan(provider).cases, "refuse")
            if part.role == LOOK_ALIKE and isinstance(case.body["prompt"], list) and case.body.get("stream") is True
        ]
        assert len(rich) >= 5

    def test_where_one_is_accepted_a_value_that_no_parser_converts_is_sent_as_well(self):
        def lenient(case):
            body = case.body if isinstance(case.body, dict) else {}
            if case.validity is Validity.INVALID and isinstance(body.get("temperature"), str):
                whole = completion(choice())
                return stream(whole, request=body) if body.get("stream") is True else plain(whole, case.content)
            return obedient(case)

        phases = planner("openai", lenient)
        alike = {
            part.key.partition(" ")[0]
            for case, part in memberships(cases(phases), "refuse")
            if part.role == LOOK_ALIKE and isinstance(case.body.get("temperature"), str)
        }
        grosser = [
            case
            for case, part in memberships(cases(phases), "refuse")
            if part.role == "probe" and part.key.startswith("request.temperature.type")
        ]
        assert alike <= {"request.temperature.type"}
        assert len(grosser) == len(alike)

    def test_the_settings_of_refusals_are_mixed(self):
        found = [case.body for case in plan("openai").cases if case.origin == "invalid"]
        streamed = Counter(body.get("stream") is True for body in found)
        batches = Counter(isinstance(body.get("prompt"), list) for body in found)
        assert min(streamed.values()) >= 10
        assert min(batches.values()) >= 10


class TestDefaults:
    def test_one_request_proves_all_where_nothing_changes(self):
        joint = [part.key for _, part in memberships(plan("openai").cases, "default") if part.role == "joint"]
        assert {key.partition(" ")[0] for key in joint} >= {"echo", "max_tokens", "n", "stream"}
        assert not [part for _, part in memberships(plan("openai").cases, "default") if part.role == "explicit"]

    def test_each_is_sent_alone_where_all_together_change_the_reply(self):
        def other(case):
            body = case.body if isinstance(case.body, dict) else {}
            return plain(completion(choice(" other")), case.content) if body.get("echo") is False else obedient(case)

        alone = [part for _, part in memberships(cases(planner("openai", other)), "default") if part.role == "explicit"]
        assert {part.key for part in alone} >= {f"{name} alone plain" for name in ("echo", "n", "stream")}


class TestCredentials:
    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_keys_are_tried_on_both_channels(self, provider):
        found = [case for case in plan(provider).cases if case.credential.refused]
        assert len({case.credential for case in found}) >= 2
