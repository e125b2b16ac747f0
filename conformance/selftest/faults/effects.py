"""Sampling parameters without effect, with the opposite one, or at the wrong time."""

from __future__ import annotations

from dataclasses import replace

from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation import Written
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.responses import Text
from conformance.reference.tokenizer import EOS
from conformance.selftest.edits import Json, asked, choices, sampled
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import has_role, with_role

WARM = ("parameter_spreads_texts", "sampling_varies", "penalty_reduces_repetition", "choices_agree_when_greedy")
BOTH = ("plain", "streamed")
GREEDY = (
    "greedy_repeats",
    "narrow_sampling_is_greedy",
    "parameter_spreads_texts",
    "choices_agree_when_greedy",
    "twin_text_agrees",
    "null_is_absent",
    "batch_is_singles",
    "longer_limit_extends",
    "stop_cuts_earliest",
    "stop_that_never_matches",
    "logprobs_change_nothing",
    "echo_adds_only_the_prompt",
    "top_logprobs_are_plausible",
    "default_is_explicit",
    "burst_does_not_mix",
    "suffix_is_used",
    "cut_text_finishes_with_length",
    "penalty_reduces_repetition",
    "no_partial_stop_leaks",
    "stop_finishes_with_stop",
    "bias_bans",
    "bias_forces",
)


@fault(
    Stage.WISH,
    "bias_forces",
    needs=("logit_bias",),
    variants=BOTH,
    also=("bias_bans",),
    imitates="Biases were dropped.",
)
def bias_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A bias has no effect."""
    return sampled(params, bias={})


@fault(Stage.WISH, "bias_bans", needs=("logit_bias",), variants=BOTH)
def bans_are_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A negative bias has no effect."""
    return sampled(params, bias={token: max(bias, 0) for token, bias in params.sampling.bias.items()})


@fault(Stage.WISH, "bias_forces", needs=("logit_bias",), also=("bias_bans",))
def bias_is_reversed(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A bias acts against its sign."""
    return sampled(params, bias={token: -bias for token, bias in params.sampling.bias.items()})


@fault(Stage.WISH, "bias_forces", needs=("logit_bias",), also=("bias_bans",))
def bias_is_a_hundredth(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A bias is a hundredth of what was asked for."""
    return sampled(params, bias={token: bias / 100 for token, bias in params.sampling.bias.items()})


@fault(
    Stage.WISH,
    "bias_forces",
    needs=("logit_bias", "n"),
    also=("bias_bans", "choices_agree_when_greedy"),
    only=lambda call: (asked(call, "n") or 1) != 1,
)
def bias_is_ignored_beside_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, a bias has no effect."""
    return sampled(params, bias={})


@fault(
    Stage.WISH,
    "bias_forces",
    needs=("logit_bias", "logprobs"),
    also=("bias_bans", "logprobs_change_nothing"),
    only=lambda call: asked(call, "logprobs") is not None,
)
def bias_is_ignored_beside_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, a bias has no effect."""
    return sampled(params, bias={})


@fault(
    Stage.WISH,
    "narrow_sampling_is_greedy",
    needs=("top_p",),
    variants=BOTH,
    also=(
        "filter_bounds_the_choice",
        "parameter_spreads_texts",
    ),
    imitates="top_p was not read.",
)
def top_p_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """top_p has no effect."""
    return sampled(params, top_p=1.0)


@fault(
    Stage.WISH,
    "parameter_spreads_texts",
    needs=("top_p",),
    also=(
        "effects",
        "narrow_sampling_is_greedy",
    ),
)
def top_p_is_turned_round(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A low top_p keeps more tokens, not fewer."""
    return sampled(params, top_p=1 - params.sampling.top_p)


@fault(
    Stage.WISH,
    "filter_bounds_the_choice",
    needs=("top_k",),
    also=("parameter_spreads_texts", "narrow_sampling_is_greedy"),
)
def top_k_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """top_k has no effect."""
    return sampled(params, top_k=0)


@fault(
    Stage.WISH,
    "parameter_spreads_texts",
    fits=has_role(Role.PROBABILITY_FLOOR),
    also=(
        "filter_bounds_the_choice",
        "narrow_sampling_is_greedy",
    ),
)
def min_p_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """min_p has no effect."""
    return sampled(params, probability_floor=0.0)


@fault(
    Stage.WISH,
    "greedy_repeats",
    needs=("temperature",),
    variants=BOTH,
    also=GREEDY,
    imitates="Temperature 0 was taken for the default.",
)
def zero_temperature_is_taken_for_absent(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Temperature 0 counts as none at all."""
    return sampled(params, temperature=1.0) if params.sampling.temperature == 0 else params


@fault(
    Stage.WISH,
    "sampling_varies",
    needs=("temperature",),
    variants=BOTH,
    also=WARM,
    imitates="Sampling was greedy whatever the temperature.",
)
def temperature_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Every text is greedy."""
    return sampled(params, temperature=0.0)


@fault(Stage.WISH, "parameter_spreads_texts", needs=("temperature",), also=(*GREEDY, "sampling_varies", "seed_repeats"))
def temperature_is_turned_round(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A low temperature spreads texts, a high one narrows them."""
    return sampled(params, temperature=2 - min(params.sampling.temperature, 2.0))


@fault(
    Stage.TEXTS,
    "sampling_varies",
    variants=BOTH,
    also=(
        "length_means_the_limit",
        "logprobs_count_the_tokens",
        "parameter_spreads_texts",
        "penalty_reduces_repetition",
        "choices_agree_when_greedy",
        "seed_repeats",
    ),
)
def sampled_texts_come_from_a_cache(texts: list[Text], call: Call) -> list[Text]:
    """The first text that was drawn for a prompt is given for it ever after."""
    kept: dict[str, Written] = call.notes.setdefault("sampled_texts_come_from_a_cache", {})
    params = replace(call.params, prompts=(), seed=None, stream=False, include_usage=False)
    return [replace(text, written=kept.setdefault(f"{params} {text.prompt.text}", text.written)) for text in texts]


@fault(
    Stage.WISH,
    "sampling_varies",
    also=("parameter_spreads_texts", "penalty_reduces_repetition"),
    imitates="Requests without a seed all had the same.",
)
def unseeded_requests_share_a_seed(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Requests without a seed all get the same one."""
    return replace(params, seed=0) if params.seed is None else params


@fault(
    Stage.WISH,
    "sampling_varies",
    needs=("seed",),
    also=("parameter_spreads_texts",),
    imitates="Different seeds gave the same text.",
)
def all_seeds_are_alike(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Every seed gives the same text."""
    return replace(params, seed=1) if params.seed is not None else params


@fault(Stage.WISH, "seed_repeats", needs=("seed",), variants=BOTH, imitates="A seed was accepted and ignored.")
def seed_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A seed has no effect."""
    return replace(params, seed=None)


@fault(Stage.WISH, "seed_repeats", needs=("seed", "n"), only=lambda call: (asked(call, "n") or 1) != 1)
def seed_is_ignored_beside_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, a seed has no effect."""
    return replace(params, seed=None)


@fault(Stage.WISH, "suffix_is_used", needs=("suffix",), variants=BOTH, imitates="A suffix was accepted and ignored.")
def suffix_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A suffix has no effect."""
    return replace(params, suffix="")


@fault(Stage.WISH, "ignore_eos_goes_on", fits=has_role(Role.IGNORES_END), variants=BOTH)
def end_is_not_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """ignore_eos has no effect, and texts end early."""
    return sampled(params, ignore_end=False, bias={**params.sampling.bias, **_ends(params)})


def _ends(params: GenerationParameters) -> dict[int, float]:
    return {EOS: 14.0} if params.sampling.ignore_end else {}


@fault(Stage.WISH, "penalty_reduces_repetition", each=("presence_penalty", "frequency_penalty", "repetition_penalty"))
def penalty_is_turned_round(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` makes texts repeat themselves more."""
    field = name.partition("_")[0]
    value = getattr(params.sampling, field)
    return sampled(params, **{field: 1 / value if field == "repetition" else -value})


@fault(Stage.WISH, "penalty_reduces_repetition", each=("presence_penalty", "frequency_penalty", "repetition_penalty"))
def penalty_is_ignored(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` has no effect."""
    field = name.partition("_")[0]
    return sampled(params, **{field: 1.0 if field == "repetition" else 0.0})


@fault(Stage.WISH, "json_is_valid", needs=("response_format",), variants=BOTH, imitates="The format was ignored.")
def format_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A JSON format has no effect."""
    return replace(params, output=None)


@fault(Stage.WISH, "json_is_valid", needs=("response_format",))
def schema_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """JSON comes, whatever its schema."""
    return replace(params, output={"type": "json_object"}) if params.output else params


@fault(
    Stage.REPLY,
    "json_is_valid",
    needs=("response_format",),
    only=lambda call: bool(call.params.output),
    also=(
        "completion_tokens_are_counted",
        "echo_begins_with_prompt",
        "logprobs",
        "tokens_join_to_text",
        "stop_text_is_as_promised",
    ),
)
def json_stands_in_a_fence(documents: list[Json], call: Call) -> list[Json]:
    """JSON comes in a Markdown fence."""
    begun: set[int] = set()
    for choice in choices(documents):
        if choice["index"] not in begun:
            begun.add(choice["index"])
            choice["text"] = "```json\n" + choice["text"]
    return documents


@fault(Stage.REPLY, "tier_is_reported", fits=has_role(Role.REPORTED))
def tier_is_always_the_first(documents: list[Json], call: Call) -> list[Json]:
    """Replies name the same tier whatever served the request."""
    tiers = call.reference.shape.tiers
    return [{**one, call.reference.shape.reported: tiers[-1] if tiers else "other"} for one in documents]


@fault(
    Stage.WISH,
    "filter_bounds_the_choice",
    each=("top_p", "top_k", *with_role(Role.PROBABILITY_FLOOR)),
    needs=("logprobs",),
)
def filter_works_at_its_narrow_end_alone(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` has no effect except at the end where one token is left."""
    sampling = params.sampling
    field, narrow, without = {
        "top_p": ("top_p", sampling.top_p <= 0.05, 1.0),
        "top_k": ("top_k", sampling.top_k == 1, 0),
    }.get(name, ("probability_floor", sampling.probability_floor > 0.9, 0.0))
    return params if narrow else sampled(params, **{field: without})
