"""Sends phases with bounded concurrency, retries, rate limits and a budget. Parses reply bodies only for usage."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from anyio.lowlevel import checkpoint

from conformance.model import GONE_AFTER, Ending, Phase, RequestCase, Validity
from conformance.model.budget import Account, Cost, ceiling, is_large, reported
from conformance.model.exchange import Attempt, Exchange
from conformance.model.redaction import Redaction
from conformance.model.request_view import RequestView
from conformance.send.rate_limits import (
    RETRIED,
    Bucket,
    RateLimits,
    TimeoutPolicy,
    back_off,
    in_outage,
    retry_after,
)
from conformance.send.target import Target
from conformance.send.wire import AttemptResult, Wire

TOO_MANY: Final = 429
OVERLOADED_AFTER: Final = 16  # consecutive exchanges whose last attempt got HTTP 429
READ_FOR_USAGE: Final = 1024 * 1024  # bytes; parsing more would block the event loop and distort arrival times


def _ignore(*event: object) -> None:
    """The callback that does nothing."""


@dataclass(frozen=True)
class Watcher:
    """Callbacks: before each attempt at a case, after each attempt, and after the last one.

    The runner, not the sender, calls `planned` for each phase.
    """

    started: Callable[[RequestCase], object] = _ignore
    attempted: Callable[[RequestCase, Attempt, bool], object] = _ignore
    finished: Callable[[Exchange], object] = _ignore
    planned: Callable[[Phase], object] = _ignore


DEFAULT_TIMEOUTS: Final = TimeoutPolicy()
STEADY: Final = RateLimits()
UNWATCHED: Final = Watcher()


class Sender:
    """Sends phases to one target, with one connection pool and one budget account.

    Once a target stops answering, `silent` is true and what remains of a phase stays unsent, until `resume` is called.
    """

    def __init__(
        self,
        target: Target,
        account: Account,
        *,
        timeouts: TimeoutPolicy = DEFAULT_TIMEOUTS,
        pace: RateLimits = STEADY,
        seed: int = 0,
        defaults: Mapping[str, Any] | None = None,
        watcher: Watcher = UNWATCHED,
    ) -> None:
        self.unsent: dict[str, str] = {}
        self.silent = False
        self._account = account
        self._timeouts = timeouts
        self._pace = pace
        self._seed = seed
        self._defaults = defaults or {}
        self._watcher = watcher
        self._redaction = Redaction(target.secrets, keep_undecodable=target.keep_undecodable)
        self._wire = Wire(target, timeouts, pace.concurrency)
        self._requests = Bucket(pace.requests_per_minute, time.monotonic)
        self._tokens = Bucket(pace.tokens_per_minute, time.monotonic)
        self._not_before = 0.0
        self._in_flight = 0
        self._unanswered = 0
        self._resumed = 0
        self._overloaded = 0
        self._outage = ""
        self._landed = asyncio.Event()

    async def __aenter__(self) -> Sender:
        await checkpoint()  # loads what httpx would load with the first request, whose time is measured
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._wire.aclose()

    async def send(self, phase: Phase) -> tuple[Exchange, ...]:
        """The exchanges of a phase, in order; a case that was not sent is in `unsent` instead."""
        lanes = min(1 if phase.serial else self._pace.concurrency, len(phase.cases))
        numbered = list(enumerate(phase.cases))
        at_once, waiting = numbered[: phase.burst], iter(numbered[phase.burst :])
        exchanges: dict[int, Exchange] = {}
        if at_once:
            await _wait(self._requests.take(len(at_once)))
        async with asyncio.TaskGroup() as lanes_open:
            for lane in range(max(lanes, len(at_once))):
                first, others = at_once[lane : lane + 1], waiting if lane < lanes else ()
                lanes_open.create_task(self._lane(itertools.chain(first, others), exchanges, len(at_once)))
        return tuple(exchanges[index] for index in sorted(exchanges))

    def resume(self) -> None:
        """Send again to a target that stopped answering, until one more exchange has no answer.

        If it is resumed again without an answer in between, the target has four times as long to come back.
        """
        self.silent, self._outage, self._unanswered = False, "", GONE_AFTER - 1
        self._not_before = max(self._not_before, time.monotonic() + 2 * self._timeouts.first_wait * 4**self._resumed)
        self._resumed += 1

    async def _lane(
        self, waiting: Iterator[tuple[int, RequestCase]], exchanges: dict[int, Exchange], at_once: int
    ) -> None:
        for index, case in waiting:
            exchange = await self._exchange(case, paced=index >= at_once)
            if exchange is not None:
                exchanges[index] = exchange

    async def _exchange(self, case: RequestCase, *, paced: bool) -> Exchange | None:
        """All attempts at one case; None if it was not sent or the time budget ended before the reply."""
        cost = self._cost(case)
        reason = self._outage or await self._budget_refusal(cost)
        if reason:
            self.unsent[case.id] = reason
            return None
        self._account.promise(cost)
        self._in_flight += 1
        took = cost
        try:
            async with asyncio.timeout(self._account.seconds_left):
                await _wait(self._tokens.take(cost.prompt + cost.completion))
                exchange = Exchange(case, tuple([attempt async for attempt in self._attempts(case, paced=paced)]))
            took = self._actual_cost(exchange, cost)
        except TimeoutError:
            self.unsent[case.id] = f"{self._account.refuses()}; it was in flight"
            return None
        finally:
            self._in_flight -= 1
            self._account.settle(cost, took)
            self._landed.set()
        self._tokens.give_back(max(0, cost.prompt + cost.completion - took.prompt - took.completion))
        self._watcher.finished(exchange)
        return exchange

    async def _attempts(self, case: RequestCase, *, paced: bool) -> AsyncIterator[Attempt]:
        rng = random.Random(f"{self._seed} {case.id}")  # noqa: S311 (jitter, and the same in each run)
        for number in itertools.count(1):
            await _wait(self._not_before - time.monotonic())
            if paced or number > 1:
                await _wait(self._requests.take(1))
            self._watcher.started(case)
            result = await self._wire.attempt(case)
            attempt = self._redaction.attempt(result.attempt)
            wait = self._before_next(result, number, rng)
            if wait is not None:
                self._account.attempts += 1
            self._watcher.attempted(case, attempt, wait is None)
            yield attempt
            if wait is None:
                self._detect_outage(attempt)
                return
            await _wait(wait)

    def _before_next(self, result: AttemptResult, number: int, rng: random.Random) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        attempt, timeouts = result.attempt, self._timeouts
        if not (result.transient or attempt.status in RETRIED) or number > timeouts.retries or self._account.refuses():
            return None
        if attempt.status is None and in_outage(self._unanswered):
            return None
        wait = back_off(timeouts, number, rng)
        requested = retry_after({name.lower(): value for name, value in attempt.headers}, time.time())
        if requested is not None:
            wait = max(wait, requested)
            # the delay applies to all requests to this target
            self._not_before = max(self._not_before, time.monotonic() + min(requested, timeouts.longest_wait))
        remaining = self._account.seconds_left
        return None if wait > timeouts.longest_wait or (remaining is not None and wait >= remaining) else wait

    def _detect_outage(self, attempt: Attempt) -> None:
        """Detect a target that stopped answering, so that the remaining cases need not time out one by one."""
        unanswered = attempt.status is None or attempt.ending is Ending.TIMED_OUT
        self._unanswered = self._unanswered + 1 if unanswered else 0
        self._resumed = self._resumed if unanswered else 0
        if self._unanswered >= GONE_AFTER:
            self.silent = True
            self._outage = f"the target stopped answering: {self._unanswered} requests in a row, {attempt.error}"
        self._overloaded = self._overloaded + 1 if attempt.status == TOO_MANY else 0
        if self._overloaded >= OVERLOADED_AFTER:
            self._outage = f"the target is overloaded or the key's quota is spent ({self._overloaded} times HTTP 429)"

    async def _budget_refusal(self, cost: Cost) -> str:
        """Wait until requests in flight leave enough budget; returns the reason if the budget cannot suffice."""
        while self._account.refuses(cost):
            reason = self._account.refuses(cost, in_flight=False)
            if reason or not self._in_flight:
                return reason or self._account.refuses(cost)
            self._landed.clear()
            await self._landed.wait()
        return ""

    def _cost(self, case: RequestCase) -> Cost:
        """The cost to reserve: none for an invalid request, and none for a prompt so large that it was asked for."""
        if case.validity is Validity.INVALID:
            return Cost()
        cost = ceiling(self._asked(case))
        return Cost(0, cost.completion) if is_large(self._asked(case)) else cost

    def _asked(self, case: RequestCase) -> RequestView:
        return RequestView(case.body if isinstance(case.body, Mapping) else {}, self._defaults)

    def _actual_cost(self, exchange: Exchange, cost: Cost) -> Cost:
        """The tokens used: none for a refusal, otherwise as reported, or the reserved cost without a report."""
        if not exchange.successful:
            return Cost()
        small = sum(len(piece.data) for piece in exchange.pieces) <= READ_FOR_USAGE
        usage = reported(exchange.usage) if small else None
        if usage is None:
            return cost
        return Cost(0 if is_large(self._asked(exchange.case)) else usage.prompt, usage.completion)


async def _wait(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)
