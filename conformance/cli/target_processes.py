"""Several targets at the same time: a process for each, because a process can run only one pytest session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.cli.printing import say
from conformance.config.settings import OPTIONS, Settings, given_options
from conformance.model.exit_codes import ExitCode

SUMMARY: Final = "GITHUB_STEP_SUMMARY"


@dataclass
class TargetProcesses:
    """The running processes; after an interrupt none is started.

    `lifeline` is the reading end of a pipe that is never written to. The system closes it when this process ends, in
    whatever way, and so tells the children.
    """

    lifeline: int
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False

    def judge(self, words: Sequence[str]) -> tuple[int, str]:
        """Judge one target; its exit code and its whole output."""
        if self.stopped:
            return ExitCode.INCOMPLETE, "not started: the run was interrupted before"
        # In a session of its own, the child gets Ctrl-C once: from us. The job summary is written once as well: by us.
        process = subprocess.Popen(  # noqa: S603 - this same program
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=self.lifeline, text=True,
            encoding="utf-8", errors="backslashreplace", start_new_session=True,
            env={**os.environ, SUMMARY: "", "PYTHONIOENCODING": "utf-8:backslashreplace"},
        )  # fmt: skip
        self.running.add(process)
        if self.stopped:
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        self.running.discard(process)
        if process.returncode < 0:
            return ExitCode.INCOMPLETE, f"{output}ended by {signal.Signals(-process.returncode).name}"
        return process.returncode, output

    def stop(self, signal_number: int) -> None:
        """Interrupt all processes, which then write partial reports, or kill them."""
        self.stopped = True
        for process in tuple(self.running):
            process.send_signal(signal_number)


def judge_all(
    chosen: Sequence[Settings], file: str, flags: Mapping[str, Any], *, quiet: bool, at_once: int
) -> list[int]:
    """Judge targets of a file, `at_once` at a time, and print the output of each when it ends; their exit codes."""
    codes: list[int] = [ExitCode.INCOMPLETE] * len(chosen)
    with _sigterm_interrupts(), _lifeline() as lifeline, ThreadPoolExecutor(max_workers=at_once) as pool:
        processes = TargetProcesses(lifeline)
        indexes = {
            pool.submit(processes.judge, _command(target.target, file, flags, quiet=quiet)): index
            for index, target in enumerate(chosen)
        }
        for ended in _as_they_end(indexes, processes):
            index = indexes[ended]
            codes[index], output = ended.result()
            name = chosen[index].target
            say(f"{output.rstrip()}\n" if output.startswith(name) else f"{name}: {output.rstrip()}\n")
    return codes


@contextmanager
def _lifeline() -> Iterator[int]:
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def end_with_parent() -> None:
    """In the process of one target: interrupt the run when the parent process ends, so that it writes its report."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Handle SIGTERM as an interrupt, so that no child goes on sending after its parent has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _as_they_end(
    indexes: Mapping[Future[tuple[int, str]], int], processes: TargetProcesses
) -> Iterator[Future[tuple[int, str]]]:
    """Yield targets as they end. An interrupt makes all end early with partial reports; a second one kills them."""
    pending = set(indexes)
    while pending:
        try:
            ended, pending = wait(pending, return_when=FIRST_COMPLETED)
        except KeyboardInterrupt:
            processes.stop(signal.SIGKILL if processes.stopped else signal.SIGINT)
            continue
        yield from sorted(ended, key=indexes.__getitem__)


def _command(name: str, file: str, flags: Mapping[str, Any], *, quiet: bool) -> list[str]:
    """The command for one target. It reads the file itself: other users can see the arguments of a process."""
    words = [sys.executable, "-m", "conformance", "run", f"--config={file}", f"--target={name}", "--alone"]
    given = given_options(flags)
    for option in OPTIONS:
        if option.key not in given:
            continue
        value = given[option.key]
        if option.kind is bool:
            words += [f"--{option.name}"] if value else []
        else:
            words += [f"--{option.name}={item}" for item in (value if option.many else [value])]
    return [*words, *(["--quiet"] if quiet else [])]
