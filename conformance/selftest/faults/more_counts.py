"""Counts and times that are constants, or of another kind."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, usages
from conformance.selftest.fault import fault
from conformance.selftest.faults.usage import BATCH, COUNTS


def _told(usage: Json, **counts: int) -> Json:
    whole = {**usage, **counts}
    return {**whole, "total_tokens": whole["prompt_tokens"] + whole["completion_tokens"]}


@fault(
    Stage.USAGE,
    "length_uses_the_limit",
    variants=("plain", "streamed"),
    also=(*COUNTS, "completion_tokens_are_counted", "default_max_tokens"),
    imitates="A stream's completion was always counted as one token.",
)
def completion_tokens_are_one(usage: Json, call: Call) -> Json:
    """A completion counts as one token, however long it is."""
    return _told(usage, completion_tokens=1)


@fault(
    Stage.USAGE,
    "prompt_tokens_match_ids",
    also=COUNTS,
    imitates="The number of prompts was reported as the number of their tokens.",
)
def each_prompt_counts_as_one_token(usage: Json, call: Call) -> Json:
    """A prompt counts as one token, however long it is."""
    return _told(usage, prompt_tokens=len(call.params.prompts))


@fault(
    Stage.REPLY,
    "plain_field_conforms",
    also=("created_is_in_seconds", "chunk_field_conforms"),
    imitates="A gateway sent its clock as it was, fractions included.",
    fits=lambda contract: contract.response["properties"]["created"].get("type") == "integer",
)
def created_has_a_fraction(documents: list[Json], call: Call) -> list[Json]:
    """`created` is a number with a fraction."""
    return [{**document, "created": document["created"] + 0.25} for document in documents]


@fault(
    Stage.REPLY,
    "usage_has_three_counts",
    also=(
        "usage",
        "plain_field_conforms",
        "chunk_field_conforms",
        "length_uses_the_limit",
        "logprobs_count_the_tokens",
        *BATCH,
    ),
)
def usage_lacks_its_completion(documents: list[Json], call: Call) -> list[Json]:
    """Usage does not count the completion."""
    for usage in usages(documents):
        usage.pop("completion_tokens", None)
    return documents


@fault(
    Stage.REPLY,
    "unasked_usage_takes_no_chunk",
    only=lambda call: call.streamed and not call.params.include_usage,
    also=("chunk_has_choices",),
    imitates="Every stream ended with a chunk without choices, asked or not.",
)
def usage_chunk_comes_unasked(documents: list[Json], call: Call) -> list[Json]:
    """A stream that was not asked for usage has a chunk of it, without choices."""
    return [*documents, {**documents[-1], "choices": [], "usage": call.usage}]
