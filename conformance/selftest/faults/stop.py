"""Stop sequences are ignored, kept, dropped, or cut at another place than they stand."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import StopText
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.responses import Text
from conformance.selftest.edits import rewritten
from conformance.selftest.fault import fault

NEEDS = ("stop",)
IGNORED = (
    "stop_text_is_as_promised",
    "stop_finishes_with_stop",
    "length_means_the_limit",
    "stop_cuts_earliest",
    "cut_keeps_or_drops_the_stop",
    "no_partial_stop_leaks",
)
REWORDED = (
    "tokens_join_to_text",
    "no_partial_stop_leaks",
    "cut_keeps_or_drops_the_stop",
    "stop_finishes_with_stop",
    "stop_text_is_as_promised",
    "stop_cuts_earliest",
    "logprobs_count_the_tokens",
)


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=NEEDS,
    variants=("plain", "streamed", "sometimes"),
    also=IGNORED,
    imitates="Stop sequences were ignored.",
)
def stops_are_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Stop sequences do not stop anything."""
    return replace(params, stops=())


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=(*NEEDS, "n"),
    also=(*IGNORED, "choices_agree_when_greedy"),
    only=lambda call: call.params.n > 1,
)
def stops_are_ignored_beside_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, stop sequences do not stop anything."""
    return replace(params, stops=())


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=(*NEEDS, "echo"),
    also=(*IGNORED, "echo_adds_only_the_prompt"),
    only=lambda call: isinstance(call.body, dict) and call.body.get("echo") is True,
)
def stops_are_ignored_beside_echo(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With echo, stop sequences do not stop anything."""
    return replace(params, stops=())


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=(*NEEDS, "logprobs"),
    also=(*IGNORED, "logprobs_change_nothing"),
    only=lambda call: isinstance(call.body, dict) and call.body.get("logprobs") is not None,
)
def stops_are_ignored_beside_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, stop sequences do not stop anything."""
    return replace(params, stops=())


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=NEEDS,
    also=IGNORED,
    imitates="A sequence of several tokens was never recognised.",
)
def stops_of_several_tokens_are_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stop sequence works only where it is a single token."""
    tokenizer = call.reference.model.tokenizer
    return replace(params, stops=tuple(stop for stop in params.stops if len(tokenizer.encode(stop)) == 1))


@fault(Stage.WISH, "stop_text_is_as_promised", needs=NEEDS, also=IGNORED)
def first_stop_alone_counts(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Of several stop sequences, the first alone works."""
    return replace(params, stops=params.stops[:1])


@fault(Stage.WISH, "stop_cuts_earliest", needs=NEEDS, also=IGNORED)
def last_stop_alone_is_forgotten(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Of several stop sequences, all but the last one work."""
    return replace(params, stops=params.stops[:-1] if len(params.stops) > 1 else params.stops)


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=NEEDS,
    also=IGNORED,
    only=lambda call: isinstance(call.body, dict) and isinstance(call.body.get("stop"), str),
)
def single_stop_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stop sequence that is not in a list does not stop anything."""
    return replace(params, stops=())


@fault(
    Stage.WISH,
    "stop_cuts_earliest",
    needs=NEEDS,
    also=(*IGNORED, "stop_that_never_matches"),
    only=lambda call: isinstance(call.body, dict) and isinstance(call.body.get("stop"), str),
)
def single_stop_is_taken_letter_by_letter(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stop sequence that is not in a list stops the text at each of its letters."""
    return replace(params, stops=tuple(dict.fromkeys("".join(params.stops))))


@fault(
    Stage.WISH,
    "cut_keeps_or_drops_the_stop",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=("stop_text_is_as_promised", "logprobs_count_the_tokens"),
    imitates="The stop sequence was kept in the text.",
    fits=lambda contract: contract.semantics.stop_text is not StopText.EITHER,
)
def stop_text_is_kept_or_dropped_against_the_promise(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The stop sequence stays in the text where it is to be left out, and the other way round."""
    return replace(params, keep_stop=not params.keep_stop)


@fault(
    Stage.WISH,
    "stop_text_is_as_promised",
    needs=NEEDS,
    also=IGNORED,
    only=lambda call: call.body is not None,
    fits=lambda contract: contract.semantics.stop_text is StopText.EXCLUDED,
)
def stops_work_at_the_end_alone(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stop sequence works only where its last letter is cut off, so that the text holds it."""
    return replace(params, keep_stop=True) if len(params.stops) > 1 else params


def _cut(text: Text, call: Call) -> str | None:
    """The stop sequence that cut this text; None where none did."""
    beyond = text.written.beyond
    found = [(beyond.find(stop), stop) for stop in call.params.stops if stop in beyond]
    return min(found)[1] if found else None


@fault(
    Stage.TEXTS,
    "no_partial_stop_leaks",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=REWORDED,
    imitates="A stream let the first letters of a stop sequence slip.",
)
def beginning_of_the_stop_slips_out(texts: list[Text], call: Call) -> list[Text]:
    """The text ends with the first half of the stop sequence."""
    told = []
    for text in texts:
        stop = _cut(text, call)
        if stop is not None and len(stop) > 1:
            kept = text.written.text.removesuffix(stop) if call.params.keep_stop else text.written.text
            text = rewritten(text, kept + stop[: (len(stop) + 1) // 2])
        told.append(text)
    return told


@fault(Stage.TEXTS, "stop_cuts_earliest", needs=NEEDS, also=(*REWORDED, "twin_text_agrees"))
def last_word_before_the_stop_is_lost(texts: list[Text], call: Call) -> list[Text]:
    """The word in front of the stop sequence goes with it."""
    return [text if _cut(text, call) is None else rewritten(text, text.written.text[:-4]) for text in texts]


@fault(
    Stage.WISH,
    "stop_that_never_matches",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=(*IGNORED, "twin_text_agrees"),
)
def stops_change_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With stop sequences another text is written, whether they occur or not."""
    return replace(params, suffix=params.suffix + "\n") if params.stops else params


@fault(Stage.WISH, "stop_that_never_matches", also=("twin_text_agrees", "burst_does_not_mix"), needs=("user",))
def user_changes_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The user's name becomes part of the prompt."""
    named = call.body.get("user") if isinstance(call.body, dict) else None
    return replace(params, suffix=f"{params.suffix}\n{named}") if isinstance(named, str) else params
