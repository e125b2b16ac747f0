"""Legal ways to answer that are rare: no check minds them, and what is wrong beside them is still seen."""

from conformance.catalogue import Terms, load
from conformance.examples import choice, completion, contract, group, logprobs, plain
from conformance.model import Held, Observation, Unclear, Violation


def found(name, subject, **params):
    return list(load()[name].function(subject, Terms(contract(), params)))


def kinds(name, subject, **params):
    return [type(one) for one in found(name, subject, **params)]


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

    def test_zeros_beside_a_rival_that_had_a_chance_are_placeholders(self):
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


class TestDrawsThatAreAllAlike:
    def draws(self, text, score=None, **asked):
        lists = None if score is None else logprobs([text], [score])
        reply = plain(completion(choice(text, logprobs=lists)), {"prompt": "One, two, three, four", **asked})
        return group("vary", draw=[reply] * 6)

    def test_a_model_may_be_sure_how_a_row_of_numbers_goes_on(self):
        assert kinds("sampling_varies", self.draws(", five, six", temperature=1)) == [Unclear]
        assert kinds("sampling_varies", self.draws(", five, six", score=-0.2, temperature=1)) == [Unclear]

    def test_a_model_may_repeat_its_prompt(self):
        assert kinds("sampling_varies", self.draws("One, two", temperature=2)) == [Unclear]

    def test_the_same_unlikely_text_each_time_is_no_chance(self):
        assert kinds("sampling_varies", self.draws(", five, six", score=-4.0, temperature=1)) == [Violation]
        assert kinds("sampling_varies", self.draws(" of could", temperature=1.8)) == [Violation]

    def test_texts_that_differ_are_what_is_asked_for(self):
        replies = [*self.draws(" a b c").all("draw"), *self.draws(" a b d").all("draw")]
        assert kinds("sampling_varies", group("vary", draw=replies)) == [Held]
