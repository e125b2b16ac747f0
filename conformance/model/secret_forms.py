"""Where a secret stands in bytes: as it is, encoded, cut into pieces, in part.

A target may echo a key in an error message, percent-encoded in a link, one character an event, in base64 in a token. A
text is searched as it is and with each coding undone; what is found is a span of the original bytes.
"""

from __future__ import annotations

import binascii
import codecs
import html
import re
import zlib
from array import array
from base64 import a85encode, b32encode, b64encode, b85encode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]
SHORTEST: Final = 6  # what is shorter ("EMPTY", "none", "x") is a placeholder, and too common to be masked
LEAST_PART: Final = 12  # characters of a key that are masked even if the rest is missing: fewer are commonly shown
DEPTH: Final = 3  # codings that are undone one inside another
MOST_BASE32: Final = 8 * 1024  # characters of a run that are decoded from base32, which is slow
MOST_DECODED: Final = 4 * 1024 * 1024  # bytes of a text that are searched with codings undone: more would take minutes
MOST_WORK: Final = 16 * 1024 * 1024  # decoded bytes that are searched for one text
_BLOCK: Final = LEAST_PART // 2
_WORDS: Final = re.compile(r"[a-z]+(?:[-_ ][a-z]+)*", re.IGNORECASE)
_RUN: Final = re.compile(rb"[A-Za-z0-9+/_-]{20,}")
_BASE32: Final = re.compile(rb"[A-Za-z2-7]+")
_BASE32_DIGITS: Final = bytes.maketrans(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    b"0123456789abcdefghijklmnop0123456789abcdefghijklmnopqrstuv",
)
_HEX: Final = re.compile(rb"[0-9A-Fa-f]+")
_SPACE: Final = re.compile(rb"[\s\0]+")
_VISIBLE: Final = re.compile(rb"[!-~]{%d}" % SHORTEST)
_PUNCTUATION: Final = re.compile(rb"[^A-Za-z0-9]+")
_ROT13: Final = bytes.maketrans(
    bytes(range(256)), codecs.encode(bytes(range(256)).decode("latin-1"), "rot13").encode("latin-1")
)
_COMPRESSED: Final = frozenset({b"\x1f\x8b", b"\x78\x01", b"\x78\x9c", b"\x78\xda"})
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def is_common(secret: str) -> bool:
    """Whether a secret is a word or two, such as "object": masking it would change what replies say."""
    return len(secret) < SHORTEST or (len(secret) < 20 and _WORDS.fullmatch(secret) is not None)


@dataclass(frozen=True)
class Coding:
    """A way to write single characters. Each text that uses it has `sign`; characters of `dropped` mean nothing."""

    sign: bytes
    unit: re.Pattern[bytes]
    decode: Callable[[re.Match[bytes]], bytes]
    dropped: bytes = b""
    letters: tuple[tuple[bytes, bytes], ...] = ()  # units of two bytes, the sign itself escaped first

    def undone(self, data: bytes) -> bytes:
        if self.dropped:
            return data.translate(None, self.dropped)
        if self.sign not in data:
            return data
        if not self.letters or _PLACEHOLDER in data:
            return self.unit.sub(self.decode, data)
        # JSON inside JSON has millions of units; replacing one kind after another is ten times as fast
        (itself, _), *others = self.letters
        text = data.replace(itself, _PLACEHOLDER)
        for unit, plain in others:
            text = text.replace(unit, plain)
        parts = text.split(_PLACEHOLDER)
        if self.sign in text:
            parts = [self.unit.sub(self.decode, part) for part in parts]
        return self.sign.join(parts)

    def spans(self, data: bytes, decoded: Sequence[Span]) -> list[Span]:
        """The spans of `data` that became these spans when the coding was undone; what was dropped between stays."""
        needed = max((end for _, end in decoded), default=0)
        starts, ends, position = array("Q"), array("Q"), 0
        gaps = [0]  # places in the decoded text before which something was dropped
        for match in self.unit.finditer(data):
            if len(starts) >= needed:
                break
            starts.extend(range(position, match.start()))
            ends.extend(range(position + 1, match.start() + 1))
            size = len(self.decode(match))
            starts.extend([match.start()] * size)
            ends.extend([match.end()] * size)
            position = match.end()
            if not size and gaps[-1] != len(starts):
                gaps.append(len(starts))
        if len(starts) < needed:
            starts.extend(range(position, len(data)))
            ends.extend(range(position + 1, len(data) + 1))
        return merged(
            (starts[first], ends[after - 1])
            for start, end in decoded
            for first, after in pairwise((start, *gaps[bisect_right(gaps, start) : bisect_left(gaps, end)], end))
        )


_LETTERS: Final = {
    b"\\": b"\\", b'"': b'"', b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t",
}  # fmt: skip
_PLACEHOLDER: Final = b"\xff"  # a byte that does not occur in UTF-8


def _escape(match: re.Match[bytes]) -> bytes:
    letter, byte, octal, short = match.groups()
    if letter:
        return chr(int(letter, 16)).encode("utf-8", "surrogatepass")
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8) % 256])
    return _LETTERS[short]


def _entity(match: re.Match[bytes]) -> bytes:
    return html.unescape(match[0].decode("ascii")).encode("utf-8", "surrogatepass")


CODINGS: Final = (
    Coding(
        b"\\",
        re.compile(rb"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{3})|([\"\\/bfnrt]))"),
        _escape,
        letters=tuple((b"\\" + letter, plain) for letter, plain in _LETTERS.items()),
    ),
    Coding(b"%", re.compile(rb"%([0-9a-fA-F]{2})"), lambda match: binascii.unhexlify(match[1])),
    Coding(b"=", re.compile(rb"=([0-9a-fA-F]{2})"), lambda match: binascii.unhexlify(match[1])),
    Coding(b"&", re.compile(rb"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8}[0-9]{0,2});?"), _entity),
)
"""Character by character. They are undone in this order, as often as they are nested."""
WITHOUT_SPACE: Final = Coding(b"", _SPACE, lambda _: b"", b" \t\n\r\f\v\0")
WITHOUT_PUNCTUATION: Final = Coding(
    b"", _PUNCTUATION, lambda _: b"", bytes(byte for byte in range(256) if not chr(byte).isalnum() or byte > 127)
)


class SecretForms:
    """The secrets of a run in every form that they are looked for in."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(secret.encode() for secret in dict.fromkeys(secrets) if not is_common(secret))
        forms = {form.lower() for secret in self.secrets for form in _forms(secret)}
        bare_forms = {form.lower() for secret in self.secrets for form in _bare_forms(secret)}
        self._whole = tuple(sorted(forms, key=len, reverse=True))
        self._bare = tuple(sorted(bare_forms, key=len, reverse=True))
        self._blocks = tuple(
            dict.fromkeys(
                (secret.lower()[at : at + _BLOCK], secret.lower(), at)
                for secret in self.secrets
                if len(secret) >= LEAST_PART
                for at in range(0, len(secret) - _BLOCK + 1, _BLOCK)
            )
        )

    def __bool__(self) -> bool:
        return bool(self.secrets)

    def spans(self, data: bytes) -> list[Span]:
        """The spans of the data that hold a secret, merged and in order."""
        return merged(self._spans(data, DEPTH, [MOST_WORK])) if self.secrets else []

    def _spans(self, data: bytes, depth: int, work: list[int]) -> list[Span]:
        work[0] -= min(len(data), MOST_DECODED)
        if work[0] < 0 or len(data) < SHORTEST:
            return []
        spans, steps, text = self._plain(data), list[tuple[Coding, bytes]](), data[:MOST_DECODED]
        for _ in range(DEPTH):
            before = len(steps)
            for coding in CODINGS:
                undone = coding.undone(text)
                if undone != text:
                    steps.append((coding, text))
                    text = undone
            if len(steps) == before:
                break
        if steps:
            spans += _traced(self._plain(text), steps)
        for drop, needles in ((WITHOUT_SPACE, self._whole), (WITHOUT_PUNCTUATION, self._bare)):
            bare = drop.undone(text)
            hits = [*_occurrences(bare.lower(), needles)]
            if drop is WITHOUT_SPACE and depth:
                hits += self._in_runs(bare, depth, work)
            if hits:
                spans += _traced(drop.spans(text, hits), steps)
        return spans

    def _plain(self, data: bytes) -> list[Span]:
        """Where a secret stands in one of its forms, or a part of it as it is."""
        lowered = data.lower()
        return [*_occurrences(lowered, self._whole), *self._parts(lowered)]

    def _parts(self, lowered: bytes) -> Iterator[Span]:
        for block, secret, at in self._blocks:
            position = lowered.find(block)
            while position >= 0:
                start, end = position, position + _BLOCK
                before, after = at, at + _BLOCK
                while before and start and lowered[start - 1] == secret[before - 1]:
                    start, before = start - 1, before - 1
                while after < len(secret) and end < len(lowered) and lowered[end] == secret[after]:
                    end, after = end + 1, after + 1
                if end - start >= LEAST_PART and not is_common(secret[before:after].decode("latin-1")):
                    yield start, end
                position = lowered.find(block, end)

    def _in_runs(self, data: bytes, depth: int, work: list[int]) -> Iterator[Span]:
        """Runs of letters and digits that hold a secret once base64, base32 or hex is undone."""
        for match in _RUN.finditer(data):
            for start, bits, plain in _undone_runs(match[0]):
                first = match.start() + start
                # most runs are ids, which decode to bytes that no text has: a cheap look spares the search
                readable = _VISIBLE.search(WITHOUT_SPACE.undone(plain))
                for begin, end in self._spans(plain, depth - 1, work) if readable else ():
                    yield first + 8 * begin // bits, min(first - (-8 * end // bits), match.end())
                if plain[:2] in _COMPRESSED and self._spans(inflated(plain), depth - 1, work):
                    yield match.span()


def _undone_runs(run: bytes) -> Iterator[tuple[int, int, bytes]]:
    """A run with its coding undone from each place where a group may begin, and the bits that a character has."""
    plain = run.translate(_URL_SAFE)
    for start in range(4):
        size = (len(plain) - start) // 4 * 4
        yield start, 6, binascii.a2b_base64(plain[start : start + size])
    if _HEX.fullmatch(run):
        for start in range(2):
            yield start, 4, binascii.unhexlify(run[start : start + (len(run) - start) // 2 * 2])
    if _BASE32.fullmatch(run):
        for start in range(8):
            size = min(len(run) - start, MOST_BASE32) // 8 * 8
            number = int(run[start : start + size].translate(_BASE32_DIGITS), 32)  # far faster than `b32decode`
            yield start, 5, number.to_bytes(size * 5 // 8, "big")


def inflated(data: bytes, limit: int = 1024 * 1024) -> bytes:
    """As much of a zlib, gzip or raw deflate stream as can be decoded."""
    for form in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        reader = zlib.decompressobj(form)
        try:
            return reader.decompress(data, limit)
        except zlib.error:
            continue
    return b""


def _occurrences(lowered: bytes, needles: Sequence[bytes]) -> Iterator[Span]:
    for needle in needles:
        position = lowered.find(needle)
        while position >= 0:
            yield position, position + len(needle)
            position = lowered.find(needle, position + len(needle))


def _traced(spans: list[Span], steps: Sequence[tuple[Coding, bytes]]) -> list[Span]:
    """Spans of a text as spans of what it was before the codings were undone."""
    for coding, text in reversed(steps) if spans else ():
        spans = coding.spans(text, spans)
    return spans


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that touch joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _forms(secret: bytes) -> Iterator[bytes]:
    """A secret as it is, or in a coding of several characters at once."""
    yield secret
    yield secret[::-1]
    yield secret.translate(_ROT13)
    yield binascii.hexlify(secret)
    for encode, size, letters in (
        (b64encode, 3, 4), (urlsafe_b64encode, 3, 4), (b32encode, 5, 8), (b85encode, 4, 5), (a85encode, 4, 5),
    ):  # fmt: skip
        for shift in range(size):  # the coding of any text that holds the secret, less what its neighbours share
            first, last = -(-letters * shift // size), letters * (shift + len(secret)) // size
            if size == 4:  # all five characters of a group depend on all four bytes
                first, last = -(-shift // 4) * 5, (shift + len(secret)) // 4 * 5
            form = encode(bytes(shift) + secret + bytes(-(shift + len(secret)) % size))[first:last]
            if len(form) >= LEAST_PART:
                yield form


def _bare_forms(secret: bytes) -> Iterator[bytes]:
    """A secret without punctuation, which may stand between any two of its characters."""
    for form in (_PUNCTUATION.sub(b"", secret), binascii.hexlify(secret), b"".join(b"%d" % byte for byte in secret)):
        if len(form) >= LEAST_PART or form == secret:
            yield form
    yield b"".join(b"0x%02x" % byte for byte in secret)
    yield b"".join(b"%o" % byte for byte in secret)
