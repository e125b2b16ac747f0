"""Parameters with a visible effect do not have it."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import Contract
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.responses import Text
from conformance.reference.tokenizer import EOS
from conformance.selftest.edits import Json, sent, with_sampling, with_text
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import has_role

BOTH = ("plain", "streamed")
GREEDY = (
    "greedy_repeats", "narrow_sampling_is_greedy", "parameter_spreads_texts", "choices_agree_when_greedy",
    "twin_text_agrees", "null_is_absent", "batch_is_singles", "longer_limit_extends", "stop_cuts_earliest",
    "stop_that_never_matches", "logprobs_change_nothing", "echo_adds_only_the_prompt", "top_logprobs_are_plausible",
    "greedy_takes_the_likeliest", "default_is_explicit", "burst_does_not_mix", "suffix_is_used",
    "cut_text_finishes_with_length", "penalty_reduces_repetition", "no_partial_stop_leaks", "stop_finishes_with_stop",
    "bias_bans", "bias_forces",
)  # fmt: skip


def _allows_zero_top_p(contract: Contract) -> bool:
    limit = contract.limit("top_p")
    return limit is not None and limit.low == 0


@fault(
    Stage.PARAMETERS,
    "narrow_sampling_is_greedy",
    needs=("top_p",),
    when=BOTH,
    also=("filter_bounds_the_choice", "parameter_spreads_texts"),
    imitates="top_p was not read.",
)
def top_p_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """top_p has no effect."""
    return with_sampling(params, top_p=1.0)


@fault(
    Stage.PARAMETERS,
    "narrow_sampling_is_greedy",
    needs=("top_p",),
    also=("filter_bounds_the_choice", "parameter_spreads_texts"),
    fits=_allows_zero_top_p,
    imitates="Zero was taken for no value.",
)
def top_p_of_zero_is_off(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A top_p of 0 has no effect."""
    return params if params.sampling.top_p else with_sampling(params, top_p=1.0)


@fault(
    Stage.PARAMETERS,
    "greedy_repeats",
    needs=("temperature",),
    when=BOTH,
    also=("greedy_takes_the_likeliest", *GREEDY),
    imitates="Temperature 0 was taken for the default.",
)
def zero_temperature_is_taken_for_absent(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A temperature of 0 is treated as absent."""
    return with_sampling(params, temperature=1.0) if params.sampling.temperature == 0 else params


@fault(Stage.PARAMETERS, "seed_repeats", needs=("seed",), when=BOTH, imitates="A seed was accepted and had no effect.")
def seed_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A seed has no effect."""
    return replace(params, seed=None)


@fault(Stage.PARAMETERS, "seed_repeats", needs=("seed", "n"), only=lambda call: (sent(call, "n") or 1) != 1)
def seed_is_ignored_beside_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, a seed has no effect."""
    return replace(params, seed=None)


@fault(
    Stage.PARAMETERS,
    "suffix_is_used",
    needs=("suffix",),
    when=BOTH,
    imitates="A suffix was accepted and had no effect.",
)
def suffix_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A suffix has no effect."""
    return replace(params, suffix="")


@fault(
    Stage.TEXTS,
    "suffix_is_used",
    needs=("suffix",),
    also=("logprobs", "stop", "relations", "finish", "tokens", "usage", "echo", "effects", "schema"),
    imitates="The suffix stood behind each text.",
)
def suffix_is_appended(texts: list[Text], call: Call) -> list[Text]:
    """Each text ends with the suffix."""
    return [with_text(text, text.generation.text + call.params.suffix) for text in texts]


@fault(Stage.PARAMETERS, "ignore_eos_goes_on", fits=has_role(Role.IGNORES_END), when=BOTH)
def end_is_not_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The parameter that ignores the end of a text has no effect, and texts end early."""
    early_end = {EOS: 14.0} if params.sampling.ignore_end else {}
    return with_sampling(params, ignore_end=False, bias={**params.sampling.bias, **early_end})


@fault(Stage.REPLY, "tier_is_reported", fits=has_role(Role.REPORTED))
def tier_is_always_the_first(documents: list[Json], call: Call) -> list[Json]:
    """Replies report the same service tier whichever served the request."""
    tiers = call.reference.shape.tiers
    return [{**document, call.reference.shape.reported: tiers[-1] if tiers else "other"} for document in documents]
