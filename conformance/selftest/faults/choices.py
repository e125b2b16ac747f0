"""Choices are missing, misnumbered or in another's place."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices, plain, several, streaming
from conformance.selftest.fault import fault

MISSING = (
    "best_of_returns_n",
    "choices_agree_when_greedy",
    "batch_order_holds",
    "batch_is_singles",
    "every_choice_finishes",
    "twin_choices_agree",
    "batch_usage_is_the_sum",
    "length_uses_the_limit",
    "logprobs_count_the_tokens",
    "choice_indices_are_unique",
    "choices_are_in_order",
    "echo_begins_with_prompt",
    "burst_does_not_mix",
    "finish_reason_is_settled",
    "no_text_after_finish",
    "twin_text_agrees",
    "twin_finish_agrees",
    "twin_logprobs_agree",
    "text_offsets_follow_tokens",
    "deltas_are_not_cumulative",
    "chunk_has_choices",
    "logprobs_are_returned",
    "tokens_join_to_text",
    "logprobs_cover_echo",
    "completion_tokens_are_counted",
    "chunk_field_conforms",
    "plain_field_conforms",
    "usage_chunk_has_no_choices",
)
SWAPPED = (
    "batch_order_holds",
    "batch_is_singles",
    "echo_begins_with_prompt",
    "choices_are_in_order",
    "logprobs_cover_echo",
    "text_offsets_follow_tokens",
    "twin_text_agrees",
    "twin_logprobs_agree",
    "twin_finish_agrees",
    "choices_agree_when_greedy",
    "echo_adds_only_the_prompt",
    "tokens_join_to_text",
    "burst_does_not_mix",
)


@fault(
    Stage.WISH,
    "choices_are_complete",
    needs=("n",),
    also=MISSING,
    variants=("plain", "streamed"),
    imitates="n was ignored.",
)
def n_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """One choice comes for each prompt, whatever n is."""
    return replace(params, n=1, best_of=1 if params.best_of == params.n else params.best_of)


@fault(
    Stage.WISH,
    "choices_are_complete",
    needs=("n", "logprobs"),
    also=(*MISSING, "logprobs_change_nothing"),
    imitates="With log probabilities, one choice came.",
)
def n_is_ignored_beside_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, one choice comes for each prompt."""
    return replace(params, n=1, best_of=1) if params.logprobs is not None and params.best_of == params.n else params


@fault(
    Stage.WISH,
    "choices_are_complete",
    also=(*MISSING, "prompt_tokens_match_ids"),
    variants=("plain", "streamed"),
    imitates="Of several prompts, the first alone was answered.",
)
def first_prompt_alone_is_answered(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Of several prompts, the first alone is answered."""
    return replace(params, prompts=params.prompts[:1])


@fault(
    Stage.TEXTS,
    "choices_are_complete",
    also=MISSING,
    only=several,
    imitates="With n and several prompts, the last prompt's choices alone came.",
)
def last_prompt_alone_is_answered(texts: list[Text], call: Call) -> list[Text]:
    """Of several prompts, the choices of the last come alone."""
    return texts[-call.params.n :]


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=("longer_limit_extends", "bias_forces", "echo_of_zero_tokens", "logprobs_are_finite", *MISSING, "stop"),
    only=lambda call: several(call) and streaming(call),
    imitates="All parts of a stream had index 0.",
)
def all_chunks_have_index_0(documents: list[Json], call: Call) -> list[Json]:
    """All chunks of a stream speak of choice 0."""
    for choice in choices(documents):
        choice["index"] = 0
    return documents


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=("stop_that_never_matches", *MISSING, "stop_cuts_earliest"),
    variants=("plain", "streamed"),
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
        "cut_text_finishes_with_length",
        "narrow_sampling_is_greedy",
        "stop_that_never_matches",
        *MISSING,
        "bias_forces",
        "echo_adds_only_the_prompt",
        "length_comes_with_text",
        "length_means_the_limit",
        "stop_cuts_earliest",
    ),
    only=streaming,
    imitates="The index counted the tokens.",
)
def index_counts_chunks(documents: list[Json], call: Call) -> list[Json]:
    """The index of a chunk is its number."""
    for place, choice in enumerate(choices(documents)):
        choice["index"] = place
    return documents


@fault(
    Stage.REPLY,
    "choices_are_complete",
    also=(*MISSING, "usage"),
    only=lambda call: streaming(call) and call.params.n > 1,
    imitates="All finish chunks had index 0.",
)
def finish_of_later_choices_is_lost(documents: list[Json], call: Call) -> list[Json]:
    """In a stream with n, the last choice is never heard of."""
    last = len(call.params.prompts) * call.params.n - 1
    return [one for one in documents if not one["choices"] or one["choices"][0]["index"] != last]


@fault(
    Stage.REPLY,
    "choice_indices_are_unique",
    also=(
        "top_logprobs_have_n",
        "bias_forces",
        "echo_adds_only_the_prompt",
        "echo_of_zero_tokens",
        "length_means_the_limit",
        "logprobs_are_finite",
        "longer_limit_extends",
        "stop",
        *MISSING,
        "choices_are_complete",
    ),
    only=lambda call: plain(call) and several(call),
)
def all_choices_have_index_0(documents: list[Json], call: Call) -> list[Json]:
    """All choices of a plain reply have index 0."""
    for choice in choices(documents):
        choice["index"] = 0
    return documents


@fault(
    Stage.REPLY, "choices_are_in_order", also=("batch_order_holds",), only=lambda call: plain(call) and several(call)
)
def choices_come_backwards(documents: list[Json], call: Call) -> list[Json]:
    """The choices of a plain reply are listed last to first."""
    for document in documents:
        document["choices"] = document["choices"][::-1]
    return documents


def _batch(call: Call) -> bool:
    return len(call.params.prompts) > 1


@fault(
    Stage.TEXTS, "batch_order_holds", also=(*SWAPPED, "stop_cuts_earliest"), only=_batch, variants=("plain", "streamed")
)
def prompts_are_answered_backwards(texts: list[Text], call: Call) -> list[Text]:
    """Of several prompts, the last one's answer comes first."""
    indices = [text.index for text in texts]
    return [replace(text, index=index) for text, index in zip(texts[::-1], indices, strict=True)]


@fault(
    Stage.TEXTS, "batch_order_holds", also=SWAPPED, needs=("n",), only=lambda call: _batch(call) and call.params.n > 1
)
def prompts_take_turns(texts: list[Text], call: Call) -> list[Text]:
    """With n, choices are numbered candidate by candidate, not prompt by prompt."""
    n, prompts = call.params.n, len(call.params.prompts)
    moved = [replace(text, index=text.index % n * prompts + text.index // n) for text in texts]
    return sorted(moved, key=lambda text: text.index)


@fault(Stage.TEXTS, "batch_order_holds", also=("sampling_varies", *SWAPPED, "logprobs_count_the_tokens"), only=_batch)
def first_answer_comes_for_every_prompt(texts: list[Text], call: Call) -> list[Text]:
    """Every prompt of a batch gets the first one's answer."""
    n = call.params.n
    return [replace(texts[text.index % n], index=text.index) for text in texts]


@fault(
    Stage.WISH,
    "best_of_returns_n",
    needs=("best_of",),
    also=(
        "text_offsets_follow_tokens",
        "choices_are_complete",
        "every_choice_finishes",
        "length_uses_the_limit",
        "completion_tokens_within_limit",
        "logprobs_count_the_tokens",
    ),
)
def all_candidates_are_returned(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With best_of, all candidates come back."""
    return replace(params, n=params.best_of)


@fault(
    Stage.TEXTS,
    "best_of_returns_n",
    needs=("best_of", "n"),
    only=lambda call: call.params.best_of > call.params.n > 1,
    also=("choices_are_complete",),
)
def best_alone_is_returned(texts: list[Text], call: Call) -> list[Text]:
    """With best_of and n, the best one alone comes back."""
    return [text for text in texts if text.index % call.params.n == 0]


@fault(Stage.WISH, "best_of_is_the_likeliest", needs=("best_of",), imitates="best_of was accepted and ignored.")
def best_of_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With best_of, the first candidate comes back, whatever the others are."""
    return replace(params, best_of=params.n)
