"""Counts and times that are constants, or of another kind."""

from __future__ import annotations

from conformance.reference.alter import Call, Stage
from conformance.reference.bending import Json
from conformance.reference.fault import fault
from conformance.reference.faults.usage import COUNTS


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
    return _told(usage, prompt_tokens=len(call.wish.prompts))


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
