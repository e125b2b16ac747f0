"""One text for one JSON value, so that a hash depends on the value and not on its spelling (after RFC 8785)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

SEAL: Final = "sha256"


def canonical(value: Any) -> bytes:
    """JSON in UTF-8 with sorted names and no white space; a ValueError for what JSON cannot say."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return sha256(data).hexdigest()


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its own hash in it."""
    return {**document, SEAL: seal(document)}


def seal(document: Mapping[str, Any]) -> str:
    """The hash of a document, its own left out."""
    return digest(canonical({name: value for name, value in document.items() if name != SEAL}))
