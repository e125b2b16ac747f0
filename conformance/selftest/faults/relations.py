"""Replies that should agree do not: null and absence, a default and its value, a batch and its prompts, two limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.model.json_text import MISSING
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import (
    Json,
    length_reason,
    scored,
    sent,
    several_prompts,
    stop_reason,
    with_counts,
    with_other_text,
    with_reason,
    with_sampling,
)
from conformance.selftest.fault import fault

# Null and defaults.


@fault(
    Stage.BODY,
    "null_is_absent",
    parameters=("n", "presence_penalty", "frequency_penalty"),
    also=(
        "completion_tokens_within_limit", "valid_is_accepted", "choices_are_complete", "length_uses_the_limit",
        "sampling_varies", "max_tokens_zero", "default_is_explicit", "default_max_tokens",
    ),
    fits=lambda contract, name: contract.parameters[name].nullable,
)  # fmt: skip
def null_is_taken_for_the_lowest(body: Any, call: Call, name: str) -> Any:
    """A `{name}` of null is treated as the lowest value, or as 2 for n."""
    if not isinstance(body, dict) or body.get(name, MISSING) is not None:
        return body
    limit = call.reference.contract.limit(name)
    lowest = 2 if name == "n" else limit.low if limit and limit.low is not None else 0
    return {**body, name: lowest}


@fault(
    Stage.PARAMETERS,
    "default_is_explicit",
    parameters=("n", "echo"),
    also=(
        "best_of_returns_n", "default_max_tokens", "completion_tokens_are_counted", "filter_bounds_the_choice",
        "length_means_the_limit", "logprobs", "stop_text_is_as_promised", "choices_are_complete",
        "echo_begins_with_prompt", "logprobs_are_not_unasked", "null_is_absent", "logprobs_change_nothing",
        "echo_adds_only_the_prompt", "twin_choices_agree", "twin_text_agrees", "batch_order_holds",
        "choices_agree_when_greedy", "bias_forces", "tokens_join_to_text", "longer_limit_extends", "burst_does_not_mix",
        "batch_is_singles", "batch_usage_is_the_sum", "stop_cuts_earliest", "length_uses_the_limit", "suffix_is_used",
        "completion_tokens_within_limit", "max_tokens_zero", "json_is_valid",
    ),
    fits=lambda contract, name: contract.default(name) is not None,
)  # fmt: skip
def default_is_another(params: GenerationParameters, call: Call, name: str) -> GenerationParameters:
    """`{name}` has another default than documented."""
    if sent(call, name) is not None:
        return params
    if name == "n":
        return replace(params, n=2, best_of=max(params.best_of, 2))
    return replace(params, echo=True)


# Batches and several choices.


@fault(
    Stage.PARAMETERS,
    "batch_is_singles",
    when=("plain", "streamed"),
    also=("stop_cuts_earliest", "batch_order_holds"),
    only=lambda call: isinstance(sent(call, "prompt"), list),
)
def prompts_of_a_batch_colour_each_other(params: GenerationParameters, call: Call) -> GenerationParameters:
    """In a batch, each prompt gets another completion than alone."""
    return with_other_text(params) if len(params.prompts) > 1 else params


@fault(
    Stage.USAGE,
    "batch_usage_is_the_sum",
    only=several_prompts,
    also=("prompt_tokens_match_ids", "prompt_tokens_are_counted", "logprobs_count_the_tokens"),
)
def prompt_tokens_of_the_last_prompt_count(usage: Json, call: Call) -> Json:
    """The prompt tokens of a batch are those of its longest prompt."""
    return with_counts(usage, prompt_tokens=max(max(len(prompt.tokens) for prompt in call.params.prompts), 1))


@fault(
    Stage.USAGE,
    "batch_usage_is_the_sum",
    only=lambda call: several_prompts(call) and not any(prompt.given_as_tokens for prompt in call.params.prompts),
    also=("logprobs_count_the_tokens",),
)
def batch_is_billed_for_a_separator(usage: Json, call: Call) -> Json:
    """The prompt tokens of a batch include separators between its prompts."""
    return with_counts(usage, prompt_tokens=usage["prompt_tokens"] + 3 * (len(call.params.prompts) - 1))


@fault(
    Stage.PARAMETERS,
    "choices_agree_when_greedy",
    needs=("n",),
    also=(
        "greedy_takes_the_likeliest",
        "greedy_repeats",
        "top_logprobs_are_plausible",
        "greedy_takes_the_likeliest",
        "twin_text_agrees",
    ),
)
def several_choices_are_always_sampled(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, texts are sampled even at temperature 0."""
    greedy = params.n > 1 and params.sampling.temperature == 0
    return with_sampling(params, temperature=1.0) if greedy else params


@fault(
    Stage.PARAMETERS,
    "logprobs_change_nothing",
    needs=("logprobs",),
    only=scored,
    imitates="Asking for log probabilities took another route, with another prompt template.",
    also=(
        "twin_text_agrees", "echo_adds_only_the_prompt", "longer_limit_extends", "stop_that_never_matches",
        "batch_is_singles", "choices_agree_when_greedy",
    ),
)  # fmt: skip
def logprobs_take_another_route(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, the text is another one."""
    return with_other_text(params)


# Limits.


@fault(
    Stage.PARAMETERS,
    "longer_limit_extends",
    needs=("max_tokens",),
    when=("plain", "streamed"),
    also=(
        "narrow_sampling_is_greedy", "stop_that_never_matches", "stop_cuts_earliest", "cut_text_finishes_with_length",
        "echo_adds_only_the_prompt", "default_is_explicit",
    ),
)  # fmt: skip
def limit_colours_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Each max_tokens gives another text, not the beginning of the same one."""
    return replace(params, suffix=f"{params.suffix}{params.max_tokens}")


@fault(
    Stage.REPLY,
    "cut_text_finishes_with_length",
    when=("plain", "streamed"),
    needs=("max_tokens",),
    also=("ignore_eos_goes_on", "stop_that_never_matches", "finish"),
    only=lambda call: not call.params.stops and (call.params.max_tokens or 99) < 8,
)
def short_limit_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """A text that a very low limit cut finishes with the reason for a natural end."""
    return with_reason(documents, stop_reason(call), length_reason(call))
