"""`top_k`, `top_p` or `min_p` does not filter."""

from __future__ import annotations

from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import with_sampling
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import with_role


@fault(
    Stage.PARAMETERS,
    "filter_bounds_the_choice",
    needs=("top_k",),
    also=("parameter_spreads_texts", "narrow_sampling_is_greedy"),
)
def top_k_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """top_k has no effect."""
    return with_sampling(params, top_k=0)


@fault(
    Stage.PARAMETERS,
    "filter_bounds_the_choice",
    parameters=("top_p", "top_k", *with_role(Role.PROBABILITY_FLOOR)),
    needs=("logprobs",),
)
def filter_works_at_its_narrow_end_alone(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` has an effect only at the end of its range, where one token is left."""
    sampling = params.sampling
    field, narrow, neutral = {
        "top_p": ("top_p", sampling.top_p <= 0.05, 1.0),
        "top_k": ("top_k", sampling.top_k == 1, 0),
    }.get(name, ("probability_floor", sampling.probability_floor > 0.9, 0.0))
    return params if narrow else with_sampling(params, **{field: neutral})
