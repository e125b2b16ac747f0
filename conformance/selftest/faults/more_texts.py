"""Texts of which one channel has only a part."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, streaming
from conformance.selftest.fault import fault
from conformance.selftest.faults.relations import TEXT


@fault(
    Stage.REPLY,
    "twin_text_agrees",
    only=lambda call: not call.streamed,
    also=("narrow_sampling_is_greedy", *TEXT, "relations", "stop", "echo"),
    imitates="Outside of a stream, the text was its last token.",
)
def plain_texts_are_their_last_word(documents: list[Json], call: Call) -> list[Json]:
    """A plain reply has the last word of its text alone."""
    for choice in choices(documents):
        before, space, last = choice["text"].rpartition(" ")
        choice["text"] = space + last if before else choice["text"]
    return documents


@fault(
    Stage.FRAMES,
    "every_choice_finishes",
    only=streaming,
    also=("framing", "relations", "choices", "usage", "stop", "logprobs", "length_uses_the_limit"),
    imitates="A stream ended properly after half of its text, without a reason and without [DONE].",
)
def streams_end_quietly_in_the_middle(frames: list[bytes], call: Call) -> list[bytes]:
    """Every third stream ends after half of its events, and the connection closes as if all were well."""
    return frames[: max(len(frames) // 2, 1)] if call.number % 3 == 0 and len(frames) > 3 else frames
