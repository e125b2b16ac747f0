"""Usage is missing, misplaced or miscounted."""

from __future__ import annotations

from conformance.model import Contract
from conformance.model.json_text import dumps
from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, usages
from conformance.selftest.fault import fault

OWN = ("usage_chunk_is_sent", "usage_chunk_has_no_choices", "usage_chunk_is_last", "usage_is_in_last_chunk",
       "other_chunks_carry_null_usage", "twin_usage_agrees")  # fmt: skip
BATCH = ("batch_usage_is_the_sum", "twin_usage_agrees")
COUNTS = ("usage_adds_up", "completion_tokens_within_limit", "length_uses_the_limit", "logprobs_count_the_tokens",
          "usage_counts_are_whole", "prompt_tokens_are_counted", "prompt_tokens_match_ids", *BATCH)  # fmt: skip


def wants_usage(call: Call) -> bool:
    """Only on streams that ask for usage."""
    return call.streamed and call.params.include_usage


def in_last_chunk(contract: Contract) -> bool:
    """Only where the last chunk is promised to report usage."""
    return contract.semantics.usage_in_last_chunk


@fault(Stage.REPLY, "usage_chunk_is_sent", also=OWN, only=wants_usage, imitates="Servers ignored include_usage.")
def usage_is_not_sent(documents: list[Json], call: Call) -> list[Json]:
    """Usage was asked for, and the stream has none."""
    return [{name: value for name, value in one.items() if name != "usage"} for one in documents if one["choices"]]


@fault(Stage.REPLY, "usage_chunk_is_sent", also=OWN, only=wants_usage, imitates="Usage was null in every chunk.")
def usage_is_null_throughout(documents: list[Json], call: Call) -> list[Json]:
    """All chunks carry `usage: null`, the last one too."""
    return [{**document, "usage": None} for document in documents if document["choices"]]


@fault(Stage.REPLY, "usage_chunk_is_sent", also=OWN, only=lambda call: wants_usage(call) and call.params.n > 1)
def usage_is_not_sent_with_several_choices(documents: list[Json], call: Call) -> list[Json]:
    """With n, the stream ends before the usage that was asked for."""
    return [{**document, "usage": None} for document in documents if document["choices"]]


@fault(
    Stage.REPLY,
    "usage_chunk_has_no_choices",
    also=("usage_chunk_is_sent", "other_chunks_carry_null_usage"),
    only=wants_usage,
    imitates="Usage rode on the last chunk of text.",
)
def usage_rides_on_the_last_text(documents: list[Json], call: Call) -> list[Json]:
    """Usage comes on the chunk that finishes the text, not on one of its own."""
    *rest, last = documents
    return [*rest[:-1], {**rest[-1], "usage": last["usage"]}] if rest and not last["choices"] else documents


@fault(
    Stage.REPLY, "usage_chunk_has_no_choices", also=("no_text_after_finish", "usage_chunk_is_sent"), only=wants_usage
)
def usage_chunk_repeats_a_choice(documents: list[Json], call: Call) -> list[Json]:
    """The chunk that reports usage holds the last choice once more, without text."""
    *rest, last = documents
    if not rest or last["choices"]:
        return documents
    return [*rest, {**last, "choices": [{**rest[-1]["choices"][-1], "text": "", "logprobs": None}]}]


@fault(
    Stage.REPLY,
    "usage_chunk_has_no_choices",
    also=("chunk_field_conforms", "chunk_has_choices", "usage_chunk_is_sent", "twin_choices_agree"),
    only=wants_usage,
    imitates="The usage chunk lacked the key that clients index.",
)
def usage_chunk_has_no_choices_key(documents: list[Json], call: Call) -> list[Json]:
    """The chunk that reports usage has no `choices` at all."""
    *rest, last = documents
    return (
        [*rest, {name: value for name, value in last.items() if name != "choices"}]
        if not last["choices"]
        else documents
    )


@fault(Stage.REPLY, "usage_chunk_is_last", also=("usage_is_in_last_chunk",), only=wants_usage)
def usage_chunk_comes_first(documents: list[Json], call: Call) -> list[Json]:
    """Usage is reported before the text."""
    *rest, last = documents
    return [last, *rest] if not last["choices"] else documents


@fault(
    Stage.REPLY,
    "usage_is_reported_once",
    also=(
        "other_chunks_carry_null_usage",
        "usage_chunk_has_no_choices",
        "usage_chunk_is_last",
        "usage_is_in_last_chunk",
    ),
    only=wants_usage,
    imitates="A server reported running totals in every chunk, and clients added them up.",
)
def usage_runs_along(documents: list[Json], call: Call) -> list[Json]:
    """Every chunk reports the tokens so far."""
    (final, *_) = [*usages(documents), {}]
    return [
        {**one, "usage": {**final, "completion_tokens": place, "total_tokens": final.get("prompt_tokens", 0) + place}}
        for place, one in enumerate(documents[:-1])
    ] + documents[-1:]


@fault(
    Stage.REPLY,
    "usage_is_reported_once",
    also=(
        "other_chunks_carry_null_usage",
        "usage_chunk_is_last",
    ),
    only=wants_usage,
)
def usage_chunk_comes_twice(documents: list[Json], call: Call) -> list[Json]:
    """The chunk that reports usage is sent twice."""
    return [*documents, documents[-1]]


@fault(Stage.REPLY, "other_chunks_carry_null_usage", only=wants_usage)
def usage_is_left_out_before_the_last_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Chunks before the one with usage have no `usage` member, where null is promised."""
    return [
        one if one.get("usage") else {name: value for name, value in one.items() if name != "usage"}
        for one in documents
    ]


@fault(
    Stage.REPLY,
    "other_chunks_carry_null_usage",
    also=(
        "usage_is_reported_once",
        "usage_chunk_has_no_choices",
        "prompt_tokens_are_counted",
        "usage_chunk_is_last",
        "length_uses_the_limit",
        "usage_is_in_last_chunk",
    ),
    only=wants_usage,
    imitates="A server put zeros where null was promised.",
)
def usage_is_zero_before_the_last_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Chunks before the one with usage report zeros."""
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return [one if one.get("usage") else {**one, "usage": zeros} for one in documents]


@fault(Stage.REPLY, "usage_is_in_last_chunk", also=OWN, only=lambda call: call.streamed, fits=in_last_chunk)
def usage_leaves_the_last_chunk(documents: list[Json], call: Call) -> list[Json]:
    """The stream's last chunk has no usage; the first one has."""
    *rest, last = documents
    usage = last.get("usage")
    bare = [{**last, "usage": None}] if last["choices"] else []
    return [{**rest[0], "usage": usage}, *rest[1:], *bare] if rest and usage else documents


@fault(Stage.USAGE, "usage_adds_up", variants=("plain", "streamed", "sometimes"), also=BATCH)
def total_is_one_too_many(usage: Json, call: Call) -> Json:
    """Total tokens are one more than prompt and completion tokens."""
    return {**usage, "total_tokens": usage["total_tokens"] + 1}


@fault(Stage.USAGE, "usage_adds_up", only=lambda call: call.params.n > 1, also=BATCH)
def total_counts_one_choice(usage: Json, call: Call) -> Json:
    """With n, total tokens count the first choice alone."""
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"] // call.params.n}


@fault(Stage.USAGE, "usage_counts_are_whole", also=("plain_field_conforms", "chunk_field_conforms", *COUNTS))
def counts_have_fractions(usage: Json, call: Call) -> Json:
    """Tokens are counted in halves."""
    return {**usage, "prompt_tokens": usage["prompt_tokens"] + 0.5, "total_tokens": usage["total_tokens"] + 0.5}


@fault(
    Stage.USAGE,
    "usage_counts_are_whole",
    also=("default_max_tokens", "details_within_totals", *COUNTS, "completion_tokens_are_counted"),
)
def counts_are_negative(usage: Json, call: Call) -> Json:
    """An uninitialised counter shows: completion tokens are -1."""
    return {**usage, "completion_tokens": -1, "total_tokens": usage["prompt_tokens"] - 1}


def _spoken(usage: Json, count: int) -> Json:
    return {**usage, "completion_tokens": count, "total_tokens": usage["prompt_tokens"] + count}


def _heard(usage: Json, count: int) -> Json:
    return {**usage, "prompt_tokens": count, "total_tokens": usage["completion_tokens"] + count}


@fault(
    Stage.USAGE,
    "completion_tokens_within_limit",
    variants=("plain", "streamed"),
    also=(
        "bias_forces",
        "default_max_tokens",
        "length_uses_the_limit",
        "logprobs_count_the_tokens",
        "batch_usage_is_the_sum",
    ),
    imitates="Running totals were summed, and a short answer was billed a hundredfold.",
)
def completion_tokens_are_summed_up(usage: Json, call: Call) -> Json:
    """Completion tokens are the sum of all running totals."""
    count = usage["completion_tokens"]
    return _spoken(usage, count * (count + 1) // 2)


@fault(
    Stage.USAGE,
    "length_uses_the_limit",
    variants=("plain", "streamed"),
    also=(
        "bias_forces",
        "completion_tokens_are_counted",
        "default_max_tokens",
        "logprobs_count_the_tokens",
        "batch_usage_is_the_sum",
    ),
    imitates="Servers forgot the last token.",
)
def completion_tokens_miss_one(usage: Json, call: Call) -> Json:
    """Completion tokens are one too few."""
    return _spoken(usage, max(usage["completion_tokens"] - 1, 0))


@fault(
    Stage.USAGE,
    "length_uses_the_limit",
    only=lambda call: call.params.n > 1 or len(call.params.prompts) > 1,
    also=("completion_tokens_are_counted", "logprobs_count_the_tokens", "batch_usage_is_the_sum"),
)
def completion_tokens_of_the_first_choice_count(usage: Json, call: Call) -> Json:
    """With several choices, completion tokens are those of one."""
    return _spoken(usage, usage["completion_tokens"] // (call.params.n * len(call.params.prompts)))


@fault(
    Stage.USAGE,
    "logprobs_count_the_tokens",
    only=lambda call: call.params.logprobs is not None and call.params.echo,
    also=("bias_forces", "completion_tokens_within_limit", "length_uses_the_limit", *BATCH),
    needs=("logprobs", "echo"),
)
def echoed_tokens_count_as_completion(usage: Json, call: Call) -> Json:
    """With echo and logprobs, the prompt is billed once more as completion."""
    return _spoken(usage, usage["completion_tokens"] + usage["prompt_tokens"])


@fault(
    Stage.USAGE,
    "prompt_tokens_are_counted",
    variants=("plain", "streamed"),
    also=(
        "prompt_tokens_match_ids",
        "batch_usage_is_the_sum",
        "cached_tokens_within_prompt",
        "details_within_totals",
        "logprobs_count_the_tokens",
    ),
    imitates="A server reported no prompt tokens at all.",
)
def prompt_tokens_are_zero(usage: Json, call: Call) -> Json:
    """The prompt costs nothing."""
    return _heard(usage, 0)


@fault(
    Stage.USAGE,
    "prompt_tokens_are_counted",
    only=lambda call: len(call.params.prompts) > 1,
    also=("prompt_tokens_match_ids", "batch_usage_is_the_sum", "logprobs_count_the_tokens"),
    imitates="A server reported the number of prompts for their tokens.",
)
def prompt_tokens_of_a_batch_are_one(usage: Json, call: Call) -> Json:
    """The prompts of a batch cost one token together."""
    return _heard(usage, 1)


@fault(
    Stage.USAGE,
    "prompt_tokens_match_ids",
    only=lambda call: any(one.given_as_tokens for one in call.params.prompts),
    also=("batch_usage_is_the_sum", "logprobs_count_the_tokens"),
)
def prompt_ids_are_counted_as_text(usage: Json, call: Call) -> Json:
    """A prompt of token ids is billed by the characters of the numbers."""
    return _heard(usage, sum(len(str(one.tokens)) for one in call.params.prompts))


@fault(
    Stage.USAGE,
    "batch_usage_is_the_sum",
    only=lambda call: len(call.params.prompts) > 1,
    also=("prompt_tokens_match_ids", "prompt_tokens_are_counted", "logprobs_count_the_tokens"),
)
def prompt_tokens_of_the_last_prompt_count(usage: Json, call: Call) -> Json:
    """A batch is billed for its longest prompt only."""
    return _heard(usage, max(max(len(one.tokens) for one in call.params.prompts), 1))


@fault(
    Stage.USAGE,
    "batch_usage_is_the_sum",
    only=lambda call: len(call.params.prompts) > 1 and not any(one.given_as_tokens for one in call.params.prompts),
    also=("logprobs_count_the_tokens",),
)
def batch_is_billed_for_a_separator(usage: Json, call: Call) -> Json:
    """The prompts of a batch are billed as one text with separators between."""
    return _heard(usage, usage["prompt_tokens"] + 3 * (len(call.params.prompts) - 1))


@fault(Stage.USAGE, "cached_tokens_within_prompt", also=("details_within_totals", *BATCH))
def cached_tokens_exceed_the_prompt(usage: Json, call: Call) -> Json:
    """More tokens were cached than the prompt has."""
    return {**usage, "prompt_tokens_details": {"cached_tokens": usage["prompt_tokens"] + 16}}


@fault(
    Stage.USAGE, "details_within_totals", also=BATCH, imitates="Reasoning tokens exceeded all completion tokens by one."
)
def reasoning_tokens_exceed_the_completion(usage: Json, call: Call) -> Json:
    """More tokens were spent on reasoning than on the whole completion."""
    return {**usage, "completion_tokens_details": {"reasoning_tokens": usage["completion_tokens"] + 1}}


@fault(
    Stage.USAGE,
    "twin_usage_agrees",
    only=lambda call: call.streamed,
    also=("prompt_tokens_match_ids", "batch_usage_is_the_sum", "logprobs_count_the_tokens"),
    needs=("stream_options",),
)
def prompt_is_counted_twice_in_streams(usage: Json, call: Call) -> Json:
    """A streamed reply bills the prompt twice."""
    return _heard(usage, usage["prompt_tokens"] * 2)


@fault(
    Stage.USAGE,
    "plain_field_conforms",
    fits=lambda contract: "usage" in contract.response.get("required", ()),
    only=lambda call: not call.streamed,
    also=("twin_usage_agrees", *BATCH),
)
def usage_is_left_out_of_plain_replies(usage: Json, call: Call) -> Json | None:
    """A plain reply has no usage, where it is promised."""
    return None


@fault(
    Stage.REPLY,
    "plain_field_conforms",
    fits=lambda contract: '"total_tokens"' in dumps(contract.response),
    only=lambda call: not call.streamed,
    also=("usage_has_three_counts", "usage_adds_up", *BATCH),
)
def usage_lacks_its_total(documents: list[Json], call: Call) -> list[Json]:
    """Usage has no total."""
    for usage in usages(documents):
        usage.pop("total_tokens", None)
    return documents


@fault(
    Stage.USAGE,
    "completion_tokens_are_counted",
    also=("default_max_tokens", *BATCH, "length_uses_the_limit", "logprobs_count_the_tokens"),
    variants=("plain", "streamed"),
    imitates="Usage was zero on this route.",
)
def completion_tokens_are_zero(usage: Json, call: Call) -> Json:
    """The completion costs nothing."""
    return _spoken(usage, 0)
