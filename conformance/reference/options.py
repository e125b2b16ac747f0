"""What a conforming provider may do one way or the other: each field is a freedom, its default the common choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """The legal freedoms of a reply. Nothing here breaks a promise of any contract."""

    offsets_from_zero: bool = False  # text_offset counts from the text, not from the prompt before it
    first_logprob: float | None = None  # of an echoed prompt's first token, which has no predecessor
    one_more_alternative: bool = False  # each position lists one token more than was asked for
    bytes_are_named: bool = False  # a token that is part of a character is called bytes:\xf0, not ""
    unasked_logprobs: str = "null"  # or "absent"
    tokens_per_chunk: int = 1
    finish_alone: bool = False  # the finish reason comes on a chunk without text
    finish_twice: bool = False  # and once more on another
    finish_together: bool = False  # all choices finish in one chunk
    finish_has_empty_lists: bool = False  # its logprobs are four empty lists
    opening_chunk: bool = False  # a first chunk without text for each choice
    one_after_another: bool = False  # choices follow one another in a stream, not interleaved
    counts_the_end: bool = False  # the token that ended the text counts as one of the completion
    greedy_varies: bool = False  # temperature 0 is only best effort
    latency: float = 0.0  # seconds between a request and the beginning of its answer
    lenient: bool = True  # what the contract leaves open is accepted
    invalid_status: int | None = None  # 400 or 422, where the contract documents neither
    alias: str = ""  # the name that the served model goes by in replies
