"""The hash chain: each line ends with a SHA-256 hash over the previous hash and its own record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

FORMAT: Final = "conformance-exchanges/1"
GENESIS: Final = "0" * 64
"""Stands for the previous hash in the first line."""
_CHAIN: Final = re.compile(rb',"chain":"([0-9a-f]{64})"\}\n')
_CHAIN_LENGTH: Final = len(',"chain":""}\n') + 64


class RecordingError(ValueError):
    """A recording that cannot be used; the message names the line and what is wrong with it."""


def chained_line(record: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """The line for a record, and its hash; `previous` is the hash of the line before."""
    body = json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii")
    link = _hash(previous, body)
    return body[:-1] + b',"chain":"%s"}\n' % link.encode("ascii"), link


def verified_record(line: bytes, previous: str) -> tuple[dict[str, Any], str]:
    """The record of a line, and its hash; RecordingError where the hash does not follow from `previous`."""
    match = _CHAIN.fullmatch(line, max(0, len(line) - _CHAIN_LENGTH))
    if match is None:
        raise RecordingError('it does not end with a "chain" hash; the file was changed or is not a recording')
    body = line[: match.start()] + b"}"
    stated, actual = match.group(1).decode("ascii"), _hash(previous, body)
    if stated != actual:
        raise RecordingError(
            f"its chain hash is {stated[:12]}…; expected {actual[:12]}…"
            ": this line, or one before it, was changed, removed or moved"
        )
    try:
        record = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"not JSON: {error}") from None
    return record, actual


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


def _hash(previous: str, body: bytes) -> str:
    return sha256(previous.encode("ascii") + body).hexdigest()
