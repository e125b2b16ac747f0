"""When a difference between two roles is evidence, and when it needs confirmation."""

import pytest

from conformance.judge.catalogue import CheckContext
from conformance.judge.comparison import (
    compare,
    compare_values,
    counted,
    finish_reasons,
    members,
    not_comparable,
    same_choices,
    texts,
    unchanged,
)
from conformance.judge.fixtures import choice, completion, contract, error, group, plain, stream, usage
from conformance.model import Ending, Inconclusive, Satisfied, Validity, Violation

CONTEXT = CheckContext(contract())
COLD = {"temperature": 0}


def verdict(first, second):
    return compare_values(list(first), list(second), "text", ("a", "b"))


def reply(text=" 4", request=COLD, **more):
    return plain(completion(choice(text, **more)), request)


@pytest.mark.parametrize(("first", "second"), [("x", "x"), ("xxx", "xxx"), ("x", "xxxxx")])
def test_a_value_that_is_the_same_in_every_reply_satisfies(first, second):
    assert isinstance(verdict(first, second), Satisfied)


@pytest.mark.parametrize(("first", "second"), [("x", "y"), ("xx", "yy"), ("xxx", "yy"), ("xy", "yx"), ("xx", "xxxy")])
def test_a_difference_in_too_few_replies_needs_confirmation(first, second):
    finding = verdict(first, second)
    assert isinstance(finding, Inconclusive)
    assert finding.repeat


@pytest.mark.parametrize(("first", "second"), [("xxx", "yyy"), ("xxxx", "yyy")])
def test_a_difference_in_every_reply_is_a_violation(first, second):
    finding = verdict(first, second)
    assert isinstance(finding, Violation)
    assert "; expected " in finding.message


@pytest.mark.parametrize(
    ("first", "second"),
    [("xxx", "xyy"), ("xyx", "yxy"), ("xyz", "uvw"), ("xxy", "zzw"), ("yzw", "xxx"), ("xxx", "yzy"), ("xxx", "yzw")],
)
def test_a_role_whose_own_replies_differ_is_inconclusive(first, second):
    finding = verdict(first, second)
    assert isinstance(finding, Inconclusive)
    assert not finding.repeat
    assert "not deterministic" in finding.reason


def test_a_message_shows_long_texts_around_their_difference():
    finding = verdict(["a" * 200 + "x" + "b" * 90] * 3, ["a" * 200 + "y" + "b" * 90] * 3)
    assert "ayb" in finding.message
    assert "axb" in finding.message
    assert len(finding.message) < 400


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (error(), "HTTP 400"),
        (error(status=503), "HTTP 503"),
        (reply(finish="content_filter"), "content_filter"),
        (plain(completion(choice()), COLD, ending=Ending.TRUNCATED), "truncated"),
        (plain({"error": {"message": "no"}}, COLD), "nothing to compare"),
    ],
)
def test_a_member_without_a_complete_reply_makes_the_group_inconclusive_with_a_reason(member, reason):
    pair = group("null", absent=reply(), null=member)
    assert reason in not_comparable(pair, "absent", "null").reason
    found = list(compare(pair, ("absent", "null"), texts, "text", CONTEXT))
    assert [type(one) for one in found] == [Inconclusive]
    assert not found[0].repeat


def test_a_missing_role_is_no_agreement():
    assert "null for the parameter" in not_comparable(group("null", absent=reply()), "absent", "null").reason


def test_replies_to_invalid_requests_take_no_part():
    assert not members(group("null", absent=plain(completion(choice()), validity=Validity.INVALID)), "absent")


def test_sampled_texts_may_differ_and_may_agree():
    asked = {"temperature": 1}
    differ = group("null", absent=[reply(" 4", asked)] * 3, null=[reply(" 5", asked)] * 3)
    agree = group("null", absent=reply(" 4", asked), null=reply(" 4", asked))
    assert [type(one) for one in compare(differ, ("absent", "null"), texts, "text", CONTEXT)] == [Inconclusive]
    assert [type(one) for one in compare(agree, ("absent", "null"), texts, "text", CONTEXT)] == [Satisfied]
    exact = compare(differ, ("absent", "null"), texts, "text", CONTEXT, exact=True)
    assert [type(one) for one in exact] == [Violation]


def test_empty_texts_are_no_evidence_of_agreement():
    silent = group("null", absent=reply(""), null=reply(""))
    assert [type(one) for one in compare(silent, ("absent", "null"), texts, "text", CONTEXT)] == [Inconclusive]


def test_choices_are_compared_one_by_one():
    one = plain(completion(choice(" 4"), choice(" 4", 1)), COLD)
    other = plain(completion(choice(" 4"), choice(" 9", 1)), COLD)
    pair = group("null", absent=[one] * 3, null=[other] * 3)
    found = list(compare(pair, ("absent", "null"), texts, "text", CONTEXT))
    assert [(type(one), one.at) for one in found] == [(Satisfied, "choice 0"), (Violation, "choice 1")]


def test_different_indices_of_choices_are_a_violation_at_once():
    pair = group("null", absent=reply(), null=plain(completion(choice(), choice(index=1)), COLD))
    assert [type(one) for one in same_choices(pair, ("absent", "null"))] == [Violation]
    assert any(isinstance(one, Violation) for one in unchanged(pair, ("absent", "null"), CONTEXT))


def test_a_character_that_the_limit_cut_may_be_dropped_or_replaced():
    pair = group("twin", plain=reply("a\ufffd"), stream=stream(completion(choice("a")), request=COLD))
    assert [type(one) for one in compare(pair, ("plain", "stream"), texts, "text", CONTEXT)] == [Satisfied]


def test_views_are_read_from_streams_and_bodies_alike():
    streamed = stream(completion(choice(" 4,", finish=None)), completion(choice(" 5")), completion(usage=usage(4, 3)))
    assert texts(streamed) == {0: " 4, 5"}
    assert finish_reasons(streamed) == {0: "length"}
    assert counted(streamed, "completion_tokens") == 3
    assert counted(streamed, "no_such_tokens") is None


@pytest.mark.parametrize("value", [True, "4", None, 4.5, [4]])
def test_a_count_that_is_no_whole_number_is_no_count(value):
    assert counted(plain(completion(choice(), usage={"completion_tokens": value})), "completion_tokens") is None


def test_drawn_values_that_are_all_different_do_not_equal_a_constant_one():
    drawn = {"noun": "text", "roles": ("greedy", "narrow"), "drawn": True}
    assert isinstance(compare_values("xxx", "yzw", **drawn), Violation)
    assert isinstance(compare_values("xxx", "yzy", **drawn), Inconclusive)
