"""What every reader of recordings yields, whatever the format: recorded messages, or the reason why there are none."""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.model import Ending
from conformance.model.exchange import Exchange, Unrecorded
from conformance.recording.hash_chain import RecordingError

BinaryStream: TypeAlias = "io.BufferedReader[Any]"
Fields = tuple[tuple[str, str], ...]
GZIP_MAGIC: Final = b"\x1f\x8b\x08"
BLOCK: Final = 1 << 18
A_DAY: Final = 86_400.0
"""The longest response time, in seconds, that is believed: recorders also write -1, and impossibly large numbers."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request and its response, as a tool recorded them. None stands for what it did not record.

    `number` is the position in the file, counted in `unit`s. `headers` and `body` are those of the response; a `status`
    of None says that none came, and `error` why. `missing` says what the recorder lost of the response.
    """

    number: int
    unit: str
    method: str
    url: str
    sent: Fields
    request: bytes | None
    status: int | None
    headers: Fields | None
    body: bytes | None
    started_at: float = 0.0
    elapsed: float = 0.0
    ending: Ending = Ending.COMPLETE
    error: str = ""
    http_version: str = "HTTP/1.1"
    unrecorded: frozenset[Unrecorded] = frozenset()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a file that cannot be judged: where it stands, and why."""

    position: str
    reason: str


Item: TypeAlias = "Recorded | Exchange | LeftOut"
Read: TypeAlias = "Callable[[Source], Iterator[Item]]"
"""A reader: it yields what it has read even if the rest of the file is damaged, for which it raises RecordingError."""


@dataclass
class Source:
    """A file to be read, under the name that messages and case ids give it. `named`: the user gave its path."""

    path: Path
    name: str
    named: bool = True
    _raw: io.FileIO | None = field(default=None, repr=False)

    def open(self) -> BinaryStream:
        """The content, decompressed if the file is gzip."""
        try:
            self._raw = io.FileIO(self.path)
        except OSError as error:
            raise RecordingError(f"{self.name}: cannot be read: {error.strerror}") from None
        buffered: BinaryStream = io.BufferedReader(self._raw, BLOCK)
        if buffered.peek(3)[:3] != GZIP_MAGIC:
            return buffered
        return io.BufferedReader(gzip.GzipFile(fileobj=buffered), BLOCK)

    @property
    def position(self) -> int:
        """The number of bytes of the file that have been read."""
        return self._raw.tell() if self._raw is not None and not self._raw.closed else self.size

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def fields_of(headers: Any) -> Fields:
    """Header fields in any of the forms that recorders use: an object, an object of lists, or a list of pairs."""
    if isinstance(headers, Mapping):
        return tuple(
            (str(name), _text(value))
            for name, values in headers.items()
            for value in (values if isinstance(values, list) else [values])
        )
    if not isinstance(headers, list):
        return ()
    pairs: Iterable[Any] = headers
    fields = []
    for pair in pairs:
        if isinstance(pair, Mapping) and "name" in pair:
            fields.append((str(pair["name"]), _text(pair.get("value"))))
        elif isinstance(pair, list) and len(pair) == 2:
            fields.append((str(pair[0]), _text(pair[1])))
    return tuple(fields)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else str(value)


def seconds(milliseconds: Any) -> float:
    """A duration that can be believed, in seconds; 0 stands for any other."""
    try:
        number = float(milliseconds) / 1000
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if math.isfinite(number) and 0 < number < A_DAY else 0.0


def whole_number(value: Any) -> int:
    """An HTTP status or a size; 0 where there is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def member(value: Any, name: str) -> Mapping[str, Any]:
    """The member `name` if it is an object, otherwise an empty object."""
    member_value = value.get(name) if isinstance(value, Mapping) else None
    return member_value if isinstance(member_value, Mapping) else {}
