"""What a contract leaves open: each field is one choice, its default the common one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """Legal choices of a provider. None of them breaks a promise of any contract."""

    offsets_from_zero: bool = False  # text_offset counts from the completion, not from the prompt before it
    first_logprob: float | None = None  # the log probability of an echoed prompt's first token, which nothing precedes
    extra_alternative: bool = False  # one alternative more is listed than requested
    bytes_are_named: bool = False  # a token that is a part of a character is listed as bytes:\xf0, not as ""
    unasked_logprobs: str = "null"  # the member where none are requested: "null" or "absent"
    tokens_per_chunk: int = 1
    finish_alone: bool = False  # the finish reason comes in a chunk without text
    finish_twice: bool = False  # the finish reason is repeated in a further chunk
    finish_together: bool = False  # one chunk has the finish reasons of all choices
    finish_has_empty_lists: bool = False  # the finish chunk has logprobs of four empty lists
    opening_chunk: bool = False  # each choice begins with a chunk without text
    choices_in_sequence: bool = False  # the choices of a stream follow one another, not interleaved
    counts_end_token: bool = False  # the end-of-text token counts as a completion token
    greedy_is_nondeterministic: bool = False  # at temperature 0, rounding sometimes decides between two tokens
    latency: float = 0.0  # seconds between a request and the beginning of its reply
    lenient: bool = True  # accepts requests whose validity the contract leaves unspecified
    invalid_status: int | None = None  # the status of refusals, 400 or 422, where the contract documents neither
    alias: str = ""  # the name of the model in replies, where it differs from the request
