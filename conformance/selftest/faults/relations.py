"""Requests that should agree do not: streams, batches, nulls, several choices, longer limits; and lost characters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.model import Ending
from conformance.model.json_text import MISSING, loads
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.messages import Response
from conformance.selftest.edits import Json, asked, choices, sampled, streaming
from conformance.selftest.fault import fault

TEXT = (
    "tokens_join_to_text",
    "stop_cuts_earliest",
    "longer_limit_extends",
    "echo_begins_with_prompt",
    "bias_forces",
    "echo_adds_only_the_prompt",
    "json_is_valid",
    "stop_text_is_as_promised",
    "burst_does_not_mix",
    "bias_bans",
)


@fault(
    Stage.REPLY,
    "twin_text_agrees",
    only=streaming,
    also=(*TEXT, "batch_is_singles", "narrow_sampling_is_greedy", "stop_that_never_matches"),
    imitates="Spaces were lost between chunks.",
)
def chunks_lose_their_leading_spaces(documents: list[Json], call: Call) -> list[Json]:
    """Texts of chunks come without their leading spaces."""
    for choice in choices(documents):
        choice["text"] = choice["text"].lstrip(" ")
    return documents


@fault(
    Stage.REPLY,
    "twin_text_agrees",
    only=streaming,
    also=("length_means_the_limit", "logprobs", "relations", *TEXT, "completion_tokens_are_counted"),
)
def second_chunk_is_lost(documents: list[Json], call: Call) -> list[Json]:
    """The second chunk of a stream is lost, unless it is the last."""
    whole = len(documents) > 3 and not any(choice["finish_reason"] for choice in documents[1]["choices"])
    return [documents[0], *documents[2:]] if whole else documents


@fault(
    Stage.REPLY,
    "tokens_join_to_text",
    only=lambda call: streaming(call) and call.params.n > 1,
    also=("twin_text_agrees", *TEXT),
    needs=("n", "logprobs"),
)
def chunks_of_other_choices_are_mixed_in(documents: list[Json], call: Call) -> list[Json]:
    """With n, the second chunks of two choices are exchanged."""
    found = [choice for choice in choices(documents) if choice["text"]]
    n = call.params.n * len(call.params.prompts)
    if len(found) > n + 1:
        found[n]["text"], found[n + 1]["text"] = found[n + 1]["text"], found[n]["text"]
    return documents


@fault(
    Stage.WISH,
    "twin_text_agrees",
    only=lambda call: call.streamed,
    also=(
        "echo_adds_only_the_prompt",
        "narrow_sampling_is_greedy",
        "stop_that_never_matches",
        "relations",
        "stop_cuts_earliest",
        "burst_does_not_mix",
    ),
    imitates="Streams took another route, with a chat template.",
)
def streams_take_another_route(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stream writes another text than a plain reply."""
    return replace(params, suffix=params.suffix + "\n")


@fault(
    Stage.WISH,
    "twin_text_agrees",
    needs=("stream_options",),
    only=lambda call: call.streamed,
    also=(
        "narrow_sampling_is_greedy",
        "stop_that_never_matches",
        "relations",
        "stop_cuts_earliest",
    ),
)
def usage_option_changes_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stream that is asked for usage writes another text."""
    return replace(params, suffix=params.suffix + "\n") if params.include_usage else params


@fault(
    Stage.REPLY,
    "twin_choices_agree",
    only=lambda call: streaming(call) and call.params.n > 1,
    also=(
        "usage_chunk_is_sent",
        "length_uses_the_limit",
        "usage_is_in_last_chunk",
        "choices_are_complete",
        "every_choice_finishes",
        "twin_text_agrees",
        "twin_finish_agrees",
        "twin_logprobs_agree",
        "batch_order_holds",
        "choices_agree_when_greedy",
    ),
)
def streams_have_one_choice_less(documents: list[Json], call: Call) -> list[Json]:
    """With n, a stream lacks the last choice."""
    last = call.params.n * len(call.params.prompts) - 1
    return [one for one in documents if not one["choices"] or one["choices"][0]["index"] < last]


@fault(
    Stage.REPLY,
    "twin_finish_agrees",
    only=streaming,
    also=(
        "batch_is_singles",
        "stop_that_never_matches",
        "ignore_eos_goes_on",
        "length_uses_the_limit",
        "length_means_the_limit",
        "stop_finishes_with_stop",
        "cut_text_finishes_with_length",
    ),
    imitates="Streams said `stop` where plain replies said `length`.",
)
def streams_finish_for_another_reason(documents: list[Json], call: Call) -> list[Json]:
    """A stream finishes for the other reason."""
    length = call.reference.contract.semantics.length_reason
    stop = call.reference.contract.semantics.stop_reason
    for choice in choices(documents):
        if choice["finish_reason"]:
            choice["finish_reason"] = stop if choice["finish_reason"] == length else length
    return documents


@fault(
    Stage.BODY,
    "null_is_absent",
    each=("n", "presence_penalty", "frequency_penalty"),
    also=(
        "completion_tokens_within_limit",
        "valid_is_accepted",
        "choices_are_complete",
        "length_uses_the_limit",
        "sampling_varies",
        "max_tokens_zero",
        "default_is_explicit",
        "default_max_tokens",
    ),
    fits=lambda contract, name: contract.parameters[name].nullable,
)
def null_is_taken_for_the_lowest(body: Any, call: Call, name: str) -> Any:
    """A `{name}` of null counts as the lowest value."""
    if not isinstance(body, dict) or body.get(name, MISSING) is not None:
        return body
    limit = call.reference.contract.limit(name)
    lowest = 2 if name == "n" else 1 if name == "max_tokens" else limit.low if limit and limit.low is not None else 0
    return {**body, name: lowest}


@fault(
    Stage.WISH,
    "default_is_explicit",
    each=("n", "echo"),
    also=(
        "best_of_returns_n",
        "default_max_tokens",
        "completion_tokens_are_counted",
        "filter_bounds_the_choice",
        "length_means_the_limit",
        "logprobs",
        "stop_text_is_as_promised",
        "choices_are_complete",
        "echo_begins_with_prompt",
        "logprobs_are_not_unasked",
        "null_is_absent",
        "logprobs_change_nothing",
        "echo_adds_only_the_prompt",
        "twin_choices_agree",
        "twin_text_agrees",
        "batch_order_holds",
        "choices_agree_when_greedy",
        "bias_forces",
        "tokens_join_to_text",
        "longer_limit_extends",
        "burst_does_not_mix",
        "batch_is_singles",
        "batch_usage_is_the_sum",
        "stop_cuts_earliest",
        "length_uses_the_limit",
        "suffix_is_used",
        "completion_tokens_within_limit",
        "max_tokens_zero",
        "json_is_valid",
    ),
    fits=lambda contract, name: contract.default(name) is not None,
)
def default_is_another(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` has another default than documented."""
    if asked(call, name) is not None:
        return params
    if name == "n":
        return replace(params, n=2, best_of=max(params.best_of, 2))
    return replace(params, echo=True)


@fault(
    Stage.BODY,
    "plain_declares_json",
    also=(
        "limits",
        "default_is_explicit",
        "plain_declares_json",
        "plain_is_one_json_text",
        "null_is_absent",
        "stream_has_events",
        "twin_choices_agree",
        "plain_field_conforms",
    ),
    needs=("stream",),
)
def streaming_is_the_default(body: Any, call: Call) -> Any:
    """A request that does not mention `stream` gets a stream."""
    return {**body, "stream": True} if isinstance(body, dict) and body.get("stream") is None else body


@fault(
    Stage.WISH,
    "batch_is_singles",
    variants=("plain", "streamed"),
    also=(
        "stop_cuts_earliest",
        "batch_order_holds",
    ),
    only=lambda call: isinstance(asked(call, "prompt"), list),
)
def prompts_of_a_batch_colour_each_other(params: GenerationParameters, call: Call) -> GenerationParameters:
    """In a batch, each prompt is continued in another way than alone."""
    return replace(params, suffix=params.suffix + "\n") if len(params.prompts) > 1 else params


@fault(
    Stage.WISH,
    "choices_agree_when_greedy",
    needs=("n",),
    also=(
        "greedy_repeats",
        "top_logprobs_are_plausible",
        "twin_text_agrees",
    ),
)
def several_choices_are_always_sampled(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, texts are drawn even at temperature 0."""
    greedy = params.n > 1 and params.sampling.temperature == 0
    return sampled(params, temperature=1.0) if greedy else params


@fault(
    Stage.WISH,
    "longer_limit_extends",
    needs=("max_tokens",),
    variants=("plain", "streamed"),
    also=(
        "narrow_sampling_is_greedy",
        "stop_that_never_matches",
        "stop_cuts_earliest",
        "cut_text_finishes_with_length",
        "echo_adds_only_the_prompt",
        "default_is_explicit",
    ),
)
def limit_colours_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Each limit gives another text."""
    return replace(params, suffix=f"{params.suffix}{params.max_tokens}")


def _halved(text: str) -> str:
    return "".join(char if char.isascii() else "\ufffd" * len(char.encode()) for char in text)


@fault(
    Stage.REPLY,
    "no_replacement_characters",
    only=streaming,
    also=(*TEXT, "twin_text_agrees", "text_offsets_follow_tokens"),
    imitates="Characters of several bytes were decoded piece by piece.",
)
def bytes_are_decoded_one_by_one_in_streams(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, characters beyond ASCII become U+FFFD."""
    for choice in choices(documents):
        choice["text"] = _halved(choice["text"])
    return documents


@fault(
    Stage.REPLY,
    "no_replacement_characters",
    only=lambda call: not call.streamed,
    also=(*TEXT, "twin_text_agrees", "text_offsets_follow_tokens"),
)
def bytes_are_decoded_one_by_one_in_plain_replies(documents: list[Json], call: Call) -> list[Json]:
    """In a plain reply, characters beyond ASCII become U+FFFD."""
    for choice in choices(documents):
        choice["text"] = _halved(choice["text"])
    return documents


@fault(Stage.REPLY, "twin_text_agrees", only=streaming, also=TEXT, imitates="Emoji were dropped from streams.")
def characters_are_dropped_in_streams(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, characters beyond ASCII are dropped."""
    for choice in choices(documents):
        choice["text"] = "".join(char for char in choice["text"] if char.isascii())
    return documents


def _others(call: Call) -> list[bytes]:
    return [one.body for one in call.reference.memory.in_flight if one.body != call.request.body]


MIXED = ("twin_text_agrees", "batch_is_singles", "greedy_repeats")


@fault(Stage.BODY, "burst_does_not_mix", also=MIXED, imitates="Requests that ran together got each other's texts.")
def prompts_are_exchanged_in_a_crowd(body: Any, call: Call) -> Any:
    """A request that runs beside another one gets the answer to that one's prompt."""
    other = next((loads(one) for one in _others(call) if one.startswith(b"{") and b'"prompt"' in one), None)
    return {**body, "prompt": other["prompt"]} if isinstance(other, dict) and isinstance(body, dict) else body


@fault(
    Stage.REPLY, "burst_does_not_mix", also=(*MIXED, *TEXT), only=lambda call: len(call.reference.memory.in_flight) > 1
)
def slots_are_not_cleared_in_a_crowd(documents: list[Json], call: Call) -> list[Json]:
    """A request that runs beside another one has words of that one's answer at its end."""
    last = call.notes.get("slots_are_not_cleared_in_a_crowd", "")
    shown = [choice for choice in choices(documents) if choice["text"]]
    if shown:
        call.notes["slots_are_not_cleared_in_a_crowd"] = shown[0]["text"]
        shown[-1]["text"] += last
    return documents


@fault(Stage.RESPONSE, "response_is_complete", variants=("crowded",), also=("burst_does_not_mix", "done_is_sent"))
def connections_are_dropped(response: Response, call: Call) -> Response:
    """A reply beside others breaks off."""
    return replace(response, portions=response.portions[:1], ending=Ending.TRUNCATED)


@fault(
    Stage.REPLY,
    "cut_text_finishes_with_length",
    variants=("plain", "streamed"),
    needs=("max_tokens",),
    also=(
        "ignore_eos_goes_on",
        "stop_that_never_matches",
        "finish",
    ),
    only=lambda call: not call.params.stops and (call.params.max_tokens or 99) < 8,
)
def short_limit_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """A text that a very low limit cut finishes with the reason for a natural end."""
    length = call.reference.contract.semantics.length_reason
    for choice in choices(documents):
        if choice["finish_reason"] == length:
            choice["finish_reason"] = call.reference.contract.semantics.stop_reason
    return documents
