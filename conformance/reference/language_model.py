"""A small deterministic language model: arithmetic decides which token may follow, and how likely it is.

Each prompt gives a topic, which is a vocabulary of a few dozen pieces, four of which are always candidates; within it
the last two tokens decide. One successor is clearly the likeliest, so that greedy decoding shows, and the others are
likely enough for sampling and penalties to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from conformance.reference.tokenizer import FIRST_BYTE, SPELLED, Tokenizer, byte_token

VOCABULARY: Final = 36  # pieces of a topic
FLOOR: Final = -7.0  # the logit of pieces outside the candidates
IMPOSSIBLE: Final = -60.0  # the logit of everything but the next byte of a character that has begun
_MASK: Final = (1 << 64) - 1
_PUNCTUATION: Final = tuple(byte_token(byte) for byte in b",.;\n")
_LETTERS: Final = tuple(byte_token(byte) for byte in b"abcdefghijklmnopqrstuvwxyz     ,.")
_FAVOURITES: Final = slice(2, 6)
_GAPS: Final = (0.0, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8)


class Endings(StrEnum):
    """How often a text ends by itself."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    OFTEN = "often"
    EARLY = "early"
    AT_ONCE = "at once"


@dataclass(frozen=True, slots=True)
class Successors:
    """What may follow: tokens with their logits, and the logit of every other piece."""

    logits: Mapping[int, float]
    floor: float = FLOOR


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """The model: its tokenizer, how often a text ends by itself, and the size of its context in tokens.

    `soft_limit`: the number of tokens after which a text without max_tokens is ever more likely to end. `certainty` is
    added to the logit of the likeliest successor.
    """

    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    endings: Endings = Endings.SOMETIMES
    context: int = 4096
    soft_limit: int = 24
    certainty: float = 0.0

    def topic(self, prompt: Sequence[int], suffix: str = "") -> int:
        """One number for everything before the text, and for the suffix after it."""
        context = ",".join(map(str, prompt)) + "\0" + suffix
        return int.from_bytes(blake2b(context.encode("utf-8", "replace"), digest_size=8).digest(), "big")

    def successors(self, topic: int, before: int, last: int, pending: bytes = b"") -> Successors:
        """What may follow two tokens under a topic, or the rest of a character that has begun."""
        successors = _completions(pending) if pending else None
        if successors is None:
            successors = _successors(topic, before, last, self.tokenizer.bytewise)
        return _sharpened(successors, self.certainty) if self.certainty else successors

    def end_logit(self, topic: int, before: int, last: int, step: int, *, soft_limited: bool) -> float | None:
        """The logit of ending the text at this step; None where it cannot end."""
        if self.endings is Endings.NEVER:
            return None
        if self.endings is Endings.AT_ONCE:
            return 40.0
        if self.endings is Endings.EARLY:
            return None if step == 0 else 6.0 + 2.0 * step  # after one token or two, seldom more
        slack = max(0, step - self.soft_limit) * 0.6 if soft_limited else 0.0
        if self.endings is Endings.OFTEN:
            return 9.0 if _mix(topic, before, last + 7) % 3 == 0 else 2.0 + slack
        if step < 12:
            return None
        return 9.0 if _mix(topic, before, last + 7) % 48 == 0 else -1.0 + slack


def _sharpened(successors: Successors, certainty: float) -> Successors:
    best = max(successors.logits, key=lambda token: successors.logits[token])
    return replace(successors, logits={**successors.logits, best: successors.logits[best] + certainty})


def _mix(topic: int, before: int, last: int) -> int:
    state = (topic ^ (before * 0x9E3779B97F4A7C15) ^ (last * 0xC2B2AE3D27D4EB4F)) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)


@lru_cache(maxsize=256)
def _vocabulary(topic: int, bytewise: bool) -> tuple[int, ...]:
    if bytewise:
        return _LETTERS
    state, pieces = topic, list(_PUNCTUATION[:2])
    while len(pieces) < VOCABULARY:
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        pieces.append((state >> 33) % FIRST_BYTE)
    return tuple(pieces)


@lru_cache(maxsize=8192)
def _successors(topic: int, before: int, last: int, bytewise: bool) -> Successors:
    state = _mix(topic, before, last)
    words = _vocabulary(topic, bytewise)
    first: list[int] = []
    if state % 11 == 0 and last < FIRST_BYTE and not bytewise:
        first.append(byte_token(SPELLED[(state >> 8) % len(SPELLED)][0]))
    rest = {token for token in words[_FAVOURITES] if token != last}
    while len(first) + len(rest) < len(_GAPS):
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        token = words[(state >> 33) % len(words)]
        if token != last:
            rest.add(token)
    ranked = first + sorted(rest, key=lambda token: _mix(state, token, 0))
    return Successors(
        {token: 6.0 - gap - rank / 64 for rank, (token, gap) in enumerate(zip(ranked, _GAPS, strict=True))}
    )


@lru_cache(maxsize=256)
def _completions(pending: bytes) -> Successors | None:
    logits: dict[int, float] = {}
    for spelled in SPELLED:
        for start in range(len(spelled)):
            rest = spelled[start + len(pending) :]
            if rest and spelled[start : start + len(pending)] == pending and spelled[start] >= 0xC0:
                logits.setdefault(byte_token(rest[0]), 8.0 - 1.5 * len(logits))
    return Successors(logits, IMPOSSIBLE) if logits else None
