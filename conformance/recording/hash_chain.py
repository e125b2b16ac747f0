"""The chain: each line ends in the hash of itself and of all lines before."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

FORMAT: Final = "conformance-exchanges/1"
GENESIS: Final = "0" * 64
_CHAIN: Final = re.compile(rb',"chain":"([0-9a-f]{64})"\}\n')
_CHAIN_LENGTH: Final = len(',"chain":""}\n') + 64


class RecordingError(ValueError):
    """A recording that cannot be trusted: in which line, what is wrong."""


def closed(record: Mapping[str, Any], last: str) -> tuple[bytes, str]:
    """A record as a line, linked to the last one, and its own link."""
    body = json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii")
    link = _link(last, body)
    return body[:-1] + b',"chain":"%s"}\n' % link.encode("ascii"), link


def opened(line: bytes, last: str) -> tuple[dict[str, Any], str]:
    """The record of a line and its link, proved against the last one."""
    found = _CHAIN.fullmatch(line, max(0, len(line) - _CHAIN_LENGTH))
    if found is None:
        raise RecordingError("no chain at its end; the file was changed or is no recording")
    body = line[: found.start()] + b"}"
    link = _link(last, body)
    if link != found.group(1).decode("ascii"):
        raise RecordingError(
            f"its chain is {found.group(1).decode()[:12]}…, the lines up to it give {link[:12]}…"
            "; it, or a line before it, was changed, dropped or moved"
        )
    try:
        record = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"not JSON: {error}") from None
    return record, link


def _link(last: str, body: bytes) -> str:
    return sha256(last.encode("ascii") + body).hexdigest()
