"""Secrets out of evidence, length-preserving, before anything is hashed, judged or written.

A target may echo a key: in an error message, percent-encoded in a link, in base64 in a token, in a compressed body.
"""

from __future__ import annotations

import binascii
import html
import json
import re
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from conformance.model.exchange import DECODED_CAP, Attempt, Piece

SHORTEST_SECRET: Final = 6  # what is shorter ("EMPTY", "none", "x") is a placeholder, and too common to be masked
_GZIP: Final = zlib.MAX_WBITS | 16
_SECRET_WORDS: Final = frozenset(
    {
        "authorization", "authorisation", "auth", "apikey", "token", "secret", "cookie", "password", "credential",
        "credentials", "signature",
    }
)  # fmt: skip
_NO_CREDENTIALS: Final = frozenset({"idempotency", "cache", "partition", "routing", "shard", "sort", "surrogate"})
"""Words before `key` that say it is no credential."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_VALUE: Final = re.compile(r"\s*(?:(?:Bearer|Basic|Token|ApiKey)\s+\S|sk-\w)", re.IGNORECASE)


def is_secret(name: str, value: str = "") -> bool:
    """Whether a header or query parameter holds a credential: a whole word of its name says so, or its value does.

    `X-Api-Key` and `apiKey` do; `X-Portkey-Provider` has no such word.
    """
    if _SECRET_VALUE.match(value):
        return True
    words = [word.lower() for word in _WORD.findall(name)]
    keys = [before for before, word in zip(["", *words], words, strict=False) if word == "key"]
    return not _SECRET_WORDS.isdisjoint(words) or any(before not in _NO_CREDENTIALS for before in keys)


def variable_name(name: str) -> str:
    """The environment variable that stands for a secret header or query parameter: `X_API_KEY` for `X-Api-Key`."""
    return re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")


def without_secrets(
    pairs: Iterable[tuple[str, str]], credentials: Collection[str] = ()
) -> tuple[tuple[str, str | None], ...]:
    """Header fields or query parameters with None for the value of each credential; `credentials` are further names."""
    named = {name.lower() for name in credentials}
    return tuple((name, None if name.lower() in named or is_secret(name, value) else value) for name, value in pairs)


class Redaction:
    """The secrets of a run in every form that they are looked for in."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret.encode())}
        self._needles = sorted({form.lower() for form in forms}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._needles)), re.IGNORECASE)

    def data(self, data: bytes) -> bytes:
        """The same number of bytes, each secret replaced by as many x."""
        lowered = data.lower()
        if not any(needle in lowered for needle in self._needles):
            return data
        return self._pattern.sub(lambda found: b"x" * len(found.group()), data)

    def text(self, text: str) -> str:
        """The same for a header value or a message."""
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def attempt(self, attempt: Attempt) -> Attempt:
        """An attempt that may be kept."""
        cookies = any(name.lower() == "set-cookie" for name, _ in attempt.headers)
        if not self._needles and not cookies:
            return attempt
        headers = tuple(
            (self.text(name), "x" * len(value) if name.lower() == "set-cookie" else self.text(value))
            for name, value in attempt.headers
        )
        whole = b"".join(piece.data for piece in attempt.pieces)
        clean = self._recoded(self.data(whole), headers)
        pieces = attempt.pieces if clean == whole else _cut_alike(clean, attempt.pieces)
        return replace(attempt, headers=headers, pieces=pieces, error=self.text(attempt.error))

    def _recoded(self, data: bytes, headers: tuple[tuple[str, str], ...]) -> bytes:
        """A compressed body is packed anew, and only then changes its length, if a secret is inside."""
        coding = next((value.strip().lower() for name, value in headers if name.lower() == "content-encoding"), "")
        if coding not in {"gzip", "x-gzip", "deflate"}:
            return data
        plain = _unpacked(data)
        clean = self.data(plain)
        if clean == plain:
            return data
        packer = zlib.compressobj(wbits=_GZIP if "gzip" in coding else zlib.MAX_WBITS)
        return packer.compress(clean) + packer.flush()


def _unpacked(data: bytes) -> bytes:
    """As much as can be decoded, of all gzip members, up to the cap that views have too."""
    content = b""
    while data and len(content) < DECODED_CAP:
        reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            content += reader.decompress(data, DECODED_CAP - len(content))
        except zlib.error:
            break
        data = reader.unused_data
    return content


def _cut_alike(data: bytes, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The data cut where the pieces were; a recoded body, of another length, in proportion."""
    total = sum(len(piece.data) for piece in pieces) or 1
    cut: list[Piece] = []
    seen = start = 0
    for piece in pieces:
        seen += len(piece.data)
        end = seen * len(data) // total
        cut.append(Piece(piece.at, data[start:end]))
        start = end
    return tuple(cut)


def _forms(secret: bytes) -> Iterator[bytes]:
    text = secret.decode()
    yield secret
    yield quote(text, safe="").encode()
    yield b"".join(b"%%%02x" % byte for byte in secret)
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text)[1:-1].replace("/", "\\/").encode()
    yield b"".join(b"\\u%04x" % byte for byte in secret)
    yield html.escape(text).encode()
    yield binascii.hexlify(secret)
    for shift in range(3):  # base64 of any text that holds the secret: three alignments, less the shared first and last
        first, last = -(-8 * shift // 6), 8 * (shift + len(secret)) // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(shift) + secret)[first:last]
