"""Where in the text of a JSON document a pointer's value stands, so that a reader sees the very bytes."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Final

_DECODER: Final = JSONDecoder()
_EVENT: Final = re.compile(r"event (\d+)\b")
_POINTER: Final = re.compile(r"/\S*$")


def event_of(at: str) -> int | None:
    """The number in `event 2 /choices/0`; None where the place names no event."""
    found = _EVENT.match(at)
    return int(found.group(1)) if found else None


def pointer_of(at: str) -> str:
    """The pointer in `event 2 /choices/0` or `body/usage`; empty where the place names none."""
    found = _POINTER.search(at)
    return found.group() if found else ""


def span(text: str, pointer: str) -> tuple[int, int] | None:
    """Start and end of the value in the text; None where there is none, the text being no JSON included."""
    try:
        place = _skip(text, 0)
        for token in pointer.split("/")[1:]:
            found = _member(text, place, token.replace("~1", "/").replace("~0", "~"))
            if found is None:
                return None
            place = found
        return place, _DECODER.raw_decode(text, place)[1]
    except (ValueError, IndexError, RecursionError):
        return None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _member(text: str, place: int, token: str) -> int | None:
    """Where the member's value begins; the last one of a name, as parsers have it."""
    opening, found, number = text[place], None, 0
    if opening not in "{[":
        return None
    place = _skip(text, place + 1)
    while text[place] not in "}]":
        name = str(number)
        if opening == "{":
            name, place = _DECODER.raw_decode(text, place)
            place = _skip(text, _skip(text, place) + 1)  # past the colon
        if name == token:
            found = place
        place = _skip(text, _DECODER.raw_decode(text, place)[1])
        if text[place] == ",":
            place = _skip(text, place + 1)
        number += 1
    return found
