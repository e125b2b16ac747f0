"""Records onto the disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from conformance.model import Phase, RequestCase
from conformance.model.exchange import Attempt, Exchange
from conformance.recording.hash_chain import FORMAT, GENESIS, RecordingError, closed
from conformance.recording.json_forms import attempt_out, case_out
from conformance.recording.reader import Recording


class Recorder:
    """Appends to one file. What a record says must be redacted already."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Begin a new file; an old one of the same name is replaced."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _only_ours(path, path.open("ab", buffering=0))
        self._file.truncate(0)
        self._last = GENESIS
        self._records = 0
        self._append("header", {"format": FORMAT, **header})

    @classmethod
    def resume(cls, path: Path, found: Recording) -> Recorder:
        """Go on after the last good record of what `read` found; a torn tail and a footer give way."""
        recorder = cls.__new__(cls)
        recorder._file = _only_ours(path, path.open("r+b", buffering=0))
        recorder._file.truncate(found.size)
        recorder._file.seek(0, os.SEEK_END)
        recorder._last, recorder._records = found.last, found.records
        return recorder

    def planned(self, phase: Phase) -> None:
        """Cases that are about to be sent."""
        header: dict[str, Any] = {"name": phase.name, "serial": phase.serial, "burst": phase.burst}
        self._append("wave", {**header, "cases": [case_out(case) for case in phase.cases]})

    def started(self, case: RequestCase) -> None:
        self._append("start", {"case": case.id, "at": round(time.time(), 6)})

    def attempted(self, case: RequestCase, attempt: Attempt, final: bool) -> None:
        self._append("attempt", {"case": case.id, "final": final, **attempt_out(attempt)})

    def unsent(self, reasons: Mapping[str, str]) -> None:
        """Cases that were planned and not sent, with the reason."""
        if reasons:
            self._append("unsent", {"reasons": dict(reasons)})

    def close(self, footer: Mapping[str, Any]) -> str:
        """Close the file for good; the last hash stands for all that was recorded."""
        self._append("footer", {**footer, "records": self._records + 1, "before": self._last})
        self.abandon()
        return self._last

    def abandon(self) -> None:
        """Let go of the file without a footer."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def _append(self, kind: str, content: Mapping[str, Any]) -> None:
        line, self._last = closed({"record": kind, **content}, self._last)
        self._records += 1
        self._file.write(line)


def _only_ours(path: Path, file: FileIO) -> FileIO:
    """The file, locked until it is closed: two runs that write to one recording would spoil it."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        message = "another run is writing to it; wait until it ends, or give another --out or --name"
        raise RecordingError(f"{path}: {message}") from None
    except OSError:  # not on this kind of disk
        return file
    return file


def write(
    path: Path, header: Mapping[str, Any], phases: Iterable[Phase], exchanges: Iterable[Exchange], **footer: Any
) -> None:
    """Write a recording in one go, from exchanges that were made elsewhere."""
    with Recorder(path, header) as recorder:
        for phase in phases:
            recorder.planned(phase)
        for exchange in exchanges:
            for number, attempt in enumerate(exchange.attempts, 1):
                recorder.started(exchange.case)
                recorder.attempted(exchange.case, attempt, number == len(exchange.attempts))
        recorder.close(footer)
