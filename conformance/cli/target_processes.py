"""Several targets at once: one process for each, since pytest is one to a process; each in its own time."""

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

import click

from conformance.config.settings import OPTIONS, Settings, present

INCOMPLETE: Final = 3
SUMMARY: Final = "GITHUB_STEP_SUMMARY"


@dataclass
class Crowd:
    """The processes that are running; none is begun after an interrupt.

    `lifeline` is the reading end of a pipe that nobody writes to. It ends with this process, however that ends.
    """

    lifeline: int
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False

    def judge(self, words: Sequence[str]) -> tuple[int, str]:
        """Run one target to its end; its exit code and all that it said."""
        if self.stopped:
            return INCOMPLETE, "not begun: the run was interrupted before"
        # a session of its own: Ctrl-C reaches it once, through us; the job's summary is written once, by us
        process = subprocess.Popen(  # noqa: S603 - this same program
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=self.lifeline, text=True,
            encoding="utf-8", errors="backslashreplace", start_new_session=True,
            env={**os.environ, SUMMARY: "", "PYTHONIOENCODING": "utf-8:backslashreplace"},
        )  # fmt: skip
        self.running.add(process)
        if self.stopped:
            process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
        self.running.discard(process)
        if process.returncode < 0:
            return INCOMPLETE, f"{said}ended by {signal.Signals(-process.returncode).name}"
        return process.returncode, said

    def stop(self, how: int) -> None:
        """Ask all to end with what they have, or make them."""
        self.stopped = True
        for process in tuple(self.running):
            process.send_signal(how)


def judge_all(
    chosen: Sequence[Settings], file: str, flags: Mapping[str, Any], *, quiet: bool, at_once: int
) -> list[int]:
    """Judge targets of a file, so many at once; the exit codes in the order of the file. What each says comes whole."""
    codes = [INCOMPLETE] * len(chosen)
    with _told_to_end(), _lifeline() as lifeline, ThreadPoolExecutor(max_workers=at_once) as pool:
        crowd = Crowd(lifeline)
        begun = {
            pool.submit(crowd.judge, _words(one.target, file, flags, quiet=quiet)): n for n, one in enumerate(chosen)
        }
        for done in _as_they_end(begun, crowd):
            place = begun[done]
            codes[place], said = done.result()
            click.echo(
                f"{said.rstrip()}\n"
                if said.startswith(chosen[place].target)
                else f"{chosen[place].target}: {said.rstrip()}\n"
            )
    return codes


@contextmanager
def _lifeline() -> Iterator[int]:
    reading, held = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(held)


def end_with_parent() -> None:
    """In the process of one target: when whoever began it is gone, end as if interrupted, with a partial report."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


@contextmanager
def _told_to_end() -> Iterator[None]:
    """Being told to end is an interrupt: nothing may go on sending when its parent has gone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _as_they_end(begun: Mapping[Future[tuple[int, str]], int], crowd: Crowd) -> Iterator[Future[tuple[int, str]]]:
    """Ended targets as they end; after an interrupt too, when each ends with what it has. A second one kills."""
    left = set(begun)
    while left:
        try:
            done, left = wait(left, return_when=FIRST_COMPLETED)
        except KeyboardInterrupt:
            crowd.stop(signal.SIGKILL if crowd.stopped else signal.SIGINT)
            continue
        yield from sorted(done, key=begun.__getitem__)


def _words(name: str, file: str, flags: Mapping[str, Any], *, quiet: bool) -> list[str]:
    """The command for one target. Settings of the file are left to it: secrets have no place in a list of processes."""
    words = [sys.executable, "-m", "conformance", "run", f"--config={file}", f"--target={name}", "--alone"]
    given = present(flags)
    for option in (one for one in OPTIONS if one.key in given):
        value = given[option.key]
        if option.kind is bool:
            words += [f"--{option.name}"] if value else []
        else:
            words += [f"--{option.name}={one}" for one in (value if option.many else [value])]
    return [*words, *(["--quiet"] if quiet else [])]
