"""`max_tokens`, its default and the context limit are not kept, or the count of tokens disagrees with them."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import ContextOverflow
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import Json, choices, length_reason, sent, several, with_counts
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import has_role

NEEDS = ("max_tokens",)
LENGTH = (
    "length_uses_the_limit", "length_means_the_limit", "longer_limit_extends", "cut_text_finishes_with_length",
    "default_max_tokens", "completion_tokens_within_limit", "default_is_explicit", "logprobs_count_the_tokens",
    "echo_of_zero_tokens", "max_tokens_zero", "length_comes_with_text", "stop_cuts_earliest", "stop_finishes_with_stop",
    "json_is_valid", "bias_forces", "bias_bans", "batch_usage_is_the_sum", "completion_tokens_are_counted",
)  # fmt: skip
COUNTS = (
    "usage_adds_up", "completion_tokens_within_limit", "length_uses_the_limit", "logprobs_count_the_tokens",
    "usage_counts_are_whole", "prompt_tokens_are_counted", "prompt_tokens_match_ids", "batch_usage_is_the_sum",
    "twin_usage_agrees",
)  # fmt: skip

# Texts of another length.


@fault(
    Stage.PARAMETERS,
    "length_uses_the_limit",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=(*LENGTH, "logprobs_cover_echo"),
    imitates="One token less came than was requested.",
)
def one_token_is_held_back(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A text that the limit cuts has one token less than max_tokens."""
    return replace(params, max_tokens=params.max_tokens - 1) if params.max_tokens else params


@fault(
    Stage.PARAMETERS,
    "length_uses_the_limit",
    needs=NEEDS,
    also=(*LENGTH, "context_overflow"),
    imitates="The limit was ignored: 16 tokens came for 50 and for 500.",
)
def limit_is_always_16(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The limit is 16 tokens, whatever max_tokens is."""
    return replace(params, max_tokens=16) if params.max_tokens is not None else params


@fault(
    Stage.PARAMETERS,
    "length_uses_the_limit",
    needs=(*NEEDS, "n"),
    also=(*LENGTH, "choices_agree_when_greedy", "logprobs_cover_echo"),
    only=lambda call: (sent(call, "n") or 1) != 1,
)
def limit_is_shared_among_choices(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, the choices share max_tokens, so that each gets only a part."""
    if not params.max_tokens or params.n <= 1:
        return params
    return replace(params, max_tokens=-(-params.max_tokens // params.n))


@fault(
    Stage.REPLY,
    "length_comes_with_text",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=(
        "suffix_is_used", "tokens_join_to_text", "completion_tokens_are_counted", "echo_begins_with_prompt",
        "echo_adds_only_the_prompt", "bias_forces", "longer_limit_extends", "cut_text_finishes_with_length",
        "logprobs_are_returned", "logprobs_cover_echo", "text_offsets_follow_tokens", "burst_does_not_mix",
        "stop_cuts_earliest", "json_is_valid", "echo_of_zero_tokens", "seed_repeats", "sampling_varies",
        "narrow_sampling_is_greedy", "no_partial_stop_leaks", "default_is_explicit",
    ),
    imitates="A text that the limit had cut was empty.",
)  # fmt: skip
def text_is_lost_at_the_limit(documents: list[Json], call: Call) -> list[Json]:
    """A text that the limit cuts is empty."""
    cut = {choice["index"] for choice in choices(documents) if choice["finish_reason"] == length_reason(call)}
    for choice in choices(documents):
        if choice["index"] in cut:
            choice["text"] = ""
    return documents


@fault(
    Stage.PARAMETERS,
    "max_tokens_zero",
    needs=NEEDS,
    also=(
        "completion_tokens_within_limit", "length_means_the_limit", "echo_of_zero_tokens", "logprobs_count_the_tokens",
        "length_uses_the_limit",
    ),
    fits=lambda contract: contract.binding("max_tokens_zero") is not None,
    imitates="0 was taken for the default.",
)  # fmt: skip
def zero_is_taken_for_absent(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A max_tokens of 0 is treated as absent."""
    return replace(params, max_tokens=16) if params.max_tokens == 0 else params


@fault(
    Stage.PARAMETERS,
    "default_max_tokens",
    needs=NEEDS,
    also=LENGTH,
    fits=lambda contract: isinstance(contract.default("max_tokens"), int),
    imitates="The default was another.",
)
def default_limit_is_32(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Without max_tokens, the limit is 32 tokens, not the documented default."""
    return replace(params, max_tokens=32) if sent(call, "max_tokens") is None else params


# Completion tokens that disagree with the limit.


@fault(
    Stage.USAGE,
    "length_uses_the_limit",
    when=("plain", "streamed"),
    also=(*COUNTS, "completion_tokens_are_counted", "default_max_tokens"),
    imitates="A stream's completion was always counted as one token.",
)
def completion_tokens_are_one(usage: Json, call: Call) -> Json:
    """A completion counts as one token, however long it is."""
    return with_counts(usage, completion_tokens=1)


@fault(
    Stage.USAGE,
    "length_uses_the_limit",
    when=("plain", "streamed"),
    also=(
        "bias_forces", "completion_tokens_are_counted", "default_max_tokens", "logprobs_count_the_tokens",
        "batch_usage_is_the_sum",
    ),
    imitates="Servers forgot the last token.",
)  # fmt: skip
def completion_tokens_miss_one(usage: Json, call: Call) -> Json:
    """completion_tokens is one too low."""
    return with_counts(usage, completion_tokens=max(usage["completion_tokens"] - 1, 0))


@fault(
    Stage.USAGE,
    "length_uses_the_limit",
    only=several,
    also=("completion_tokens_are_counted", "logprobs_count_the_tokens", "batch_usage_is_the_sum"),
)
def completion_tokens_of_the_first_choice_count(usage: Json, call: Call) -> Json:
    """With several choices, completion_tokens counts one of them."""
    number = call.params.n * len(call.params.prompts)
    return with_counts(usage, completion_tokens=usage["completion_tokens"] // number)


# The context limit.


@fault(
    Stage.PARAMETERS,
    "context_overflow",
    needs=NEEDS,
    fits=lambda contract: contract.semantics.context_overflow is not ContextOverflow.EITHER,
    also=("error_names_the_field", "invalid_is_refused", "response_is_complete"),
)
def overflow_is_met_against_the_promise(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A request beyond the context limit is truncated where it must be refused, and the other way round."""
    truncates = call.reference.contract.semantics.context_overflow is ContextOverflow.TRUNCATE
    return replace(params, overflow="error" if truncates else "truncate")


@fault(
    Stage.PARAMETERS,
    "context_overflow",
    needs=NEEDS,
    fits=lambda contract: contract.semantics.context_overflow is ContextOverflow.REFUSE,
    also=("prompt_tokens_match_ids",),
    imitates="A prompt beyond the context lost its beginning, and was answered.",
)
def prompts_are_cut_to_the_context(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Of a prompt that is longer than the context, only the end is read."""
    most = call.reference.model.context - (params.max_tokens or 0)
    if most < 1:
        return params
    cut = [replace(prompt, tokens=prompt.tokens[-most:]) for prompt in params.prompts]
    return replace(params, prompts=tuple(cut))


@fault(Stage.PARAMETERS, "context_overflow", fits=has_role(Role.CONTEXT_OVERFLOW))
def overflow_behaviour_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A request beyond the context limit is truncated although it asks for an error."""
    return replace(params, overflow="truncate")
