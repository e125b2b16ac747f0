"""Ids and times of creation."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, with_member
from conformance.selftest.fault import fault

FIELDS = ("plain_field_conforms", "chunk_field_conforms")


@fault(
    Stage.REPLY,
    "created_is_in_seconds",
    also=FIELDS,
    when=("plain", "streamed"),
    imitates="Servers counted milliseconds.",
)
def created_is_in_milliseconds(documents: list[Json], call: Call) -> list[Json]:
    """`created` counts milliseconds."""
    return [{**document, "created": document["created"] * 1000} for document in documents]


@fault(Stage.REPLY, "created_is_in_seconds", also=FIELDS)
def created_is_zero(documents: list[Json], call: Call) -> list[Json]:
    """`created` is 0."""
    return with_member(documents, "created", 0)


@fault(
    Stage.REPLY,
    "created_agrees_with_the_clock",
    when=("plain", "streamed"),
    imitates="A local time without a zone was taken for UTC.",
)
def created_is_local_time(documents: list[Json], call: Call) -> list[Json]:
    """`created` is the server's local time, eight hours ahead of UTC."""
    return [{**document, "created": document["created"] + 8 * 3600} for document in documents]


@fault(
    Stage.REPLY,
    "id_is_not_empty",
    also=(*FIELDS, "ids_are_unique"),
    when=("plain", "streamed"),
    imitates="Ids were empty strings.",
)
def id_is_empty(documents: list[Json], call: Call) -> list[Json]:
    """The id is an empty string."""
    return with_member(documents, "id", "")


@fault(Stage.REPLY, "ids_are_unique")
def all_ids_are_alike(documents: list[Json], call: Call) -> list[Json]:
    """All completions have the same id."""
    return with_member(documents, "id", "cmpl-id")
