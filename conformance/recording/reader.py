"""Records from the disk, the chain proved on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance.model import Phase, RequestCase
from conformance.model.exchange import Attempt, Exchange
from conformance.recording.hash_chain import FORMAT, GENESIS, RecordingError, opened
from conformance.recording.json_forms import attempt_in, phase_in


@dataclass(frozen=True)
class Recording:
    """What a file holds, in order. `torn` says what is wrong with its end; `footer` is None where it was not closed.

    `lost` are the cases whose last attempt began, at that time, and of which nothing came to be recorded.
    """

    header: Mapping[str, Any]
    phases: tuple[Phase, ...]
    attempts: Mapping[str, tuple[Attempt, ...]]
    ended: frozenset[str]
    begun: frozenset[str]
    lost: Mapping[str, float]
    unsent: Mapping[str, str]
    footer: Mapping[str, Any] | None
    torn: str
    last: str
    records: int
    size: int

    @cached_property
    def planned(self) -> tuple[RequestCase, ...]:
        """All cases that were planned, each once."""
        return tuple({case.id: case for phase in self.phases for case in phase.cases}.values())

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges that came to their end and count, in the order of the plan."""
        counted = self.ended - self.unsent.keys()
        return tuple(Exchange(case, self.attempts[case.id]) for case in self.planned if case.id in counted)

    @property
    def in_flight(self) -> frozenset[str]:
        """Cases that went out and of which nothing more was recorded."""
        return self.begun - self.ended


def read(path: Path) -> Recording:
    """Read a recording and prove its chain; a torn tail is left out, any other fault raises RecordingError."""
    found = _Found()
    for number, line in enumerate(_lines(path), 1):
        if not line.endswith(b"\n"):
            found.torn = f"line {number} is cut off after {len(line)} bytes; it is left out"
            break
        try:
            record, link = opened(line, found.last)
            found.take(record)
        except RecordingError as error:
            raise RecordingError(f"{path}: line {number}: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"member {error} is missing" if isinstance(error, KeyError) else str(error)
            raise RecordingError(f"{path}: line {number}: {what}; expected {FORMAT}") from None
        if found.footer is None:  # which gives way when the recording goes on
            found.last, found.records, found.size = link, number, found.size + len(line)
    if found.header is None:
        raise RecordingError(f"{path}: no header; expected the first line of a recording ({FORMAT})")
    return found.recording(found.header)


@dataclass
class _Found:
    """What was read so far."""

    header: Mapping[str, Any] | None = None
    footer: Mapping[str, Any] | None = None
    phases: list[Phase] = field(default_factory=list)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    lost: dict[str, float] = field(default_factory=dict)
    planned: set[str] = field(default_factory=set)
    unsent: dict[str, str] = field(default_factory=dict)
    torn: str = ""
    last: str = GENESIS
    records: int = 0
    size: int = 0

    def take(self, record: Mapping[str, Any]) -> None:
        kind = record["record"]
        if self.footer is not None:
            raise ValueError("it follows the footer, which must be the last line")
        if (self.header is None) is not (kind == "header"):
            raise ValueError(f"it is a {kind} record; the header must come first, and once")
        match kind:
            case "header":
                if record.get("format") != FORMAT:
                    raise ValueError(f"format is {record.get('format')!r}")
                self.header = record
            case "wave":
                self.phases.append(phase_in(record))
                self.planned.update(case.id for case in self.phases[-1].cases)
            case "footer":
                if (record["records"], record["before"]) != (self.records + 1, self.last):
                    raise ValueError("the footer closes another recording")
                self.footer = record
            case _:
                self._happened(kind, record)

    def _happened(self, kind: str, record: Mapping[str, Any]) -> None:
        if kind == "unsent":
            self.unsent.update(record["reasons"])
            return
        case = record["case"]
        if case not in self.planned:
            raise ValueError(f"case {case!r} was never planned")
        if kind == "start":
            self.begun.add(case)
            self.lost[case] = record.get("at", 0.0)
        elif kind == "attempt":
            self.attempts.setdefault(case, []).append(attempt_in(record))
            self.unsent.pop(case, None)
            self.lost.pop(case, None)
            self.ended |= {case} if record["final"] else set()
        else:
            raise ValueError(f"a record {kind!r} is not known")

    def recording(self, header: Mapping[str, Any]) -> Recording:
        return Recording(
            header,
            tuple(self.phases),
            {case: tuple(found) for case, found in self.attempts.items()},
            frozenset(self.ended),
            frozenset(self.begun),
            self.lost,
            self.unsent,
            self.footer,
            self.torn,
            self.last,
            self.records,
            self.size,
        )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
