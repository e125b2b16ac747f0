"""Removes secrets from evidence at equal length, before anything is hashed, judged or written.

All that comes back passes through `Redaction.attempt`, before it is recorded, judged or shown, so no check, message or
report can put a secret together again. `secret_forms` says where a secret stands in a text; here are the texts in
which it may stand: bodies as they came and decompressed, strings of events and tokens joined, header fields, errors.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from conformance.model.exchange import DECODED_CAP, MOST_MEMBERS, Attempt, Piece
from conformance.model.secret_forms import MOST_DECODED, SecretForms, Span, inflated, merged

_GZIP: Final = zlib.MAX_WBITS | 16
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
KEPT_OF_OPAQUE: Final = 4
REMEMBERED: Final = 256
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


def without_userinfo(url: str) -> str:
    """A URL for a message: without what could be a password or a key, which is all before `@` and after `?` or `#`."""
    scheme, separator, rest = url.rpartition("://")
    rest = re.sub(r"[?#].*", "…", rest, flags=re.DOTALL)
    return scheme + separator + ("…@" if "@" in rest else "") + rest.rpartition("@")[2]


def without_secrets(
    pairs: Iterable[tuple[str, str]], credentials: Collection[str] = ()
) -> tuple[tuple[str, str | None], ...]:
    """Header fields or query parameters with None for the value of each credential; `credentials` are further names."""
    credential_names = {name.lower() for name in credentials}
    return tuple(
        (name, None if name.lower() in credential_names or is_secret(name, value) else value) for name, value in pairs
    )


class Redaction:
    """The secrets of a run in every form that they are looked for in.

    What cannot be decoded could hide a secret in a form that nobody sees; it is cut unless `keep_undecodable`.
    """

    def __init__(self, secrets: Iterable[str], *, keep_undecodable: bool = False) -> None:
        self._forms = SecretForms(secrets)
        self._keep_undecodable = keep_undecodable
        self._field = lru_cache(REMEMBERED)(self.text)  # most header fields are those of the reply before

    def data(self, data: bytes) -> bytes:
        """The same number of bytes, each secret replaced by as many x."""
        return _masked(data, self._forms.spans(data)) if self._forms else data

    def text(self, text: str) -> str:
        """The same for a header value or a message."""
        return self.data(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def attempt(self, attempt: Attempt) -> Attempt:
        """The attempt without secrets, which may be recorded."""
        cookies = any(name.lower() == "set-cookie" for name, _ in attempt.headers)
        if not self._forms and not cookies:
            return attempt
        body = b"".join(piece.data for piece in attempt.pieces)
        clean_body = self._body(body, attempt.headers) if self._forms else body
        pieces = attempt.pieces if clean_body == body else _cut_alike(clean_body, attempt.pieces)
        headers = tuple(self._headers(attempt.headers))
        return replace(attempt, headers=headers, pieces=pieces, error=self.text(attempt.error))

    def _headers(self, headers: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
        """Header fields masked one by one, and where a secret is spread over the values of several."""
        joined = "".join(value for _, value in headers).encode("utf-8", "surrogatepass")
        spread = _masked(joined, self._forms.spans(joined)) if self._forms else joined
        position = 0
        for name, value in headers:
            size = len(value.encode("utf-8", "surrogatepass"))
            part = spread[position : position + size].decode("utf-8", "replace")
            position += size
            yield self._field(name), "x" * len(value) if name.lower() == "set-cookie" else self._field(part)

    def _body(self, data: bytes, headers: tuple[tuple[str, str], ...]) -> bytes:
        """A body without secrets. A compressed one that has a secret is packed anew, which may change its length."""
        clean = self._assembled(self.data(data))
        codings = [
            word.strip().lower()
            for name, value in headers
            if name.lower() == "content-encoding"
            for word in value.split(",")
        ]
        known = [word for word in codings if word in _COMPRESSED]
        plain, rest = data, b""
        for _ in known:
            plain, left = _unpacked(plain)
            rest = rest or left
        if known and plain:
            inside = self._assembled(self.data(plain))
            if inside != plain:
                for word in known:
                    inside = _packed(inside, word)
                return inside
        if known and plain and len(known) == len([word for word in codings if word not in {"", "identity"}]):
            undecodable = _opaque(plain) or not _is_text(rest)
        else:
            undecodable = not _is_text(data) if any(codings) else _opaque(data)
            if undecodable and self._forms.spans(inflated(data)):
                return _cut(data)
        return _cut(data) if undecodable and not self._keep_undecodable else clean

    def _assembled(self, data: bytes) -> bytes:
        """The body without secrets that stand in several of its strings or numbers, one after another."""
        beginning = data[:MOST_DECODED]
        if not any(_mentions(beginning, secret) for secret in self._forms.secrets):
            return data
        spans: list[Span] = []
        for sequence in _sequences(beginning).values():
            matches = self._forms.spans(b"".join(part for _, part in sequence))
            spans += _located(matches, sequence) if matches else []
        return _masked(data, merged(spans))


@dataclass
class _Object:
    """A JSON object that is being read: its index, if it has one, and the strings in it."""

    name: bytes = b""
    index: bytes = b""
    parts: list[tuple[bytes, tuple[Span, bytes]]] = field(default_factory=list)


_TOKEN: Final = re.compile(
    rb'"((?:[^"\\]|\\.)*+)(?:"(\s*+:)?|\Z)|([{}])|(-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)', re.DOTALL
)


def _sequences(data: bytes) -> dict[Any, list[tuple[Span, bytes]]]:
    """The parts of a body that belong together, each with its place: strings by member name, by choice, all of them."""
    sequences: dict[Any, list[tuple[Span, bytes]]] = defaultdict(list)
    stack = [_Object()]
    for token in _TOKEN.finditer(data):
        string, is_name, brace, number = token.groups()
        inner = stack[-1]
        if is_name:
            inner.name = string
            sequences["names"].append((token.span(1), string))
        elif string is not None:
            part = token.span(1), string
            sequences["strings"].append(part)
            sequences["name", inner.name].append(part)
            inner.parts.append((inner.name, part))
        elif number:
            inner.index = number if inner.name == b"index" else inner.index
            if number.isdigit() and len(number) <= 3 and 32 <= int(number) < 127:
                sequences["numbers", inner.name].append((token.span(4), bytes([int(number)])))
        elif brace == b"{":
            stack.append(_Object(name=inner.name))
        elif len(stack) > 1:
            closed = stack.pop()
            if closed.index:
                for name, part in closed.parts:
                    sequences["choice", closed.index, name].append(part)
            else:
                stack[-1].parts += closed.parts
    return sequences


def _mentions(data: bytes, secret: bytes) -> bool:
    """Whether a body has every character of a secret, or could write them as escapes or numbers; cheap to ask."""
    return b"\\" in data or set(data.lower()).issuperset(secret.lower()) or _NUMBERS.search(data) is not None


_NUMBERS: Final = re.compile(rb"(?:\d++\s*+,\s*+){5}")


def _located(matches: Iterable[Span], sequence: list[tuple[Span, bytes]]) -> Iterator[Span]:
    """The places in the body of what was found in the joined parts."""
    joined_spans, position = list(matches), 0
    for (start, end), part in sequence:
        for first, last in joined_spans:
            if first < position + len(part) and last > position:
                if end - start == len(part):
                    yield start + max(first - position, 0), start + min(last - position, len(part))
                else:
                    yield start, end
        position += len(part)


def _masked(data: bytes, spans: Iterable[Span]) -> bytes:
    """The data with x in these spans; digits 1 instead of a number, which stays one."""
    masked = bytearray(data)
    for start, end in spans:
        number = data[start:end].isdigit() and data[start - 1 : start] in _AROUND and data[end : end + 1] in _AROUND
        masked[start:end] = (b"1" if number else b"x") * (end - start)
    return bytes(masked)


_AROUND: Final = frozenset({b"", b" ", b",", b"[", b"]", b":", b"\n"})


def _unpacked(data: bytes) -> tuple[bytes, bytes]:
    """As much as can be decoded, of as many gzip members and up to the cap that views have too, and what is left."""
    content = bytearray()
    for _ in range(MOST_MEMBERS):
        reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            content += reader.decompress(data, max(DECODED_CAP - len(content), 1))
        except zlib.error:
            break
        data = reader.unconsumed_tail or reader.unused_data
        if not data or len(content) >= DECODED_CAP:
            break
    return bytes(content), data


def _packed(data: bytes, coding: str) -> bytes:
    packer = zlib.compressobj(wbits=_GZIP if "gzip" in coding else zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _opaque(data: bytes) -> bool:
    """Whether these bytes are not text, so that their content is unknown; a few invalid bytes do not matter."""
    return not _is_text(data) and data.decode("utf-8", "replace").count("\ufffd") > max(len(data) // 20, 8)


def _cut(data: bytes) -> bytes:
    """The first bytes, which show what it was, and as many as there were in place of the others."""
    return data[:KEPT_OF_OPAQUE] + b"\xff" * (len(data) - KEPT_OF_OPAQUE)


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
