"""Checks that compare replies: violations seen at once or after confirmation, and differences that are no defect."""

import pytest
from support import CAT, COLD, breaks, doubts, findings, holds, scored

from conformance.contract import load as contract_of
from conformance.contract import providers
from conformance.judge import Traffic, judge
from conformance.judge.catalogue import CheckContext
from conformance.judge.fixtures import case, choice, completion, contract, error, group, logprobs, plain, stream, usage
from conformance.judge.verdicts import serves
from conformance.model import (
    Inconclusive,
    Layer,
    Level,
    Membership,
    Observation,
    Outcome,
    Requirement,
    Satisfied,
    Source,
    Violation,
)
from conformance.model.exchange import Group


def pair(plain_reply, streamed, times=3):
    return Group("twin", "example", {"plain": (plain_reply,) * times, "stream": (streamed,) * times})


class TestPlainStreamedPairs:
    def paired(self, first, *texts, times=3, finish="length"):
        chunks = [completion(choice(text, finish=None)) for text in texts[:-1]]
        last = completion(choice(texts[-1], finish=finish))
        whole = plain(completion(choice(first, finish=finish)), COLD)
        return pair(whole, stream(*chunks, last, request=COLD), times)

    def test_text_held_back_and_sent_late_is_the_same_text(self):
        assert holds("twin_text_agrees", self.paired(" 4, 5", "", "", " 4, 5", ""))

    def test_emoji_that_were_dropped_are_seen_at_once(self):
        assert breaks("twin_text_agrees", self.paired(f"a {CAT} b", "a ", " b", times=1))

    def test_a_shorter_stream_is_doubted_first_for_it_may_be_another_draw(self):
        assert doubts("twin_text_agrees", self.paired(" 4, 5", " 4,", times=1))
        assert breaks("twin_text_agrees", self.paired(" 4, 5", " 4,", times=3))

    def test_a_chunk_that_is_lost_now_and_then_is_seen_beside_plain_replies_that_agree(self):
        whole = plain(completion(choice(" 4, 5, 6")), COLD)
        good, bad = (stream(completion(choice(text)), request=COLD) for text in (" 4, 5, 6", " 4, 6"))
        listed = findings("twin_text_agrees", Group("twin", "x", {"plain": (whole,) * 3, "stream": (good, bad, good)}))
        assert [one.flaky for one in listed if isinstance(one, Violation)] == [True]

    def test_other_words_now_and_then_are_no_violation(self):
        whole = plain(completion(choice(" 4, 5, 6")), COLD)
        replies = tuple(stream(completion(choice(text)), request=COLD) for text in (" 4, 5, 6", " 4, 5, 7", " 4, 5, 6"))
        assert doubts("twin_text_agrees", Group("twin", "x", {"plain": (whole,) * 3, "stream": replies}))

    def test_one_completion_token_whatever_was_streamed_is_seen(self):
        whole = plain(completion(choice(), usage=usage(4, 4)), COLD)
        short = stream(completion(choice()), completion(usage=usage(4, 1)), request=COLD)
        assert doubts("twin_usage_agrees", pair(whole, short, 1))
        assert breaks("twin_usage_agrees", pair(whole, short, 3))

    def test_log_probabilities_missing_from_the_stream_are_seen(self):
        asked = {**COLD, "logprobs": 1}
        whole = plain(completion(choice(" 4", logprobs=logprobs([" 4"]))), asked)
        assert breaks("twin_logprobs_agree", pair(whole, stream(completion(choice(" 4")), request=asked)))

    def test_halves_of_a_character_are_seen_at_once(self):
        assert breaks("no_replacement_characters", self.paired(f"a {CAT}!", "a \ufffd", "\ufffd!", times=1))
        assert breaks("no_replacement_characters", self.paired("a \ufffd\ufffd!", f"a {CAT}", "!", times=1))

    def test_a_replacement_character_that_both_show_or_that_the_limit_made_is_fine(self):
        assert not breaks("no_replacement_characters", self.paired("é \ufffd é", "é \ufffd", " é"))
        assert not breaks("no_replacement_characters", self.paired("é\ufffd", "é"))


class TestEffects:
    def force(self, text, tokens=None, count=4, **asked):
        lists = logprobs(tokens) if tokens else None
        body = completion(choice(text, logprobs=lists), usage=usage(4, count))
        forced = plain(body, {**COLD, "logit_bias": {"11": 100}, **asked})
        return Group("force", "11", {"without": (plain(completion(choice()), COLD),), "with": (forced,)})

    def test_a_forced_token_may_lose_the_space_at_the_start_of_the_text(self):
        assert holds("bias_forces", self.force("is is is is"))
        assert holds("bias_forces", self.force("is is is is", ["is", " is", " is", " is"]))

    def test_a_forced_token_that_shows_no_text_proves_nothing(self):
        for text, count in (("", 0), ("", 4), ("\ufffd\ufffd", 4), (" is", 1)):
            assert doubts("bias_forces", self.force(text, count=count))

    def test_a_token_is_known_by_its_bytes_as_well(self):
        assert holds("bias_forces", self.force(CAT + CAT, [CAT, CAT], 2))

    def test_one_of_two_forced_tokens_is_left_when_the_other_is_banned(self):
        def reply(text, **bias):
            return plain(completion(choice(text), usage=usage(4, 3)), {**COLD, "logit_bias": bias})

        both = reply(" is is is", **{"1": 100, "2": 100})
        for text, verdict in ((" was was was", Satisfied), (" is was is", Violation), (" is is is", Inconclusive)):
            banned = Group("ban", "1", {"forced": (both,), "with": (reply(text, **{"1": -100, "2": 100}),)})
            assert [type(one) for one in findings("bias_bans", banned)] == [verdict]

    def test_a_seed_is_best_effort(self):
        def seeded(texts):
            replies = [plain(completion(choice(text)), {"seed": 1}) for text in texts]
            return group("seed", first=replies[::2], second=replies[1::2])

        assert holds("seed_repeats", seeded(["a"] * 6))
        assert findings("seed_repeats", seeded("ab"))[0].repeat
        assert doubts("seed_repeats", seeded("aabaaa"))
        assert breaks("seed_repeats", seeded("abcdef"))

    def test_draws_with_one_common_seed_need_not_vary(self):
        same = [plain(completion(choice(" 4")), {"seed": 1, "temperature": 2}) for _ in range(9)]
        other = [plain(completion(choice(" 4")), {"seed": seed, "temperature": 2}) for seed in range(9)]
        assert doubts("sampling_varies", group("vary", draw=same))
        assert breaks("sampling_varies", group("vary", draw=other))

    def test_narrow_sampling_that_never_gives_the_greedy_text_is_seen(self):
        greedy = [plain(completion(choice(" 4")), COLD)] * 3
        drawn = [plain(completion(choice(text)), {"top_k": 1}) for text in (" 5", " 6", " 7")]
        assert breaks("narrow_sampling_is_greedy", group("narrow", greedy=greedy, narrow=drawn))
        drawn[1] = plain(completion(choice(" 4")), {"top_k": 1})
        assert doubts("narrow_sampling_is_greedy", group("narrow", greedy=greedy, narrow=drawn))

    def test_listed_after_the_filter_the_alternatives_show_nothing_of_it(self):
        renormalised = scored(
            ["a"], request={"logprobs": 2, "top_p": 0.5}, token_logprobs=[-0.9], top_logprobs=[{"b": -0.522, "a": -0.9}]
        )
        assert not breaks("filter_bounds_the_choice", renormalised, parameter="top_p")

    def test_a_filter_is_not_judged_at_a_higher_temperature_or_with_a_penalty(self):
        for more in ({"temperature": 1.5}, {"logit_bias": {"1": 5}}, {"presence_penalty": 1}):
            asked = {"logprobs": 2, "top_p": 0.1, **more}
            x = scored(["a"], request=asked, token_logprobs=[-3.0], top_logprobs=[{"b": -0.1, "a": -3}])
            assert not findings("filter_bounds_the_choice", x, parameter="top_p")


class TestScoredEchoes:
    PROMPT = "1, 2,"

    def scored(self, generated, echoed, tokens=(" 3", ","), others=None, prompt=None):
        """A text with these log probabilities, and its echo with these; `others`: its tokens in the echo."""
        text = scored(tokens, request={**COLD, "prompt": self.PROMPT}, token_logprobs=generated)
        listed = ["1", ",", " 2", ",", *(others or tokens)]
        request = {**COLD, "prompt": prompt or self.PROMPT + "".join(tokens), "echo": True}
        values = [None, -1.0, -2.0, -1.0, *echoed]
        return group("scored", generated=text, echoed=scored(listed, request=request, token_logprobs=values))

    def test_rounding_is_no_difference(self):
        assert holds("echo_scores_as_generated", self.scored([-0.1, -5.0], [-0.9, -5.9]))

    def test_another_value_is_seen_with_both(self):
        (finding,) = findings("echo_scores_as_generated", self.scored([-0.0125, -0.5], [-10.8, -0.5]))
        assert finding.message == (
            '" 3" has the log probability -10.8 where it is echoed (1 of 2 tokens differ); '
            "expected -0.0125, as where it was generated"
        )

    def test_values_after_temperature_0_are_not_compared(self):
        assert doubts("echo_scores_as_generated", self.scored([0, 0.0], [-0.7, -3.0]))
        assert doubts("echo_scores_as_generated", self.scored([-0.7, -3.0], [0.0, 0.0]))

    def test_values_of_other_tokens_are_not_compared(self):
        assert holds("echo_scores_as_generated", self.scored([-0.1, -0.5], [-0.1, -9.0], others=[" 3", ",\n"]))
        assert doubts("echo_scores_as_generated", self.scored([-0.1, -0.5], [-9.0], others=[" 3,"]))

    def test_the_echo_of_another_text_is_not_compared(self):
        assert doubts("echo_scores_as_generated", self.scored([-0.1, -0.5], [-9.0, -9.0], prompt="1, 2, 4,"))

    def test_a_start_token_is_skipped(self):
        found = self.scored([-0.1, -0.5], [-0.1, -9.0])
        lists = logprobs(["<s>", "1", ",", " 2", ",", " 3", ","], [None, -1.0, -2.0, -1.0, -1.0, -0.1, -9.0])
        echo = found.all("echoed")[0].case.body
        marked = plain(completion(choice("1, 2, 3,", logprobs=lists)), echo)
        assert breaks("echo_scores_as_generated", group("scored", generated=found.all("generated"), echoed=marked))


class TestUnchanged:
    def test_the_request_without_the_parameter_is_blamed_for_another_default(self):
        given, left_out = (plain(completion(choice(text)), COLD) for text in (" 4, 5", " 4"))
        (violation,) = [
            one
            for one in findings("default_is_explicit", group("default", explicit=[given] * 3, absent=[left_out] * 3))
            if isinstance(one, Violation)
        ]
        assert 'text is " 4" without the parameter' in violation.message

    def test_several_defaults_in_one_request_prove_each_and_blame_none(self):
        def named(text):
            left_out = [plain(completion(choice(" 4")), COLD)] * 3
            together = [plain(completion(choice(text)), COLD)] * 3
            return findings("default_is_explicit", group("default", joint=together, absent=left_out))

        same = named(" 4")
        assert same
        assert all(isinstance(one, Satisfied) for one in same)
        assert named(" 4, 5") == []

    def test_reasons_to_finish_are_compared_under_the_same_text_only(self):
        def replies(role, texts, finish):
            return {role: [plain(completion(choice(text, finish=finish)), COLD) for text in texts]}

        lucky = group("never", "user", **replies("without", " abc", "stop"), **replies("with", " abc", "length"))
        assert doubts("stop_that_never_matches", lucky)
        silent = group(
            "never", "user", **replies("without", ["", "", ""], "stop"), **replies("with", [""] * 3, "length")
        )
        assert breaks("stop_that_never_matches", silent)
        settled = group("never", "user", **replies("without", "aaa", "stop"), **replies("with", "aaa", "length"))
        assert breaks("stop_that_never_matches", settled)


class TestOverflow:
    def over(self, finish="length", key="tokens.overflow", **more):
        body = completion(choice(finish=finish), usage=usage(9, 1015))
        probe = plain(body, {"max_tokens": 9_000_000})
        return group("overflow", key, control=plain(completion(choice())), probe=probe, **more)

    def test_a_text_beyond_the_context_says_how_the_context_is_known(self):
        long = error("This model's maximum context length is 1024 tokens.")
        for over, known in (
            (self.over(), "`length` ended the text after 1015 of 9000000 tokens and a prompt of 9"),
            (self.over("stop", long=long), "maximum context length is 1024"),
            (self.over("stop", "tokens.overflow filled"), "an error message gave its length"),
        ):
            (violation,) = findings("context_overflow", over, behaviour="refuse")
            assert isinstance(violation, Violation)
            assert known in violation.message

    def test_a_text_that_ended_by_itself_shows_no_context(self):
        (seen,) = findings("context_overflow", self.over("stop"), behaviour="refuse")
        assert isinstance(seen, Observation)

    def read(self, ids, counted):
        return plain(completion(choice(), usage=usage(counted, 1)), {"prompt": [7] * ids, "max_tokens": 1})

    def long(self, reply, control=(8, 8)):
        groups = group("overflow", "tokens.overflow unknown", control=self.read(*control), long=reply)
        return findings("context_overflow", groups, behaviour="refuse")

    def test_a_prompt_of_which_a_part_was_read_was_cut(self):
        (violation,) = self.long(self.read(8_200, 2_048))
        assert violation.message == (
            "HTTP 200 with prompt_tokens 2048 for a prompt of 8200 ids, so it was cut; expected a 4xx"
        )

    def test_a_long_prompt_that_is_read_whole_or_refused_is_fine(self):
        assert [type(one) for one in self.long(self.read(8_200, 8_200))] == [Observation]
        assert [type(one) for one in self.long(error())] == [Satisfied]

    def test_a_target_that_miscounts_ids_is_not_said_to_cut_prompts(self):
        assert self.long(self.read(8_200, 2_048), control=(8, 3)) == []

    @pytest.mark.parametrize("provider", providers())
    def test_it_is_a_must_only_where_the_document_says_what_becomes_of_such_a_request(self, provider):
        under = contract_of(provider)
        rows = [row for row in under.requirements if row.check == "context_overflow" and row.level is Level.MUST]
        assert bool(rows) is ("context_length_exceeded_behavior" in under.parameters)


class TestBatches:
    def batch(self, *left_out):
        whole = completion(*(choice(f" {index}", index) for index in range(4)), usage=usage(56, 4))
        many = plain(whole, {**COLD, "prompt": ["a", "b", "c", "d"]})
        alone = {
            f"single_{place}": plain(completion(choice(f" {place}"), usage=usage(14, 1)), COLD)
            for place in range(4)
            if place not in left_out
        }
        return group("batch", batch=many, **alone)

    def test_a_batch_is_the_sum_of_all_its_prompts_or_there_is_none(self):
        assert holds("batch_usage_is_the_sum", self.batch())
        assert doubts("batch_usage_is_the_sum", self.batch(1, 2, 3))

    def test_a_prompt_that_was_never_answered_alone_does_not_move_the_others(self):
        assert holds("batch_order_holds", self.batch())
        assert doubts("batch_order_holds", self.batch(0))
        assert holds("batch_is_singles", self.batch(0))


class TestOthers:
    def test_an_order_that_cannot_be_told_is_left_open(self):
        whole = plain(completion(choice(" x"), choice(" x", 1)), {**COLD, "prompt": ["a", "b"]})
        one = plain(completion(choice(" x")), COLD)
        assert doubts("batch_order_holds", group("batch", batch=whole, single_0=one, single_1=one))

    def test_greedy_choices_are_compared_with_their_own_prompt(self):
        asked = {**COLD, "prompt": ["a", "b"]}
        one = plain(completion(choice(" x"), choice(" y", 1)), asked)
        texts = (" x", " x", " y", " y")
        many = plain(completion(*(choice(text, index) for index, text in enumerate(texts))), {**asked, "n": 2})
        assert holds("choices_agree_when_greedy", group("many", one=[one] * 3, many=[many] * 3))

    def test_a_text_that_ends_by_itself_at_the_limit_may_finish_with_stop(self):
        short, long = (plain(completion(choice(" 4", finish=reason)), COLD) for reason in ("length", "stop"))
        assert doubts("cut_text_finishes_with_length", group("prefix", short=[short] * 3, long=[long] * 3))

    def test_a_burst_that_only_differs_in_its_own_words_is_not_a_mix_up(self):
        def reply(text):
            return plain(completion(choice(text)), COLD)

        def burst(*texts, times=3):
            solo = {"solo_0": [reply(" one uno")] * times, "solo_1": [reply(" two due dos deux")] * times}
            return group("burst", **solo, burst_0=[reply(one) for one in texts], burst_1=reply(" two due dos deux"))

        assert doubts("burst_does_not_mix", burst(" one eins"))
        assert doubts("burst_does_not_mix", burst(*[" one due"] * 3)), "a single word turns up by chance"
        assert doubts("burst_does_not_mix", burst(" one due dos")), "and so do two, once"
        assert doubts("burst_does_not_mix", burst(*[" one due dos"] * 3, " one eins")), "under load texts differ here"
        assert breaks("burst_does_not_mix", burst(*[" one due dos"] * 3))
        assert findings("burst_does_not_mix", burst(" one due dos", times=1))[0].repeat

    def test_half_a_surrogate_pair_that_was_sent_may_come_back(self):
        x = plain(completion(choice("\ud83d 4")), {"echo": True, "prompt": "\ud83d"})
        assert not findings("text_has_no_lone_surrogates", x)

    @pytest.mark.parametrize(
        ("text", "finish", "broken"),
        [
            ('{"a": 1}', "stop", False), ('{"a": [1, 2', "length", False), (' {"a"', "length", False),
            ("Sure! {", "length", True), ('{"a": 1} done', "stop", True), ("[1]", "stop", True),
            ('{"a": 1', "stop", True), ('{"a": NaN}', "stop", True),
        ],
    )  # fmt: skip
    def test_json_is_json_from_its_first_character_to_its_last(self, text, finish, broken):
        probe = plain(completion(choice(text, finish=finish)), {"response_format": {"type": "json_object"}})
        assert breaks("json_is_valid", group("json", probe=probe)) is broken

    def test_a_schema_that_points_to_another_document_is_not_fetched(self):
        shape = {"type": "json_schema", "json_schema": {"schema": {"$ref": "http://127.0.0.1:9/x"}}}
        probe = plain(completion(choice("{}", finish="stop")), {"response_format": shape})
        assert doubts("json_is_valid", group("json", probe=probe))


class TestExpectedOccurrences:
    """Which members of a group must show an occurrence, so that absence is neither a pass nor a false alarm."""

    def row(self, check, level=Level.MUST, **params):
        return Requirement("x.y", check, level, Layer.CONTRACT, "It holds.", Source("#"), {}, params)

    def grouped(self, asked, kind, key, role):
        return case({**COLD, **asked}, id=f"{kind}/{role}", groups=(Membership(kind, key, role),))

    def test_only_pairs_with_log_probabilities_must_show_equal_ones(self):
        row, context = self.row("twin_logprobs_agree"), CheckContext(contract())
        assert serves(row, self.grouped({"logprobs": 1}, "twin", "a", "plain"), context)
        assert not serves(row, self.grouped({}, "twin", "a", "plain"), context)

    def test_a_requirement_on_one_parameter_is_expected_of_its_own_groups(self):
        row, context = self.row("parameter_spreads_texts", parameter="top_p"), CheckContext(contract())
        assert serves(row, self.grouped({}, "arms", "top_p", "low"), context)
        assert not serves(row, self.grouped({}, "arms", "temperature", "low"), context)

    def test_texts_in_ascii_give_no_occasion_for_broken_characters(self):
        body = completion(choice(" 4"))
        replies = [
            plain(body, COLD, groups=(Membership("twin", "a", "plain"),), id="a"),
            stream(body, request=COLD, groups=(Membership("twin", "a", "stream"),), id="b"),
        ]
        verdict = judge(self.row("no_replacement_characters"), Traffic(replies), contract())
        assert verdict.outcome is Outcome.NOT_APPLICABLE
