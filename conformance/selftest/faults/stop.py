"""Stop sequences are ignored, all or some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from conformance.model import StopText
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import sent
from conformance.selftest.fault import fault, plant

Stops: TypeAlias = tuple[str, ...]
IGNORED = (
    "stop_text_is_as_promised", "stop_finishes_with_stop", "length_means_the_limit", "stop_cuts_earliest",
    "cut_keeps_or_drops_the_stop", "no_partial_stop_leaks",
)  # fmt: skip


def stops_become(
    name: str,
    says: str,
    change: Callable[[Stops], Stops],
    *,
    check: str = "stop_text_is_as_promised",
    also: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
    **options: Any,
) -> None:
    """A fault that replaces the stop sequences."""

    def altered(params: GenerationParameters, call: Call) -> GenerationParameters:
        return replace(params, stops=change(params.stops))

    plant(name, says, Stage.PARAMETERS, check, altered, needs=("stop", *needs), also=(*IGNORED, *also), **options)


def _none(stops: Stops) -> Stops:
    return ()


stops_become(
    "stops_are_ignored",
    "Stop sequences do not stop the text.",
    _none,
    when=("plain", "streamed", "sometimes"),
    imitates="Stop sequences were ignored.",
)
stops_become(
    "lists_of_one_stop_are_ignored",
    "A stop sequence that is alone in its list does not stop the text.",
    _none,
    only=lambda call: isinstance(sent(call, "stop"), list) and len(call.params.stops) == 1,
)
stops_become(
    "long_stops_are_ignored",
    "Stop sequences of more than sixteen characters do not stop the text.",
    lambda stops: tuple(stop for stop in stops if len(stop) <= 16),
)
stops_become(
    "stops_are_ignored_beside_n",
    "With n, stop sequences do not stop the texts.",
    _none,
    needs=("n",),
    also=("choices_agree_when_greedy",),
    only=lambda call: call.params.n > 1,
)
stops_become(
    "stops_are_ignored_beside_echo",
    "With echo, stop sequences do not stop the text.",
    _none,
    needs=("echo",),
    also=("echo_adds_only_the_prompt",),
    only=lambda call: sent(call, "echo") is True,
)
stops_become(
    "stops_are_ignored_beside_logprobs",
    "With log probabilities, stop sequences do not stop the text.",
    _none,
    needs=("logprobs",),
    also=("logprobs_change_nothing",),
    only=lambda call: sent(call, "logprobs") is not None,
)
stops_become(
    "single_stop_is_ignored",
    "A stop sequence that is a string, not a list, does not stop the text.",
    _none,
    only=lambda call: isinstance(sent(call, "stop"), str),
)
stops_become(
    "first_stop_alone_counts",
    "Of several stop sequences, only the first stops the text.",
    lambda stops: stops[:1],
)


@fault(
    Stage.PARAMETERS,
    "stop_text_is_as_promised",
    needs=("stop",),
    also=IGNORED,
    imitates="A sequence of several tokens was never recognised.",
)
def stops_of_several_tokens_are_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Only stop sequences of a single token stop the text."""
    tokenizer = call.reference.model.tokenizer
    return replace(params, stops=tuple(stop for stop in params.stops if len(tokenizer.encode(stop)) == 1))


@fault(
    Stage.PARAMETERS,
    "stop_text_is_as_promised",
    needs=("stop",),
    also=IGNORED,
    only=lambda call: call.body is not None,
    fits=lambda contract: contract.semantics.stop_text is StopText.EXCLUDED,
)
def stops_work_at_the_end_alone(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With several stop sequences, the text ends after the stop sequence, although it must not contain it."""
    return replace(params, keep_stop=True) if len(params.stops) > 1 else params
