"""Characters beyond ASCII are damaged."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, plain, streaming
from conformance.selftest.fault import fault, plant
from conformance.selftest.faults.plain_streamed import TEXT


def decoded_byte_by_byte(documents: list[Json], call: Call) -> list[Json]:
    """Each byte of a character beyond ASCII becomes U+FFFD."""
    for choice in choices(documents):
        choice["text"] = "".join(char if char.isascii() else "\ufffd" * len(char.encode()) for char in choice["text"])
    return documents


DAMAGED = (*TEXT, "twin_text_agrees", "text_offsets_follow_tokens")
plant(
    "bytes_are_decoded_one_by_one_in_streams",
    "In a stream, characters beyond ASCII become U+FFFD.",
    Stage.REPLY,
    "no_replacement_characters",
    decoded_byte_by_byte,
    only=streaming,
    also=DAMAGED,
    imitates="Characters of several bytes were decoded one part at a time.",
)
plant(
    "bytes_are_decoded_one_by_one_in_plain_replies",
    "In a plain reply, characters beyond ASCII become U+FFFD.",
    Stage.REPLY,
    "no_replacement_characters",
    decoded_byte_by_byte,
    only=plain,
    also=DAMAGED,
)


@fault(
    Stage.REPLY,
    "text_has_no_lone_surrogates",
    when=("plain", "streamed"),
    also=(
        "echo_of_zero_tokens", "effects", "max_tokens_zero", "completion_tokens_are_counted",
        "echo_adds_only_the_prompt", "logprobs", "stop_cuts_earliest",
    ),
)  # fmt: skip
def half_a_pair_is_sent(documents: list[Json], call: Call) -> list[Json]:
    """A text ends in one half of a surrogate pair."""
    for choice in choices(documents):
        choice["text"] += "\ud83d"
    return documents
