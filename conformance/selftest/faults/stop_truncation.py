"""Texts are cut at another place than the first stop sequence, changed by it, or finish with the wrong reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.model import StopText
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.responses import Text
from conformance.selftest.edits import (
    Json,
    length_reason,
    sent,
    stop_reason,
    stopping,
    with_other_text,
    with_reason,
    with_text,
)
from conformance.selftest.fault import fault
from conformance.selftest.faults.stop import IGNORED, stops_become

NEEDS = ("stop",)
REWORDED = (
    "tokens_join_to_text", "no_partial_stop_leaks", "cut_keeps_or_drops_the_stop", "stop_finishes_with_stop",
    "stop_text_is_as_promised", "stop_cuts_earliest", "logprobs_count_the_tokens",
)  # fmt: skip


def _matched_stop(text: Text, call: Call) -> str | None:
    """The stop sequence that cut this text; None where none did."""
    uncut = text.generation.uncut_text
    matches = [(uncut.find(stop), stop) for stop in call.params.stops if stop in uncut]
    return min(matches)[1] if matches else None


# Where the text is cut.

stops_become(
    "last_stop_alone_is_forgotten",
    "Of several stop sequences, the last does not stop the text.",
    lambda stops: stops[:-1] if len(stops) > 1 else stops,
    check="stop_cuts_earliest",
)
stops_become(
    "single_stop_is_taken_letter_by_letter",
    "A stop sequence that is a string stops the text at each of its letters.",
    lambda stops: tuple(dict.fromkeys("".join(stops))),
    check="stop_cuts_earliest",
    also=("stop_that_never_matches",),
    only=lambda call: isinstance(sent(call, "stop"), str),
)


@fault(Stage.TEXTS, "stop_cuts_earliest", needs=NEEDS, also=(*REWORDED, "twin_text_agrees"))
def last_word_before_the_stop_is_lost(texts: list[Text], call: Call) -> list[Text]:
    """The last characters before the stop sequence are cut off with it."""
    return [text if _matched_stop(text, call) is None else with_text(text, text.generation.text[:-4]) for text in texts]


@fault(
    Stage.PARAMETERS,
    "cut_keeps_or_drops_the_stop",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=("stop_text_is_as_promised", "logprobs_count_the_tokens"),
    imitates="The stop sequence was kept in the text.",
    fits=lambda contract: contract.semantics.stop_text is not StopText.EITHER,
)
def stop_text_is_kept_or_dropped_against_the_promise(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The text contains the stop sequence where it must not, or lacks it where it must contain it."""
    return replace(params, keep_stop=not params.keep_stop)


@fault(
    Stage.TEXTS,
    "no_partial_stop_leaks",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=REWORDED,
    imitates="A stream sent the first letters of a stop sequence.",
)
def beginning_of_the_stop_slips_out(texts: list[Text], call: Call) -> list[Text]:
    """The text ends with the first half of the stop sequence."""
    changed = []
    for text in texts:
        stop = _matched_stop(text, call)
        if stop is not None and len(stop) > 1:
            cut = text.generation.text.removesuffix(stop) if call.params.keep_stop else text.generation.text
            text = with_text(text, cut + stop[: (len(stop) + 1) // 2])
        changed.append(text)
    return changed


# What the text says, and why it ends.


@fault(
    Stage.PARAMETERS,
    "stop_that_never_matches",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=(*IGNORED, "twin_text_agrees"),
)
def stops_change_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With stop sequences the text is another one, whether they occur or not."""
    return with_other_text(params) if params.stops else params


@fault(Stage.PARAMETERS, "stop_that_never_matches", also=("twin_text_agrees", "burst_does_not_mix"), needs=("user",))
def user_changes_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The value of `user` changes the text."""
    user = sent(call, "user")
    return replace(params, suffix=f"{params.suffix}\n{user}") if isinstance(user, str) else params


@fault(
    Stage.REPLY,
    "stop_finishes_with_stop",
    when=("plain", "streamed"),
    needs=NEEDS,
    also=(
        "length_comes_with_text",
        "logprobs_cover_echo",
        "length_means_the_limit",
        "length_uses_the_limit",
        "stop_cuts_earliest",
    ),
    only=stopping,
)
def stop_is_called_length(documents: list[Json], call: Call) -> list[Json]:
    """A text that a stop sequence cut finishes with the reason for the limit."""
    return with_reason(documents, length_reason(call), stop_reason(call))


def _with_finish(texts: list[Text], call: Call, stopped: Callable[[Text], bool]) -> list[Text]:
    """The texts, those that reached the limit with the reason `stop` where `stopped`."""
    reason, other = length_reason(call), stop_reason(call)
    return [replace(text, finish=other) if text.finish == reason and stopped(text) else text for text in texts]


@fault(
    Stage.TEXTS,
    "uncut_text_finishes_with_length",
    needs=NEEDS,
    also=("stop_that_never_matches", "cut_text_finishes_with_length", "twin_finish_agrees"),
)
def part_of_a_stop_at_the_limit_is_a_stop(texts: list[Text], call: Call) -> list[Text]:
    """A text that reaches the limit with the first characters of a stop sequence finishes with `stop`."""
    begun = tuple(stop[:size] for stop in call.params.stops for size in range(1, len(stop)))
    return _with_finish(texts, call, lambda text: text.generation.text.endswith(begun))


@fault(
    Stage.TEXTS,
    "uncut_text_finishes_with_length",
    needs=(*NEEDS, "echo"),
    also=("stop_that_never_matches", "cut_text_finishes_with_length", "twin_finish_agrees"),
    only=lambda call: call.params.echo,
)
def stop_in_the_echoed_prompt_is_a_stop(texts: list[Text], call: Call) -> list[Text]:
    """A text that reaches the limit finishes with `stop` where its echoed prompt contains a stop sequence."""
    return _with_finish(texts, call, lambda text: any(stop in text.prompt.text for stop in call.params.stops))
