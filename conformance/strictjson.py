"""JSON as RFC 8259 has it: no NaN, no Infinity, no bare bytes; any failure is a ValueError."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Final, NoReturn


class Missing(Enum):
    """The type of MISSING: a member that is absent, as opposed to null."""

    MISSING = "missing"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "absent"


MISSING: Final = Missing.MISSING


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def loads(data: bytes | str) -> Any:
    """Parse one JSON text; raise ValueError for everything else, nesting too deep for any client included."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested deeper than a parser can follow") from None


def dumps(value: Any) -> str:
    """The compact form that cases are sent and hashed in; non-finite numbers and lone surrogates go through."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
