"""A stream says something else than the plain reply to the same request."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import (
    Json,
    choices,
    length_reason,
    plain,
    scored,
    stop_reason,
    streaming,
    with_counts,
    with_other_text,
)
from conformance.selftest.fault import fault
from conformance.selftest.faults.logprobs_values import VALUES, with_alternatives, with_values

TEXT = (
    "tokens_join_to_text", "stop_cuts_earliest", "longer_limit_extends", "echo_begins_with_prompt", "bias_forces",
    "echo_adds_only_the_prompt", "json_is_valid", "stop_text_is_as_promised", "burst_does_not_mix", "bias_bans",
)  # fmt: skip

# Texts.


@fault(
    Stage.REPLY,
    "twin_text_agrees",
    only=streaming,
    also=("logprobs_cover_echo", *TEXT, "batch_is_singles", "narrow_sampling_is_greedy", "stop_that_never_matches"),
    imitates="Spaces were lost between chunks.",
)
def chunks_lose_their_leading_spaces(documents: list[Json], call: Call) -> list[Json]:
    """The texts of chunks lose their leading spaces."""
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
    lost = len(documents) > 3 and not any(choice["finish_reason"] for choice in documents[1]["choices"])
    return [documents[0], *documents[2:]] if lost else documents


@fault(Stage.REPLY, "twin_text_agrees", only=streaming, also=TEXT, imitates="Emoji were dropped from streams.")
def characters_are_dropped_in_streams(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, characters beyond ASCII are dropped."""
    for choice in choices(documents):
        choice["text"] = "".join(char for char in choice["text"] if char.isascii())
    return documents


@fault(
    Stage.REPLY,
    "twin_text_agrees",
    only=plain,
    also=("narrow_sampling_is_greedy", *TEXT, "relations", "stop", "echo"),
    imitates="Outside of a stream, the text was its last token.",
)
def plain_texts_are_their_last_word(documents: list[Json], call: Call) -> list[Json]:
    """A plain reply holds only the last word of its text."""
    for choice in choices(documents):
        before, space, last = choice["text"].rpartition(" ")
        choice["text"] = space + last if before else choice["text"]
    return documents


@fault(
    Stage.PARAMETERS,
    "twin_text_agrees",
    only=streaming,
    also=(
        "echo_adds_only_the_prompt", "narrow_sampling_is_greedy", "stop_that_never_matches", "relations",
        "stop_cuts_earliest", "burst_does_not_mix",
    ),
    imitates="Streams took another route, with a chat template.",
)  # fmt: skip
def streams_take_another_route(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stream has another text than a plain reply."""
    return with_other_text(params)


@fault(
    Stage.PARAMETERS,
    "twin_text_agrees",
    needs=("stream_options",),
    only=streaming,
    also=("narrow_sampling_is_greedy", "stop_that_never_matches", "relations", "stop_cuts_earliest"),
)
def usage_option_changes_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A stream with usage has another text."""
    return with_other_text(params) if params.include_usage else params


# Choices, finish reasons, log probabilities and usage.


@fault(
    Stage.REPLY,
    "twin_choices_agree",
    only=lambda call: call.streamed and call.params.n > 1,
    also=(
        "usage_chunk_is_sent", "length_uses_the_limit", "usage_is_in_last_chunk", "choices_are_complete",
        "every_choice_finishes", "twin_text_agrees", "twin_finish_agrees", "twin_logprobs_agree", "batch_order_holds",
        "choices_agree_when_greedy",
    ),
)  # fmt: skip
def streams_have_one_choice_less(documents: list[Json], call: Call) -> list[Json]:
    """With n, a stream lacks the last choice."""
    last = call.params.n * len(call.params.prompts) - 1
    return [chunk for chunk in documents if not chunk["choices"] or chunk["choices"][0]["index"] < last]


@fault(
    Stage.REPLY,
    "twin_finish_agrees",
    only=streaming,
    also=("uncut_text_finishes_with_length",
        "batch_is_singles", "stop_that_never_matches", "ignore_eos_goes_on", "length_uses_the_limit",
        "length_means_the_limit", "stop_finishes_with_stop", "cut_text_finishes_with_length",
    ),
    imitates="Streams said `stop` where plain replies said `length`.",
)  # fmt: skip
def streams_finish_for_another_reason(documents: list[Json], call: Call) -> list[Json]:
    """A stream exchanges the finish reasons for the limit and for a natural end."""
    for choice in choices(documents):
        if choice["finish_reason"]:
            limited = choice["finish_reason"] == length_reason(call)
            choice["finish_reason"] = stop_reason(call) if limited else length_reason(call)
    return documents


@fault(
    Stage.REPLY,
    "twin_logprobs_agree",
    needs=("logprobs",),
    only=lambda call: scored(call) and streaming(call),
    also=VALUES,
)
def values_are_rounded_in_streams(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, log probabilities are rounded to whole numbers."""
    with_values(documents, lambda value: float(round(value - 1)))
    return with_alternatives(documents, lambda top: {name: float(round(value - 1)) for name, value in top.items()})


@fault(
    Stage.USAGE,
    "twin_usage_agrees",
    only=streaming,
    also=("prompt_tokens_match_ids", "batch_usage_is_the_sum", "logprobs_count_the_tokens"),
    needs=("stream_options",),
)
def prompt_is_counted_twice_in_streams(usage: Json, call: Call) -> Json:
    """In a stream, prompt tokens are counted twice."""
    return with_counts(usage, prompt_tokens=usage["prompt_tokens"] * 2)
