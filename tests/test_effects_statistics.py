"""Statistical verdicts: exact tests with a stated risk, inconclusive where it is exceeded."""

from itertools import combinations
from math import comb, exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judge.catalogue import CheckContext, load
from conformance.judge.checks.sampling import CERTAIN, DRAWS
from conformance.judge.checks.sampling_statistics import binomial_cdf, rank_sum_p_value, repetition
from conformance.judge.fixtures import choice, completion, contract, group, logprobs, plain
from conformance.judge.tolerances import NEAR_TIE, NEAR_ZERO_TEMPERATURE, NEGLIGIBLE_GAP, RISK
from conformance.model import Inconclusive, Satisfied, Violation

CHECKS = load()
SCORES = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=5)


def verdict(check, low, high, first=None, second=None, lists=None, **params):
    """The kind of finding for these texts; the requests of both arms have these members."""

    def replies(texts, asked):
        return [plain(completion(choice(text, logprobs=lists)), {"temperature": 1, **(asked or {})}) for text in texts]

    arms = group("arms", "x plain", low=replies(low, first), high=replies(high, second))
    found = list(CHECKS[check].function(arms, CheckContext(contract(), params)))
    return [type(one) for one in found]


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(SCORES, SCORES)
def test_the_rank_sum_is_that_of_all_ways_to_split_the_replies(first, second):
    pool = [*first, *second]
    ranks = [sum(value < one for value in pool) + (sum(value == one for value in pool) + 1) / 2 for one in pool]
    reached = sum(ranks[len(first) :])
    splits = [sum(ranks[place] for place in places) for places in combinations(range(len(pool)), len(second))]
    assert rank_sum_p_value(first, second) == pytest.approx(sum(one >= reached for one in splits) / len(splits))


def test_the_binomial_cdf_is_the_lower_tail():
    assert binomial_cdf(2, 4, 0.5) == pytest.approx((1 + 4 + 6) / 16)
    assert binomial_cdf(12, 12, 0.9) == pytest.approx(1)


def test_twelve_replies_in_each_arm_are_just_enough():
    assert rank_sum_p_value([0.0] * 12, [1.0] * 12) == 1 / comb(24, 12) < RISK
    assert rank_sum_p_value([0.0] * 11, [1.0] * 11) > RISK
    assert rank_sum_p_value([0.0] * 11 + [2.0], [1.0] * 12) > RISK, "one reply out of place is one too many"


def test_thresholds_on_log_probabilities_keep_the_risk():
    assert exp((DRAWS - 1) * CERTAIN) <= RISK
    assert exp(-NEGLIGIBLE_GAP) <= RISK
    assert exp(-NEAR_TIE / NEAR_ZERO_TEMPERATURE) <= RISK


DIFFERENT = [f" {number}" for number in range(12)]
OTHERS = [f" {number}" for number in range(20, 32)]
SAME = [" 4"] * 12


def test_a_flat_distribution_leaves_several_tokens_at_the_narrow_end():
    flat = logprobs([" 1"]) | {"top_logprobs": [{" 1": -7.5, " 2": -7.51}]}
    peaked = logprobs([" 1"]) | {"top_logprobs": [{" 1": -0.5, " 2": -2.5}]}
    for narrow in ({"top_p": 0.001}, {"temperature": 0.01}):
        assert verdict("parameter_spreads_texts", DIFFERENT, OTHERS, narrow, lists=flat) == [Inconclusive]
        assert verdict("parameter_spreads_texts", DIFFERENT, OTHERS, narrow, lists=peaked) == [Violation]


@pytest.mark.parametrize(
    ("low", "high", "narrow", "kind"),
    [
        (SAME, DIFFERENT, "low", Inconclusive),  # " 4" is among the others, so 12 and 12 do not quite tell
        (SAME, OTHERS, "low", Satisfied),
        (OTHERS, SAME, "high", Satisfied),
        (OTHERS, SAME, "low", Violation),
        (SAME[:6], OTHERS[:6], "low", Inconclusive),
    ],
)
def test_spread_is_judged_in_the_documented_direction_or_not_at_all(low, high, narrow, kind):
    assert verdict("parameter_spreads_texts", low, high, narrow=narrow) == [kind]


def test_different_texts_at_the_narrow_end_are_a_violation_only_where_sampling_is_narrowed_to_one_token():
    assert verdict("parameter_spreads_texts", DIFFERENT, OTHERS, {"top_p": 0.001}) == [Violation]
    assert verdict("parameter_spreads_texts", DIFFERENT, OTHERS, {"top_p": 0.5}) == [Inconclusive]


def test_equal_texts_at_the_wide_end_are_judged_by_their_own_probability():
    sure, unsure = (logprobs([" 4"], [value]) for value in (-0.01, -2.0))
    assert verdict("parameter_spreads_texts", SAME, SAME, lists=unsure) == [Violation]
    assert verdict("parameter_spreads_texts", SAME, SAME, lists=sure) == [Inconclusive]
    assert verdict("parameter_spreads_texts", SAME, SAME) == [Inconclusive]
    assert verdict("parameter_spreads_texts", SAME, SAME, None, {"temperature": 0.5}, lists=unsure) == [Inconclusive]


def several(low, high, lists=None, **asked):
    """Arms of requests with several choices each: for each request its texts."""

    def replies(requests, role):
        whole = [completion(*(choice(text, n, logprobs=lists) for n, text in enumerate(some))) for some in requests]
        return [plain(one, {"n": 12, **asked}, id=f"{role}/{place}") for place, one in enumerate(whole)]

    return group("arms", "x plain", low=replies(low, "low"), high=replies(high, "high"))


def of(check, arms, **params):
    return list(CHECKS[check].function(arms, CheckContext(contract(), params)))


def test_equal_choices_of_one_request_count_as_one_draw():
    copies = several([[" a"] * 12, [" b"] * 12], [[" c"] * 12] * 2, lists=logprobs([" c"], [-2.0]), top_p=0.001)
    for narrow in ("low", "high"):
        (found,) = of("parameter_spreads_texts", copies, narrow=narrow)
        assert isinstance(found, Inconclusive), found
    (found,) = of("penalty_reduces_repetition", several([[PROSE] * 12] * 2, [[LOOP] * 12] * 2))
    assert isinstance(found, Inconclusive)


def test_choices_that_differ_in_some_request_are_draws_in_all_of_them():
    arms = several([SAME, SAME], [OTHERS, DIFFERENT])
    assert [type(one) for one in of("parameter_spreads_texts", arms)] == [Satisfied]
    assert [type(one) for one in of("parameter_spreads_texts", arms, narrow="high")] == [Violation]
    sure = several([SAME, SAME], [SAME] * 2, lists=logprobs([" 4"], [-9.0]))
    assert [type(one) for one in of("parameter_spreads_texts", sure)] == [Violation]


def test_a_narrow_end_that_differs_between_requests_only_is_no_violation():
    arms = several([[" a"] * 12, [" b"] * 12], [OTHERS, DIFFERENT], top_p=0.001)
    assert not any(isinstance(one, Violation) for one in of("parameter_spreads_texts", arms))


@pytest.mark.parametrize(
    ("arms", "case"),
    [
        (([SAME, DIFFERENT], [OTHERS, OTHERS]), "low/1"),
        (([DIFFERENT, OTHERS], [SAME, SAME]), "low/0"),
    ],
)
def test_a_violation_is_attributed_to_a_request_of_the_wrong_arm(arms, case):
    (found,) = of("parameter_spreads_texts", several(*arms, top_p=0.001))
    assert isinstance(found, Violation)
    assert found.case == case


def test_a_group_about_another_parameter_shows_nothing():
    assert verdict("parameter_spreads_texts", SAME, OTHERS, parameter="y") == []
    assert verdict("parameter_spreads_texts", SAME, OTHERS, parameter="x") == [Satisfied]


LOOP, PROSE = " so so so so so so", " so it is what was"
COLD = {"temperature": 0}


@pytest.mark.parametrize(
    ("low", "high", "asked", "kind"),
    [
        (LOOP, PROSE, COLD, Satisfied),
        (LOOP, LOOP, COLD, Violation),
        (PROSE, PROSE, COLD, Inconclusive),
        (LOOP, LOOP, None, Inconclusive),
        (PROSE, LOOP, COLD, Inconclusive),
    ],
)
def test_three_greedy_replies_in_each_arm_decide_whether_a_penalty_has_an_effect(low, high, asked, kind):
    assert verdict("penalty_reduces_repetition", [low] * 3, [high] * 3, asked, asked) == [kind]


def test_twelve_replies_show_that_a_penalty_is_reversed():
    assert verdict("penalty_reduces_repetition", [PROSE] * 12, [LOOP] * 12) == [Violation]


def test_a_model_that_is_certain_may_repeat_under_a_presence_penalty():
    asked = {**COLD, "presence_penalty": 2}
    tokens = [" so"] * 5
    for rival, kind in ((-9.0, Inconclusive), (-0.9, Violation)):
        lists = {**logprobs(tokens), "top_logprobs": [{" so": -0.25, " it": rival}] * 5}
        low = {**COLD, "presence_penalty": -2}
        assert verdict("penalty_reduces_repetition", [LOOP] * 3, [LOOP] * 3, low, asked, lists) == [kind]


def test_no_penalty_overcomes_a_very_large_gap():
    tokens = [" so"] * 5
    for rival, kind in ((-60.0, Inconclusive), (-4.0, Violation)):
        lists = {**logprobs(tokens), "top_logprobs": [{" so": 0.0, " it": rival}] * 5}
        asked = ({**COLD, "frequency_penalty": end} for end in (-2, 2))
        assert verdict("penalty_reduces_repetition", [LOOP] * 3, [LOOP] * 3, *asked, lists) == [kind]


def test_repetition_is_the_share_of_words_that_came_before():
    assert repetition("") == 0
    assert repetition("a b c") == 0
    assert repetition("a a a a") == 0.75
