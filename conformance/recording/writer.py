"""Appends records to a recording."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from conformance.model import Phase, RequestCase
from conformance.model.exchange import Attempt, Exchange
from conformance.recording.hash_chain import FORMAT, GENESIS, RecordingError, chained_line
from conformance.recording.json_forms import attempt_out, case_out
from conformance.recording.reader import Recording


class Recorder:
    """Appends records to one file. Their content must be redacted already."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Begin a new file; an existing one is replaced."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = _locked(path, path.open("ab", buffering=0))
        self._file.truncate(0)
        self._last_hash = GENESIS
        self._records = 0
        self._append("header", {"format": FORMAT, **header})

    @classmethod
    def resume(cls, path: Path, recording: Recording) -> Recorder:
        """Continue after the last valid record of a recording; a torn last line and a footer are overwritten."""
        recorder = cls.__new__(cls)
        recorder._path = path
        recorder._file = _locked(path, path.open("r+b", buffering=0))
        recorder._file.truncate(recording.valid_bytes)
        recorder._file.seek(0, os.SEEK_END)
        recorder._last_hash, recorder._records = recording.last_hash, recording.records
        return recorder

    def planned(self, phase: Phase) -> None:
        """Record the cases of a phase that is about to be sent."""
        header: dict[str, Any] = {"name": phase.name, "serial": phase.serial, "burst": phase.burst}
        self._append("wave", {**header, "cases": [case_out(case) for case in phase.cases]})

    def started(self, case: RequestCase) -> None:
        """Record that an attempt at a case begins now."""
        self._append("start", {"case": case.id, "at": round(time.time(), 6)})

    def attempted(self, case: RequestCase, attempt: Attempt, final: bool) -> None:
        """Record an attempt; `final` says that no retry follows."""
        self._append("attempt", {"case": case.id, "final": final, **attempt_out(attempt)})

    def unsent(self, reasons: Mapping[str, str]) -> None:
        """Record why planned cases were not sent: a reason for each case id."""
        if reasons:
            self._append("unsent", {"reasons": dict(reasons)})

    def close(self, footer: Mapping[str, Any]) -> str:
        """Write the footer and close the file. Returns the last hash, which depends on every record."""
        self._append("footer", {**footer, "records": self._records + 1, "before": self._last_hash})
        self.abandon()
        return self._last_hash

    def abandon(self) -> None:
        """Close the file without a footer."""
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
        line, self._last_hash = chained_line({"record": kind, **content}, self._last_hash)
        self._records += 1
        try:
            written = self._file.write(line)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        if written != len(line):  # the disk is full: the torn line is dropped when the run is resumed
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))


def _locked(path: Path, file: FileIO) -> FileIO:
    """The file, locked until it is closed: two runs that write to one recording would break its chain."""
    try:
        import fcntl
    except ImportError:  # this system has no file locks
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        message = "another run is writing to it; wait until that run ends, or give another --out or --name"
        raise RecordingError(f"{path}: {message}") from None
    except OSError:  # this file system has no locks
        return file
    return file


def write(
    path: Path, header: Mapping[str, Any], phases: Iterable[Phase], exchanges: Iterable[Exchange], **footer: Any
) -> None:
    """Write a complete recording of finished exchanges."""
    with Recorder(path, header) as recorder:
        for phase in phases:
            recorder.planned(phase)
        for exchange in exchanges:
            for number, attempt in enumerate(exchange.attempts, 1):
                recorder.started(exchange.case)
                recorder.attempted(exchange.case, attempt, number == len(exchange.attempts))
        recorder.close(footer)
