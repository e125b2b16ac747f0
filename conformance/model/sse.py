"""Bytes of a WHATWG event stream → events, without I/O and without loss, wherever the bytes are split.

Every byte that is fed belongs to exactly one line, and every line to one `Event`, so the stream can be rebuilt from
what was read. What the standard tells a client to discard (an event that no blank line ended) is kept and marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its ending. `field` is empty for a comment and for a blank line."""

    raw: bytes
    content: bytes
    start: int

    @property
    def blank(self) -> bool:
        return not self.content

    @property
    def comment(self) -> bool:
        return self.content[:1] == b":"

    @property
    def field(self) -> str:
        return "" if self.comment else self.content.partition(b":")[0].decode("utf-8", "replace")

    @property
    def value(self) -> bytes:
        """What follows the colon, less one space, as the standard has it."""
        value = self.content.partition(b":")[2]
        return value[1:] if value[:1] == b" " else value

    @property
    def ending(self) -> bytes:
        """CR, LF or both; nothing for a line that the stream's end cut off."""
        return self.raw[len(self.raw.rstrip(b"\r\n")) :]


@dataclass(frozen=True)
class Event:
    """The lines up to a blank one. `terminated` is False for a tail that the stream's end cut off."""

    lines: tuple[Line, ...]
    terminated: bool

    @property
    def start(self) -> int:
        """Offset of the first byte in the stream."""
        return self.lines[0].start

    @property
    def end(self) -> int:
        last = self.lines[-1]
        return last.start + len(last.raw)

    @cached_property
    def raw(self) -> bytes:
        return b"".join(line.raw for line in self.lines)

    @cached_property
    def payload(self) -> bytes | None:
        """The `data` buffer: the values of all data lines joined by LF; None where there is no data line."""
        values = [line.value for line in self.lines if line.field == "data"]
        return b"\n".join(values) if values else None

    @cached_property
    def data(self) -> str | None:
        """The payload as text, with U+FFFD where it is not UTF-8."""
        return None if self.payload is None else self.payload.decode("utf-8", "replace")

    @property
    def name(self) -> str:
        """The event's type: the last `event` field, else `message`."""
        names = [line.value.decode("utf-8", "replace") for line in self.lines if line.field == "event"]
        return names[-1] if names and names[-1] else "message"

    @property
    def dispatched(self) -> bool:
        """Whether a standard client sees this event: a blank line ended it, and it has a data line, even if empty."""
        return self.terminated and self.payload is not None

    @property
    def comments(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.comment)

    @property
    def utf8(self) -> bool:
        try:
            self.raw.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True


class Reader:
    """Feed bytes as they come, take events as they are complete; `close` gives the unterminated tail."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._offset = 0
        self._lines: list[Line] = []
        self._begun = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield each event that `data` completes."""
        self._buffer += data
        yield from self._events(final=False)

    def close(self) -> Iterator[Event]:
        """Yield what is left: complete lines first, then a tail that no line end or blank line closed."""
        yield from self._events(final=True)
        if self._buffer:
            content, raw = self._without_bom(bytes(self._buffer)), bytes(self._buffer)
            self._lines.append(Line(raw, content, self._offset))
            self._offset += len(raw)
            self._buffer.clear()
        if self._lines:
            yield self._event(terminated=False)

    def _events(self, *, final: bool) -> Iterator[Event]:
        for line in self._complete_lines(final=final):
            self._lines.append(line)
            if line.blank:
                yield self._event(terminated=True)

    def _complete_lines(self, *, final: bool) -> Iterator[Line]:
        taken = 0
        while match := _LINE_END.search(self._buffer, max(self._searched, taken)):
            if match.group() == b"\r" and match.end() == len(self._buffer) and not final:
                break  # a LF may follow: only the next byte distinguishes CR from CRLF
            raw = bytes(self._buffer[taken : match.end()])
            content = self._without_bom(raw[: match.start() - taken])
            yield Line(raw, content, self._offset)
            self._offset += len(raw)
            taken = match.end()
        del self._buffer[:taken]
        self._searched = max(len(self._buffer) - 1, 0)

    def _without_bom(self, content: bytes) -> bytes:
        # One leading U+FEFF is ignored, at the start of the stream only.
        first, self._begun = not self._begun, True
        return content.removeprefix(BOM) if first else content

    def _event(self, *, terminated: bool) -> Event:
        event = Event(tuple(self._lines), terminated)
        self._lines.clear()
        return event


def read(pieces: Iterable[bytes]) -> Iterator[Event]:
    """All events of a stream that is at hand, the unterminated tail included."""
    reader = Reader()
    for piece in pieces:
        yield from reader.feed(piece)
    yield from reader.close()
