"""Canonical JSON, similar to RFC 8785: equal values give equal bytes, so a hash depends on the value alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

SEAL: Final = "sha256"


def canonical(value: Any) -> bytes:
    """JSON in UTF-8 with sorted names and no white space; ValueError for NaN and infinity."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def digest(data: bytes) -> str:
    """The SHA-256 hash in hexadecimal."""
    return sha256(data).hexdigest()


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its own hash as the member `sha256`."""
    return {**document, SEAL: seal(document)}


def seal(document: Mapping[str, Any]) -> str:
    """The hash of a document without its member `sha256`."""
    return digest(canonical({name: value for name, value in document.items() if name != SEAL}))
