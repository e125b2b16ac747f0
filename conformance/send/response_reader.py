"""Collects the response of one attempt and decides when to stop reading. No I/O: the caller passes bytes and times."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from conformance.model import Ending
from conformance.model.exchange import MOST_MEMBERS, Attempt, Piece

MOST_PIECES: Final = 20_000  # beyond, pieces are joined: a million tiny ones must not cost a gigabyte
JOINED_PIECE: Final = 64 * 1024
KEPT_OF_ENDLESS: Final = 64 * 1024  # bytes kept of a response that is too long: its beginning shows what it is
KEPT_HEADERS: Final = 16 * 1024  # the weight of header fields that are kept once the memory of the run is short
DESCRIBING: Final = frozenset(
    {"content-type", "content-length", "content-encoding", "transfer-encoding", "retry-after"}
)
MOST_DESCRIBING: Final = 1024  # characters of a field that are kept then
KEPT_WEIGHT: Final = 256 * 1024  # the weight that these bytes may have at most
LARGE: Final = 256 * 1024 * 1024  # the weight of all responses of a run; a single one may take half of it,
# or half of what the others have left;
TOTAL: Final = 360 * 1024 * 1024  # once that is used up, a small part of what is left of this


def weight(data: bytes) -> int:
    """The approximate memory, in bytes, that judging these bytes takes once they are parsed as JSON and events.

    Measured: views keep nine copies of a long line, and each event and object costs more than its text.
    """
    inside = 24 * data.count(b",") + 64 * (data.count(b":") + data.count(b"[")) + 400 * data.count(b"{")
    return 9 * len(data) + inside + 1100 * data.count(b"\n")


def header_weight(headers: Iterable[tuple[str, str]]) -> int:
    """The approximate memory that header fields take: a field of two letters costs as much as one of two hundred."""
    return sum(400 + 9 * (len(name) + len(value)) for name, value in headers)


def kept_fields(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The fields that describe the body, and the first of the others as long as their weight is small."""
    left = KEPT_HEADERS
    for name, value in headers:
        left -= header_weight([(name, value)])
        if left > 0 or name.lower() in DESCRIBING:
            yield name, value[:MOST_DESCRIBING]


class ResponseMemoryBudget:
    """Counts the weight of all responses of a run, which bounds its memory however many there are."""

    def __init__(self, large: int = LARGE, total: int = TOTAL) -> None:
        self.used = 0
        self._large, self._total = large, total

    @property
    def per_response(self) -> int:
        """The maximum weight of any response; a heavier one is the fault of the target."""
        return self._large // 2

    def limit_for(self, own_weight: int) -> int:
        """The maximum weight at which a response is kept; `own_weight` is the part of `used` that belongs to it."""
        others = self.used - own_weight
        return max((self._large - others) // 2, (self._total - others) // 256, 16 * 1024)


class Reading:
    """Reads one attempt: `feed` returns False to stop, `attempt` returns the result."""

    def __init__(
        self, started_at: float, hang_up_after: int | None, most_bytes: int, memory: ResponseMemoryBudget | None = None
    ) -> None:
        self.status: int | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self.http_version = "HTTP/1.1"
        self.ending = Ending.COMPLETE
        self.error = ""
        self.overdue = ""  # the error if the time-out expires now
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
        self._unread = False  # only the beginning is kept, for lack of memory in the run
        self._inflation: Inflation | None = None

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]], http_version: bytes) -> bool:
        """Store the response head; False to stop reading."""
        self.status = status
        self.headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        self.http_version = http_version.decode("latin-1")
        coding = [value.strip().lower() for name, value in self.headers if name.lower() == "content-encoding"]
        if not {"gzip", "x-gzip", "deflate"}.isdisjoint(coding):
            self._inflation = Inflation()
        self._hold(header_weight(self.headers))
        if self._held > self._memory.limit_for(self._held):
            self.headers = tuple(kept_fields(self.headers))
            self._hold(header_weight(self.headers) - self._held)
        if self._hang_up_after == 0:
            self.ending = Ending.ABANDONED
        return self.ending is Ending.COMPLETE

    def feed(self, data: bytes, at: float) -> bool:
        """Store the data of one read; False to stop reading."""
        self._reads += 1
        size, heavy = len(data), weight(data)
        if self._inflation is not None:
            inflated, inside = self._inflation.feed(data, self._most_bytes + 1)
            size, heavy = max(size, inflated), heavy + inside
        self._size += size
        self._weight += heavy
        if self._size > self._most_bytes:
            self.fail(Ending.OVERSIZED, f"longer than {self._most_bytes} bytes, where reading stopped")
        elif self._weight > self._memory.per_response:
            self.fail(Ending.OVERSIZED, "too many values and lines to be read, where reading stopped")
        if not self._unread and (self._inflation is None or self.ending is not Ending.OVERSIZED):
            self._keep(data, at, heavy)
        if self.ending is Ending.COMPLETE and not self._unread and self._held > self._memory.limit_for(self._held):
            self._unread = True  # keep reading: the target must still end in time and size
            self._keep_beginning(at)
        if self._hang_up_after is not None and self._reads >= self._hang_up_after:
            self.ending = Ending.ABANDONED
        return self.ending is Ending.COMPLETE

    def _hold(self, heavy: int) -> None:
        """Count weight against the memory of the run."""
        self._held += heavy
        self._memory.used += heavy

    def _keep(self, data: bytes, at: float, heavy: int) -> None:
        self._hold(heavy)
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
        """End the attempt with an error."""
        self.ending, self.error = ending, error

    def attempt(self, elapsed: float) -> Attempt:
        """The attempt so far; only the beginning is kept of a response that did not end or is too long."""
        self._flush(elapsed)
        if self._unread and self.ending is Ending.COMPLETE:
            self.fail(Ending.UNREAD, "the run has no memory left for it")
        error = self.error
        if self._unread or self.ending in {Ending.OVERSIZED, Ending.TIMED_OUT}:
            self._keep_beginning(elapsed)
            if self._size:
                error = f"{error}; {self._size} bytes were read".removeprefix("; ")
            if (kept_bytes := sum(len(piece.data) for piece in self._pieces)) < self._size:
                error += f", the first {kept_bytes} bytes are kept"
        pieces = tuple(self._pieces)
        return Attempt(
            self._started_at, self.status, self.headers, pieces, self.ending, error, elapsed, self.http_version
        )

    def _keep_beginning(self, at: float) -> None:
        """Drop all but the beginning."""
        self._flush(at)
        self._pieces = list(self._beginning())
        self._weights = self._weights[: len(self._pieces)]
        kept_weight = min(self._held, KEPT_WEIGHT)
        self._memory.used -= self._held - kept_weight
        self._held = kept_weight

    def _beginning(self) -> Iterator[Piece]:
        """The first pieces within the size and weight limits; a plain piece that is too heavy is cut."""
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


def only_comments(data: bytes) -> bool:
    """Whether this is nothing but comments and empty lines of an event stream, which keep a connection open."""
    return data[:1] in b":\r\n" and all(line[:1] in {b"", b":"} for line in data.splitlines())


class Inflation:
    """Measures the decoded size of a compressed body, to detect a decompression bomb before it is decoded whole.

    All members count, as many as a view decodes.
    """

    def __init__(self) -> None:
        self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._members = 1

    def feed(self, data: bytes, limit: int) -> tuple[int, int]:
        """Length and weight of the decoded `data`, up to about `limit` bytes; 0 once it cannot be decoded."""
        size = heavy = 0
        while data and size < limit:
            if self._reader.eof:
                if self._members == MOST_MEMBERS:
                    break
                self._members += 1
                self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                plain = self._reader.decompress(data, 1024 * 1024)
            except zlib.error:
                self._members = MOST_MEMBERS
                break
            size += len(plain)
            heavy += weight(plain)
            data = self._reader.unconsumed_tail or self._reader.unused_data
        return size, heavy
