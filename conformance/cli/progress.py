"""What a terminal shows while a run is under way: requests done, rate, tokens, failures so far. Nothing elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from conformance.model.budget import Cost, reported
from conformance.send import Watcher

if TYPE_CHECKING:
    from rich.progress import Progress

    from conformance.model import Contract, Phase
    from conformance.model.exchange import Exchange

Watching: TypeAlias = "Callable[[Contract], Watcher]"


@contextmanager
def progress(name: str, *, quiet: bool) -> Iterator[Watching | None]:
    """What makes a watcher that draws on standard error, or None where nobody would see it."""
    if quiet or not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    told = TextColumn("{task.fields[told]}", markup=False)
    with Progress(*columns, told, console=Console(file=sys.stderr), transient=True) as drawn:
        task = drawn.add_task(escape(name), total=0, told="")

        def watching(contract: Contract) -> Watcher:
            counts = _Counts(drawn, task, _alone(contract))
            return Watcher(finished=counts.finished, planned=counts.planned)

        yield watching


def _alone(contract: Contract) -> Contract:
    """The requirements that one exchange can break without another beside it."""
    from conformance.judge.catalogue import Scope, load

    checks = load()
    rows = (row for row in contract.requirements if checks[row.check].scope is not Scope.GROUP)
    return replace(contract, requirements=tuple(rows))


@dataclass
class _Counts:
    drawn: Progress
    task: int
    contract: Contract
    total: int = 0
    done: int = 0
    tokens: int = 0
    silent: int = 0
    fresh: list[Exchange] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)

    def planned(self, phase: Phase) -> None:
        """Judge what has come back, now that nothing is under way whose arrival that could blur."""
        from conformance.judge import judge_all
        from conformance.model import BROKEN
        from conformance.run.reproducer import traffic

        if self.fresh:
            found = judge_all(self.contract, traffic(self.fresh))
            self.broken |= {one.requirement.id for one in found if one.outcome in BROKEN}
            self.fresh.clear()
        self.total += len(phase.cases)
        self._draw()

    def finished(self, x: Exchange) -> None:
        cost = (reported(x.usage) if x.successful else None) or Cost()
        self.done += 1
        self.tokens += cost.prompt + cost.completion
        self.silent += x.status is None
        self.fresh.append(x)
        self._draw()

    def _draw(self) -> None:
        rate = self.done / max(time.monotonic() - self.began, 0.001)
        told = f"{rate:.1f}/s, {self.tokens:,} tokens, {len(self.broken)} broken so far"
        told += f", {self.silent} without a reply" if self.silent else ""
        self.drawn.update(self.task, total=self.total, completed=self.done, told=told)  # type: ignore[arg-type]
