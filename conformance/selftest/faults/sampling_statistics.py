"""Sampling parameters whose effect shows only in many replies: without effect, or with the opposite one."""

from __future__ import annotations

from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import with_sampling
from conformance.selftest.fault import fault
from conformance.selftest.faults.effects import GREEDY
from conformance.selftest.own_parameters import has_role

PENALTIES = ("presence_penalty", "frequency_penalty", "repetition_penalty")


@fault(Stage.PARAMETERS, "parameter_spreads_texts", needs=("top_p",), also=("effects", "narrow_sampling_is_greedy"))
def top_p_is_turned_round(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A lower top_p keeps more tokens."""
    return with_sampling(params, top_p=1 - params.sampling.top_p)


@fault(
    Stage.PARAMETERS,
    "parameter_spreads_texts",
    fits=has_role(Role.PROBABILITY_FLOOR),
    also=("filter_bounds_the_choice", "narrow_sampling_is_greedy"),
)
def min_p_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """min_p has no effect."""
    return with_sampling(params, probability_floor=0.0)


@fault(
    Stage.PARAMETERS,
    "parameter_spreads_texts",
    needs=("temperature",),
    also=("greedy_takes_the_likeliest", *GREEDY, "sampling_varies", "seed_repeats"),
)
def temperature_is_turned_round(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A low temperature makes texts vary more, a high one less."""
    return with_sampling(params, temperature=2 - min(params.sampling.temperature, 2.0))


@fault(Stage.PARAMETERS, "penalty_reduces_repetition", parameters=PENALTIES)
def penalty_is_turned_round(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` makes texts repeat themselves more."""
    field = name.partition("_")[0]
    value = getattr(params.sampling, field)
    return with_sampling(params, **{field: 1 / value if field == "repetition" else -value})


@fault(Stage.PARAMETERS, "penalty_reduces_repetition", parameters=PENALTIES)
def penalty_is_ignored(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` has no effect."""
    field = name.partition("_")[0]
    return with_sampling(params, **{field: 1.0 if field == "repetition" else 0.0})
