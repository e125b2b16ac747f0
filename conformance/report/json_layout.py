"""JSON text laid out over several lines for a reader: tokens stay as they were sent, only white space is added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from conformance.model.json_text import loads

WIDTH: Final = 100
_INDENT: Final = "  "
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def laid_out(text: str) -> str:
    """The text with a line for each member that does not fit beside others; unchanged where it is no JSON."""
    try:
        loads(text)
        tokens = _TOKEN.finditer(text)
        return _value(tokens, next(tokens).group(), 0)
    except (ValueError, RecursionError):
        return text


def _value(tokens: Iterator[re.Match[str]], first: str, depth: int) -> str:
    """The value that begins with a token, all on one line if it is short enough."""
    if first not in ("{", "["):
        return first
    close = "}" if first == "{" else "]"
    parts = list(_members(tokens, close, depth + 1))
    line = f"{first}{', '.join(parts)}{close}"
    if "\n" not in line and len(line) + len(_INDENT) * depth <= WIDTH:
        return line
    inner, outer = "\n" + _INDENT * (depth + 1), "\n" + _INDENT * depth
    return f"{first}{inner}{f',{inner}'.join(parts)}{outer}{close}"


def _members(tokens: Iterator[re.Match[str]], close: str, depth: int) -> Iterator[str]:
    """The members of an object or the elements of an array, each laid out."""
    for match in tokens:
        text = match.group()
        if text == close:
            return
        if text == ",":
            continue
        if close == "]":
            yield _value(tokens, text, depth)
            continue
        next(tokens)  # the colon
        yield f"{text}: {_value(tokens, next(tokens).group(), depth)}"
