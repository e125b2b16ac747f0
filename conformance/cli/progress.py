"""What a terminal shows while a run is under way: requests done, their rate, tokens, troubles. Nothing elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.budget import Cost, reported
from conformance.transport import Watcher

if TYPE_CHECKING:
    from rich.progress import Progress

    from conformance.exchange import Exchange
    from conformance.model import Wave


@contextmanager
def progress(name: str, *, quiet: bool) -> Iterator[Watcher | None]:
    """A watcher that draws on standard error, or None where nobody would see it."""
    if quiet or not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    told = TextColumn("{task.fields[told]}", markup=False)
    with Progress(*columns, told, console=Console(file=sys.stderr), transient=True) as drawn:
        counts = _Counts(drawn, drawn.add_task(name, total=0, told=""))
        yield Watcher(finished=counts.finished, planned=counts.planned)


@dataclass
class _Counts:
    drawn: Progress
    task: int
    total: int = 0
    done: int = 0
    tokens: int = 0
    troubled: int = 0
    began: float = field(default_factory=time.monotonic)

    def planned(self, wave: Wave) -> None:
        self.total += len(wave.cases)
        self._draw()

    def finished(self, x: Exchange) -> None:
        cost = (reported(x.usage) if x.successful else None) or Cost()
        self.done += 1
        self.tokens += cost.prompt + cost.completion
        self.troubled += x.status is None or x.status >= 500
        self._draw()

    def _draw(self) -> None:
        rate = self.done / max(time.monotonic() - self.began, 0.001)
        troubles = f", {self.troubled} without a reply or with a 5xx" if self.troubled else ""
        told = f"{rate:.1f}/s, {self.tokens:,} tokens{troubles}"
        self.drawn.update(self.task, total=self.total, completed=self.done, told=told)  # type: ignore[arg-type]
