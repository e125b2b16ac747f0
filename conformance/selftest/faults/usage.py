"""Usage in a stream is missing, misplaced, repeated or unrequested."""

from __future__ import annotations

from conformance.model import Contract
from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, streaming, usages, wants_usage, without_member
from conformance.selftest.fault import fault

OWN_CHUNK = (
    "usage_chunk_is_sent", "usage_chunk_has_no_choices", "usage_chunk_is_last", "usage_is_in_last_chunk",
    "other_chunks_carry_null_usage", "twin_usage_agrees",
)  # fmt: skip


def in_last_chunk(contract: Contract) -> bool:
    """Only where the last chunk is promised to report usage."""
    return contract.semantics.usage_in_last_chunk


def _with_choices(documents: list[Json]) -> list[Json]:
    return [document for document in documents if document["choices"]]


def _with_null_usage(documents: list[Json]) -> list[Json]:
    return [{**document, "usage": None} for document in documents if document["choices"]]


# Missing.


@fault(Stage.REPLY, "usage_chunk_is_sent", also=OWN_CHUNK, only=wants_usage, imitates="Servers ignored include_usage.")
def usage_is_not_sent(documents: list[Json], call: Call) -> list[Json]:
    """A stream with include_usage has no usage."""
    return without_member(_with_choices(documents), "usage")


@fault(Stage.REPLY, "usage_chunk_is_sent", also=OWN_CHUNK, only=wants_usage, imitates="Usage was null in every chunk.")
def usage_is_null_throughout(documents: list[Json], call: Call) -> list[Json]:
    """All chunks carry `usage: null`, the last one too."""
    return _with_null_usage(documents)


@fault(Stage.REPLY, "usage_chunk_is_sent", also=OWN_CHUNK, only=lambda call: wants_usage(call) and call.params.n > 1)
def usage_is_not_sent_with_several_choices(documents: list[Json], call: Call) -> list[Json]:
    """With n, a stream with include_usage ends before its usage."""
    return _with_null_usage(documents)


# Not in a chunk of its own, or not in the last one.


@fault(
    Stage.REPLY,
    "usage_chunk_has_no_choices",
    also=("usage_chunk_is_sent", "other_chunks_carry_null_usage"),
    only=wants_usage,
    imitates="Usage came with the last chunk of text.",
)
def usage_rides_on_the_last_text(documents: list[Json], call: Call) -> list[Json]:
    """Usage comes in the chunk that finishes the text, not in one of its own."""
    *rest, last = documents
    return [*rest[:-1], {**rest[-1], "usage": last["usage"]}] if rest and not last["choices"] else documents


@fault(
    Stage.REPLY, "usage_chunk_has_no_choices", also=("no_text_after_finish", "usage_chunk_is_sent"), only=wants_usage
)
def usage_chunk_repeats_a_choice(documents: list[Json], call: Call) -> list[Json]:
    """The chunk with usage repeats the last choice, without its text."""
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
    """The chunk with usage has no member `choices`."""
    *rest, last = documents
    return documents if last["choices"] else [*rest, *without_member([last], "choices")]


@fault(Stage.REPLY, "usage_chunk_is_last", also=("usage_is_in_last_chunk",), only=wants_usage)
def usage_chunk_comes_first(documents: list[Json], call: Call) -> list[Json]:
    """The chunk with usage comes before the text."""
    *rest, last = documents
    return documents if last["choices"] else [last, *rest]


@fault(Stage.REPLY, "usage_is_in_last_chunk", also=OWN_CHUNK, only=streaming, fits=in_last_chunk)
def usage_leaves_the_last_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Usage is in the first chunk of a stream, not in the last."""
    *rest, last = documents
    usage = last.get("usage")
    bare = [{**last, "usage": None}] if last["choices"] else []
    return [{**rest[0], "usage": usage}, *rest[1:], *bare] if rest and usage else documents


# More than once, or unrequested.


@fault(
    Stage.REPLY,
    "usage_is_reported_once",
    also=(
        "other_chunks_carry_null_usage", "usage_chunk_has_no_choices", "usage_chunk_is_last", "usage_is_in_last_chunk",
    ),
    only=wants_usage,
    imitates="A server reported running totals in every chunk, and clients added them up.",
)  # fmt: skip
def usage_runs_along(documents: list[Json], call: Call) -> list[Json]:
    """Every chunk reports the tokens so far."""
    (final, *_) = [*usages(documents), {}]
    prompt_tokens = final.get("prompt_tokens", 0)
    return [
        {**chunk, "usage": {**final, "completion_tokens": number, "total_tokens": prompt_tokens + number}}
        for number, chunk in enumerate(documents[:-1])
    ] + documents[-1:]


@fault(
    Stage.REPLY,
    "usage_is_reported_once",
    also=("other_chunks_carry_null_usage", "usage_chunk_is_last"),
    only=wants_usage,
)
def usage_chunk_comes_twice(documents: list[Json], call: Call) -> list[Json]:
    """The chunk with usage is sent twice."""
    return [*documents, documents[-1]]


@fault(
    Stage.REPLY,
    "unasked_usage_takes_no_chunk",
    only=lambda call: call.streamed and not call.params.include_usage,
    also=("chunk_has_choices",),
    imitates="Every stream ended with a chunk without choices, with and without include_usage.",
)
def usage_chunk_comes_unasked(documents: list[Json], call: Call) -> list[Json]:
    """A stream without include_usage has a chunk with usage and without choices."""
    return [*documents, {**documents[-1], "choices": [], "usage": call.usage}]


# Neither null nor absent where it must be.


@fault(Stage.REPLY, "other_chunks_carry_null_usage", only=wants_usage)
def usage_is_left_out_before_the_last_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Chunks before the one with usage have no member `usage`, although null is promised."""
    bare = without_member(documents, "usage")
    return [chunk if chunk.get("usage") else rest for chunk, rest in zip(documents, bare, strict=True)]


@fault(
    Stage.REPLY,
    "other_chunks_carry_null_usage",
    also=(
        "usage_is_reported_once", "usage_chunk_has_no_choices", "prompt_tokens_are_counted", "usage_chunk_is_last",
        "length_uses_the_limit", "usage_is_in_last_chunk",
    ),
    only=wants_usage,
    imitates="A server put zeros where null was promised.",
)  # fmt: skip
def usage_is_zero_before_the_last_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Chunks before the one with usage report zeros, although null is promised."""
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return [chunk if chunk.get("usage") else {**chunk, "usage": zeros} for chunk in documents]
