"""The input model, and the requests that are made for its classes."""

import pytest
from planned import PROVIDERS, context, contract, plan

from conformance.judge.token_text import keeps
from conformance.model import Validity
from conformance.model.json_text import loads
from conformance.plan.input_classes import input_classes
from conformance.plan.input_model import TEXTS, near_misses
from conformance.plan.stop_classes import absent, occurring
from conformance.plan.valid_inputs import spelled


@pytest.mark.parametrize("provider", PROVIDERS)
class TestInputModel:
    def test_full_exercises_every_class(self, provider):
        missed = plan(provider, "full").classes.missed
        assert [(one.path, one.name) for one in missed] == []

    def test_every_documented_member_has_classes(self, provider):
        paths = {one.path.partition("[")[0].partition(".")[0] for one in input_classes(context(provider, "full"))}
        assert contract(provider).parameters.keys() <= paths

    def test_a_class_is_listed_once(self, provider):
        keys = [one.key for one in input_classes(context(provider, "full"))]
        assert len(keys) == len(set(keys))

    def test_prompts_of_every_kind_of_text_are_sent(self, provider):
        names = {one.name for one in input_classes(context(provider, "full")) if one.path == "prompt[]"}
        assert TEXTS.keys() <= names

    def test_an_excluded_class_has_a_reason_and_no_requirement_rests_on_it(self, provider):
        excluded = [one for one in input_classes(context(provider, "full")) if one.excluded]
        assert all(one.expected is not Validity.INVALID or "memory" in one.excluded for one in excluded)


def test_a_near_miss_of_an_enumeration_is_no_member_of_it():
    found = dict(near_misses(["auto", "json_object"]))
    assert not {"auto", "json_object"} & set(found.values())
    assert found["another letter case"] == "AUTO"
    assert found["another separator"] == "json-object"


def test_a_number_in_another_spelling_is_the_same_number():
    content = spelled({"prompt": "1", "top_p": 1}, {"top_p": "100E-2"})
    assert content == b'{"prompt":"1","top_p":100E-2}'
    assert loads(content) == {"prompt": "1", "top_p": 1}


class TestStopSequences:
    def test_each_class_that_occurs_cuts_a_text_of_its_own(self):
        assert ["(", "é"] in occurring(["one (", "é"], 4)

    def test_those_that_would_hide_one_another_go_into_further_requests(self):
        assert occurring([".é"], 4) == [["."], ["é"]]

    def test_no_character_that_the_limit_cut_in_two_is_part_of_one(self):
        assert occurring(["a\ufffd"], 4) == []

    def test_what_does_not_occur_is_near_to_what_does(self):
        found = absent(["one two two"])
        assert {"TWO", "[two]+", "two\0", "t\u200bwo", ".*"} <= set(found)

    def test_what_occurs_is_never_said_not_to(self):
        assert ".*" not in absent(["two .* two"])

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_full_sends_both_kinds_plain_and_streamed(self, provider):
        if "stop" not in contract(provider).parameters:
            pytest.skip("no stop sequences")
        keys = {
            (group.kind, group.key.split()[-1])
            for case in plan(provider, "full").cases
            for group in case.groups
            if group.key.startswith("stop of class") and group.role == "with"
        }
        assert keys == {(kind, way) for kind in ("cut", "never") for way in ("plain", "streamed")}


@pytest.mark.parametrize(
    ("text", "prompt", "kept"),
    [
        ("cafe\u0301, 3", "cafe\u0301,", True),
        ("caf\u00e9, 3", "cafe\u0301,", False),
        ("a\nb", "a\r\nb", False),
        ("<s> a\r\nb", "a\r\nb", True),
        ("a  b", " a  b", True),
        ("a b", "  a b", False),
    ],
)
def test_an_echo_keeps_each_character_of_the_prompt(text, prompt, kept):
    assert keeps(text, prompt) is kept


class TestClassesInRows:
    def test_a_class_meets_different_company(self):
        found = plan("openai", "full")
        rows = [case.body for case in found.cases if case.origin == "row" and {"seed", "user"} <= case.body.keys()]
        company = {}
        for body in rows:
            company.setdefault(body["seed"], set()).add(body["user"])
        assert max(map(len, company.values())) > 1
        assert len(company) > 3

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_rows_with_classes_cover_what_they_covered(self, provider):
        found = plan(provider, "full")
        for strength in (2, 3):
            assert found.coverage(strength).missed == ()
