"""The language model of the reference: tokens, sampling, writing."""

import time
from random import Random

import pytest

from conformance.reference.generation import Order, score, write
from conformance.reference.generation import written as remembered
from conformance.reference.language_model import Endings, LanguageModel
from conformance.reference.sampling import Sampling
from conformance.reference.tokenizer import BOS, EOS, SIZE, Tokenizer, byte_token, spell, surface

MODEL = LanguageModel(endings=Endings.NEVER)
PROMPT = MODEL.tokenizer.encode("1, 2, 3,")
TEXTS = ["", "hello", "The river, and 42 stones.\n\n", "é 海 😀 👩\u200d🚀", "\x00\t  double  ", "data: [DONE]", "שלום"]


def written(prompt=PROMPT, limit=24, seed=1, model=MODEL, **more):
    sampling = Sampling(
        **{key: more.pop(key) for key in list(more) if key in Sampling.__slots__ or key == "temperature"}
    )
    return write(model, Order(prompt, limit, sampling, **more), Random(seed))


@pytest.mark.parametrize("tokenizer", [Tokenizer(), Tokenizer(bytewise=True)])
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_cut_can_be_joined_again(tokenizer, text):
    tokens = tokenizer.encode(text)
    assert "".join(spell(tokens)) == text
    assert all(0 <= token < SIZE for token in tokens)


def test_a_character_shows_on_its_last_byte_and_not_before():
    assert spell(Tokenizer().encode("😀")) == ("", "", "", "😀")


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert "".join(spell(Tokenizer().encode("a\ud800b"))) == "a\ufffdb"


def test_a_tokenizer_may_count_a_token_at_the_beginning():
    assert Tokenizer(bos=True).encode("hello") == (BOS, *Tokenizer().encode("hello"))


@pytest.mark.parametrize("token", [0, 300, 1212, 50255, EOS, BOS, SIZE, -1, 10**12])
def test_every_id_has_a_meaning(token):
    assert isinstance(surface(token), bytes)


def test_greedy_text_repeats_and_another_prompt_gives_another():
    first = written(temperature=0)
    assert first == written(temperature=0, seed=2)
    assert first.text != written(MODEL.tokenizer.encode("Once upon"), temperature=0).text


def test_sampled_text_repeats_with_its_seed_only():
    assert written(seed=3).text == written(seed=3).text
    assert len({written(seed=seed).text for seed in range(8)}) == 8


def test_a_shorter_limit_gives_the_beginning_of_the_longer_text():
    assert written(temperature=0, limit=40).text.startswith(written(temperature=0, limit=9).text)


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 0.0}, {"top_p": 1e-6}, {"min_p": 1.0}])
def test_narrow_sampling_is_greedy(narrow):
    assert written(temperature=2.0, **narrow).text == written(temperature=0).text


def test_a_bias_of_100_forces_a_token_and_one_of_minus_100_bans_it():
    assert {step.token for step in written(bias={5: 100.0}).steps} == {5}
    spoken = {step.token for step in written(limit=200).steps}
    assert not spoken & {step.token for step in written(limit=200, bias=dict.fromkeys(spoken, -100.0)).steps}


@pytest.mark.parametrize("penalty", ["presence", "frequency"])
def test_penalties_act_in_their_direction(penalty):
    def distinct(value):
        return sum(
            len({step.token for step in written(seed=seed, limit=32, **{penalty: value}).steps}) for seed in range(12)
        )

    assert distinct(2.0) > distinct(0.0) > distinct(-2.0)


def test_a_repetition_penalty_makes_texts_more_varied():
    def distinct(value):
        return sum(
            len({step.token for step in written(seed=seed, limit=32, repetition=value).steps}) for seed in range(12)
        )

    assert distinct(1.9) > distinct(1.0) > distinct(0.4)


def test_hot_text_is_less_likely_than_cool_text():
    def likelihood(temperature):
        return sum(written(seed=seed, temperature=temperature).likelihood for seed in range(12))

    assert likelihood(0) > likelihood(0.7) > likelihood(1.0) > likelihood(2.0)


def test_a_stop_sequence_cuts_at_its_earliest_match_even_inside_tokens():
    whole = written(temperature=0, limit=40)
    stop = whole.text[10:15]
    at = whole.text.index(stop)
    cut = written(temperature=0, limit=40, stops=("never so", stop))
    assert (cut.text, cut.stopped) == (whole.text[:at], True)
    assert "".join(step.text for step in cut.steps) == cut.text
    kept = written(temperature=0, limit=40, stops=(stop,), keep_stop=True)
    assert kept.text == whole.text[: at + len(stop)]


def test_log_probabilities_are_of_a_distribution_and_greedy_takes_the_best():
    from math import exp

    for step in written(temperature=0, alternatives=5).steps:
        top = dict(step.top)
        assert len(top) == 5
        assert step.logprob == top[step.text] == max(top.values()) <= 0
        assert sum(map(exp, top.values())) <= 1 + 1e-9


def test_zero_alternatives_show_the_sampled_token_alone():
    assert all(dict(step.top) == {step.text: step.logprob} for step in written(alternatives=0).steps)


def test_the_first_token_of_a_prompt_has_no_log_probability():
    steps = score(MODEL, PROMPT, 2)
    assert (steps[0].logprob, steps[0].top) == (None, None)
    assert all(step.logprob < 0 for step in steps[1:])


def test_texts_end_by_themselves_as_often_as_the_model_is_told():
    def ended(endings):
        model = LanguageModel(endings=endings)
        return sum(written(seed=seed, model=model, limit=60).stopped for seed in range(40))

    assert ended(Endings.NEVER) == 0 < ended(Endings.SOMETIMES) < ended(Endings.OFTEN)


def test_an_ignored_end_never_comes():
    model = LanguageModel(endings=Endings.OFTEN)
    assert not any(written(seed=seed, model=model, limit=60, ignore_end=True).stopped for seed in range(20))


def test_a_text_without_a_limit_comes_to_an_end():
    model = LanguageModel(rope=8)
    assert all(written(seed=seed, model=model, limit=400, roped=True).stopped for seed in range(20))


def test_hot_text_holds_no_replacement_character():
    assert not any("\ufffd" in written(seed=seed, temperature=2.0, limit=80).text for seed in range(40))


def test_a_forced_byte_shows_as_the_replacement_character():
    assert set(written(bias={byte_token(0xFF): 100.0}, limit=3).text) == {"\ufffd"}


def test_a_model_of_bytes_writes_too():
    model = LanguageModel(Tokenizer(bytewise=True), Endings.NEVER)
    found = written(model.tokenizer.encode("hey"), model=model, temperature=2.0, limit=60)
    assert len(found.text) == 60


def test_a_hundred_texts_are_written_in_no_time():
    started = time.perf_counter()
    for seed in range(128):
        written(seed=seed, limit=16)
    assert time.perf_counter() - started < 0.8


def test_what_is_remembered_is_what_would_be_written():
    for bias in ({300: 100.0, 100: 100.0}, {100: 100.0, 300: 100.0}, {}):
        for seed in (0, "seed 7 0", "seed 7 1"):
            order = Order(PROMPT, 8, Sampling(temperature=1.0 if seed else 0.0, bias=bias))
            once, again = remembered(LanguageModel(), order, seed), remembered(LanguageModel(), order, seed)
            assert once == write(LanguageModel(), order, Random(seed))
            assert again == once
