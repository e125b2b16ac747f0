"""The input model, and the requests that are made for its classes."""

import pytest
from planned import PROVIDERS, contract, plan

from conformance.judge.token_text import keeps
from conformance.plan.stop_classes import absent, occurring


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
