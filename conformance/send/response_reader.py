"""What is kept of one attempt while it is read, and when it is enough. No I/O: bytes and times are handed in."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from conformance.model import Ending
from conformance.model.exchange import Attempt, Piece

MOST_PIECES: Final = 20_000  # beyond, pieces are joined: a million tiny ones must not cost a gigabyte
JOINED_PIECE: Final = 64 * 1024
KEPT_OF_ENDLESS: Final = 64 * 1024  # bytes kept of a response that is too long: its beginning shows what it is
KEPT_WEIGHT: Final = 256 * 1024  # the weight that these bytes may have at most
LARGE: Final = 256 * 1024 * 1024  # the weight of all responses of a run: one may take half of it alone,
# and half of what others left of it is kept of one,
WHOLE: Final = 360 * 1024 * 1024  # and once it is gone, a small part of what is left of this


def weight(data: bytes) -> int:
    """About the memory that these bytes take once they are read as JSON and events and judged.

    Measured: views keep nine copies of a long line, and each event and object costs more than its text.
    """
    inside = 24 * data.count(b",") + 64 * (data.count(b":") + data.count(b"[")) + 400 * data.count(b"{")
    return 9 * len(data) + inside + 1100 * data.count(b"\n")


class ResponseMemoryBudget:
    """What all responses of a run weigh, so that a run's memory has an end however many there are."""

    def __init__(self, large: int = LARGE, whole: int = WHOLE) -> None:
        self.used = 0
        self._large, self._whole = large, whole

    @property
    def per_response(self) -> int:
        """What one response may weigh, whatever came before it: this is the target's to keep to."""
        return self._large // 2

    def most(self, own: int) -> int:
        """What one response may weigh to be kept, where `own` of what is used is its own."""
        others = self.used - own
        return max((self._large - others) // 2, (self._whole - others) // 256, 16 * 1024)


class Reading:
    """One attempt. `feed` says when to stop; `attempt` is what came of it."""

    def __init__(
        self, started_at: float, hang_up_after: int | None, most_bytes: int, memory: ResponseMemoryBudget | None = None
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
        self._memory = memory or ResponseMemoryBudget()
        self._pieces: list[Piece] = []
        self._weights: list[int] = []
        self._joined = bytearray()
        self._joined_weight = 0
        self._size = 0
        self._weight = 0
        self._held = 0  # the part of the weight that counts against the memory of the run
        self._reads = 0
        self._unread = False  # whether no more than the beginning is kept though it is not too much by itself
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
        self._reads += 1
        size, heavy = len(data), weight(data)
        if self._inflation is not None:
            inflated, heavy = self._inflation.feed(data, self._most_bytes + 1)
            size = max(size, inflated)
        self._size += size
        self._weight += heavy
        if self._size > self._most_bytes:
            self.fail(Ending.OVERSIZED, f"longer than {self._most_bytes} bytes, where reading stopped")
        elif self._weight > self._memory.per_response:
            self.fail(Ending.OVERSIZED, "too many values and lines to be read, where reading stopped")
        if not self._unread and (self._inflation is None or self.ending is not Ending.OVERSIZED):
            self._keep(data, at, heavy)
        if self.ending is Ending.COMPLETE and not self._unread and self._held > self._memory.most(self._held):
            self._unread = True  # reading goes on all the same: whether it ends in time and size is the target's matter
            self._let_go(at)
        if self._hang_up_after is not None and self._reads >= self._hang_up_after:
            self.ending = Ending.ABANDONED
        return self.ending is Ending.COMPLETE

    def _keep(self, data: bytes, at: float, heavy: int) -> None:
        self._held += heavy
        self._memory.used += heavy
        if len(self._pieces) < MOST_PIECES:
            self._pieces.append(Piece(at, data))
            self._weights.append(heavy)
            return
        self._joined += data
        self._joined_weight += heavy
        if len(self._joined) >= JOINED_PIECE:
            self._flush(at)

    def _flush(self, at: float) -> None:
        if self._joined:
            self._pieces.append(Piece(at, bytes(self._joined)))
            self._weights.append(self._joined_weight)
            self._joined.clear()
            self._joined_weight = 0

    def fail(self, ending: Ending, error: str) -> None:
        """End the attempt early, for a reason."""
        self.ending, self.error = ending, error

    def attempt(self, elapsed: float) -> Attempt:
        """The attempt as it stands. Of what is endless only the beginning is kept."""
        self._flush(elapsed)
        if self._unread and self.ending is Ending.COMPLETE:
            self.fail(Ending.UNREAD, "the run has no memory left for it")
        error = self.error
        if self._unread or self.ending in {Ending.OVERSIZED, Ending.TIMED_OUT}:
            self._let_go(elapsed)
            if self._size:
                error = f"{error}; {self._size} bytes were read".removeprefix("; ")
            if (kept := sum(len(piece.data) for piece in self._pieces)) < self._size:
                error += f", the first {kept} bytes are kept"
        pieces = tuple(self._pieces)
        return Attempt(
            self._started_at, self.status, self.headers, pieces, self.ending, error, elapsed, self.http_version
        )

    def _let_go(self, at: float) -> None:
        """Keep no more than the beginning."""
        self._flush(at)
        self._pieces = list(self._beginning())
        self._weights = self._weights[: len(self._pieces)]
        kept = min(self._held, KEPT_WEIGHT)
        self._memory.used -= self._held - kept
        self._held = kept

    def _beginning(self) -> Iterator[Piece]:
        """The first pieces, as far as they are short and light; one that is too heavy is cut if it can be."""
        left, light = KEPT_OF_ENDLESS, KEPT_WEIGHT
        for piece, heavy in zip(self._pieces, self._weights, strict=True):
            data = piece.data[:left]
            if heavy > light and self._inflation is not None:
                return
            while heavy > light and weight(data) > max(light, 4096):
                data = data[: len(data) // 2]
            yield Piece(piece.at, data)
            left, light = left - len(piece.data), light - heavy
            if left <= 0 or light <= 0:
                return


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
