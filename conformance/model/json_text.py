"""JSON as RFC 8259 has it: no NaN, no Infinity, no bare bytes; any failure is a ValueError."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NoReturn, TypeGuard


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


def has_repeated_names(data: bytes) -> bool:
    """Whether a JSON text has an object with two members of one name, which readers take in different ways."""
    repeated = False

    def members(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({name for name, _ in pairs}) < len(pairs)

    try:
        json.loads(data, object_pairs_hook=members)
    except (ValueError, RecursionError):
        return False
    return repeated


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a parsed value is a JSON number; true and false are none, though they are integers in Python."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_integer(value: Any) -> int | None:
    """The value as an integer, as JSON Schema defines one: 1.0 included; None for everything else."""
    return int(value) if is_number(value) and value == value // 1 else None


def json_equal(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal as JSON Schema defines it: 1 equals 1.0, and true equals no number."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(json_equal, first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(json_equal(value, second[name]) for name, value in first.items())
    return bool(first == second)


def _compact(ascii_only: bool) -> Callable[[Any], str]:
    """An encoder that is made once: `json.dumps` makes one for each call, which costs more than most bodies do."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    text = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    encoded_parts = make(None, encoder.default, text, None, ":", ",", False, False, True)
    return lambda value: "".join(encoded_parts(value, 0))


_ENCODE: Final = _compact(ascii_only=True)
_ENCODE_TEXT: Final = _compact(ascii_only=False)


def dumps(value: Any) -> str:
    """The compact form that cases are sent and hashed in; non-finite numbers and lone surrogates go through."""
    return _ENCODE(value)


def readable(value: Any) -> str:
    """The compact form that servers send: text beyond ASCII stands for itself."""
    return _ENCODE_TEXT(value)
