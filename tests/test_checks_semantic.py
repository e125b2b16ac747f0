"""Checks of single replies: known defects of real servers that they must see, and legal variants they must accept."""

import pytest
from support import CAT, COLD, breaks, doubts, findings, holds, kinds, scored

from conformance.judge.checks.best_of import mann_whitney_upper_tail
from conformance.judge.fixtures import (
    choice,
    completion,
    contract,
    error,
    group,
    logprobs,
    plain,
    response,
    stream,
    usage,
)
from conformance.model import Inconclusive, Layer, Level, Requirement, Satisfied, Source, Violation
from conformance.model.exchange import Group

PROMPT = "1, 2, 3,"


def pair(kind, first, second, times=3, key="example"):
    return Group(kind, key, {"without": (first,) * times, "with": (second,) * times})


class TestLogprobs:
    def test_null_an_empty_object_and_the_shape_of_chats_are_not_what_was_asked_for(self):
        for lists in (None, {}, {"content": []}, {"tokens": [], "token_logprobs": []}):
            assert breaks("logprobs_are_returned", plain(completion(choice(logprobs=lists)), {"logprobs": 2}))

    def test_each_choice_of_a_batch_needs_its_own(self):
        first, second = choice(logprobs=logprobs([" 4, 5"])), choice(index=1)
        asked = {"logprobs": 1, "prompt": ["a", "b"]}
        assert breaks("logprobs_are_returned", plain(completion(first, second), asked))

    def test_a_text_that_ended_at_once_needs_none(self):
        silent = plain(completion(choice("", finish="stop")), {"logprobs": 1})
        assert not findings("logprobs_are_returned", silent)

    def test_a_finish_chunk_with_empty_lists_and_chunks_without_any_are_fine(self):
        parts = [choice(" 4", finish=None, logprobs=logprobs([" 4"])), choice("", finish=None)]
        empty = choice("", logprobs=logprobs([]))
        x = stream(*map(completion, [*parts, empty]), request={"logprobs": 1})
        for check in ("logprobs_are_returned", "logprob_lists_are_parallel", "tokens_join_to_text"):
            assert holds(check, x), check

    def test_zero_alternatives_may_be_null_empty_or_the_sampled_token(self):
        for tops in ([None], [{}], [{" 4": -0.25}], []):
            x = scored([" 4"], request={"logprobs": 0}, top_logprobs=tops)
            assert holds("zero_logprobs_means_sampled_only", x)
            assert holds("logprob_lists_are_parallel", x)

    def test_n_and_n_plus_one_alternatives_are_fine_and_more_or_none_are_not(self):
        def broken(size):
            tops = logprobs(["a", "b"], top=size)["top_logprobs"]
            return breaks("top_logprobs_have_n", scored(["a", "b"], request={"logprobs": 2}, top_logprobs=tops))

        assert [broken(size) for size in (1, 2, 3, 4)] == [True, False, False, True]
        assert breaks("top_logprobs_have_n", scored(["a"], request={"logprobs": 2}, top_logprobs=[None]))

    def test_spellings_that_fall_together_leave_fewer_alternatives(self):
        tops = [{"\ufffd": -0.3, "a": -1.0}, {"\ufffd": -0.2}]
        assert holds("top_logprobs_have_n", scored(["\ufffd", "\ufffd"], CAT, {"logprobs": 3}, top_logprobs=tops))

    def test_filters_and_formats_may_leave_fewer_alternatives(self):
        for asked in ({"top_k": 1}, {"response_format": {"type": "json_object"}}, {"logit_bias": {"1": 100}}):
            assert holds("top_logprobs_have_n", scored(["a"], request={"logprobs": 3, **asked}))

    @pytest.mark.parametrize("first", [None, {}])
    def test_the_first_echoed_token_may_have_no_alternatives(self, first):
        asked = {"logprobs": 1, "echo": True, "prompt": "a"}
        assert holds("top_logprobs_have_n", scored(["a", "b"], request=asked, top_logprobs=[first, {"b": -0.25}]))

    def test_the_first_echoed_token_may_have_null_a_number_or_zero(self):
        for first in (None, 0, -1.5):
            x = scored(["1", ", 2"], request={"echo": True, "prompt": "1"}, token_logprobs=[first, -1.0])
            assert holds("first_echo_logprob_is_null_or_number", x)
            assert holds("logprobs_are_finite", x)
        strange = scored(["1", ", 2"], request={"echo": True, "prompt": "1"}, token_logprobs=["-inf", -1.0])
        assert breaks("first_echo_logprob_is_null_or_number", strange)

    def test_null_and_infinity_elsewhere_are_no_log_probabilities(self):
        for value in (None, "-inf", 0.7, True, 10**400, -(10**400)):
            assert breaks("logprobs_are_finite", scored(["a", "b"], token_logprobs=[-1.0, value]))
        assert holds("logprobs_are_finite", scored(["a", "b"], token_logprobs=[0.0, -9999.0]))
        endless = scored(["a"], token_logprobs=[-7.125])
        assert breaks("logprobs_are_finite", response(endless.content.replace(b"-7.125", b"-1e999"), {"logprobs": 1}))

    def test_placeholders_of_zero_are_seen_over_a_longer_text_only(self):
        tops = [{"a": 0.0, "b": -1.0}] * 8
        assert breaks("logprobs_are_not_all_zero", scored(["a"] * 8, token_logprobs=[0.0] * 8, top_logprobs=tops))
        short = scored(["a"] * 7, token_logprobs=[0.0] * 7, top_logprobs=tops[1:])
        assert not findings("logprobs_are_not_all_zero", short)
        asked = {"logit_bias": {"1": 100}}
        forced = scored(["a"] * 8, request=asked, token_logprobs=[0.0] * 8, top_logprobs=tops)
        assert not findings("logprobs_are_not_all_zero", forced)

    def test_temperature_zero_may_take_either_of_two_equals(self):
        asked = {**COLD, "logprobs": 2}
        tied = scored(["a"], request=asked, token_logprobs=[-0.8], top_logprobs=[{"b": -0.7, "a": -0.8}])
        passed = scored(["a"], request=asked, token_logprobs=[-2.0], top_logprobs=[{"b": -0.2, "a": -2}])
        near = scored(["a"], request=asked, token_logprobs=[-1.4], top_logprobs=[{"b": -1.0, "a": -1.4}])
        assert holds("greedy_takes_the_likeliest", tied)
        assert holds("greedy_takes_the_likeliest", near)
        assert breaks("greedy_takes_the_likeliest", passed)

    def test_next_to_temperature_zero_chance_may_take_the_second_by_scores_after_temperature(self):
        asked = {"temperature": 0.01, "logprobs": 2}
        second = scored(["a"], request=asked, token_logprobs=[-2.4], top_logprobs=[{"b": -0.1, "a": -2.4}])
        last = scored(["a"], request=asked, token_logprobs=[-15], top_logprobs=[{"b": -0.1, "a": -15}])
        assert holds("greedy_takes_the_likeliest", second)
        assert breaks("greedy_takes_the_likeliest", last)

    def test_an_echoed_prompt_need_not_be_the_likeliest_text(self):
        asked = {**COLD, "logprobs": 2, "echo": True, "prompt": "a"}
        x = scored(["a"], request=asked, token_logprobs=[-9], top_logprobs=[{"b": -0.2}])
        assert holds("top_logprobs_are_plausible", x)


class TestTokensAndText:
    def test_the_tokens_of_a_stop_sequence_or_an_end_may_be_listed_without_their_text(self):
        assert holds("tokens_join_to_text", scored([" 4", " EN", "D"], " 4", {"stop": " END"}, finish="stop"))
        assert holds("tokens_join_to_text", scored([" 4", "</s>"], " 4", finish="stop"))
        assert breaks("tokens_join_to_text", scored([" 4", " 5"], " 4", finish="length"))
        assert breaks("tokens_join_to_text", scored([" 4", " 5", " 6"], " 4", finish="stop"))

    def test_tokens_that_leave_out_the_echoed_prompt_are_left_to_another_check(self):
        x = scored([" 4"], PROMPT + " 4", {"echo": True, "prompt": PROMPT})
        assert not findings("tokens_join_to_text", x)
        assert breaks("logprobs_cover_echo", x)

    def test_a_start_token_may_stand_before_the_echo(self):
        x = scored(["<s>", "1,", " 2"], "1, 2", {"echo": True, "prompt": "1,"}, text_offset=[0, 0, 2])
        for check in ("tokens_join_to_text", "logprobs_cover_echo", "text_offsets_follow_tokens"):
            assert holds(check, x), check

    def test_an_echo_of_token_ids_is_recognised_by_the_number_of_tokens(self):
        asked = {"echo": True, "prompt": [7, 8, 9], "max_tokens": 1}
        assert holds("logprobs_cover_echo", scored(["a", "b", "c", "d"], request=asked))
        assert breaks("logprobs_cover_echo", scored(["d"], "abcd", request=asked))

    @pytest.mark.parametrize("start", [0, len(PROMPT)])
    def test_offsets_may_count_from_the_prompt_or_from_the_text(self, start):
        assert holds("text_offsets_follow_tokens", scored([" 4", ","], request={"prompt": PROMPT}, start=start))

    def test_offsets_that_stand_still_jump_back_or_begin_anywhere_are_wrong(self):
        for offsets in ([-1, -1, -1], [0, 0, 0], [0, 2, 1], [3, 5, 6]):
            assert breaks("text_offsets_follow_tokens", scored([" 4", ",", " 5"], text_offset=offsets))

    def test_offsets_of_a_streamed_echo_that_forget_the_prompt_are_wrong(self):
        first = choice("1,", finish=None, logprobs=logprobs(["1", ","]))
        second = choice(" 2", logprobs=logprobs([" 2"], start=0))
        asked = {"logprobs": 1, "echo": True, "prompt": "1,"}
        assert breaks("text_offsets_follow_tokens", stream(completion(first), completion(second), request=asked))

    def test_a_part_of_a_stream_may_leave_out_the_offsets(self):
        first, second = choice(" 4", finish=None, logprobs=logprobs([" 4"])), {**logprobs([","]), "text_offset": None}
        x = stream(completion(first), completion(choice(",", logprobs=second)), request={"logprobs": 1})
        assert not findings("text_offsets_follow_tokens", x)

    def test_a_part_of_a_stream_that_leaves_out_the_alternatives_is_reported_wherever_it_comes(self):
        for missing in (0, 1):
            lists = [logprobs([token], top=2) for token in (" 4", ",")]
            lists[missing]["top_logprobs"] = None
            parts = [completion(choice(one["tokens"][0], logprobs=one)) for one in lists]
            assert breaks("top_logprobs_have_n", stream(*parts, request={"logprobs": 2}))
            assert holds("sampled_token_is_listed", stream(*parts, request={"logprobs": 2}))

    @pytest.mark.parametrize("step", [1, 2, 4])
    def test_offsets_beyond_ascii_may_count_characters_units_or_bytes(self, step):
        assert holds("text_offsets_follow_tokens", scored([CAT, "!"], request={"prompt": "a"}, text_offset=[0, step]))

    def test_the_counts_may_differ_by_the_token_that_ended_the_text(self):
        for listed in (2, 3, 4):
            x = scored(["a"] * listed, finish="stop", counts=(4, 3))
            assert holds("logprobs_count_the_tokens", x)
        assert breaks("logprobs_count_the_tokens", scored(["a"] * 2, counts=(4, 3)))

    def test_candidates_that_were_not_returned_are_counted_all_the_same(self):
        x = scored(["a"] * 3, request={"best_of": 4}, counts=(4, 12))
        assert not findings("logprobs_count_the_tokens", x)

    @pytest.mark.parametrize("lists", [{}, {"tokens": None}, {"tokens": []}])
    def test_missing_lists_are_reported_once(self, lists):
        x = plain(completion(choice(" a", logprobs=lists), usage=usage(4, 1)), {"logprobs": 1})
        assert breaks("logprobs_are_returned", x)
        assert not findings("logprobs_count_the_tokens", x)

    def test_a_reply_without_completion_tokens_shows_nothing(self):
        x = plain(completion(choice("", logprobs=logprobs([]))), {"logprobs": 1})
        assert not findings("logprobs_count_the_tokens", x)


class TestChoices:
    def test_the_last_prompts_choices_alone_are_seen(self):
        asked = {"prompt": ["a", "b"], "best_of": 4, "n": 2, "echo": True}
        assert breaks("best_of_returns_n", plain(completion(choice(index=4), choice(index=5)), asked))

    def test_a_batch_that_is_answered_like_one_prompt_is_no_violation_of_best_of(self):
        asked = {"best_of": 4, "n": 2}
        two = completion(choice(), choice(index=1))
        assert doubts("best_of_returns_n", plain(two, {**asked, "prompt": ["a", "b"]}))
        assert breaks("best_of_returns_n", plain(completion(choice()), {**asked, "prompt": ["a", "b"]}))
        assert holds("best_of_returns_n", plain(two, asked))

    def test_an_index_that_counts_tokens_is_seen(self):
        assert breaks("choices_are_complete", stream(*(completion(choice(index=place)) for place in range(3))))

    def test_choices_may_be_interleaved_finish_together_and_have_whole_floats_for_indices(self):
        chunks = [choice(" 4", 1, finish=None), choice(" 4", 0.0, finish=None)]
        x = stream(*map(completion, chunks), completion(choice("", 0), choice("", 1)), request={"n": 2})
        assert holds("choices_are_complete", x)

    def test_an_error_inside_is_left_to_another_check(self):
        assert not findings("choices_are_complete", plain({"error": {"message": "overloaded"}}))


class TestStop:
    @pytest.mark.parametrize("rule", ["excluded", "included", "either"])
    def test_text_that_runs_past_a_sequence_inside_a_longer_token_is_seen(self, rule):
        x = plain(completion(choice(" ABC DEFGHI JKL")), {"stop": "DE"})
        assert breaks("stop_text_is_as_promised", x, text=rule)

    def test_the_rest_of_the_token_that_completed_a_kept_sequence_may_stay(self):
        x = plain(completion(choice(" Paris", finish="stop")), {"stop": "Pari"})
        assert holds("stop_text_is_as_promised", x, text="included")
        assert breaks("stop_text_is_as_promised", x, text="excluded")

    def test_a_sequence_in_the_echoed_prompt_does_not_count(self):
        x = plain(completion(choice("1, 2, 3, 4")), {"stop": "1", "echo": True, "prompt": PROMPT})
        assert holds("stop_text_is_as_promised", x, text="excluded")

    def cut(self, text, finish="stop", stop="F G", times=3):
        whole = plain(completion(choice("D E F G H I")), COLD)
        return pair("cut", whole, plain(completion(choice(text, finish=finish)), {**COLD, "stop": stop}), times)

    def test_the_cut_may_keep_or_drop_the_sequence(self):
        for text in ("D E ", "D E F G"):
            for check in ("stop_cuts_earliest", "no_partial_stop_leaks", "stop_finishes_with_stop"):
                assert holds(check, self.cut(text)), (check, text)

    def test_of_two_sequences_in_one_token_either_may_cut(self):
        for text in ("D ", "D E"):
            assert holds("stop_cuts_earliest", self.cut(text, stop=["E F", " F"]))

    def test_the_later_of_two_sequences_must_not_cut(self):
        assert breaks("stop_cuts_earliest", self.cut("D E F G ", stop=["H", "E"]))
        assert breaks("stop_cuts_earliest", self.cut("D E F G H", stop=["H", "E"]))
        assert breaks("stop_cuts_earliest", self.cut("D E F ", stop=[" "]))

    @pytest.mark.parametrize("stop", ["E", ["H", "E"], ["I", "E"]])
    def test_an_ignored_sequence_shows_in_the_text_alone(self, stop):
        group = self.cut("D E F G H I", finish="length", stop=stop, times=1)
        assert doubts("stop_cuts_earliest", group)
        assert breaks("stop_text_is_as_promised", group.first("with"), text="excluded")

    def test_a_short_text_is_seen_when_it_comes_again(self):
        assert doubts("stop_cuts_earliest", self.cut("D ", times=1))
        assert breaks("stop_cuts_earliest", self.cut("D ", times=3))

    def test_half_a_sequence_is_seen_where_it_matched_and_where_it_did_not(self):
        assert breaks("no_partial_stop_leaks", self.cut("D E F", times=1))
        assert doubts("no_partial_stop_leaks", self.cut("D E F", stop="E FX", times=1)), "it may be another text"
        assert breaks("no_partial_stop_leaks", self.cut("D E F", stop="E FX", times=3))

    def test_a_limit_at_the_very_end_of_the_sequence_may_give_either_reason(self):
        assert not findings("stop_finishes_with_stop", self.cut("D E F ", finish="length", stop="G H I"))

    def test_a_target_that_samples_another_text_is_not_flagged(self):
        whole = [plain(completion(choice(text)), COLD) for text in ("D E F G", "D X F G", "D E F G")]
        other = plain(completion(choice("D X ", finish="stop")), {**COLD, "stop": "F"})
        mixed = Group("cut", "example", {"without": tuple(whole), "with": (other,) * 3})
        assert doubts("stop_cuts_earliest", mixed)


class TestEcho:
    def test_a_long_prompt_may_come_back_shortened_unless_overflow_is_refused(self):
        prompt = "".join(f"{number} " for number in range(400))
        x = plain(completion(choice(prompt[600:] + "and")), {"echo": True, "prompt": prompt})
        assert holds("echo_begins_with_prompt", x)
        about = (Level.MUST, Layer.CONTRACT, "", Source("#"), {}, {"behaviour": "refuse"})
        row = Requirement("tokens.overflow", "context_overflow", *about)
        strict = findings("echo_begins_with_prompt", x, under=contract(requirements=(row,)))
        assert isinstance(strict[0], Violation)

    def test_a_prompt_that_is_no_text_and_one_of_ids_are_not_looked_for(self):
        for prompt in ("\ud83d", "a\ufffd", [1, 2], ""):
            x = plain(completion(choice(" 4")), {"echo": True, "prompt": prompt})
            assert not findings("echo_begins_with_prompt", x)

    def test_each_choice_is_compared_with_its_own_prompt(self):
        asked = {"echo": True, "prompt": ["a", "b"], "n": 2}
        whole = [choice(text, index) for index, text in enumerate(("a1", "a2", "b1", "b2"))]
        swapped = [choice(text, index) for index, text in enumerate(("a1", "b1", "a2", "b2"))]
        assert holds("echo_begins_with_prompt", plain(completion(*whole), asked))
        assert breaks("echo_begins_with_prompt", plain(completion(*swapped), asked))

    def test_an_echo_of_ids_is_known_by_its_end(self):
        without = plain(completion(choice(" 4")), {**COLD, "prompt": [1, 2]})
        ends = plain(completion(choice("ab 4")), {**COLD, "prompt": [1, 2], "echo": True})
        other = plain(completion(choice("ab 5")), {**COLD, "prompt": [1, 2], "echo": True})
        assert holds("echo_adds_only_the_prompt", pair("echo", without, ends))
        assert breaks("echo_adds_only_the_prompt", pair("echo", without, other))


class TestTokens:
    def test_one_token_too_few_is_seen_and_a_context_that_ended_first_is_not_blamed(self):
        assert breaks("length_uses_the_limit", plain(completion(choice(), usage=usage(4, 15)), {"max_tokens": 16}))
        long = plain(completion(choice(), usage=usage(4000, 96)), {"max_tokens": 200})
        assert not findings("length_uses_the_limit", long)

    def test_choices_that_ended_by_themselves_may_have_fewer_tokens(self):
        both = completion(choice(), choice(index=1, finish="stop"), usage=usage(4, 19))
        assert holds("length_uses_the_limit", plain(both, {"max_tokens": 16, "n": 2}))

    def test_the_default_counts_where_the_request_names_no_limit(self):
        assert breaks("length_uses_the_limit", plain(completion(choice(), usage=usage(4, 64))))

    def test_a_forced_token_may_show_no_text(self):
        x = plain(completion(choice("")), {"max_tokens": 16, "logit_bias": {"7": 100}})
        assert not findings("length_comes_with_text", x)

    def test_an_error_inside_a_success_is_neither_refusal_nor_cut(self):
        probe = plain({"error": {"message": "too long"}})
        over = group("overflow", "tokens.overflow", control=plain(completion(choice())), probe=probe)
        assert breaks("context_overflow", over, behaviour="refuse")
        assert doubts("context_overflow", over, behaviour="either")

    def test_a_control_that_fails_proves_nothing(self):
        over = group("overflow", "tokens.overflow", control=error(), probe=error())
        assert doubts("context_overflow", over, behaviour="truncate")


class TestTheBestOfMany:
    def test_chances_are_exact(self):
        assert mann_whitney_upper_tail(3, 2, 5, 0) == pytest.approx(1)
        assert mann_whitney_upper_tail(1, 1, 4, 1) == pytest.approx(1 / 5)
        assert mann_whitney_upper_tail(2, 1, 1, 2) == pytest.approx(1 / 3)


def _drawn(*replies):
    """Replies to a sampled request, each with the texts of its choices."""
    asked = {"temperature": 1.8, "n": len(replies[0])}
    bodies = [completion(*(choice(text, index) for index, text in enumerate(texts))) for texts in replies]
    return group("vary", draw=[plain(body, asked) for body in bodies])


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [
        ([(" one two", " red blue")] * 6, Violation),
        ([(" one two", " red blue")] * 2, Inconclusive),
        ([(text, text) for text in (" a b", " c d", " e f", " g h", " i j", " k l")], Violation),
        ([(" a b", " a b"), (" c d", " e f")], Satisfied),
        ([(" so so so so", " so so so so")] * 6, Inconclusive),
        ([("", "")] * 6, Inconclusive),
    ],
    ids=[
        "requests share a seed", "too few to tell", "choices share a seed", "as drawn", "a loop", "nothing to say",
    ],
)  # fmt: skip
def test_draws_are_compared_choice_by_choice(replies, outcome):
    assert kinds("sampling_varies", _drawn(*replies)) == [outcome]
