"""`best_of` does not choose."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.fault import fault


@fault(
    Stage.PARAMETERS, "best_of_is_the_likeliest", needs=("best_of",), imitates="best_of was accepted and had no effect."
)
def best_of_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With best_of, the server returns the first candidates, not the likeliest."""
    return replace(params, best_of=params.n)
