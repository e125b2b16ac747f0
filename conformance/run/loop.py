"""The run loop: send the phases of a plan, hand back the replies, confirm doubtful verdicts, shrink failures.

It drives the plan with any `PhaseSender`, so that a run against a socket and one in this process are the same loop.
Requests for confirmation count for the verdicts. Shrunk requests are recorded like all others, but never judged.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Protocol, TypeAlias

from conformance.judge import Traffic, judge_all
from conformance.judge.causes import causes
from conformance.judge.finding_cache import FindingCache
from conformance.judge.traffic import cut
from conformance.model import ENOUGH_REPLIES, Contract, Ending, Level, Outcome, Phase, RequestCase, Verdict
from conformance.model.budget import Account, Cost, reported
from conformance.model.exchange import Attempt, Exchange
from conformance.model.json_text import dumps
from conformance.recording import Recorder, Recording
from conformance.recording.json_forms import case_out
from conformance.run.confirm import MOST_CASES, confirmation_phases, copy_of
from conformance.run.preflight import first_case, obstacle
from conformance.run.reproducer import SHRINK, traffic
from conformance.send import Target, Watcher
from conformance.send.sender import UNWATCHED

Plan: TypeAlias = Generator[Phase, tuple[Exchange, ...], None]
INTERRUPTED: Final = "interrupted before the end"
CUT_OFF: Final = "the run was cut off before the reply"
RECOVERIES: Final = 3  # times that a target may stop answering and answer again
PROBES: Final = ENOUGH_REPLIES  # requests without an answer, one after another, after which it counts as unreachable
ALONE_CASES: Final = 2  # of those that broke off beside others, sent alone to see whether that makes a difference
ALONE_TRIALS: Final = 2  # times that this is tried and makes none
SERVER_ERROR: Final = 500
AT_ONCE: Final = 10  # requests that confirm server errors between phases, at most
AT_ONCE_SHARE: Final = 40  # one in 40 attempts: what is left of the reserve after isolation
FIRST_AT_MOST: Final = 2  # requests that are sent before it is known that an API answers


class PhaseSender(Protocol):
    """What the loop sends phases with: `send.Sender`, or one that needs no network.

    `send` returns the exchanges in the order of the phase and reports each to the watcher's `finished`; a case that was
    not sent is missing, and `unsent` says why. `silent`: the target has stopped answering, and nothing is sent before
    `resume` is called.
    """

    unsent: dict[str, str]
    silent: bool

    def resume(self) -> None: ...

    async def send(self, phase: Phase) -> tuple[Exchange, ...]: ...


@dataclass(kw_only=True)
class RunState:
    """What has been planned and what has come back so far; it outlives the event loop, however that ends.

    `previous` is the recording of an interrupted run that this one continues.
    """

    contract: Contract
    target: Target
    plan: Plan
    account: Account
    recorder: Recorder | None = None
    watcher: Watcher = UNWATCHED
    previous: Recording | None = None
    select: Collection[str] | None = None
    stop_after: int = 0
    cache: FindingCache = field(default_factory=FindingCache)
    phases: list[Phase] = field(default_factory=list)
    completed: dict[str, Exchange] = field(default_factory=dict)
    unsent: dict[str, str] = field(default_factory=dict)
    uncharged: dict[str, Exchange] = field(default_factory=dict)  # recorded repeats and shrunk requests, until they are
    # planned again: charged before, they would take the room in which they were chosen
    earlier_attempts: dict[str, tuple[Attempt, ...]] = field(default_factory=dict)
    stop_reason: str = ""
    unconfirmed: str = ""
    recoveries: int = 0
    unreachable: bool = False
    one_at_a_time: bool = False
    cut_alone: int = 0
    confirmed_at_once: int = 0
    _judged: tuple[tuple[int, int], tuple[Verdict, ...]] | None = None

    async def drive(self, sender: PhaseSender, *, shrink: bool) -> None:
        """The whole run: the phases of the plan, the confirmation of verdicts, smaller requests for failures."""
        self._take_over_previous()
        exchanges: tuple[Exchange, ...] | None = None
        with suppress(StopIteration):
            while True:
                phase = next(self.plan) if exchanges is None else self.plan.send(exchanges)
                exchanges = await self._send(phase, sender)
                await self._confirm_failures(exchanges, sender)
                self._stop_if_enough_failed()
        await self._confirm(sender)
        if shrink and not self.stop_reason:
            await self._shrink(sender)

    async def _confirm_failures(self, replies: Sequence[Exchange], sender: PhaseSender) -> None:
        """Confirm the server errors of a phase at once, MUSTs first: a run that ends early would leave them in doubt.

        Uses no more requests than are reserved for it: later phases need the others.
        """
        failed = {x.case.id for x in replies if x.status is not None and x.status >= SERVER_ERROR}
        if not failed or self.stop_reason or sender.silent:
            return
        doubts = ((verdict, _about(verdict, failed)) for verdict in self._selected_verdicts())
        doubtful = [replace(verdict, repeat=repeat) for verdict, repeat in doubts if repeat]
        limit = self.account.budget.requests
        at_most = AT_ONCE if limit is None else min(AT_ONCE, limit // AT_ONCE_SHARE)
        for phase in confirmation_phases(doubtful, self.phases, self.exchanges, at_most - self.confirmed_at_once):
            self.confirmed_at_once += len(phase.cases)
            await self._send(phase, sender)

    def _stop_if_enough_failed(self) -> None:
        if self.stop_after and not self.stop_reason:
            failed = sum(verdict.outcome is Outcome.FAIL for verdict in self._selected_verdicts())
            if failed >= self.stop_after:
                self.stop_reason = f"stopped after {failed} {'failure' if failed == 1 else 'failures'}, as asked for"

    async def _confirm(self, sender: PhaseSender) -> None:
        """Send again what doubtful verdicts depend on, as far as the budget goes."""
        left = self.account.attempts_left
        room = self._room_for_copies if left is None else min(self._room_for_copies, left)
        while not self.stop_reason and (phases := self._confirmation_phases(room)):
            for phase in phases:
                room -= len(phase.cases)
                if len(await self._send(phase, sender)) < len(phase.cases):
                    return
        doubtful = [verdict for verdict in self._selected_verdicts() if verdict.incomplete and verdict.repeat]
        explained = self._explained() if doubtful else frozenset()
        required = [verdict for verdict in doubtful if verdict.requirement.id not in explained]
        if not self.stop_reason and confirmation_phases(required, self.phases, self.exchanges):
            budget = f"the budget of {self.account.budget.requests} attempts has no room for confirmation"
            self.unconfirmed = f"{budget} (--max-requests): {len(required)} verdicts are unconfirmed"

    def _explained(self) -> frozenset[str]:
        """The requirements that cannot be judged because of a broken MUST: repeating requests would not change that."""
        found_causes = causes(self.contract, self._selected_verdicts(), self.exchanges)
        return frozenset(name for cause in found_causes if cause.level is Level.MUST for name in cause.blocked)

    @property
    def _room_for_copies(self) -> int:
        return MOST_CASES - sum(bool(case.repeats) for case in self.planned)

    async def _shrink(self, sender: PhaseSender) -> None:
        """Send failing requests in smaller forms. One that the budget leaves out does not make the run incomplete."""
        from conformance.run.shrink import shrinking

        search = shrinking(self.contract, self._selected_verdicts(), self.exchanges)
        with suppress(StopIteration):
            phase = next(search)
            while not self.stop_reason:
                phase = search.send(await self._send(phase, sender))
        shrunk = {case.id for case in self.planned if case.origin == SHRINK}
        self.unsent = {case: reason for case, reason in self.unsent.items() if case not in shrunk}

    def _confirmation_phases(self, room: int) -> tuple[Phase, ...]:
        return confirmation_phases(self._selected_verdicts(), self.phases, self.exchanges, room)

    def _selected_verdicts(self) -> Iterator[Verdict]:
        return (verdict for verdict in self.verdicts() if self.select is None or verdict.requirement.id in self.select)

    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on everything that has come back."""
        traffic = self.traffic
        size = len(traffic.planned), len(traffic.exchanges)
        if self._judged is None or self._judged[0] != size:
            self._judged = size, judge_all(self.contract, traffic)
        return self._judged[1]

    async def _send(self, phase: Phase, sender: PhaseSender) -> tuple[Exchange, ...]:
        """Send the cases of a phase that are not completed. Before any reply has come back, one case goes ahead."""
        self._plan(phase)
        cases = [case for case in phase.cases if case.id not in self.completed]
        try:
            if not self.completed and not self.stop_reason and (probe := first_case(phase)) is not None:
                ahead = cases if len(cases) <= FIRST_AT_MOST else [probe]
                await self._preflight(probe, ahead, sender)
                cases = [case for case in cases if case not in ahead]
            serial = phase.serial or self.one_at_a_time
            if cases and not self.stop_reason:
                burst = sum(case.id not in self.completed for case in phase.cases[: phase.burst])
                await sender.send(replace(phase, cases=tuple(cases), burst=burst, serial=serial))
            while sender.silent and not self.stop_reason and await self._answers_again(sender):
                remaining = tuple(case for case in cases if case.id not in self.completed)
                for case in remaining:
                    sender.unsent.pop(case.id, None)
                await sender.send(replace(phase, cases=remaining, burst=0))
            await self._send_cut_alone(phase.cases[: phase.burst] if serial else phase.cases, sender)
        except asyncio.CancelledError:
            self.stop_reason = INTERRUPTED
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        self.unsent.update(sender.unsent)
        for case in cases:
            if case.id not in self.completed:
                self.unsent.setdefault(case.id, self.stop_reason)
        return tuple(self.completed[case.id] for case in phase.cases if case.id in self.completed)

    async def _send_cut_alone(self, cases: Sequence[RequestCase], sender: PhaseSender) -> None:
        """Send again, one at a time, what broke off beside others; if that helps, later cases are sent like this."""
        replies = [self.completed[case.id] for case in cases if case.id in self.completed]
        broken_off = [x.case for x in replies if cut(x) and not x.case.repeats]
        if self.stop_reason or sender.silent or self.cut_alone >= ALONE_TRIALS:
            return
        if broken_off and not self.one_at_a_time:
            trial, broken_off = broken_off[:ALONE_CASES], broken_off[ALONE_CASES:]
            self.one_at_a_time = await self._send_copies(trial, sender)
            self.cut_alone += not self.one_at_a_time
        if broken_off and self.one_at_a_time:
            await self._send_copies(broken_off[: self._room_for_copies // 2], sender)

    async def _send_copies(self, cases: Sequence[RequestCase], sender: PhaseSender) -> bool:
        """Send cases again, one at a time. Whether all of them are answered completely."""
        copies = tuple(copy_of(case, len(self.planned) + index) for index, case in enumerate(cases))
        phase = Phase("alone again", copies, serial=True)
        self._plan(phase)
        new = tuple(case for case in copies if case.id not in self.completed)
        await sender.send(replace(phase, cases=new))
        return all(case.id in self.completed and self.completed[case.id].ending is Ending.COMPLETE for case in copies)

    async def _answers_again(self, sender: PhaseSender) -> bool:
        """Whether a target that stopped answering answers a request that it has answered before.

        One request that hangs holds up all that are sent beside it, so silence alone does not mean that the target is
        unreachable. It is where several such requests, one after another, get no answer: see `Traffic.silence`.
        """
        answered = [x.case for x in self.exchanges if x.successful and not (x.case.hostile or x.case.repeats)]
        if self.unreachable or self.recoveries >= RECOVERIES or not answered:
            return False
        self.recoveries += 1
        for number in range(PROBES):
            probe = copy_of(answered[(self.recoveries - 1 + number) % len(answered)], len(self.planned))
            phase = Phase(f"recovery {self.recoveries}.{number + 1}", (probe,), serial=True)
            self._plan(phase)
            sender.resume()
            if probe.id not in self.completed:
                await sender.send(phase)
            if probe.id in self.completed and self.completed[probe.id].status is not None:
                return True
        self.unreachable = True
        return False

    async def _preflight(self, probe: RequestCase, ahead: Sequence[RequestCase], sender: PhaseSender) -> None:
        """Send the first cases. A reply that does not come from an API is recorded, but not judged."""
        replies = {exchange.case.id: exchange for exchange in await sender.send(Phase("first", tuple(ahead)))}
        if probe.id in replies and (reason := obstacle(replies[probe.id], self.target)):
            self.stop_reason = reason
            for name in replies:
                self.unsent[name] = reason
                del self.completed[name]

    def _plan(self, phase: Phase) -> None:
        """Add a phase to the plan; its cases must have ids of their own."""
        counts = Counter(case.id for case in (*self.planned, *phase.cases))
        duplicate = next((name for name, count in counts.items() if count > 1), None)
        if duplicate is not None:
            raise ValueError(f"the plan has two cases with the id {duplicate}")
        self.phases.append(phase)
        for case in phase.cases:
            if case.id in self.uncharged:
                self._charge(self.uncharged.pop(case.id))
        if self.recorder is not None and (self.previous is None or phase not in self.previous.phases):
            self.recorder.planned(phase)
        self.watcher.planned(phase)

    def _take_over_previous(self) -> None:
        """Take over what an interrupted run has recorded. What was in flight is sent again, as a further attempt."""
        if self.previous is None:
            return
        for exchange in self.previous.exchanges:
            self.completed[exchange.case.id] = exchange
            if _follows_verdicts(exchange.case):
                self.uncharged[exchange.case.id] = exchange
            else:
                self._charge(exchange)
        in_flight = {
            case: Attempt(started_at, None, ending=Ending.TRUNCATED, error=CUT_OFF)
            for case, started_at in self.previous.lost.items()
        }
        for case in self.previous.planned:
            if case.id in self.completed or case.id not in {*self.previous.attempts, *in_flight}:
                continue
            self.earlier_attempts[case.id] = self.previous.attempts.get(case.id, ())
            self.account.attempts += len(self.earlier_attempts[case.id])
            if case.id in in_flight:  # not charged: without the interruption, the budget would have had room for it
                self.earlier_attempts[case.id] += (in_flight[case.id],)
                if self.recorder is not None:
                    self.recorder.attempted(case, in_flight[case.id], False)

    def _charge(self, exchange: Exchange) -> None:
        """Count what a recorded exchange took."""
        self.account.attempts += len(exchange.attempts)
        self.account.settle(Cost(), (reported(exchange.usage) if exchange.successful else None) or Cost())

    def recording_watcher(self) -> Watcher:
        """A watcher that records what happens, keeps what is completed, and passes both on to the run's own watcher."""
        watcher, recorder = self.watcher, self.recorder

        def started(case: RequestCase) -> None:
            if recorder is not None:
                recorder.started(case)
            watcher.started(case)

        def attempted(case: RequestCase, attempt: Attempt, final: bool) -> None:
            if recorder is not None:
                recorder.attempted(case, attempt, final)
            watcher.attempted(case, attempt, final)

        def finished(exchange: Exchange) -> None:
            earlier = self.earlier_attempts.get(exchange.case.id)
            # an exchange without earlier attempts is kept as it is, with what has been parsed of it
            exchange = Exchange(exchange.case, (*earlier, *exchange.attempts)) if earlier else exchange
            self.completed[exchange.case.id] = exchange
            watcher.finished(exchange)

        return Watcher(started, attempted, finished)

    @property
    def planned(self) -> tuple[RequestCase, ...]:
        return tuple(case for phase in self.phases for case in phase.cases)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges in the order of the plan, whatever order they were completed in."""
        return tuple(self.completed[case.id] for case in self.planned if case.id in self.completed)

    @property
    def traffic(self) -> Traffic:
        return traffic(self.exchanges, self.planned, self.cache)

    @property
    def plan_sha256(self) -> str:
        """The hash of all planned requests except confirmations and shrunk ones: what two runs have in common."""
        plan = sha256()
        for case in self.planned:
            if not case.repeats and case.origin != SHRINK:
                plan.update(dumps(case_out(case)).encode("ascii"))
        return plan.hexdigest()

    def incomplete_reasons(self) -> tuple[str, ...]:
        """Why the run is incomplete: each reason once, with the number of cases that were not sent because of it."""
        if self.stop_reason and self.stop_reason != INTERRUPTED:
            return (self.stop_reason,)
        counts = Counter(reason.partition(";")[0] for reason in self.unsent.values())
        if self.stop_reason:
            counts.setdefault(INTERRUPTED, 0)
        planned = len(self.traffic.planned)
        unsent = (f"{reason}: {count} of {planned} requests were not sent" for reason, count in counts.items())
        return (*unsent, *filter(None, [self.unconfirmed]))


def _about(verdict: Verdict, cases: set[str]) -> tuple[tuple[str, ...], ...]:
    """The doubts of a verdict that one of these cases left."""
    return tuple(doubt for doubt in verdict.repeat if not cases.isdisjoint(doubt))


def _follows_verdicts(case: RequestCase) -> bool:
    """Whether a case is sent because of verdicts on others, with what the plan leaves of the budget."""
    return bool(case.repeats) or case.origin == SHRINK
