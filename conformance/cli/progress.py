"""The progress line of a run on a terminal: requests done, rate, tokens, failures so far. Nothing elsewhere."""

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
    """A function that makes a watcher which draws on standard error; None if that is no terminal, or not wanted."""
    if quiet or not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    status = TextColumn("{task.fields[status]}", markup=False)
    with Progress(*columns, status, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(escape(name), total=0, status="")

        def watching(contract: Contract) -> Watcher:
            counts = _Counts(bar, task, _without_groups(contract))
            return Watcher(finished=counts.finished, planned=counts.planned)

        yield watching


def _without_groups(contract: Contract) -> Contract:
    """The contract with only the requirements that are judged on one exchange alone."""
    from conformance.judge.catalogue import Scope, load

    checks = load()
    single = (row for row in contract.requirements if checks[row.check].scope is not Scope.GROUP)
    return replace(contract, requirements=tuple(single))


@dataclass
class _Counts:
    bar: Progress
    task: int
    contract: Contract
    total: int = 0
    done: int = 0
    tokens: int = 0
    unanswered: int = 0
    unjudged: list[Exchange] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)

    def planned(self, phase: Phase) -> None:
        """Judge the replies of the last phase: no request is in flight, so this delays no arrival time."""
        from conformance.judge import judge_all
        from conformance.model import BROKEN
        from conformance.run.reproducer import traffic

        if self.unjudged:
            verdicts = judge_all(self.contract, traffic(self.unjudged))
            self.broken |= {verdict.requirement.id for verdict in verdicts if verdict.outcome in BROKEN}
            self.unjudged.clear()
        self.total += len(phase.cases)
        self._draw()

    def finished(self, exchange: Exchange) -> None:
        cost = (reported(exchange.usage) if exchange.successful else None) or Cost()
        self.done += 1
        self.tokens += cost.prompt + cost.completion
        self.unanswered += exchange.status is None
        self.unjudged.append(exchange)
        self._draw()

    def _draw(self) -> None:
        rate = self.done / max(time.monotonic() - self.started, 0.001)
        status = f"{rate:.1f}/s, {self.tokens:,} tokens, {len(self.broken)} broken so far"
        status += f", {self.unanswered} without a reply" if self.unanswered else ""
        self.bar.update(self.task, total=self.total, completed=self.done, status=status)  # type: ignore[arg-type]
