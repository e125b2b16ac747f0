"""Finish reasons are missing, unknown, early, contradictory or wrong."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, length_reason, several, stop_reason, streaming, with_reason
from conformance.selftest.fault import fault

UNKNOWN = (
    "plain_field_conforms", "chunk_field_conforms", "length_means_the_limit", "stop_finishes_with_stop",
    "twin_finish_agrees", "cut_text_finishes_with_length", "stop_cuts_earliest", "uncut_text_finishes_with_length",
)  # fmt: skip
MISSING = (
    "plain_field_conforms", "finish_reason_is_one_of", "stop_finishes_with_stop", "cut_text_finishes_with_length",
    "length_means_the_limit", "chunk_field_conforms", "uncut_text_finishes_with_length", "logprobs_cover_echo",
)  # fmt: skip

# Missing reasons.


@fault(
    Stage.REPLY,
    "every_choice_finishes",
    when=("plain", "streamed", "sometimes"),
    also=(*MISSING, "stop_that_never_matches"),
    imitates="Servers ended streams without a finish reason.",
)
def finish_reason_stays_null(documents: list[Json], call: Call) -> list[Json]:
    """No choice ever gets a finish reason."""
    return with_reason(documents, None)


@fault(
    Stage.REPLY,
    "every_choice_finishes",
    also=(*MISSING, "batch_is_singles"),
    only=several,
    imitates="With n, only the first choice was finished.",
)
def only_the_first_choice_finishes(documents: list[Json], call: Call) -> list[Json]:
    """With several choices, only the first gets a finish reason."""
    for choice in choices(documents):
        if choice["index"] > 0:
            choice["finish_reason"] = None
    return documents


@fault(Stage.REPLY, "every_choice_finishes", also=("batch_is_singles", *MISSING, "twin_finish_agrees"), only=streaming)
def limit_finishes_without_a_reason(documents: list[Json], call: Call) -> list[Json]:
    """A streamed text that the limit cut gets no finish reason."""
    return with_reason(documents, None, length_reason(call))


@fault(
    Stage.FRAMES,
    "every_choice_finishes",
    only=streaming,
    also=("framing", "relations", "choices", "usage", "stop", "logprobs", "length_uses_the_limit"),
    imitates="A stream ended properly after half of its text, without a reason and without [DONE].",
)
def streams_end_quietly_in_the_middle(frames: list[bytes], call: Call) -> list[bytes]:
    """Every third stream ends after half of its events, and the connection closes normally."""
    return frames[: max(len(frames) // 2, 1)] if call.number % 3 == 0 and len(frames) > 3 else frames


# Unknown reasons.


@fault(
    Stage.REPLY,
    "finish_reason_is_one_of",
    when=("plain", "streamed"),
    also=(*UNKNOWN, "stop_that_never_matches"),
    imitates="A server reported its own word for the end of a text.",
)
def finish_reason_is_the_engines_own(documents: list[Json], call: Call) -> list[Json]:
    """The finish reason is the engine's own word, `eos_token`."""
    return with_reason(documents, "eos_token")


@fault(
    Stage.REPLY,
    "finish_reason_is_one_of",
    also=("stop_that_never_matches", *UNKNOWN, "every_choice_finishes"),
    only=lambda call: bool(call.params.stops),
    needs=("stop",),
)
def finish_reason_is_the_stop_sequence(documents: list[Json], call: Call) -> list[Json]:
    """With stop sequences, the finish reason is `stop_sequence`."""
    return with_reason(documents, "stop_sequence")


@fault(
    Stage.REPLY,
    "finish_reason_is_one_of",
    only=streaming,
    also=("chunk_field_conforms", "no_text_after_finish", "finish_reason_is_settled"),
    imitates="Chunks in the middle of a stream carried an empty finish reason, which typed clients refuse.",
)
def finish_reason_is_empty_in_the_middle(documents: list[Json], call: Call) -> list[Json]:
    """Chunks before the last have an empty string as the finish reason."""
    for choice in choices(documents):
        choice["finish_reason"] = choice["finish_reason"] or ""
    return documents


# Contradictory and early reasons.


@fault(
    Stage.REPLY,
    "finish_reason_is_settled",
    only=streaming,
    also=(
        "batch_is_singles", "effects", "length_uses_the_limit", "twin_finish_agrees", "length_means_the_limit",
        "stop_finishes_with_stop", "cut_text_finishes_with_length",
    ),
)  # fmt: skip
def finish_reason_is_taken_back(documents: list[Json], call: Call) -> list[Json]:
    """A further chunk without text gives a second, different finish reason."""
    for number, document in reversed(list(enumerate(documents))):
        finished = [choice for choice in document["choices"] if choice["finish_reason"]]
        if finished:
            other = stop_reason(call) if finished[0]["finish_reason"] == length_reason(call) else length_reason(call)
            again = {**finished[0], "text": "", "logprobs": None, "finish_reason": other}
            return [*documents[: number + 1], {**document, "choices": [again]}, *documents[number + 1 :]]
    return documents


@fault(
    Stage.REPLY,
    "no_text_after_finish",
    only=streaming,
    imitates="The reason came with the first chunk, and clients stopped reading.",
)
def finish_reason_comes_with_every_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Every chunk of a choice carries its finish reason."""
    reasons = {choice["index"]: choice["finish_reason"] for choice in choices(documents) if choice["finish_reason"]}
    for choice in choices(documents):
        choice["finish_reason"] = reasons.get(choice["index"])
    return documents


# The wrong reason for the limit.


@fault(
    Stage.REPLY,
    "length_means_the_limit",
    when=("plain", "streamed"),
    also=(
        "uncut_text_finishes_with_length",
        "ignore_eos_goes_on",
        "twin_finish_agrees",
        "cut_text_finishes_with_length",
    ),
    imitates="A server said `stop` whatever had happened.",
)
def limit_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """A text that the limit cut finishes with the reason for a natural end."""
    return with_reason(documents, stop_reason(call), length_reason(call))


@fault(
    Stage.REPLY,
    "length_means_the_limit",
    only=lambda call: call.params.n > 1,
    also=("batch_is_singles", "twin_finish_agrees", "cut_text_finishes_with_length", "choices_agree_when_greedy"),
)
def limit_of_later_choices_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """With n, choices after the first that the limit cut finish with the reason for a natural end."""
    for choice in choices(documents):
        if choice["index"] > 0 and choice["finish_reason"] == length_reason(call):
            choice["finish_reason"] = stop_reason(call)
    return documents


@fault(
    Stage.REPLY,
    "length_means_the_limit",
    needs=("echo",),
    only=lambda call: call.params.echo and call.params.max_tokens != 0,
    also=("relations", "batch_is_singles"),
    imitates="Echoed prompts were counted against the limit when the reason was decided.",
)
def limit_of_echoes_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """With an echoed prompt, a text that the limit cut finishes with the reason for a natural end."""
    return with_reason(documents, stop_reason(call), length_reason(call))


@fault(
    Stage.REPLY,
    "length_means_the_limit",
    only=lambda call: call.params.max_tokens == 0,
    fits=lambda contract: contract.limit("max_tokens") is not None and contract.limit("max_tokens").low == 0,
    also=("relations", "batch_is_singles"),
    imitates="A loop over no tokens ended as if the model had.",
)
def nothing_generated_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """With max_tokens 0, every choice finishes with the reason for a natural end."""
    return with_reason(documents, stop_reason(call), length_reason(call))
