"""What prompts, texts and tokens say of one another, read as generously as real tokenizers require.

A prompt may come back normalised or behind a token that opens it; a token may be shown as bytes, or as U+FFFD where
it holds a part of a character. Whatever can be explained so is no contradiction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

REPLACEMENT: Final = "\ufffd"
_SPECIAL: Final = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z]{2,12}\]")
_OPENING: Final = re.compile(rf"(?:{_SPECIAL.pattern})+")
_BYTES: Final = re.compile(r"bytes:((?:\\x[0-9a-fA-F]{2})+)")
_BYTE: Final = re.compile(r"<0x([0-9a-fA-F]{2})>")
_MOST: Final = 20_000


def is_special(token: str) -> bool:
    """Whether a token looks like a mark of the tokenizer, such as one that opens or ends a text."""
    return _SPECIAL.fullmatch(token) is not None


def is_plain(token: str) -> bool:
    """Whether a token can only stand for itself: ASCII, not empty, no spelling of bytes, no mark."""
    return bool(token) and token.isascii() and not (_BYTES.match(token) or _BYTE.match(token) or is_special(token))


def is_text(value: str) -> bool:
    """Whether a string survives UTF-8: no lone surrogate, and no U+FFFD that hides what was there."""
    return REPLACEMENT not in value and not any("\ud800" <= char <= "\udfff" for char in value)


def possible_lengths(text: str) -> frozenset[int]:
    """How long a text is: in characters, UTF-16 units or bytes, as it is or as tokenizers normalise it."""
    forms = {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))}
    sizes = (size for one in forms for size in (len(one), len(one.encode("utf-16-le")) // 2, len(one.encode())))
    return frozenset(sizes)


def echoed_length(text: str, prompt: str) -> int | None:
    """How many characters of `text` are the prompt that it begins with; None where it does not begin with it."""
    opening = _OPENING.match(text)
    heads = {0, opening.end()} if opening else {0}
    heads |= {head + 1 for head in heads if text[head : head + 1] == " "}
    forms = (prompt, *(unicodedata.normalize(form, prompt) for form in ("NFC", "NFKC")), prompt.lstrip())
    for form in dict.fromkeys((*forms, prompt.replace("\r\n", "\n"))):
        for head in sorted(heads):
            if (form or not prompt) and text.startswith(form, head):
                return head + len(form)
    return None


def spells(tokens: Sequence[str], text: str, *, more: bool = False) -> bool:
    """Whether the tokens make up the text; with `more`, whether they make up at least the text and may go on."""
    if REPLACEMENT in text and "" in tokens:
        # what is no whole character is spelled as nothing by some, and as U+FFFD in the text
        tokens = [token or REPLACEMENT for token in tokens]
    return any(_fits(joined, text, more) for joined in _joined(tokens))


def _joined(tokens: Sequence[str]) -> Iterator[str]:
    """The ways in which the tokens can be read, the literal one first."""
    readings = ["".join(tokens)]
    if any(_BYTES.search(token) or _BYTE.fullmatch(token) for token in tokens):
        joined = b"".join(map(token_bytes, tokens))
        readings += [joined.decode("utf-8", "replace"), joined.decode("utf-8", "ignore")]
    for reading in dict.fromkeys(readings):
        opening = _OPENING.match(reading)
        for start in {0, opening.end()} if opening else {0}:
            yield reading[start:]
            yield reading[start:].removeprefix(" ")


def token_bytes(token: str) -> bytes:
    """The bytes that a token stands for."""
    single, several = _BYTE.fullmatch(token), _BYTES.search(token)
    if single:
        return bytes.fromhex(single[1])
    if several:  # `bytes:` may stand behind whole characters of the same token
        return token[: several.start()].encode("utf-8", "replace") + bytes.fromhex(several[1].replace("\\x", ""))
    return token.encode("utf-8", "replace")


def _fits(joined: str, text: str, more: bool) -> bool:
    if joined == text or (more and joined.startswith(text)):
        return True
    # A character that the limit cut in two is dropped in one place and replaced in the other.
    if not more and joined.rstrip(REPLACEMENT) == text.rstrip(REPLACEMENT):
        return True
    return REPLACEMENT in joined and covers(joined, text, more=more)


def covers(pattern: str, text: str, *, more: bool = False) -> bool:
    """Whether `text` is `pattern` with each run of U+FFFD standing for at most as many characters beyond ASCII.

    With `more`, the pattern may go on after the text has ended.
    """
    if len(text) > _MOST:
        return True  # too long to tell cheaply, and no contradiction was seen
    places = {0}
    for run, literal in re.findall(f"({REPLACEMENT}+)|([^{REPLACEMENT}]+)", pattern):
        if more and any(_within(literal, text[place:]) for place in places):
            return True
        places = _after_run(places, text, len(run)) if run else _after_literal(places, text, literal)
        if not places:
            return False
    return len(text) in places


def _within(literal: str, rest: str) -> bool:
    return literal.startswith(rest)


def _after_literal(places: set[int], text: str, literal: str) -> set[int]:
    return {place + len(literal) for place in places if text.startswith(literal, place)}


def _after_run(places: set[int], text: str, length: int) -> set[int]:
    found = set(places)
    for place in places:
        for end in range(place, min(place + length, len(text))):
            if text[end].isascii():
                break
            found.add(end + 1)
    return found


def same_but_for_a_space(one: str, other: str) -> bool:
    """Whether two texts are equal, the space aside that some tokenizers drop at the start of one that stands alone."""
    return one == other or one.removeprefix(" ") == other.removeprefix(" ")


def repeats_itself(text: str) -> bool:
    """Whether the text repeats itself from the start, over and over, as far as its beginning tells."""
    head = text[:400]
    return any(head.startswith(head[period:]) for period in range(1, len(head) // 2 + 1))


def repeated_piece(text: str, count: int | None = None) -> str | None:
    """The piece that the text repeats, at least twice; None where it repeats none.

    `count` is how many tokens it was made of, where that is known. A space that a tokenizer drops at the start of a
    text is put back.
    """
    for whole in (text, " " + text):
        counts = [count] if count else range(len(whole), 1, -1)
        for times in counts:
            size, rest = divmod(len(whole), times)
            if times > 1 and size and not rest and whole[:size] * times == whole:
                return whole[:size]
    return None


def ends_inside_a_token(rest: str) -> bool:
    """Whether what follows a stop sequence can be the rest of the token that completed it."""
    return len(rest) <= 12 and not any(char.isspace() for char in rest)


def is_lossy_copy(copy: str, whole: str, *, sure: bool) -> bool:
    """Whether `copy` is `whole` with characters missing.

    With `sure` only where chance cannot explain it: all characters beyond ASCII are gone, and what stood around
    them is there.
    """
    if len(copy) >= len(whole):
        return False
    bare = "".join(char for char in whole if char.isascii())
    if copy == bare and len(whole.rstrip()) > len(bare.rstrip()) and not whole.startswith(bare):
        return True
    if sure or len(copy) * 2 < len(whole):
        return False
    rest = iter(whole)
    return all(char in rest for char in copy)
