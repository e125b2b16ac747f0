"""Usage counts the wrong number of tokens, or not in whole numbers."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import Json, several_prompts, usages, with_counts
from conformance.selftest.fault import fault
from conformance.selftest.faults.token_limits import COUNTS, LENGTH

BATCH = ("batch_usage_is_the_sum", "twin_usage_agrees")
FIELDS = ("plain_field_conforms", "chunk_field_conforms")

# Counts that are missing, no whole numbers, or do not add up.


@fault(
    Stage.REPLY,
    "usage_has_three_counts",
    also=("usage", *FIELDS, "length_uses_the_limit", "logprobs_count_the_tokens", *BATCH),
)
def usage_lacks_its_completion(documents: list[Json], call: Call) -> list[Json]:
    """Usage has no completion_tokens."""
    for usage in usages(documents):
        usage.pop("completion_tokens", None)
    return documents


@fault(
    Stage.REPLY,
    "usage_counts_are_whole",
    also=(*FIELDS, "usage_adds_up", *BATCH, "length_uses_the_limit", "usage_has_three_counts"),
)
def counts_are_strings(documents: list[Json], call: Call) -> list[Json]:
    """prompt_tokens is a string."""
    for usage in usages(documents):
        usage["prompt_tokens"] = str(usage["prompt_tokens"])
    return documents


@fault(Stage.USAGE, "usage_counts_are_whole", also=(*FIELDS, *COUNTS))
def counts_have_fractions(usage: Json, call: Call) -> Json:
    """prompt_tokens and total_tokens have fractions."""
    return {**usage, "prompt_tokens": usage["prompt_tokens"] + 0.5, "total_tokens": usage["total_tokens"] + 0.5}


@fault(
    Stage.USAGE,
    "usage_counts_are_whole",
    also=("default_max_tokens", "details_within_totals", *COUNTS, "completion_tokens_are_counted"),
)
def counts_are_negative(usage: Json, call: Call) -> Json:
    """completion_tokens is -1."""
    return with_counts(usage, completion_tokens=-1)


@fault(Stage.USAGE, "usage_adds_up", when=("plain", "streamed", "sometimes"), also=BATCH)
def total_is_one_too_many(usage: Json, call: Call) -> Json:
    """total_tokens is one more than prompt_tokens and completion_tokens together."""
    return {**usage, "total_tokens": usage["total_tokens"] + 1}


@fault(Stage.USAGE, "usage_adds_up", only=lambda call: call.params.n > 1, also=BATCH)
def total_counts_one_choice(usage: Json, call: Call) -> Json:
    """With n, total_tokens counts one choice only."""
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"] // call.params.n}


# Completion tokens.


@fault(
    Stage.PARAMETERS,
    "completion_tokens_within_limit",
    needs=("max_tokens",),
    when=("plain", "streamed"),
    also=(*LENGTH, "echo_adds_only_the_prompt"),
)
def one_token_comes_on_top(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A text that the limit cuts has one token more than max_tokens."""
    return replace(params, max_tokens=params.max_tokens + 1) if params.max_tokens else params


@fault(
    Stage.USAGE,
    "completion_tokens_within_limit",
    when=("plain", "streamed"),
    also=(
        "bias_forces", "default_max_tokens", "length_uses_the_limit", "logprobs_count_the_tokens",
        "batch_usage_is_the_sum",
    ),
    imitates="Running totals were summed, and a short answer was billed a hundredfold.",
)  # fmt: skip
def completion_tokens_are_summed_up(usage: Json, call: Call) -> Json:
    """completion_tokens is the sum of all running totals, 1 + 2 + 3 and so on."""
    count = usage["completion_tokens"]
    return with_counts(usage, completion_tokens=count * (count + 1) // 2)


@fault(
    Stage.USAGE,
    "completion_tokens_are_counted",
    also=("default_max_tokens", *BATCH, "length_uses_the_limit", "logprobs_count_the_tokens"),
    when=("plain", "streamed"),
    imitates="Usage was zero on this route.",
)
def completion_tokens_are_zero(usage: Json, call: Call) -> Json:
    """completion_tokens is 0, whatever was generated."""
    return with_counts(usage, completion_tokens=0)


# Prompt tokens.


@fault(
    Stage.USAGE,
    "prompt_tokens_are_counted",
    when=("plain", "streamed"),
    also=(
        "prompt_tokens_match_ids", "batch_usage_is_the_sum", "cached_tokens_within_prompt", "details_within_totals",
        "logprobs_count_the_tokens",
    ),
    imitates="A server reported no prompt tokens at all.",
)  # fmt: skip
def prompt_tokens_are_zero(usage: Json, call: Call) -> Json:
    """prompt_tokens is 0, whatever the prompt."""
    return with_counts(usage, prompt_tokens=0)


@fault(
    Stage.USAGE,
    "prompt_tokens_are_counted",
    only=several_prompts,
    also=("prompt_tokens_match_ids", "batch_usage_is_the_sum", "logprobs_count_the_tokens"),
    imitates="A server reported the number of prompts for their tokens.",
)
def prompt_tokens_of_a_batch_are_one(usage: Json, call: Call) -> Json:
    """With several prompts, prompt_tokens is 1."""
    return with_counts(usage, prompt_tokens=1)


@fault(
    Stage.USAGE,
    "prompt_tokens_match_ids",
    also=COUNTS,
    imitates="The number of prompts was reported as the number of their tokens.",
)
def each_prompt_counts_as_one_token(usage: Json, call: Call) -> Json:
    """A prompt counts as one token, however long it is."""
    return with_counts(usage, prompt_tokens=len(call.params.prompts))


@fault(
    Stage.USAGE,
    "prompt_tokens_match_ids",
    only=lambda call: any(prompt.given_as_tokens for prompt in call.params.prompts),
    also=("batch_usage_is_the_sum", "logprobs_count_the_tokens"),
)
def prompt_ids_are_counted_as_text(usage: Json, call: Call) -> Json:
    """prompt_tokens counts the characters of the list of token ids, not the ids."""
    return with_counts(usage, prompt_tokens=sum(len(str(prompt.tokens)) for prompt in call.params.prompts))


# Details.


@fault(Stage.USAGE, "cached_tokens_within_prompt", also=("details_within_totals", *BATCH))
def cached_tokens_exceed_the_prompt(usage: Json, call: Call) -> Json:
    """cached_tokens is greater than prompt_tokens."""
    return {**usage, "prompt_tokens_details": {"cached_tokens": usage["prompt_tokens"] + 16}}


@fault(
    Stage.USAGE,
    "details_within_totals",
    also=BATCH,
    imitates="Reasoning tokens exceeded all completion tokens by one.",
)
def reasoning_tokens_exceed_the_completion(usage: Json, call: Call) -> Json:
    """reasoning_tokens is greater than completion_tokens."""
    return {**usage, "completion_tokens_details": {"reasoning_tokens": usage["completion_tokens"] + 1}}
