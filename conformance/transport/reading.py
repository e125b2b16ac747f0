"""What is kept of one attempt while it is read, and when it is enough. No I/O: bytes and times are handed in."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

from conformance.exchange import Attempt, Piece
from conformance.model import Ending

MOST_PIECES: Final = 20_000  # beyond, pieces are joined: a million tiny ones must not cost a gigabyte
JOINED: Final = 64 * 1024
KEPT_OF_ENDLESS: Final = 64 * 1024  # what is too long shows what it is in its beginning: so many bytes,
KEPT_WEIGHT: Final = 512 * 1024  # and no more than weighs this
MOST_WEIGHT: Final = 32 * 1024 * 1024


def weight(data: bytes) -> int:
    """About what these bytes will take once they are read as JSON or events: values and lines cost more than text."""
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    return len(data) + 24 * values + 256 * data.count(b"\n")


class Reading:
    """One attempt. `feed` says when to stop; `attempt` is what came of it."""

    def __init__(
        self, started_at: float, hang_up_after: int | None, most_bytes: int, most_weight: int = MOST_WEIGHT
    ) -> None:
        self.status: int | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self.http_version = "HTTP/1.1"
        self.ending = Ending.COMPLETE
        self.error = ""
        self.overdue = ""  # what it would mean if time were up now
        self._started_at = started_at
        self._hang_up_after = hang_up_after
        self._most_bytes = most_bytes
        self._most_weight = most_weight
        self._pieces: list[Piece] = []
        self._joined = bytearray()
        self._size = 0
        self.weight = 0
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
        size, heavy = len(data), weight(data)
        if self._inflation is not None:
            inflated, heavy = self._inflation.feed(data, self._most_bytes + 1)
            size = max(size, inflated)
        self._size += size
        self.weight += heavy
        if self._size > self._most_bytes:
            self.fail(Ending.OVERSIZED, f"longer than {self._most_bytes} bytes, where reading stopped")
        elif self.weight > self._most_weight:
            self.fail(Ending.OVERSIZED, f"too many values and lines to be read, stopped after {self._size} bytes")
        if self._inflation is None or self.ending is not Ending.OVERSIZED:
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
            pieces = _beginning(pieces, KEPT_OF_ENDLESS, KEPT_WEIGHT)
            if len(pieces) < len(self._pieces):
                error += f"; the first {sum(len(piece.data) for piece in pieces)} bytes are kept"
        return Attempt(
            self._started_at, self.status, self.headers, tuple(pieces), self.ending, error, elapsed, self.http_version
        )


class Inflation:
    """Counts what a compressed body decodes to, so that a bomb is known before anyone unpacks it."""

    def __init__(self) -> None:
        self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes, most: int) -> tuple[int, int]:
        """Length and weight of what `data` decodes to, up to about `most` bytes; 0 once it cannot be decoded."""
        size = heavy = 0
        while data and size < most and not self._reader.eof:
            try:
                plain = self._reader.decompress(data, 1024 * 1024)
            except zlib.error:
                break
            size += len(plain)
            heavy += weight(plain)
            data = self._reader.unconsumed_tail
        return size, heavy


def _beginning(pieces: list[Piece], most: int, most_weight: int) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        if most <= 0 or most_weight <= 0:
            break
        data = piece.data[:most]
        while weight(data) > max(most_weight, 4096):
            data = data[: len(data) // 2]
        kept.append(Piece(piece.at, data))
        most, most_weight = most - len(piece.data), most_weight - weight(piece.data)
    return kept
