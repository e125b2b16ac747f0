"""`logit_bias` has no effect, or another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import sent, with_sampling
from conformance.selftest.fault import plant


def biases_become(
    name: str,
    says: str,
    change: Callable[[float], float | None],
    *,
    check: str = "bias_forces",
    also: tuple[str, ...] = ("bias_bans",),
    needs: tuple[str, ...] = (),
    **options: Any,
) -> None:
    """A fault that replaces each bias; None drops it."""

    def altered(params: GenerationParameters, call: Call) -> GenerationParameters:
        changed = {token: change(bias) for token, bias in params.sampling.bias.items()}
        return with_sampling(params, bias={token: bias for token, bias in changed.items() if bias is not None})

    plant(name, says, Stage.PARAMETERS, check, altered, needs=("logit_bias", *needs), also=also, **options)


def _dropped(bias: float) -> None:
    return None


biases_become(
    "bias_is_ignored",
    "A bias has no effect.",
    _dropped,
    when=("plain", "streamed"),
    imitates="Biases were dropped.",
)
biases_become(
    "bans_are_ignored",
    "A negative bias has no effect.",
    lambda bias: max(bias, 0),
    check="bias_bans",
    also=(),
    when=("plain", "streamed"),
)
biases_become(
    "bias_is_lost_beside_penalties",
    "With a penalty, a bias has no effect.",
    _dropped,
    also=("bias_bans",),
    only=lambda call: any(sent(call, name) for name in ("presence_penalty", "frequency_penalty")),
)
biases_become(
    "biases_are_ignored_in_long_maps",
    "In a map of more than sixteen entries, a bias has no effect.",
    _dropped,
    also=("bias_bans",),
    only=lambda call: isinstance(sent(call, "logit_bias"), dict) and len(sent(call, "logit_bias")) > 16,
)
biases_become("bias_is_reversed", "A bias acts with the opposite sign.", lambda bias: -bias)
biases_become("bias_is_a_hundredth", "A bias acts with a hundredth of its value.", lambda bias: bias / 100)
biases_become(
    "bias_is_ignored_beside_n",
    "With n, a bias has no effect.",
    _dropped,
    needs=("n",),
    also=("bias_bans", "choices_agree_when_greedy"),
    only=lambda call: (sent(call, "n") or 1) != 1,
)
biases_become(
    "bias_is_ignored_beside_logprobs",
    "With log probabilities, a bias has no effect.",
    _dropped,
    needs=("logprobs",),
    also=("bias_bans", "logprobs_change_nothing"),
    only=lambda call: sent(call, "logprobs") is not None,
)
