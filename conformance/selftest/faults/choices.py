"""Choices are missing, misnumbered or exchanged."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices, plain, several, several_prompts, streaming
from conformance.selftest.fault import fault

MISSING = (
    "best_of_returns_n", "choices_agree_when_greedy", "batch_order_holds", "batch_is_singles", "every_choice_finishes",
    "twin_choices_agree", "batch_usage_is_the_sum", "length_uses_the_limit", "logprobs_count_the_tokens",
    "choice_indices_are_unique", "choices_are_in_order", "echo_begins_with_prompt", "burst_does_not_mix",
    "finish_reason_is_settled", "no_text_after_finish", "twin_text_agrees", "twin_finish_agrees",
    "twin_logprobs_agree", "text_offsets_follow_tokens", "deltas_are_not_cumulative", "chunk_has_choices",
    "logprobs_are_returned", "tokens_join_to_text", "logprobs_cover_echo", "completion_tokens_are_counted",
    "chunk_field_conforms", "plain_field_conforms", "usage_chunk_has_no_choices",
)  # fmt: skip
SWAPPED = (
    "batch_order_holds", "batch_is_singles", "echo_begins_with_prompt", "choices_are_in_order", "logprobs_cover_echo",
    "text_offsets_follow_tokens", "twin_text_agrees", "twin_logprobs_agree", "twin_finish_agrees",
    "choices_agree_when_greedy", "echo_adds_only_the_prompt", "tokens_join_to_text", "burst_does_not_mix",
)  # fmt: skip

# Missing choices.


@fault(
    Stage.PARAMETERS,
    "choices_are_complete",
    needs=("n",),
    also=MISSING,
    when=("plain", "streamed"),
    imitates="n was ignored.",
)
def n_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The server returns one choice for each prompt, whatever n is."""
    return replace(params, n=1, best_of=1 if params.best_of == params.n else params.best_of)


@fault(
    Stage.REPLY,
    "choices_are_complete",
    only=streaming,
    also=(*MISSING, "length_means_the_limit", "length_comes_with_text", "bias_forces", "suffix_is_used"),
    imitates="The index of a choice counted the chunks of the stream.",
)
def index_counts_the_chunks(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, each part of a choice has an index of its own."""
    for number, choice in enumerate(choices(documents)):
        choice["index"] = number
    return documents


@fault(
    Stage.PARAMETERS,
    "choices_are_complete",
    needs=("n", "logprobs"),
    also=(*MISSING, "logprobs_change_nothing"),
    imitates="With log probabilities, one choice came.",
)
def n_is_ignored_beside_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, the server returns one choice for each prompt, whatever n is."""
    return replace(params, n=1, best_of=1) if params.logprobs is not None and params.best_of == params.n else params


@fault(
    Stage.PARAMETERS,
    "choices_are_complete",
    also=("prompt_tokens_are_counted", *MISSING, "prompt_tokens_match_ids"),
    when=("plain", "streamed"),
    imitates="Of several prompts, only the first was answered.",
)
def first_prompt_alone_is_answered(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Of several prompts, the server answers only the first."""
    return replace(params, prompts=params.prompts[:1])


@fault(
    Stage.TEXTS,
    "choices_are_complete",
    also=MISSING,
    only=several,
    imitates="With n and several prompts, only the choices of the last prompt came.",
)
def last_prompt_alone_is_answered(texts: list[Text], call: Call) -> list[Text]:
    """Of several prompts, the server returns only the choices of the last."""
    return texts[-call.params.n :]


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=(*MISSING, "usage"),
    only=lambda call: call.streamed and call.params.n > 1,
    imitates="All finish chunks had index 0.",
)
def finish_of_later_choices_is_lost(documents: list[Json], call: Call) -> list[Json]:
    """With n, a stream has no chunk of the last choice."""
    last = len(call.params.prompts) * call.params.n - 1
    return [chunk for chunk in documents if not chunk["choices"] or chunk["choices"][0]["index"] != last]


# Wrong indices.


def _with_index_0(documents: list[Json]) -> list[Json]:
    for choice in choices(documents):
        choice["index"] = 0
    return documents


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=("longer_limit_extends", "bias_forces", "echo_of_zero_tokens", "logprobs_are_finite", *MISSING, "stop"),
    only=lambda call: several(call) and streaming(call),
    imitates="All parts of a stream had index 0.",
)
def all_chunks_have_index_0(documents: list[Json], call: Call) -> list[Json]:
    """All chunks of a stream have index 0."""
    return _with_index_0(documents)


@fault(
    Stage.REPLY,
    "choice_indices_are_unique",
    also=(
        "top_logprobs_have_n", "bias_forces", "echo_adds_only_the_prompt", "echo_of_zero_tokens",
        "length_means_the_limit", "logprobs_are_finite", "longer_limit_extends", "stop", *MISSING,
        "choices_are_complete",
    ),
    only=lambda call: plain(call) and several(call),
)  # fmt: skip
def all_choices_have_index_0(documents: list[Json], call: Call) -> list[Json]:
    """All choices of a plain reply have index 0."""
    return _with_index_0(documents)


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=("stop_that_never_matches", *MISSING, "stop_cuts_earliest"),
    when=("plain", "streamed"),
    imitates="Indices began at 1.",
)
def indices_begin_at_1(documents: list[Json], call: Call) -> list[Json]:
    """The first choice has index 1."""
    for choice in choices(documents):
        choice["index"] += 1
    return documents


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=(
        "cut_text_finishes_with_length", "narrow_sampling_is_greedy", "stop_that_never_matches", *MISSING,
        "bias_forces", "echo_adds_only_the_prompt", "length_comes_with_text", "length_means_the_limit",
        "stop_cuts_earliest",
    ),
    only=streaming,
    imitates="The index counted the tokens.",
)  # fmt: skip
def index_counts_chunks(documents: list[Json], call: Call) -> list[Json]:
    """The index in each chunk is the number of the chunk."""
    for number, choice in enumerate(choices(documents)):
        choice["index"] = number
    return documents


# Choices in the wrong order, or of another prompt.


@fault(
    Stage.TEXTS,
    "batch_order_holds",
    also=(*SWAPPED, "stop_cuts_earliest"),
    only=several_prompts,
    when=("plain", "streamed"),
)
def prompts_are_answered_backwards(texts: list[Text], call: Call) -> list[Text]:
    """Of several prompts, the answers to the last come first."""
    indices = [text.index for text in texts]
    return [replace(text, index=index) for text, index in zip(texts[::-1], indices, strict=True)]


@fault(
    Stage.TEXTS,
    "batch_order_holds",
    also=("length_means_the_limit", *SWAPPED),
    needs=("n",),
    only=lambda call: several_prompts(call) and call.params.n > 1,
)
def prompts_take_turns(texts: list[Text], call: Call) -> list[Text]:
    """With n and several prompts, the choices are numbered candidate by candidate, not prompt by prompt."""
    n, prompts = call.params.n, len(call.params.prompts)
    moved = [replace(text, index=text.index % n * prompts + text.index // n) for text in texts]
    return sorted(moved, key=lambda text: text.index)


@fault(
    Stage.TEXTS,
    "batch_order_holds",
    also=("sampling_varies", *SWAPPED, "logprobs_count_the_tokens"),
    only=several_prompts,
)
def first_answer_comes_for_every_prompt(texts: list[Text], call: Call) -> list[Text]:
    """Every prompt of a batch gets the answers to the first."""
    n = call.params.n
    return [replace(texts[text.index % n], index=text.index) for text in texts]


# More or fewer choices than n, with best_of.


@fault(
    Stage.PARAMETERS,
    "best_of_returns_n",
    needs=("best_of",),
    also=(
        "text_offsets_follow_tokens", "choices_are_complete", "every_choice_finishes", "length_uses_the_limit",
        "completion_tokens_within_limit", "logprobs_count_the_tokens",
    ),
)  # fmt: skip
def all_candidates_are_returned(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With best_of, the server returns all candidates."""
    return replace(params, n=params.best_of)


@fault(
    Stage.TEXTS,
    "best_of_returns_n",
    needs=("best_of", "n"),
    only=lambda call: call.params.best_of > call.params.n > 1,
    also=("choices_are_complete",),
)
def best_alone_is_returned(texts: list[Text], call: Call) -> list[Text]:
    """With best_of and n, the server returns only the best candidate."""
    return [text for text in texts if text.index % call.params.n == 0]
