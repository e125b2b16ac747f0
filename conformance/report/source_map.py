"""The position of a JSON pointer's value in the text of a document, so that reports mark the original bytes."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Final

_DECODER: Final = JSONDecoder()
_EVENT: Final = re.compile(r"event (\d+)\b")
_POINTER: Final = re.compile(r"/\S*$")


def event_of(at: str) -> int | None:
    """The number in `event 2 /choices/0`; None where no event is named."""
    match = _EVENT.match(at)
    return int(match.group(1)) if match else None


def pointer_of(at: str) -> str:
    """The pointer in `event 2 /choices/0` or `body/usage`; empty where there is none."""
    match = _POINTER.search(at)
    return match.group() if match else ""


def span(text: str, pointer: str) -> tuple[int, int] | None:
    """Start and end of the value in the text; None where there is none, or where the text is not JSON."""
    try:
        start = _skip_space(text, 0)
        for token in pointer.split("/")[1:]:
            member = _member(text, start, token.replace("~1", "/").replace("~0", "~"))
            if member is None:
                return None
            start = member
        return start, _DECODER.raw_decode(text, start)[1]
    except (ValueError, IndexError, RecursionError):
        return None


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _member(text: str, start: int, token: str) -> int | None:
    """Where the value of a member begins; of members with the same name the last, as most parsers choose."""
    opening, value, number = text[start], None, 0
    if opening not in "{[":
        return None
    position = _skip_space(text, start + 1)
    while text[position] not in "}]":
        name = str(number)
        if opening == "{":
            name, position = _DECODER.raw_decode(text, position)
            position = _skip_space(text, _skip_space(text, position) + 1)  # past the colon
        if name == token:
            value = position
        position = _skip_space(text, _DECODER.raw_decode(text, position)[1])
        if text[position] == ",":
            position = _skip_space(text, position + 1)
        number += 1
    return value
