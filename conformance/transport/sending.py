"""Waves out, exchanges back: bounded concurrency, retries, pace and budget. Nothing here looks into a body but for usage."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType

from conformance.asked import Asked
from conformance.budget import Account, Cost, reported, worst_case
from conformance.exchange import Attempt, Exchange
from conformance.model import RequestCase, Validity, Wave
from conformance.transport.pace import RETRIED, Bucket, Pace, Patience, back_off, retry_after
from conformance.transport.redaction import Redaction
from conformance.transport.target import Target
from conformance.transport.wire import Tried, Wire


@dataclass(frozen=True)
class Watcher:
    """Who is told as things happen: before a case goes out, after each attempt, after the last one."""

    started: Callable[[RequestCase], None] = lambda case: None
    attempted: Callable[[RequestCase, Attempt, bool], None] = lambda case, attempt, final: None
    finished: Callable[[Exchange], None] = lambda exchange: None


class Sender:
    """Sends waves to one target, over one pool of connections and on one account."""

    def __init__(
        self,
        target: Target,
        account: Account,
        *,
        patience: Patience = Patience(),
        pace: Pace = Pace(),
        seed: int = 0,
        defaults: Mapping[str, object] | None = None,
        watcher: Watcher = Watcher(),
    ) -> None:
        self.unsent: dict[str, str] = {}
        self._account = account
        self._patience = patience
        self._pace = pace
        self._seed = seed
        self._defaults = defaults or {}
        self._watcher = watcher
        self._redaction = Redaction(target.secrets)
        self._wire = Wire(target, patience, pace.concurrency)
        self._requests = Bucket(pace.requests_per_minute, time.monotonic)
        self._tokens = Bucket(pace.tokens_per_minute, time.monotonic)
        self._not_before = 0.0
        self._in_flight = 0
        self._landed = asyncio.Event()

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._wire.aclose()

    async def send(self, wave: Wave) -> tuple[Exchange, ...]:
        """The exchanges of a wave in its order; a case that the budget left out is missing and stands in `unsent`."""
        lanes = 1 if wave.serial else len(wave.cases) if wave.burst else self._pace.concurrency
        waiting = iter(enumerate(wave.cases))
        made: dict[int, Exchange] = {}
        if wave.burst:
            await self._wait(self._requests.take(len(wave.cases)))
        async with asyncio.TaskGroup() as lanes_open:
            for _ in range(min(lanes, len(wave.cases))):
                lanes_open.create_task(self._lane(waiting, made, paced=not wave.burst))
        return tuple(made[place] for place in sorted(made))

    async def _lane(
        self, waiting: Iterator[tuple[int, RequestCase]], made: dict[int, Exchange], *, paced: bool
    ) -> None:
        for place, case in waiting:
            exchange = await self._exchange(case, paced=paced)
            if exchange is not None:
                made[place] = exchange

    async def _exchange(self, case: RequestCase, *, paced: bool) -> Exchange | None:
        """All attempts at one case, or None where it was not sent or the run's time ended before the reply."""
        cost = self._cost(case)
        reason = await self._room(cost)
        if reason:
            self.unsent[case.id] = reason
            return None
        self._account.promise(cost)
        self._in_flight += 1
        took = cost
        try:
            async with asyncio.timeout(self._account.seconds_left):
                await self._wait(self._tokens.take(cost.prompt + cost.completion))
                exchange = Exchange(case, tuple([one async for one in self._attempts(case, paced=paced)]))
            took = self._took(exchange, cost)
        except TimeoutError:
            self.unsent[case.id] = f"{self._account.refuses()}: it was in flight"
            return None
        finally:
            self._in_flight -= 1
            self._account.settle(cost, took)
            self._landed.set()
        self._tokens.give_back(max(0, cost.prompt + cost.completion - took.prompt - took.completion))
        self._watcher.finished(exchange)
        return exchange
