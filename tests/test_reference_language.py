"""The language model of the reference: tokens, sampling, generation."""

from random import Random

import pytest

from conformance.reference.generation import GenerationTask, generate, generate_with, score
from conformance.reference.language_model import Endings, LanguageModel
from conformance.reference.sampling import Sampling
from conformance.reference.tokenizer import BOS, EOS, SIZE, Tokenizer, byte_token, spell, surface

MODEL = LanguageModel(endings=Endings.NEVER)
PROMPT = MODEL.tokenizer.encode("1, 2, 3,")
TEXTS = ["", "hello", "The river, and 42 stones.\n\n", "é 海 😀 👩\u200d🚀", "\x00\t  double  ", "data: [DONE]", "שלום"]


def generated(prompt=PROMPT, limit=24, seed=1, model=MODEL, **fields):
    sampling = Sampling(
        **{key: fields.pop(key) for key in list(fields) if key in Sampling.__slots__ or key == "temperature"}
    )
    return generate_with(model, GenerationTask(prompt, limit, sampling, **fields), Random(seed))


@pytest.mark.parametrize("tokenizer", [Tokenizer(), Tokenizer(bytewise=True)])
@pytest.mark.parametrize("text", TEXTS)
def test_the_tokens_of_a_text_spell_the_text(tokenizer, text):
    tokens = tokenizer.encode(text)
    assert "".join(spell(tokens)) == text
    assert all(0 <= token < SIZE for token in tokens)


def test_the_last_token_of_a_character_adds_it():
    assert spell(Tokenizer().encode("😀")) == ("", "", "", "😀")


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert "".join(spell(Tokenizer().encode("a\ud800b"))) == "a\ufffdb"


def test_a_tokenizer_may_add_a_start_token():
    assert Tokenizer(bos=True).encode("hello") == (BOS, *Tokenizer().encode("hello"))


@pytest.mark.parametrize("token", [0, 300, 1212, 50255, EOS, BOS, SIZE, -1, 10**12])
def test_every_token_id_has_a_text(token):
    assert isinstance(surface(token), bytes)


def test_greedy_text_repeats_and_another_prompt_gives_another():
    first = generated(temperature=0)
    assert first == generated(temperature=0, seed=2)
    assert first.text != generated(MODEL.tokenizer.encode("Once upon"), temperature=0).text


def test_sampled_text_repeats_with_its_seed_only():
    assert generated(seed=3).text == generated(seed=3).text
    assert len({generated(seed=seed).text for seed in range(8)}) == 8


def test_a_shorter_limit_gives_the_beginning_of_the_longer_text():
    assert generated(temperature=0, limit=40).text.startswith(generated(temperature=0, limit=9).text)


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 0.0}, {"top_p": 1e-6}, {"probability_floor": 1.0}])
def test_narrow_sampling_is_greedy(narrow):
    assert generated(temperature=2.0, **narrow).text == generated(temperature=0).text


def test_a_bias_of_100_forces_a_token_and_one_of_minus_100_bans_it():
    assert {step.token for step in generated(bias={5: 100.0}).steps} == {5}
    sampled = {step.token for step in generated(limit=200).steps}
    assert not sampled & {step.token for step in generated(limit=200, bias=dict.fromkeys(sampled, -100.0)).steps}


@pytest.mark.parametrize("penalty", ["presence", "frequency"])
def test_penalties_act_in_their_direction(penalty):
    def distinct(value):
        return sum(
            len({step.token for step in generated(seed=seed, limit=32, **{penalty: value}).steps}) for seed in range(12)
        )

    assert distinct(2.0) > distinct(0.0) > distinct(-2.0)


def test_a_repetition_penalty_makes_texts_more_varied():
    def distinct(value):
        return sum(
            len({step.token for step in generated(seed=seed, limit=32, repetition=value).steps}) for seed in range(12)
        )

    assert distinct(1.9) > distinct(1.0) > distinct(0.4)


def test_hot_text_is_less_likely_than_cool_text():
    def mean_logprob(temperature):
        return sum(generated(seed=seed, temperature=temperature).mean_logprob for seed in range(12))

    assert mean_logprob(0) > mean_logprob(0.7) > mean_logprob(1.0) > mean_logprob(2.0)


def test_a_stop_sequence_cuts_at_its_earliest_match_even_inside_tokens():
    uncut = generated(temperature=0, limit=40)
    stop = uncut.text[10:15]
    at = uncut.text.index(stop)
    cut = generated(temperature=0, limit=40, stops=("never so", stop))
    assert (cut.text, cut.stopped) == (uncut.text[:at], True)
    assert "".join(step.text for step in cut.steps) == cut.text
    kept = generated(temperature=0, limit=40, stops=(stop,), keep_stop=True)
    assert kept.text == uncut.text[: at + len(stop)]


def test_log_probabilities_are_of_a_distribution_and_greedy_takes_the_best():
    from math import exp

    for step in generated(temperature=0, alternatives=5).steps:
        top = dict(step.top)
        assert len(top) == 5
        assert step.logprob == top[step.text] == max(top.values()) <= 0
        assert sum(map(exp, top.values())) <= 1 + 1e-9


def test_zero_alternatives_show_the_sampled_token_alone():
    assert all(dict(step.top) == {step.text: step.logprob} for step in generated(alternatives=0).steps)


def test_the_first_token_of_a_prompt_has_no_log_probability():
    steps = score(MODEL, PROMPT, 2)
    assert (steps[0].logprob, steps[0].top) == (None, None)
    assert all(step.logprob < 0 for step in steps[1:])


def test_a_text_of_the_model_has_the_same_log_probabilities_as_a_part_of_a_prompt():
    steps = generated(temperature=0, alternatives=2).steps
    text = [step.token for step in steps]
    scores = score(MODEL, (*PROMPT, *text), 2)[len(PROMPT) :]
    assert [step.logprob for step in scores] == [step.logprob for step in steps]
    assert [dict(step.top) for step in scores] == [dict(step.top) for step in steps]


def test_texts_end_by_themselves_as_often_as_the_model_says():
    def ended(endings):
        model = LanguageModel(endings=endings)
        return sum(generated(seed=seed, model=model, limit=60).stopped for seed in range(40))

    assert ended(Endings.NEVER) == 0 < ended(Endings.SOMETIMES) < ended(Endings.OFTEN)


def test_an_ignored_end_never_comes():
    model = LanguageModel(endings=Endings.OFTEN)
    assert not any(generated(seed=seed, model=model, limit=60, ignore_end=True).stopped for seed in range(20))


def test_a_text_without_a_limit_comes_to_an_end():
    model = LanguageModel(soft_limit=8)
    assert all(generated(seed=seed, model=model, limit=400, soft_limited=True).stopped for seed in range(20))


def test_hot_text_holds_no_replacement_character():
    assert not any("\ufffd" in generated(seed=seed, temperature=2.0, limit=80).text for seed in range(40))


def test_a_forced_byte_shows_as_the_replacement_character():
    assert set(generated(bias={byte_token(0xFF): 100.0}, limit=3).text) == {"\ufffd"}


def test_a_model_of_bytes_generates_one_byte_per_token():
    model = LanguageModel(Tokenizer(bytewise=True), Endings.NEVER)
    assert len(generated(model.tokenizer.encode("hey"), model=model, temperature=2.0, limit=60).text) == 60


def test_a_cached_text_is_the_one_that_would_be_generated():
    for bias in ({300: 100.0, 100: 100.0}, {100: 100.0, 300: 100.0}, {}):
        for seed in (0, "seed 7 0", "seed 7 1"):
            task = GenerationTask(PROMPT, 8, Sampling(temperature=1.0 if seed else 0.0, bias=bias))
            first, again = generate(LanguageModel(), task, seed), generate(LanguageModel(), task, seed)
            assert first == generate_with(LanguageModel(), task, Random(seed))
            assert again == first
