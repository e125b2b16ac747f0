"""Tolerant matching of prompts, texts and tokens, for what real tokenizers do to them.

A prompt may be echoed normalised or after a special token; a token may be shown as bytes, or as U+FFFD where it holds
a part of a character. A difference that these explain is no contradiction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

REPLACEMENT: Final = "\ufffd"
_SPECIAL: Final = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z]{2,12}\]")
_BYTES: Final = re.compile(r"bytes:((?:\\x[0-9a-fA-F]{2})+)")
_BYTE: Final = re.compile(r"<0x([0-9a-fA-F]{2})>")
_WORD_START: Final = "\u2581"  # SentencePiece's mark for a space
# Byte-level BPE shows a byte that is no printable character as one of the characters from U+0100 on.
_PRINTABLE: Final = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_BYTE_OF: Final = {
    **{chr(byte): byte for byte in _PRINTABLE},
    **{chr(0x100 + index): byte for index, byte in enumerate(sorted({*range(256)} - {*_PRINTABLE}))},
}
LONGEST_MATCHED: Final = 20_000  # characters; matching takes quadratic time


def is_special(token: str) -> bool:
    """Whether a token looks like a special token of the tokenizer, such as one that begins or ends a text."""
    return _SPECIAL.fullmatch(token) is not None


def is_plain(token: str) -> bool:
    """Whether a token can only stand for itself: ASCII, not empty, no notation for bytes, no special token."""
    return bool(token) and token.isascii() and not (_BYTES.match(token) or _BYTE.match(token) or is_special(token))


def is_text(value: str) -> bool:
    """Whether a string survives UTF-8: no lone surrogate, and no U+FFFD in the place of lost bytes."""
    return REPLACEMENT not in value and not any("\ud800" <= char <= "\udfff" for char in value)


def possible_lengths(text: str) -> frozenset[int]:
    """The lengths of a text in characters, UTF-16 units and bytes, unchanged and in each Unicode normalisation form."""
    forms = {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))}
    sizes = (size for form in forms for size in (len(form), len(form.encode("utf-16-le")) // 2, len(form.encode())))
    return frozenset(sizes)


def _starts(text: str) -> set[int]:
    """Where a text may begin: at 0, or behind any number of opening special tokens, which may be text as well."""
    starts = [0]
    while opening := _SPECIAL.match(text, starts[-1]):
        starts.append(opening.end())
    return set(starts)


def echoed_length(text: str, prompt: str) -> int | None:
    """The length of the prompt with which `text` begins, in characters of the text; None where it does not."""
    starts = _starts(text)
    starts |= {start + 1 for start in starts if text[start : start + 1] == " "}
    forms = (prompt, *(unicodedata.normalize(form, prompt) for form in ("NFC", "NFKC")), prompt.lstrip())
    for form in dict.fromkeys((*forms, prompt.replace("\r\n", "\n"))):
        for start in sorted(starts):
            if (form or not prompt) and text.startswith(form, start):
                return start + len(form)
    return None


def keeps(text: str, prompt: str) -> bool:
    """Whether a text that begins with an echo has the prompt as it was sent, but for a space that is dropped before it.

    A special token in front of it is none of its characters.
    """
    starts = _starts(text)
    starts |= {start + 1 for start in starts if text[start : start + 1] == " "}
    return any(text.startswith(form, start) for form in (prompt, prompt.removeprefix(" ")) for start in starts)


def spells(tokens: Sequence[str], text: str, *, prefix: bool = False) -> bool:
    """Whether the tokens, joined, are the text; with `prefix`, whether the joined tokens begin with it."""
    if REPLACEMENT in text and "" in tokens:
        # some servers show a token with a part of a character as "", and U+FFFD in the text
        tokens = [token or REPLACEMENT for token in tokens]
    return any(_fits(joined, text, prefix) for joined in _joined(tokens))


def _joined(tokens: Sequence[str]) -> Iterator[str]:
    """The texts that the tokens may stand for, the literal one first."""
    readings = ["".join(tokens)]
    if any(_BYTES.search(token) or _BYTE.fullmatch(token) for token in tokens):
        joined = b"".join(map(token_bytes, tokens))
        readings += [joined.decode("utf-8", "replace"), joined.decode("utf-8", "ignore")]
    readings += [reading.replace(_WORD_START, " ") for reading in readings if _WORD_START in reading]
    readings += _from_byte_characters(readings[0])
    for reading in dict.fromkeys(readings):
        for start in _starts(reading):
            yield reading[start:]
            yield reading[start:].removeprefix(" ")


def _from_byte_characters(joined: str) -> Iterator[str]:
    """The text of tokens that are shown in the alphabet of byte-level BPE, where a space is `\u0120`."""
    if "\u0120" in joined or "\u010a" in joined:
        text_bytes = bytes(byte for char in joined if (byte := _BYTE_OF.get(char)) is not None)
        if len(text_bytes) == len(joined):
            yield text_bytes.decode("utf-8", "replace")


def token_bytes(token: str) -> bytes:
    """The bytes that a token stands for, in either notation for bytes or as UTF-8."""
    single, several = _BYTE.fullmatch(token), _BYTES.search(token)
    if single:
        return bytes.fromhex(single[1])
    if several:  # `bytes:` may follow whole characters of the same token
        return token[: several.start()].encode("utf-8", "replace") + bytes.fromhex(several[1].replace("\\x", ""))
    return token.encode("utf-8", "replace")


def _fits(joined: str, text: str, prefix: bool) -> bool:
    if joined == text or (prefix and joined.startswith(text)):
        return True
    # A character that the limit cut in two may be dropped in one place and replaced by U+FFFD in the other.
    if not prefix and joined.rstrip(REPLACEMENT) == text.rstrip(REPLACEMENT):
        return True
    return REPLACEMENT in joined and covers(joined, text, prefix=prefix)


def covers(pattern: str, text: str, *, prefix: bool = False) -> bool:
    """Whether `text` matches `pattern`, in which n U+FFFD in a row stand for at most n characters beyond ASCII.

    With `prefix`, it is enough that something which the pattern matches begins with the text.
    """
    if len(text) > LONGEST_MATCHED:
        return True  # undecided counts as a match: at worst a defect is missed
    ends = {0}  # where in the text the part of the pattern that was read so far may end
    for run, literal in re.findall(f"({REPLACEMENT}+)|([^{REPLACEMENT}]+)", pattern):
        if prefix and any(literal.startswith(text[end:]) for end in ends):
            return True
        ends = _ends_after_run(ends, text, len(run)) if run else _ends_after_literal(ends, text, literal)
        if not ends:
            return False
    return len(text) in ends


def _ends_after_literal(starts: set[int], text: str, literal: str) -> set[int]:
    return {start + len(literal) for start in starts if text.startswith(literal, start)}


def _ends_after_run(starts: set[int], text: str, length: int) -> set[int]:
    ends = set(starts)
    for start in starts:
        for index in range(start, min(start + length, len(text))):
            if text[index].isascii():
                break
            ends.add(index + 1)
    return ends


def same_but_for_a_space(first: str, second: str) -> bool:
    """Whether two texts are equal but for a space at the start, which some tokenizers drop."""
    return first == second or first.removeprefix(" ") == second.removeprefix(" ")


def repeats_itself(text: str) -> bool:
    """Whether the first 400 characters of the text are one piece, repeated from the start."""
    head = text[:400]
    return any(head.startswith(head[period:]) for period in range(1, len(head) // 2 + 1))


def repeated_piece(text: str, count: int | None = None) -> str | None:
    """The piece of which the text is a repetition, at least twice; None where there is none.

    `count` is the number of tokens of the text, where that is known. A space that a tokenizer may have dropped at the
    start of the text is tried as well.
    """
    for candidate in (text, " " + text):
        counts = [count] if count else range(len(candidate), 1, -1)
        for repetitions in counts:
            size, rest = divmod(len(candidate), repetitions)
            if repetitions > 1 and size and not rest and candidate[:size] * repetitions == candidate:
                return candidate[:size]
    return None


def ends_inside_a_token(rest: str) -> bool:
    """Whether the text after a stop sequence can be the rest of the token that completed it.

    A choice: words of a vocabulary seldom have more than 12 characters, and only begin with a space.
    """
    return len(rest) <= 12 and not any(char.isspace() for char in rest)


def is_lossy_copy(copy: str, original: str, *, sure: bool) -> bool:
    """Whether `copy` is `original` with characters missing.

    With `sure`, only where chance cannot explain it: all characters beyond ASCII are missing, and no other ones.
    """
    if len(copy) >= len(original):
        return False
    bare = "".join(char for char in original if char.isascii())
    if copy == bare and len(original.rstrip()) > len(bare.rstrip()) and not original.startswith(bare):
        return True
    if sure or len(copy) * 2 < len(original):
        return False
    rest = iter(original)
    return all(char in rest for char in copy)
