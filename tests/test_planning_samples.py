"""Drawn bodies: many, unique, the same for a seed, and honest about what a server may turn down."""

import json
import os
import subprocess
import sys
import unicodedata
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import find
from planned import PROVIDERS, context, contract, drawn, plan, planned

from conformance import plan as planning
from conformance.contract.validity import validity
from conformance.model import Validity
from conformance.model.json_text import dumps
from conformance.plan.covering_rows import row_of
from conformance.plan.drawn_requests import changes
from conformance.plan.factors import factors
from conformance.plan.samples import LEAST, free_text


def whole(provider, profile="full"):
    """Whole bodies; `drawn` keeps what was drawn, so that nothing is drawn at collection."""
    return [body for body in drawn(provider, profile) if "model" in body]


def bodies(provider):
    """Those that keep to the contract."""
    return [body for body in whole(provider) if validity(contract(provider), body) is not Validity.INVALID]


def patches(provider):
    """Drawn values for rows of the covering array."""
    return [patch for patch in drawn(provider, "full") if "model" not in patch]


@pytest.mark.parametrize("provider", PROVIDERS)
class TestDrawnBodies:
    def test_full_holds_a_hundred_of_them_all_different(self, provider):
        cases = plan(provider, "full").drawn_cases
        assert len({case.content for case in cases}) == len(cases) >= 100
        assert {case.origin for case in cases} == {"sample", "row"}

    def test_every_documented_parameter_occurs_ten_times_at_least(self, provider):
        counts = Counter(name for case in plan(provider, "full").drawn_cases for name in case.body)
        assert {name for name in contract(provider).parameters if counts[name] < LEAST} == set()
        assert plan(provider, "full").drawn_parameters == {name: counts[name] for name in contract(provider).parameters}

    def test_rows_carry_text_that_no_server_may_turn_down_for_itself(self, provider):
        rows = [case for case in plan(provider, "full").drawn_cases if case.origin == "row"]
        assert Validity.VALID in {case.validity for case in rows}
        assert Validity.INVALID not in {case.validity for case in rows}
        texts = {text for patch in patches(provider) for text in patch.values() if isinstance(text, str)}
        assert len(texts) > len(rows) / 2
        assert not [text for text in texts if not text.strip() or "\x00" in text or "</s>" in text]

    def test_a_row_with_drawn_values_keeps_its_place_in_the_array(self, provider):
        whole = plan(provider, "full")
        found = factors(replace(whole.context, known=whole.known))
        for case in whole.drawn_cases:
            if case.origin == "row":
                assert None not in row_of(found, case.body)

    def test_one_that_breaks_the_contract_follows_a_valid_one_from_which_it_differs_in_one_member(self, provider):
        host, count = None, 0
        for body in whole(provider):
            if validity(contract(provider), body) is Validity.INVALID:
                assert len(changes(host, body)) == 1
                count += 1
            else:
                host = body
        assert count >= 80

    def test_no_field_is_made_up(self, provider):
        assert {name for body in whole(provider) for name in body} <= contract(provider).parameters.keys()

    def test_each_is_cheap(self, provider):
        for body in bodies(provider):
            choices = max(body.get("n") or 1, body.get("best_of") or 1)
            assert body["max_tokens"] * choices <= 16

    def test_gate_has_a_few(self, provider):
        assert 12 <= len(drawn(provider, "gate")) <= 30


class TestDeterminism:
    def test_the_same_seed_draws_the_same(self):
        one, other = (planning.draw(context("nebius", "full", seed=3)) for _ in range(2))
        assert one == other

    def test_another_seed_draws_other_bodies(self):
        one, other = ({dumps(body) for body in drawn("nebius", "full", seed)} for seed in (0, 1))
        assert len(one & other) < len(one) / 2

    def test_what_else_is_loaded_and_where_changes_nothing_and_nothing_is_left_behind(self, tmp_path):
        (tmp_path / "mine.py").write_text("NUMBERS = [31337, 0.271828]\nWORD = 'a word of the user'\n")
        script = (
            "import json, mine; from planned import context; from conformance import plan as planning;"
            "print(json.dumps(planning.draw(context('nebius', 'full'))))"
        )
        paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
        environment = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == list(drawn("nebius", "full"))
        assert {path.name for path in tmp_path.iterdir()} <= {"mine.py", "cache", "__pycache__"}

    def test_the_model_is_the_one_that_is_judged(self):
        assert {body["model"] for body in bodies("openai")} == {"m"}


class TestText:
    def texts(self):
        for body in bodies("openai") + bodies("novita") + bodies("nebius"):
            prompt = body["prompt"]
            yield from (one for one in (prompt if isinstance(prompt, list) else [prompt]) if isinstance(one, str))

    def test_there_are_many_scripts(self):
        names = {unicodedata.name(char, "").partition(" ")[0] for text in self.texts() for char in text}
        assert {"ARABIC", "HEBREW", "CJK", "HANGUL", "CYRILLIC", "THAI", "DEVANAGARI", "COMBINING"} <= names

    @pytest.mark.parametrize(
        "odd", ["[DONE]", "data: ", "\x00", "\u200d", "{{7*7}}", "<script>", "\ud83d", "x" * 1200, "\u202e"]
    )
    def test_oddities_can_come_up(self, odd):
        assert odd in find(free_text(), lambda text: odd in text)

    def test_ids_lie_in_and_out_of_any_vocabulary(self):
        flat = []
        for provider in PROVIDERS:
            for body in bodies(provider):
                for one in body["prompt"] if isinstance(body["prompt"], list) else []:
                    flat += one if isinstance(one, list) else [one] if isinstance(one, int) else []
        assert [one for one in flat if 33 <= one <= 250]
        assert [one for one in flat if one > 50_000 or one < 0]


class TestDoubt:
    """What a server may well turn down for itself is never called valid."""

    @pytest.mark.parametrize("prompt", ["", "\ud800", "a\x00b", "x" * 5000, [99_999_999], [[5, -1]]])
    def test_odd_text_makes_a_request_unspecified(self, prompt):
        body = {"model": "m", "prompt": prompt, "max_tokens": 1}
        found = planned(contract("openai"), profile="full", drawn=(body,)).cases
        (case,) = [case for case in found if case.origin == "sample"]
        assert case.validity is Validity.UNSPECIFIED

    @pytest.mark.parametrize("prompt", ["Guten Tag", "\U0001f680", ["a", "b"], [100, 200]])
    def test_other_text_does_not(self, prompt):
        body = {"model": "m", "prompt": prompt, "max_tokens": 1}
        found = planned(contract("openai"), profile="full", drawn=(body,)).cases
        (case,) = [case for case in found if case.origin == "sample"]
        assert case.validity is Validity.VALID
