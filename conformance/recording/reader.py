"""Reads a recording and verifies its hash chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance.model import Phase, RequestCase
from conformance.model.exchange import Attempt, Exchange
from conformance.recording.hash_chain import FORMAT, GENESIS, RecordingError, verified_record
from conformance.recording.json_forms import attempt_in, phase_in


@dataclass(frozen=True)
class Recording:
    """The content of a recording. `torn` describes an incomplete last line; `footer` is None if it was never written.

    `lost` has the start time of the last attempt of each case for which that attempt's outcome was not recorded.
    `valid_bytes` is the length of the valid records before any footer, and `last_hash` the chain hash of the last one.
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
    last_hash: str
    records: int
    valid_bytes: int

    @cached_property
    def planned(self) -> tuple[RequestCase, ...]:
        """All planned cases, without duplicates."""
        return tuple({case.id: case for phase in self.phases for case in phase.cases}.values())

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All finished exchanges that count as evidence, in the order of the plan."""
        counted = self.ended - self.unsent.keys()
        return tuple(Exchange(case, self.attempts[case.id]) for case in self.planned if case.id in counted)

    @property
    def in_flight(self) -> frozenset[str]:
        """Cases that were started and have no final attempt."""
        return self.begun - self.ended


def read(path: Path) -> Recording:
    """Read a recording and verify its chain; ignores a torn last line, raises RecordingError for any other fault."""
    reading = _RecordingBuilder()
    for number, line in enumerate(_lines(path), 1):
        if not line.endswith(b"\n"):
            reading.torn = f"line {number} is cut off after {len(line)} bytes; it is ignored"
            break
        try:
            record, link = verified_record(line, reading.last_hash)
            reading.add(record)
        except RecordingError as error:
            raise RecordingError(f"{path}: line {number}: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"member {error} is missing" if isinstance(error, KeyError) else str(error)
            raise RecordingError(
                f"{path}: line {number}: {problem}; expected a record of the format {FORMAT}"
            ) from None
        if reading.footer is None:  # a resumed run overwrites the footer
            reading.last_hash, reading.records = link, number
            reading.valid_bytes += len(line)
    if reading.header is None:
        raise RecordingError(f"{path}: no header; expected a recording ({FORMAT}), which begins with one")
    return reading.recording(reading.header)


@dataclass
class _RecordingBuilder:
    """The records that have been read so far."""

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
    last_hash: str = GENESIS
    records: int = 0
    valid_bytes: int = 0

    def add(self, record: Mapping[str, Any]) -> None:
        kind = record["record"]
        if self.footer is not None:
            raise ValueError("it follows the footer, which must be the last line")
        if (self.header is None) is not (kind == "header"):
            raise ValueError(f"it is a {kind} record; expected exactly one header, as the first record")
        match kind:
            case "header":
                if record.get("format") != FORMAT:
                    raise ValueError(f"format is {record.get('format')!r}")
                self.header = record
            case "wave":
                self.phases.append(phase_in(record))
                self.planned.update(case.id for case in self.phases[-1].cases)
            case "footer":
                if (record["records"], record["before"]) != (self.records + 1, self.last_hash):
                    raise ValueError(
                        "the footer belongs to another recording: its record count or previous hash differs"
                    )
                self.footer = record
            case _:
                self._add_event(kind, record)

    def _add_event(self, kind: str, record: Mapping[str, Any]) -> None:
        if kind == "unsent":
            self.unsent.update(record["reasons"])
            return
        case = record["case"]
        if case not in self.planned:
            raise ValueError(f"case {case!r} is in no earlier wave record")
        if kind == "start":
            self.begun.add(case)
            self.lost[case] = record.get("at", 0.0)
        elif kind == "attempt":
            self.attempts.setdefault(case, []).append(attempt_in(record))
            self.unsent.pop(case, None)
            self.lost.pop(case, None)
            self.ended |= {case} if record["final"] else set()
        else:
            raise ValueError(f"record kind {kind!r} is unknown")

    def recording(self, header: Mapping[str, Any]) -> Recording:
        return Recording(
            header=header,
            phases=tuple(self.phases),
            attempts={case: tuple(attempts) for case, attempts in self.attempts.items()},
            ended=frozenset(self.ended),
            begun=frozenset(self.begun),
            lost=self.lost,
            unsent=self.unsent,
            footer=self.footer,
            torn=self.torn,
            last_hash=self.last_hash,
            records=self.records,
            valid_bytes=self.valid_bytes,
        )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
