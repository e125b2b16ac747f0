"""Texts that should differ do not."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation import Generation
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.responses import Text
from conformance.selftest.edits import with_sampling
from conformance.selftest.fault import fault


@fault(
    Stage.PARAMETERS,
    "sampling_varies",
    needs=("temperature",),
    when=("plain", "streamed"),
    also=("parameter_spreads_texts", "penalty_reduces_repetition", "choices_agree_when_greedy"),
    imitates="Sampling was greedy whatever the temperature.",
)
def temperature_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Decoding is greedy whatever the temperature."""
    return with_sampling(params, temperature=0.0)


@fault(
    Stage.TEXTS,
    "sampling_varies",
    when=("plain", "streamed"),
    also=(
        "length_means_the_limit", "logprobs_count_the_tokens", "parameter_spreads_texts", "penalty_reduces_repetition",
        "choices_agree_when_greedy", "seed_repeats",
    ),
)  # fmt: skip
def sampled_texts_come_from_a_cache(texts: list[Text], call: Call) -> list[Text]:
    """The server caches the first text sampled for a request, and returns it to every equal request."""
    cache: dict[str, Generation] = call.notes.setdefault("sampled_texts_come_from_a_cache", {})
    key = replace(call.params, prompts=(), seed=None, stream=False, include_usage=False)
    return [replace(text, generation=cache.setdefault(f"{key} {text.prompt.text}", text.generation)) for text in texts]


@fault(
    Stage.PARAMETERS,
    "sampling_varies",
    also=("parameter_spreads_texts", "penalty_reduces_repetition"),
    imitates="Requests without a seed all had the same one.",
)
def unseeded_requests_share_a_seed(params: GenerationParameters, call: Call) -> GenerationParameters:
    """All requests without a seed get the same seed."""
    return replace(params, seed=0) if params.seed is None else params


@fault(
    Stage.PARAMETERS,
    "sampling_varies",
    needs=("seed",),
    also=("parameter_spreads_texts",),
    imitates="Different seeds gave the same text.",
)
def all_seeds_are_alike(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Every seed gives the same text."""
    return replace(params, seed=1) if params.seed is not None else params


@fault(
    Stage.TEXTS,
    "sampling_varies",
    needs=("n", "temperature"),
    also=(
        "usage",
        "tokens",
        "best_of_returns_n",
        "logprobs_count_the_tokens",
        "effects",
        "finish",
        "relations",
        "stop",
    ),
    imitates="With n, the first choice was sent n times.",
)
def choices_are_copies_of_the_first(texts: list[Text], call: Call) -> list[Text]:
    """All choices of a prompt have the text of the first."""
    return [replace(texts[text.index // call.params.n * call.params.n], index=text.index) for text in texts]
