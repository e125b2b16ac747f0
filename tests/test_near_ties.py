"""Texts that diverge at a near tie are no violation; all other differences are."""

from conformance.judge.catalogue import CheckContext, load
from conformance.judge.fixtures import choice, completion, contract, plain
from conformance.judge.near_ties import near_tie
from conformance.model import Inconclusive, Satisfied, Violation
from conformance.model.exchange import Group

COLD = {"temperature": 0, "logprobs": 2, "prompt": "A"}


def lists(tokens, rival, gap):
    """Log probabilities of tokens, the second of which has an alternative with a log probability lower by `gap`."""
    tops = [{token: -0.1, "~": -4.0} for token in tokens]
    tops[1] = {tokens[1]: -1.0, rival: -1.0 - gap}
    values = [top[token] for token, top in zip(tokens, tops, strict=True)]
    return {"tokens": list(tokens), "token_logprobs": values, "top_logprobs": tops, "text_offset": [0, 1, 2]}


def reply(tokens, rival=None, gap=0.2, index=0, request=(), finish="length"):
    scores = None if rival is None else lists(tokens, rival, gap)
    return plain(completion(choice("".join(tokens), index, finish, scores)), {**COLD, **dict(request)})


def tie(first, second, index=0):
    return near_tie([[first] * 3, [second] * 3], index, CheckContext(contract()))


HER, ON = (" at", " her", " too"), (" at", " on", "ly")


class TestWhatANearTieIs:
    def test_each_side_lists_the_other_token_with_almost_equal_probability(self):
        assert tie(reply(HER, " on"), reply(ON, " her")) == '" her" at -1.00, " on" at -1.20'
        assert not tie(reply(HER, " on", gap=0.6), reply(ON, " her"))
        assert not tie(reply(HER, " on"), reply(ON, " her", gap=0.6))
        assert not tie(reply(HER, " off"), reply(ON, " her"))

    def test_one_side_is_enough_where_the_other_lists_no_alternatives(self):
        assert tie(reply(HER, " on"), reply(ON))
        assert tie(reply(HER), reply(ON, " her"))
        assert not tie(reply(HER), reply(ON))

    def test_later_differences_follow_from_the_first(self):
        early = reply((" of", " her", " too"), " on")
        assert not tie(early, reply(ON, " her")), "they diverge at the first token, which is no near tie"

    def test_an_end_may_be_a_near_tie_as_well(self):
        assert tie(reply(HER, "</s>"), reply((" at",), finish="stop"))
        assert not tie(reply(HER, " on"), reply((" at",), finish="stop"))

    def test_a_text_that_the_limit_cut_does_not_diverge_from_a_longer_one(self):
        short, long, other = reply((" at",)), reply(HER, " on"), reply(ON, " her")
        assert near_tie([[short, long], [other]], 0, CheckContext(contract()))
        assert not tie(short, long)

    def test_tokens_may_be_shown_as_bytes(self):
        sweet = (" at", "bytes:\\xf0\\x9f", "bytes:\\x8d\\xac")
        one = plain(completion(choice(" at\N{CANDY}", logprobs=lists(sweet, " on", 0.2))), COLD)
        assert tie(one, reply(ON, "bytes:\\xf0\\x9f"))
        assert not tie(one, reply(ON, "bytes:\\xf0\\x9e"))

    def test_sampled_texts_have_no_near_ties(self):
        warm = {"temperature": 1}
        assert not tie(reply(HER, " on", request=warm), reply(ON, " her", request=warm))

    def test_an_echoed_prompt_is_left_out(self):
        scores = lists(("A", *HER), " at", 9)
        scores["token_logprobs"][2], scores["top_logprobs"][2] = -1.0, {" her": -1.0, " on": -1.1}
        echoed = plain(completion(choice("A at her too", logprobs=scores)), {**COLD, "echo": True})
        assert tie(echoed, reply(ON, " her"))


class TestRelations:
    def found(self, name, roles, *exchanges):
        members = {role: (x,) * 3 for role, x in zip(roles, exchanges, strict=True)}
        group = Group("example", "example", members)
        return [type(one) for one in load()[name].function(group, CheckContext(contract()))]

    def batch(self, *answers):
        whole = completion(*(choice("".join(tokens), index, logprobs=lists(tokens, *rival)) for index, (tokens, *rival)
                             in enumerate(answers)))  # fmt: skip
        return plain(whole, {**COLD, "prompt": ["A", "B"]})

    def test_a_batch_may_round_differently_from_single_prompts(self):
        alone = (reply(HER, " on"), reply(HER, " on", request={"prompt": "B"}))
        roles = ("single-0", "single-1", "batch")
        tied = self.batch((HER, " on", 0.2), (ON, " her", 0.2))
        assert self.found("batch_is_singles", roles, *alone, tied) == [Satisfied, Satisfied, Inconclusive, Satisfied]
        apart = self.batch((HER, " on", 0.2), (ON, " her", 2.0))
        assert Violation in self.found("batch_is_singles", roles, *alone, apart)

    def test_so_may_several_choices_a_stream_and_a_stop_sequence(self):
        two = plain(completion(choice("".join(HER), 0), choice("".join(ON), 1, logprobs=lists(ON, " her", 0.1))),
                    {**COLD, "n": 2})  # fmt: skip
        assert self.found("choices_agree_when_greedy", ("one", "many"), reply(HER), two) == [Satisfied, Inconclusive]
        twins = self.found("twin_text_agrees", ("plain", "stream"), reply(HER, " on"), reply(ON, " her"))
        assert twins == [Inconclusive]
        stopped = reply(ON, " her", request={"stop": "too"})
        assert set(self.found("stop_cuts_earliest", ("without", "with"), reply(HER, " on"), stopped)) == {Inconclusive}

    def test_the_same_request_may_be_rounded_differently_twice(self):
        found = load()["greedy_repeats"].function
        for rival in (" on", " off", None):
            replies = {"first": (reply(HER, rival),) * 3, "second": (reply(ON),) * 3}
            (finding,) = found(Group("repeat", "plain", replies), CheckContext(contract()))
            assert isinstance(finding, Inconclusive)
            assert ("near tie" in finding.reason) is (rival == " on")

    def test_without_log_probabilities_a_difference_is_a_violation(self):
        assert self.found("twin_text_agrees", ("plain", "stream"), reply(HER), reply(ON)) == [Violation]
