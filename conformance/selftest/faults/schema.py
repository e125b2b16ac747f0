"""Members of replies and errors are missing, misnamed, or of another type than the schema says."""

from __future__ import annotations

from typing import Any

from conformance.model import Contract
from conformance.model.json_text import dumps
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, plain, streaming, usages, with_member, without_member
from conformance.selftest.fault import fault, plant
from conformance.selftest.faults import errors

PLAIN, CHUNK = "plain_field_conforms", "chunk_field_conforms"
BATCH = ("batch_usage_is_the_sum", "twin_usage_agrees")
CHOICES = (
    "choices_are_complete", "batch_order_holds", "choice_indices_are_unique", "every_choice_finishes",
    "twin_choices_agree", "twin_text_agrees", "twin_finish_agrees", "twin_logprobs_agree", "chunk_has_choices",
    "chunk_field_conforms", "plain_field_conforms", "choices_are_in_order", "best_of_returns_n",
    "usage_chunk_has_no_choices", "choices_agree_when_greedy", "deltas_are_not_cumulative",
)  # fmt: skip


def required(contract: Contract, name: str) -> bool:
    """Only where the response needs this member."""
    return name in contract.response.get("required", ())


# Members of the document.


def left_out(
    name: str, says: str, member: str, *, check: str = PLAIN, also: tuple[str, ...] = (CHUNK,), **options: Any
) -> None:
    """A fault that leaves out a required member of each document."""

    def leave_out(documents: list[Json], call: Call) -> list[Json]:
        return without_member(documents, member)

    plant(
        name,
        says,
        Stage.REPLY,
        check,
        leave_out,
        also=also,
        fits=lambda contract: required(contract, member),
        **options,
    )


def replaced(
    name: str,
    says: str,
    member: str,
    value: object,
    *,
    check: str = PLAIN,
    also: tuple[str, ...] = (CHUNK,),
    **options: Any,
) -> None:
    """A fault that gives a member of each document another value."""

    def replace_value(documents: list[Json], call: Call) -> list[Json]:
        return with_member(documents, member, value)

    plant(name, says, Stage.REPLY, check, replace_value, also=also, **options)


left_out("id_is_left_out", "Replies have no `id`.", "id")
left_out("object_is_left_out", "Replies have no `object`.", "object")
left_out("chunks_do_not_name_the_model", "Chunks have no `model`.", "model", check=CHUNK, also=(), only=streaming)
replaced("model_is_null", "`model` is null.", "model", None, fits=lambda contract: required(contract, "model"))
replaced(
    "object_is_that_of_chat",
    "`object` is that of chat completions.",
    "object",
    "chat.completion",
    imitates="Completions declared themselves as chat completions.",
)
replaced(
    "chunks_are_those_of_chat",
    "`object` in chunks is that of chat completion chunks.",
    "object",
    "chat.completion.chunk",
    check=CHUNK,
    also=(),
    only=streaming,
    imitates="Chunks of completions declared themselves as chat chunks.",
)
replaced(
    "created_is_a_date",
    "`created` is a date and time as a string.",
    "created",
    "2026-01-01T00:00:00Z",
    also=(CHUNK, "created_is_in_seconds"),
    imitates="`created` was a date as a string.",
)


@fault(
    Stage.REPLY,
    PLAIN,
    also=("tier_is_reported", CHUNK),
    fits=lambda contract: required(contract, contract.by_role(Role.REPORTED)),
)
def tier_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Replies do not name the service tier, although it is promised."""
    return without_member(documents, call.reference.shape.reported)


@fault(
    Stage.REPLY,
    PLAIN,
    also=("created_is_in_seconds", CHUNK),
    imitates="A gateway sent its clock as it was, fractions included.",
    fits=lambda contract: contract.response["properties"]["created"].get("type") == "integer",
)
def created_has_a_fraction(documents: list[Json], call: Call) -> list[Json]:
    """`created` has a fraction."""
    return [{**document, "created": document["created"] + 0.25} for document in documents]


@fault(
    Stage.REPLY,
    PLAIN,
    also=(CHUNK,),
    fits=lambda contract: "system_fingerprint" in contract.response.get("properties", {}),
)
def fingerprint_is_a_number(documents: list[Json], call: Call) -> list[Json]:
    """`system_fingerprint` is a number."""
    return [{**document, "system_fingerprint": 7} for document in documents]


# Choices.


@fault(
    Stage.REPLY,
    PLAIN,
    also=("drawn_is_accepted", "suffix_is_used", CHUNK, *CHOICES),
    imitates="A native reply of the engine had no choices.",
)
def choices_have_another_name(documents: list[Json], call: Call) -> list[Json]:
    """The list of choices is called `completions`."""
    bare = without_member(documents, "choices")
    return [{**rest, "completions": document["choices"]} for rest, document in zip(bare, documents, strict=True)]


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "suffix_is_used", CHUNK, *CHOICES, "echo_begins_with_prompt", "tokens_join_to_text", "length_comes_with_text",
        "json_is_valid", "bias_forces", "logprobs_are_returned", "text_offsets_follow_tokens",
    ),
    imitates="Completions came in the shape of chat: `message` in place of `text`.",
)  # fmt: skip
def text_comes_as_a_message(documents: list[Json], call: Call) -> list[Json]:
    """Choices have a `message` in place of `text`."""
    for choice in choices(documents):
        choice["message"] = {"role": "assistant", "content": choice.pop("text")}
    return documents


@fault(
    Stage.REPLY,
    CHUNK,
    only=streaming,
    also=(
        "batch_is_singles", *CHOICES, "echo_begins_with_prompt", "length_comes_with_text", "stop_cuts_earliest",
        "suffix_is_used",
    ),
    imitates="Chunks of text had a `delta` as in chat.",
)  # fmt: skip
def text_comes_as_a_delta(documents: list[Json], call: Call) -> list[Json]:
    """Choices in chunks have a `delta` in place of `text`."""
    for choice in choices(documents):
        choice["delta"] = {"content": choice.pop("text")}
    return documents


@fault(Stage.REPLY, CHUNK, only=streaming, imitates="The finish chunk had text null.")
def last_text_is_null(documents: list[Json], call: Call) -> list[Json]:
    """In chunks without text, `text` is null."""
    for choice in choices(documents):
        choice["text"] = choice["text"] or None
    return documents


@fault(Stage.REPLY, PLAIN, also=("drawn_is_accepted", *CHOICES, "suffix_is_used"))
def index_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Choices have no `index`."""
    for choice in choices(documents):
        del choice["index"]
    return documents


@fault(Stage.REPLY, PLAIN, also=("drawn_is_accepted", *CHOICES, "suffix_is_used"))
def index_is_a_string(documents: list[Json], call: Call) -> list[Json]:
    """The `index` of a choice is a string."""
    for choice in choices(documents):
        choice["index"] = str(choice["index"])
    return documents


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "batch_is_singles", "cut_text_finishes_with_length", "stop_finishes_with_stop", "twin_finish_agrees", CHUNK,
        "every_choice_finishes",
    ),
    only=plain,
    imitates="The member finish_reason was missing.",
)  # fmt: skip
def finish_reason_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Choices in plain replies have no `finish_reason`."""
    for choice in choices(documents):
        choice.pop("finish_reason", None)
    return documents


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "logprobs_are_returned", "twin_logprobs_agree", CHUNK, "logprob_lists_are_parallel", "tokens_join_to_text",
        "logprobs_cover_echo", "zero_logprobs_means_sampled_only",
    ),
    needs=("logprobs",),
    fits=lambda contract: '"token_logprobs"' in dumps(contract.response),
)  # fmt: skip
def tokens_are_objects(documents: list[Json], call: Call) -> list[Json]:
    """The tokens of log probabilities are objects, not strings."""
    for choice in choices(documents):
        if choice.get("logprobs"):
            choice["logprobs"]["tokens"] = [{"token": token} for token in choice["logprobs"]["tokens"]]
    return documents


# Usage.


@fault(
    Stage.USAGE,
    PLAIN,
    fits=lambda contract: required(contract, "usage"),
    only=plain,
    also=BATCH,
)
def usage_is_left_out_of_plain_replies(usage: Json, call: Call) -> Json | None:
    """Plain replies have no `usage`, although it is promised."""
    return None


@fault(
    Stage.REPLY,
    PLAIN,
    fits=lambda contract: '"total_tokens"' in dumps(contract.response),
    only=plain,
    also=("usage_has_three_counts", "usage_adds_up", *BATCH),
)
def usage_lacks_its_total(documents: list[Json], call: Call) -> list[Json]:
    """The usage of plain replies has no `total_tokens`."""
    for usage in usages(documents):
        usage.pop("total_tokens", None)
    return documents


# Errors.


@fault(
    Stage.ERROR,
    "error_field_conforms",
    also=(*errors.SHAPE, "error_message_is_clean"),
    fits=lambda contract: bool(contract.errors),
)
def errors_are_of_another_shape(body: Json, call: Call) -> Json:
    """Refusals have the shape of another provider's."""
    if "error" in body:
        return {"error": {"code": 400, "message": [str(body["error"].get("message", ""))]}}
    return {"detail": str(body.get("detail", ""))}


@fault(
    Stage.ERROR,
    "error_field_conforms",
    also=errors.SHAPE,
    fits=lambda contract: bool(contract.errors),
    imitates="`code` came as the status, a number, where a string is documented.",
)
def error_types_are_mixed_up(body: Json, call: Call) -> Json:
    """Members of an error are numbers, lists or null where strings are documented."""
    if isinstance(body.get("error"), dict):
        return {"error": {**body["error"], "code": 400, "type": ["invalid"]}}
    problems: Any = body.get("detail")
    if not problems:
        return body
    return {"detail": [{**problem, "loc": ".".join(map(str, problem["loc"])), "msg": None} for problem in problems]}
