"""Content codings in recordings: some tools store a body as it was sent, others decoded beside the header field."""

from __future__ import annotations

import zlib
from typing import Final

from conformance.model.exchange import DECODED_CAP
from conformance.recording.recorded import GZIP_MAGIC, Fields

CODING: Final = "content-encoding"
_LENGTHS: Final = frozenset({"content-length", "transfer-encoding"})
_SUPPORTED: Final = frozenset({"gzip", "x-gzip", "deflate", "identity"})
_MOST_CODINGS: Final = 3
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZLIB_FIRST: Final = frozenset(bytes([window * 16 + 8]) for window in range(8))


class UnknownCodingError(ValueError):
    """The body is compressed in a way that is not supported here."""


def is_coded(body: bytes, coding: str) -> bool:
    """Whether the bytes are still in the coding that a header field names. Text never is."""
    name = coding.strip().lower()
    if name in {"gzip", "x-gzip"}:
        return body.startswith(GZIP_MAGIC)
    if name == "deflate":  # RFC 1950 §2.2: the first two bytes are a multiple of 31
        return body[:1] in _ZLIB_FIRST and int.from_bytes(body[:2], "big") % 31 == 0
    if name == "identity":
        return True
    if name == "zstd":
        return body.startswith(_ZSTD_MAGIC)
    return not (body.startswith(GZIP_MAGIC) or _is_text(body))


def as_sent(headers: Fields, body: bytes) -> tuple[Fields, bytes]:
    """A response whose header and body agree on the content coding, whatever the recorder made of them.

    A coded body stays as it was sent. Beside a decoded one, the coding and the lengths of the coded body are left out.
    Compressed bytes whose header says nothing of it are decompressed.
    """
    values = ",".join(value for name, value in headers if name.lower() == CODING)
    codings = [coding.strip().lower() for coding in values.split(",") if coding.strip()]
    if len(codings) == 1 and is_coded(body, codings[0]):
        if codings[0] not in _SUPPORTED:
            raise UnknownCodingError(f"the response's content is coded with {codings[0]}, which is not supported")
        return headers, body
    if not codings and not body.startswith(GZIP_MAGIC):
        return headers, body
    for _ in range(_MOST_CODINGS):
        if body.startswith(GZIP_MAGIC):
            body = _unpacked(body)
    return tuple((name, value) for name, value in headers if name.lower() not in {CODING, *_LENGTHS}), body


def _unpacked(body: bytes) -> bytes:
    """The decompressed bytes, as far as they go."""
    content, rest = b"", body
    while rest and len(content) < DECODED_CAP:
        reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            content += reader.decompress(rest, DECODED_CAP - len(content))
        except zlib.error:
            break
        rest = reader.unused_data
    return content


def _is_text(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
