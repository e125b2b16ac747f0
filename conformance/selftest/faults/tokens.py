"""Limits on tokens are missed, and the end of the context is not met as promised."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import ContextOverflow
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters
from conformance.selftest.edits import Json, asked, choices
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import has_role

NEEDS = ("max_tokens",)
SHORT = (
    "length_uses_the_limit",
    "length_means_the_limit",
    "longer_limit_extends",
    "cut_text_finishes_with_length",
    "default_max_tokens",
    "completion_tokens_within_limit",
    "default_is_explicit",
    "logprobs_count_the_tokens",
    "echo_of_zero_tokens",
    "max_tokens_zero",
    "length_comes_with_text",
    "stop_cuts_earliest",
    "stop_finishes_with_stop",
    "json_is_valid",
    "bias_forces",
    "bias_bans",
    "batch_usage_is_the_sum",
    "completion_tokens_are_counted",
)


@fault(
    Stage.WISH,
    "length_uses_the_limit",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=(*SHORT, "logprobs_cover_echo"),
    imitates="One token less came than was asked for.",
)
def one_token_is_held_back(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A text that the limit cuts has one token less."""
    return replace(params, max_tokens=params.max_tokens - 1) if params.max_tokens else params


@fault(
    Stage.WISH,
    "completion_tokens_within_limit",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=(*SHORT, "echo_adds_only_the_prompt"),
)
def one_token_comes_on_top(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A text that the limit cuts has one token more."""
    return replace(params, max_tokens=params.max_tokens + 1) if params.max_tokens else params


@fault(
    Stage.WISH,
    "length_uses_the_limit",
    needs=NEEDS,
    also=(*SHORT, "context_overflow"),
    imitates="The limit was ignored: 16 tokens came for 50 and for 500.",
)
def limit_is_always_16(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The limit is 16 tokens, whatever was asked for."""
    return replace(params, max_tokens=16) if params.max_tokens is not None else params


@fault(
    Stage.WISH,
    "length_uses_the_limit",
    needs=("max_tokens", "n"),
    also=(*SHORT, "choices_agree_when_greedy", "logprobs_cover_echo"),
    only=lambda call: isinstance(call.body, dict) and (call.body.get("n") or 1) != 1,
)
def limit_is_shared_among_choices(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, the choices share the limit."""
    return (
        replace(params, max_tokens=-(-params.max_tokens // params.n)) if params.max_tokens and params.n > 1 else params
    )


@fault(
    Stage.REPLY,
    "length_comes_with_text",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=(
        "suffix_is_used",
        "tokens_join_to_text",
        "completion_tokens_are_counted",
        "echo_begins_with_prompt",
        "echo_adds_only_the_prompt",
        "bias_forces",
        "longer_limit_extends",
        "cut_text_finishes_with_length",
        "logprobs_are_returned",
        "logprobs_cover_echo",
        "text_offsets_follow_tokens",
        "burst_does_not_mix",
        "stop_cuts_earliest",
        "json_is_valid",
        "echo_of_zero_tokens",
        "seed_repeats",
        "sampling_varies",
        "narrow_sampling_is_greedy",
        "no_partial_stop_leaks",
        "default_is_explicit",
    ),
    imitates="A text that the limit had cut was empty.",
)
def text_is_lost_at_the_limit(documents: list[Json], call: Call) -> list[Json]:
    """A text that the limit cut is empty."""
    cut = {choice["index"] for choice in choices(documents) if choice["finish_reason"] == _length(call)}
    for choice in choices(documents):
        if choice["index"] in cut:
            choice["text"] = ""
    return documents


def _length(call: Call) -> str:
    return call.reference.contract.semantics.length_reason


@fault(
    Stage.WISH,
    "max_tokens_zero",
    needs=NEEDS,
    also=(
        "completion_tokens_within_limit",
        "length_means_the_limit",
        "echo_of_zero_tokens",
        "logprobs_count_the_tokens",
        "length_uses_the_limit",
    ),
    fits=lambda contract: contract.binding("max_tokens_zero") is not None,
    imitates="0 was taken for the default.",
)
def zero_is_taken_for_absent(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A limit of 0 counts as none at all."""
    return replace(params, max_tokens=16) if params.max_tokens == 0 else params


@fault(
    Stage.WISH,
    "default_max_tokens",
    needs=NEEDS,
    also=SHORT,
    fits=lambda contract: isinstance(contract.default("max_tokens"), int),
    imitates="The default was another.",
)
def default_limit_is_32(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Without max_tokens, 32 tokens come."""
    return replace(params, max_tokens=32) if asked(call, "max_tokens") is None else params


@fault(
    Stage.WISH,
    "context_overflow",
    needs=NEEDS,
    fits=lambda contract: contract.semantics.context_overflow is not ContextOverflow.EITHER,
    also=("error_names_the_field", "invalid_is_refused", "response_is_complete"),
)
def overflow_is_met_against_the_promise(params: GenerationParameters, call: Call) -> GenerationParameters:
    """What exceeds the context is cut where it is to be refused, and refused where it is to be cut."""
    truncates = call.reference.contract.semantics.context_overflow is ContextOverflow.TRUNCATE
    return replace(params, overflow="error" if truncates else "truncate")


@fault(Stage.WISH, "context_overflow", fits=has_role(Role.CONTEXT_OVERFLOW))
def overflow_behaviour_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """What exceeds the context is cut although the request asks for an error."""
    return replace(params, overflow="truncate")
