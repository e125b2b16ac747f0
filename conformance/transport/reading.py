"""What is kept of one attempt while it is read, and when it is enough. No I/O: bytes and times are handed in."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

from conformance.exchange import Attempt, Piece
from conformance.model import Ending

MOST_PIECES: Final = 20_000  # beyond, pieces are joined: a million tiny ones must not cost a gigabyte
JOINED: Final = 64 * 1024
MOST_LINES: Final = 250_000  # nor must as many events, once they are read
KEPT_OF_ENDLESS: Final = 256 * 1024  # what is too long shows what it is in its first bytes


class Reading:
    """One attempt. `feed` says when to stop; `attempt` is what came of it."""

    def __init__(self, started_at: float, hang_up_after: int | None, most_bytes: int) -> None:
        self.status: int | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self.http_version = "HTTP/1.1"
        self.ending = Ending.COMPLETE
        self.error = ""
        self.overdue = ""  # what it would mean if time were up now
        self._started_at = started_at
        self._hang_up_after = hang_up_after
        self._most_bytes = most_bytes
        self._pieces: list[Piece] = []
        self._joined = bytearray()
        self._size = self._lines = 0
        self._inflation: Inflation | None = None

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]], http_version: bytes) -> bool:
        """Take the response head; False when that is enough."""
        self.status = status
        self.headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        self.http_version = http_version.decode("latin-1")
        coding = [value.strip().lower() for name, value in self.headers if name.lower() == "content-encoding"]
        if coding and coding[-1] in {"gzip", "x-gzip", "deflate"}:
            self._inflation = Inflation()
        if self._hang_up_after == 0:
            self.ending = Ending.ABANDONED
        return self.ending is Ending.COMPLETE

    def feed(self, data: bytes, at: float) -> bool:
        """Take what one read gave; False when it is enough."""
        size, lines = len(data), data.count(b"\n")
        if self._inflation is not None:
            inflated, lines = self._inflation.feed(data, self._most_bytes + 1)
            size = max(size, inflated)
        self._size += size
        self._lines += lines
        if self._size > self._most_bytes:
            self.fail(Ending.OVERSIZED, f"longer than {self._most_bytes} bytes, where reading stopped")
        elif self._lines > MOST_LINES:
            self.fail(Ending.OVERSIZED, f"more than {MOST_LINES} lines, where reading stopped")
        if self._size <= self._most_bytes or self._inflation is None:
            self._keep(data, at)
        if self._hang_up_after is not None and len(self._pieces) >= self._hang_up_after:
            self.ending = Ending.ABANDONED
        return self.ending is Ending.COMPLETE

    def _keep(self, data: bytes, at: float) -> None:
        if len(self._pieces) < MOST_PIECES:
            self._pieces.append(Piece(at, data))
            return
        self._joined += data
        if len(self._joined) >= JOINED:
            self._flush(at)

    def _flush(self, at: float) -> None:
        if self._joined:
            self._pieces.append(Piece(at, bytes(self._joined)))
            self._joined.clear()

    def fail(self, ending: Ending, error: str) -> None:
        """End the attempt early, for a reason."""
        self.ending, self.error = ending, error

    def attempt(self, elapsed: float) -> Attempt:
        """The attempt as it stands. Of what is endless only the beginning is kept."""
        self._flush(elapsed)
        pieces, error = self._pieces, self.error
        if self.ending in {Ending.OVERSIZED, Ending.TIMED_OUT}:
            pieces = _beginning(pieces, KEPT_OF_ENDLESS)
            if len(pieces) < len(self._pieces):
                error += f"; the first {sum(len(piece.data) for piece in pieces)} bytes are kept"
        return Attempt(
            self._started_at, self.status, self.headers, tuple(pieces), self.ending, error, elapsed, self.http_version
        )

    @property
    def kept(self) -> int:
        """How many bytes of content there are to keep, decoded where they are coded."""
        return min(self._size, KEPT_OF_ENDLESS) if self.ending is Ending.OVERSIZED else self._size


class Inflation:
    """Counts what a compressed body decodes to, so that a bomb is known before anyone unpacks it."""

    def __init__(self) -> None:
        self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes, most: int) -> tuple[int, int]:
        """Bytes and lines that `data` decodes to, counted up to about `most` bytes; 0 once it cannot be decoded."""
        size = lines = 0
        while data and size < most and not self._reader.eof:
            try:
                plain = self._reader.decompress(data, 1024 * 1024)
            except zlib.error:
                break
            size += len(plain)
            lines += plain.count(b"\n")
            data = self._reader.unconsumed_tail
        return size, lines


def _beginning(pieces: list[Piece], most: int) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        if most <= 0:
            break
        kept.append(Piece(piece.at, piece.data[:most]))
        most -= len(piece.data)
    return kept
