"""Finish reasons are missing, unknown, doubled, or say what is not so."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices
from conformance.selftest.fault import fault

ENUM = ("plain_field_conforms", "chunk_field_conforms", "length_means_the_limit", "stop_finishes_with_stop",
        "twin_finish_agrees", "cut_text_finishes_with_length", "stop_cuts_earliest")  # fmt: skip
NEVER = ("plain_field_conforms", "finish_reason_is_one_of", "stop_finishes_with_stop", "cut_text_finishes_with_length",
         "length_means_the_limit", "chunk_field_conforms")  # fmt: skip


def _reason(documents: list[Json], new: object, old: str = "") -> list[Json]:
    for choice in choices(documents):
        if choice.get("finish_reason") and old in {"", choice["finish_reason"]}:
            choice["finish_reason"] = new
    return documents


def _length(call: Call) -> str:
    return call.reference.contract.semantics.length_reason


def _stop(call: Call) -> str:
    return call.reference.contract.semantics.stop_reason


@fault(
    Stage.REPLY,
    "every_choice_finishes",
    variants=("plain", "streamed", "sometimes"),
    also=(*NEVER, "stop_that_never_matches"),
    imitates="Servers ended streams without a finish reason.",
)
def finish_reason_stays_null(documents: list[Json], call: Call) -> list[Json]:
    """No choice ever gets a finish reason."""
    return _reason(documents, None)


@fault(
    Stage.REPLY,
    "every_choice_finishes",
    also=(*NEVER, "batch_is_singles"),
    only=lambda call: call.params.n * len(call.params.prompts) > 1,
    imitates="With n, only the first choice was finished.",
)
def only_the_first_choice_finishes(documents: list[Json], call: Call) -> list[Json]:
    """With several choices, the first alone gets a finish reason."""
    for choice in choices(documents):
        if choice["index"] > 0:
            choice["finish_reason"] = None
    return documents


@fault(
    Stage.REPLY,
    "every_choice_finishes",
    also=("batch_is_singles", *NEVER, "twin_finish_agrees"),
    only=lambda call: call.streamed,
)
def limit_finishes_without_a_reason(documents: list[Json], call: Call) -> list[Json]:
    """A stream that was cut by its limit gets no finish reason."""
    return _reason(documents, None, _length(call))


@fault(
    Stage.REPLY,
    "finish_reason_is_one_of",
    variants=("plain", "streamed"),
    also=(*ENUM, "stop_that_never_matches"),
    imitates="A server reported its own word for the end of a text.",
)
def finish_reason_is_the_engines_own(documents: list[Json], call: Call) -> list[Json]:
    """The finish reason is a word of the engine."""
    return _reason(documents, "eos_token")


@fault(
    Stage.REPLY,
    "finish_reason_is_one_of",
    also=("stop_that_never_matches", *ENUM, "every_choice_finishes"),
    only=lambda call: bool(call.params.stops),
    needs=("stop",),
)
def finish_reason_is_the_stop_sequence(documents: list[Json], call: Call) -> list[Json]:
    """With stop sequences, the finish reason is `stop_sequence`."""
    return _reason(documents, "stop_sequence")


@fault(
    Stage.REPLY,
    "finish_reason_is_one_of",
    only=lambda call: call.streamed,
    also=("chunk_field_conforms", "no_text_after_finish", "finish_reason_is_settled"),
    imitates="Chunks in the middle of a stream carried an empty finish reason, which typed clients refuse.",
)
def finish_reason_is_empty_in_the_middle(documents: list[Json], call: Call) -> list[Json]:
    """Chunks before the last have an empty string for a finish reason."""
    for choice in choices(documents):
        choice["finish_reason"] = choice["finish_reason"] or ""
    return documents


@fault(
    Stage.REPLY,
    "finish_reason_is_settled",
    only=lambda call: call.streamed,
    also=(
        "batch_is_singles",
        "effects",
        "length_uses_the_limit",
        "twin_finish_agrees",
        "length_means_the_limit",
        "stop_finishes_with_stop",
        "cut_text_finishes_with_length",
    ),
)
def finish_reason_is_taken_back(documents: list[Json], call: Call) -> list[Json]:
    """A last empty chunk gives a second, different reason."""
    for place, document in reversed(list(enumerate(documents))):
        finished = [choice for choice in document["choices"] if choice["finish_reason"]]
        if finished:
            other = _stop(call) if finished[0]["finish_reason"] == _length(call) else _length(call)
            again = {**finished[0], "text": "", "logprobs": None, "finish_reason": other}
            return [*documents[: place + 1], {**document, "choices": [again]}, *documents[place + 1 :]]
    return documents


@fault(
    Stage.REPLY,
    "no_text_after_finish",
    only=lambda call: call.streamed,
    imitates="The reason came with the first chunk, and clients stopped reading.",
)
def finish_reason_comes_with_every_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Every chunk of a choice carries its finish reason."""
    reasons = {choice["index"]: choice["finish_reason"] for choice in choices(documents) if choice["finish_reason"]}
    for choice in choices(documents):
        choice["finish_reason"] = reasons.get(choice["index"])
    return documents


@fault(
    Stage.REPLY,
    "length_means_the_limit",
    variants=("plain", "streamed"),
    also=("ignore_eos_goes_on", "twin_finish_agrees", "cut_text_finishes_with_length"),
    imitates="A server said `stop` whatever had happened.",
)
def limit_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """A text that the limit cut finishes with the reason for a natural end."""
    return _reason(documents, _stop(call), _length(call))


@fault(
    Stage.REPLY,
    "length_means_the_limit",
    only=lambda call: call.params.n > 1,
    also=("batch_is_singles", "twin_finish_agrees", "cut_text_finishes_with_length", "choices_agree_when_greedy"),
)
def limit_of_later_choices_is_called_stop(documents: list[Json], call: Call) -> list[Json]:
    """With n, choices after the first finish with the reason for a natural end."""
    for choice in choices(documents):
        if choice["index"] > 0 and choice["finish_reason"] == _length(call):
            choice["finish_reason"] = _stop(call)
    return documents


@fault(
    Stage.REPLY,
    "stop_finishes_with_stop",
    variants=("plain", "streamed"),
    needs=("stop",),
    also=("logprobs_cover_echo", "length_means_the_limit", "length_uses_the_limit", "stop_cuts_earliest"),
    only=lambda call: bool(call.params.stops),
)
def stop_is_called_length(documents: list[Json], call: Call) -> list[Json]:
    """A text that a stop sequence cut finishes with the reason for the limit."""
    return _reason(documents, _length(call), _stop(call))
