"""Rare but legal replies: no check flags them, and defects that resemble them are still seen."""

from email.utils import formatdate
from functools import cache

from support import kinds

from conformance.contract import load as contract_of
from conformance.contract import providers
from conformance.judge import Traffic, judge
from conformance.judge.fixtures import CREATED, case, choice, completion, group, logprobs, plain, stream, usage
from conformance.model import Inconclusive, Observation, Outcome, Satisfied, Violation
from conformance.reference.core import Reference
from conformance.selftest.in_process import exchange

of = cache(contract_of)


def outcome(provider, row, *exchanges):
    (requirement,) = [one for one in of(provider).requirements if one.id == row]
    return judge(requirement, Traffic(exchanges), of(provider)).outcome


def certain(rival, asked, texts=("abcdefgh",)):
    """Choices of which each token has the log probability 0, and another this one."""
    choices = []
    for index, text in enumerate(texts):
        lists = logprobs(list(text), [0.0] * len(text))
        lists["top_logprobs"] = [{token: 0.0, "~": rival} for token in text]
        choices.append(choice(text, index, logprobs=lists))
    return plain(completion(*choices), {"logprobs": 2, **asked})


class TestAModelWithoutEntropy:
    def test_zeros_are_right_where_no_other_token_has_a_chance(self):
        for asked in ({"temperature": 0}, {"temperature": 2}, {}):
            assert kinds("logprobs_are_not_all_zero", certain(-60.0, asked)) == [Observation]

    def test_values_may_be_read_after_temperature_zero(self):
        assert kinds("logprobs_are_not_all_zero", certain(-9999.0, {"temperature": 0})) == [Observation]

    def test_zeros_beside_a_likely_alternative_are_placeholders(self):
        for temperature in (0, 1, 2):
            assert kinds("logprobs_are_not_all_zero", certain(-1.1, {"temperature": temperature})) == [Violation]

    def test_two_texts_of_one_prompt_are_not_both_certain(self):
        asked = {"n": 2, "temperature": 1, "top_p": 0.5}
        drawn = certain(-40.0, asked, ("abcdefgh", "abcdefgz"))
        assert kinds("logprobs_are_not_all_zero", drawn) == [Violation, Violation]
        two = certain(-40.0, {"prompt": ["A", "B"], "temperature": 1}, ("abcdefgh", "12345678"))
        heated = certain(-40.0, {**asked, "temperature": 1.9, "top_p": 1}, ("abcdefgh", "abcdefgz"))
        for drawn in (two, heated):
            assert kinds("logprobs_are_not_all_zero", drawn) == [Observation, Observation]

    def test_an_echoed_prompt_is_never_certain(self):
        asked = {"echo": True, "prompt": "abcdefg", "max_tokens": 1}
        assert kinds("logprobs_are_not_all_zero", certain(-60.0, asked)) == [Violation]


class TestIdenticalSamples:
    def draws(self, text, score=None, **asked):
        lists = None if score is None else logprobs([text], [score])
        reply = plain(completion(choice(text, logprobs=lists)), {"prompt": "One, two, three, four", **asked})
        return group("vary", draw=[reply] * 6)

    def test_a_model_may_be_sure_how_a_row_of_numbers_goes_on(self):
        assert kinds("sampling_varies", self.draws(", five, six", temperature=1)) == [Inconclusive]
        assert kinds("sampling_varies", self.draws(", five, six", score=-0.2, temperature=1)) == [Inconclusive]

    def test_a_model_may_repeat_its_prompt(self):
        assert kinds("sampling_varies", self.draws("One, two", temperature=2)) == [Inconclusive]

    def test_the_same_unlikely_text_each_time_is_a_violation(self):
        assert kinds("sampling_varies", self.draws(", five, six", score=-4.0, temperature=1)) == [Violation]
        assert kinds("sampling_varies", self.draws(" of could", temperature=1.8)) == [Violation]

    def test_texts_that_differ_are_what_is_asked_for(self):
        replies = [*self.draws(" a b c").all("draw"), *self.draws(" a b d").all("draw")]
        assert kinds("sampling_varies", group("vary", draw=replies)) == [Satisfied]


CHAT = {"content": [{"token": " 4,", "logprob": -0.1}, {"token": " 5", "logprob": -0.2}], "refusal": None}


class TestShapesThatAreNotPromised:
    def reply(self, lists, **asked):
        told = completion(choice(" 4, 5", logprobs=lists), usage=usage(4, 2))
        return plain(told, {"logprobs": 1, "max_tokens": 2, **asked})

    def test_log_probabilities_as_in_chat_are_log_probabilities_where_no_shape_is_promised(self):
        found = {provider: outcome(provider, "logprobs.returned", self.reply(CHAT)) for provider in providers()}
        free = {provider for provider in found if found[provider] is Outcome.PASS}
        assert free == {"nebius", "fireworks"}
        assert set(found.values()) == {Outcome.PASS, Outcome.FAIL, Outcome.WARN}

    def test_one_other_shape_is_not_reported_field_by_field(self):
        for provider in ("nebius", "fireworks", "openai"):
            rows = [one.id for one in of(provider).requirements if one.id.startswith("logprobs.shape.")]
            assert len(rows) == 4
            assert {outcome(provider, row, self.reply(CHAT)) for row in rows} == {Outcome.NOT_APPLICABLE}
        assert outcome("fireworks", "logprobs.count", self.reply(CHAT)) is Outcome.PASS

    def test_a_list_of_strings_is_no_shape_at_all(self):
        odd = self.reply({"content": [" 4,", " 5"]})
        assert outcome("fireworks", "logprobs.returned", odd) is Outcome.FAIL

    def test_no_list_of_alternatives_is_required_where_none_is_requested(self):
        bare = {name: value for name, value in logprobs([" 4,", " 5"]).items() if name != "top_logprobs"}
        row = "logprobs.shape.top-logprobs"
        assert outcome("openai", row, self.reply(bare, logprobs=0)) is Outcome.NOT_APPLICABLE
        assert outcome("openai", row, self.reply(bare)) is Outcome.WARN


class TestReasoning:
    def test_tokens_of_reasoning_count_and_need_not_be_shown(self):
        for name in ("reasoning", "reasoning_content"):
            more = {name: "Let me think"}
            seen = completion(choice(" 4, 5", logprobs=logprobs([" 4,", " 5"]), **more), usage=usage(4, 9))
            x = plain(seen, {"logprobs": 1, "max_tokens": 9})
            assert kinds("length_means_the_limit", x) == [Observation]
            assert kinds("logprobs_count_the_tokens", x) == [Inconclusive]

    def test_reasoning_may_be_counted_and_never_shown(self):
        def reply(counted, **more):
            seen = completion(choice(" 4, 5", logprobs=logprobs([" 4,", " 5"]), **more), usage=usage(4, counted))
            return plain(seen, {"logprobs": 1, "max_tokens": 9})

        assert kinds("length_means_the_limit", reply(9, reasoning=None)) == [Satisfied]
        assert kinds("length_means_the_limit", reply(5, reasoning=None)) == [Violation]
        assert kinds("logprobs_count_the_tokens", reply(9, reasoning=None)) == [Inconclusive]
        assert kinds("logprobs_count_the_tokens", reply(9)) == [Violation]
        assert kinds("logprobs_count_the_tokens", reply(1, reasoning=None)) == [Violation]

    def test_reasoning_may_show_in_usage_only(self):
        for tokens, kind in ((6, Inconclusive), (0, Violation), (None, Violation)):
            told = usage(4, 9, completion_tokens_details={"reasoning_tokens": tokens})
            x = plain(completion(choice(" 4, 5", logprobs=logprobs([" 4,", " 5"])), usage=told), {"logprobs": 1})
            assert kinds("logprobs_count_the_tokens", x) == [kind]

    def test_an_echo_of_token_ids_need_not_be_followed_by_what_is_not_shown(self):
        lists = logprobs(["a", "b"], [None, -1.0])
        asked = {"prompt": [7, 8], "echo": True, "logprobs": 1, "max_tokens": 3}
        assert kinds("logprobs_cover_echo", plain(completion(choice("ab", logprobs=lists)), asked)) == [Violation]
        hidden = plain(completion(choice("ab", logprobs=lists, reasoning="Well")), asked)
        assert kinds("logprobs_cover_echo", hidden) == [Satisfied]

    def test_one_forced_token_that_is_left_shows_nothing(self):
        asked = {"temperature": 0, "logit_bias": {"11": 100}}
        x = plain(completion(choice(" is", reasoning=" is is is"), usage=usage(4, 4)), asked)
        assert kinds("bias_forces", group("force", "11", **{"with": x})) == [Inconclusive]


class TestAnEcho:
    def test_only_sampled_tokens_must_be_among_the_alternatives(self):
        lists = {**logprobs(["1", ",", " 2"], [None, -1.0, -0.5]), "top_logprobs": [None, {"~": -0.1}, {" 2": -0.5}]}
        for prompt in ("1,", [7, 8]):
            asked = {"prompt": prompt, "echo": True, "logprobs": 1}
            assert kinds("sampled_token_is_listed", plain(completion(choice("1, 2", logprobs=lists)), asked)) == [
                Satisfied
            ]
            wrong = {**lists, "top_logprobs": [None, {",": -0.1}, {"~": -0.5}]}
            assert kinds("sampled_token_is_listed", plain(completion(choice("1, 2", logprobs=wrong)), asked)) == [
                Violation
            ]

    def test_offsets_beside_a_suffix_may_begin_anywhere_and_follow_the_tokens(self):
        def offsets(*values, **asked):
            lists = {**logprobs([" 4", ",", " 5"]), "text_offset": list(values)}
            return kinds("text_offsets_follow_tokens", plain(completion(choice(" 4, 5", logprobs=lists)), asked))

        assert offsets(123, 125, 126, logprobs=1, suffix=" 6, 7") == [Satisfied]
        assert offsets(123, 125, 127, logprobs=1, suffix=" 6, 7") == [Violation]
        assert offsets(123, 125, 126, logprobs=1) == [Violation]


class TestSeedsThatAreBestEffort:
    def seeded(self, plain_texts, streamed_texts=()):
        asked = {"seed": 1, "temperature": 1}
        first = [plain(completion(choice(text)), asked) for text in plain_texts]
        second = [stream(completion(choice(text)), request=asked) for text in streamed_texts]
        return kinds("seed_repeats", group("seed", first=first, second=second or first))

    def test_two_equal_texts_of_many_are_an_effort(self):
        assert self.seeded(["a", "b", "c"]) == [Inconclusive]
        assert kinds("seed_repeats", group("seed", first=self.replies("abc"), second=self.replies("def"))) == [
            Violation
        ]
        assert kinds("seed_repeats", group("seed", first=self.replies("abc"), second=self.replies("ade"))) == [
            Inconclusive
        ]

    def replies(self, texts):
        return [plain(completion(choice(text)), {"seed": 1, "temperature": 1}) for text in texts]

    def test_a_stream_is_another_request_and_may_have_another_text(self):
        assert self.seeded("aaa", "bbb") == [Inconclusive]
        assert self.seeded("aaa", "bcd") == [Violation]


class TestTextsThatEndEarly:
    def arms(self, low, high):
        asked = {"temperature": 1}
        replies = [[plain(completion(choice(text)), asked) for text in texts] for texts in (low, high)]
        return kinds("penalty_reduces_repetition", group("arms", "x plain", low=replies[0], high=replies[1]))

    def test_a_longer_text_repeats_more_words_whatever_the_penalty(self):
        longer = " it is what was said, it is"
        assert self.arms([" it"] * 12, [longer] * 12) == [Inconclusive]
        assert self.arms([" it is what was said"] * 12, [longer] * 12) == [Inconclusive]
        assert self.arms([" it is what was said"] * 12, [" it it is it is it it"] * 12) == [Violation]


class TestChunksThatOpenAStream:
    def chunks(self, *choices):
        return kinds("chunk_has_choices", stream(*(completion(*items) for items in choices)))

    def test_a_chunk_without_choices_may_open_a_stream(self):
        text, end = [choice(" 4", finish=None)], [choice("")]
        assert self.chunks([], text, end) == [Observation, Satisfied]
        assert self.chunks(text, [], end) == [Violation]


class TestTheTokenThatStops:
    def reply(self, *tokens, scored=True, finish="stop"):
        lists = logprobs(tokens) if scored else None
        return plain(completion(choice("".join(tokens), finish=finish, logprobs=lists)), {"stop": "e", "logprobs": 1})

    def test_the_token_that_completes_a_stop_sequence_may_go_on(self):
        for tokens in ((" x.y", "e to"), (" th", "ese"), (" on", "e of a hundred words")):
            assert kinds("stop_text_is_as_promised", self.reply(*tokens), text="included") == [Satisfied]

    def test_a_token_behind_it_is_too_many(self):
        for tokens in ((" th", "e", "s"), (" on", "e", " of"), (" on", "e of", ".")):
            assert kinds("stop_text_is_as_promised", self.reply(*tokens), text="included") == [Violation]

    def test_without_tokens_a_piece_of_a_word_may_belong_to_it(self):
        told = {"ese": Satisfied, "e to": Inconclusive, "e to be or not": Violation, "e" + "s" * 20: Violation}
        for rest, kind in told.items():
            assert kinds("stop_text_is_as_promised", self.reply(" th", rest, scored=False), text="either") == [kind]
        assert kinds("stop_text_is_as_promised", self.reply(" th", "ese", scored=False, finish="length")) == [Violation]


NOW = formatdate(CREATED, usegmt=True)


class TestTheClock:
    def reply(self, away, date=NOW, **asked):
        return plain(completion(choice(), created=CREATED + away), asked, headers={"date": date} if date else {})

    def test_a_clock_may_run_ahead_and_a_time_zone_may_not(self):
        for away in (-1700, 0, 75, 1700):
            assert kinds("created_agrees_with_the_clock", self.reply(away)) == [Satisfied]
        for away in (8 * 3600, -5 * 3600, 1801 + 45 * 60):
            assert kinds("created_agrees_with_the_clock", self.reply(away)) == [Violation]

    def test_without_a_readable_date_there_is_nothing_to_compare_with(self):
        for date in (None, "", "yesterday", "Sat, 99 Nov 2026 25:61:00 GMT", formatdate(0, usegmt=True)):
            assert kinds("created_agrees_with_the_clock", self.reply(8 * 3600, date)) == []

    def test_a_time_that_is_no_unix_time_is_left_to_another_requirement(self):
        assert kinds("created_agrees_with_the_clock", self.reply(CREATED * 999)) == []
        assert kinds("created_agrees_with_the_clock", self.reply(-CREATED)) == []

    def test_the_reference_says_what_time_it_is(self):
        of_reference = exchange(Reference(of("openai")), case({"model": "reference", "stream": True}))
        assert kinds("created_agrees_with_the_clock", of_reference) == [Satisfied]
