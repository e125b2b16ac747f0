"""Reads JSON texts of any size value by value, so that only one value is in memory at a time."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, Final

from conformance.recording.recorded import BinaryStream

CHUNK: Final = 1 << 16
"""Characters that are read at once, at least."""
NEAR_THE_END: Final = 16
"""Characters: an error this close to the end of what was read may be due to a cut inside a number or an escape."""
_DECODER: Final = json.JSONDecoder()
_SPACE: Final = " \t\r\n"


class JsonStream:
    """One or more JSON texts in a file; whatever is wrong with them is a ValueError that says where.

    After `members` has yielded a name, or `items` has yielded, the caller consumes the value: with `value`, `members`
    or `items`.
    """

    def __init__(self, file: BinaryStream) -> None:
        encoding = json.detect_encoding(file.peek(4)[:4])
        self._text = io.TextIOWrapper(file, encoding, errors="surrogatepass", newline="")
        self._buffer = ""
        self._at = 0
        self._dropped = 0
        self._ended = False

    def next_char(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self._at < len(self._buffer):
                if self._buffer[self._at] not in _SPACE:
                    return self._buffer[self._at]
                self._at += 1
            if not self._more():
                return ""

    def value(self) -> Any:
        """The next value, whole."""
        self.next_char()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._buffer) - NEAR_THE_END or error.msg.startswith("Unterminated string")
                if cut and self._more():
                    continue
                raise ValueError(self._problem(error.msg, error.pos, cut=cut)) from None
            except RecursionError:
                raise ValueError(self._problem("nested too deeply", self._at)) from None
            if end == len(self._buffer) and isinstance(value, (int, float)) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def members(self) -> Iterator[str]:
        """The names of the members of the object that comes next."""
        self._expect("{")
        if self.next_char() == "}":
            self._at += 1
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise ValueError(self._problem("expected the name of a member", self._at))
            self._expect(":")
            yield name
            if self._closes("}"):
                return

    def items(self) -> Iterator[int]:
        """The numbers, from 0, of the items of the array that comes next."""
        self._expect("[")
        if self.next_char() == "]":
            self._at += 1
            return
        number = 0
        while True:
            yield number
            number += 1
            if self._closes("]"):
                return

    def _closes(self, bracket: str) -> bool:
        char = self.next_char()
        if char not in {bracket, ","} or not char:
            raise ValueError(self._problem(f"expected a comma or {bracket!r}", self._at, cut=not char))
        self._at += 1
        return char == bracket

    def _expect(self, char: str) -> None:
        actual = self.next_char()
        if actual != char:
            raise ValueError(self._problem(f"expected {char!r}", self._at, cut=not actual))
        self._at += 1

    def _more(self) -> bool:
        """Read more, as much again as is not consumed yet; False at the end of the file."""
        if self._ended:
            return False
        self._buffer = self._buffer[self._at :]
        self._dropped += self._at
        self._at = 0
        chunk = self._text.read(max(CHUNK, len(self._buffer)))
        self._buffer += chunk
        self._ended = not chunk
        return not self._ended

    def _problem(self, problem: str, at: int, *, cut: bool = False) -> str:
        position = f"character {self._dropped + at:,}"
        if cut and self._ended:
            return f"the file ends in the middle of a value that begins at {position}"
        return f"not JSON at {position}: {problem}"
