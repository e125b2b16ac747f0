"""The loop: a wave is planned, sent and handed back to the plan; then it is judged, and doubts are sent again.

Last, what fails is sent in smaller forms. These are recorded like all others, but no verdict rests on them.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance import __version__
from conformance.judge import Traffic, judge_all
from conformance.judge.finding_cache import FindingCache
from conformance.model import Contract, Ending, Phase, RequestCase, Verdict
from conformance.model.budget import Account, Budget, Cost, reported
from conformance.model.exchange import Attempt, Exchange
from conformance.model.json_text import dumps
from conformance.recording import Recorder, Recording, read
from conformance.recording.json_forms import case_out
from conformance.run.confirm import MOST_CASES, repeats
from conformance.run.preflight import first, obstacle
from conformance.run.reproducer import SHRINK, smallest, traffic
from conformance.run.result import Endpoint, Run, totals
from conformance.send import RateLimits, Sender, Target, TimeoutPolicy, Watcher
from conformance.send.sender import PATIENT, STEADY, UNWATCHED

Plan: TypeAlias = Generator[Phase, tuple[Exchange, ...], None]
INTERRUPTED: Final = "interrupted before the end"
CUT_OFF: Final = "the run was cut off before the reply"
UNLIMITED: Final = Budget()
AHEAD: Final = 2  # more are not sent before it is known that an API answers


class ResumeError(ValueError):
    """A recording that belongs to another run."""


def run(
    contract: Contract,
    target: Target,
    plan: Plan,
    *,
    name: str = "",
    model: str = "",
    profile: str = "gate",
    seed: int = 0,
    budget: Budget = UNLIMITED,
    claims: tuple[str, ...] = (),
    patience: TimeoutPolicy = PATIENT,
    pace: RateLimits = STEADY,
    record: Path | None = None,
    resume: bool = False,
    select: Collection[str] | None = None,
    shrink: bool = True,
    mark: Mapping[str, str] | None = None,
    watcher: Watcher = UNWATCHED,
) -> Run:
    """Send a plan to a target and judge what comes back. Ctrl-C and SIGTERM end it early, with what there is.

    `record` is where exchanges are kept; with `resume`, what is recorded there is not sent again. `select` are the
    requirements that doubts are settled of, and failures made smaller of: all where it is None. `shrink`: what fails
    is sent in smaller forms, as far as the budget goes. `mark` names the plan that was fixed beforehand, in the header.
    """
    endpoint = Endpoint(name or contract.provider, target.base_url, model)
    header = {
        "suite_version": __version__,
        "contract": {"provider": contract.provider, "revision": contract.revision, "sha256": contract.sha256},
        "target": {"name": endpoint.name, "base_url": endpoint.base_url, "model": model},
        "profile": profile,
        "seed": seed,
        "claims": list(claims),
        **({"plan": dict(mark)} if mark else {}),
    }
    started_at, begun = round(time.time(), 3), time.monotonic()
    known = read(record) if resume and record is not None and record.exists() else None
    with _recorder(record, known, {**header, "started_at": started_at}) as recorder:
        account = Account(budget)
        trip = _RunState(contract, target, plan, recorder, watcher, known, account, select)
        try:
            asyncio.run(trip.make(patience, pace, seed, shrink=shrink))
        except KeyboardInterrupt:  # it came when nothing was awaited any more, or a second time
            trip.stop = INTERRUPTED
        verdicts = trip.verdicts()
        incomplete = trip.reasons()
        counts = totals(trip.exchanges)
        if recorder is not None:
            recorder.unsent(trip.unsent)
            told = {"plan_sha256": trip.plan_sha256, "totals": counts, "incomplete": list(incomplete)}
            recorder.close({**told, "ended_at": round(time.time(), 3)})
    return Run(
        contract,
        endpoint,
        profile,
        seed,
        trip.plan_sha256,
        trip.planned,
        trip.exchanges,
        verdicts,
        counts,
        started_at,
        time.monotonic() - begun,
        incomplete,
        claims,
        trip.unsent,
        smallest(contract, verdicts, trip.exchanges),
    )


@contextmanager
def _recorder(path: Path | None, known: Recording | None, header: Mapping[str, Any]) -> Iterator[Recorder | None]:
    if path is None:
        yield None
        return
    if known is not None:
        for word in ("suite_version", "contract", "target", "profile", "seed", "claims", "plan"):
            there, now = known.header.get(word), header.get(word)
            if there != now and not (word == "target" and _same_but_for_its_port(there, header["target"])):
                told = f"{word} is {there!r} there and {now!r} now"
                raise ResumeError(f"{path} cannot be resumed: {told}; run with the same settings, or without --resume")
    with Recorder(path, header) if known is None else Recorder.resume(path, known) as recorder:
        yield recorder


def _same_but_for_its_port(there: Any, now: Mapping[str, Any]) -> bool:
    """Whether both are the same target on this machine: a local server gets another port each time."""
    if not isinstance(there, Mapping) or {**there, "base_url": ""} != {**now, "base_url": ""}:
        return False
    return all(Target(one["base_url"], "").loopback for one in (there, now))


@dataclass
class _RunState:
    """What has been planned and what has come back so far; it outlives the event loop, however that ends."""

    contract: Contract
    target: Target
    plan: Plan
    recorder: Recorder | None
    watcher: Watcher
    known: Recording | None
    account: Account
    select: Collection[str] | None = None
    phases: list[Phase] = field(default_factory=list)
    landed: dict[str, Exchange] = field(default_factory=dict)
    unsent: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, tuple[Attempt, ...]] = field(default_factory=dict)
    stop: str = ""
    in_doubt: str = ""
    judged: tuple[tuple[int, int], tuple[Verdict, ...]] | None = None
    cache: FindingCache = field(default_factory=FindingCache)

    async def make(self, patience: TimeoutPolicy, pace: RateLimits, seed: int, *, shrink: bool) -> None:
        """The whole conversation: the plan's waves, what verdicts are in doubt about, and what fails made smaller."""
        self._recall()
        defaults = self.contract.defaults
        async with Sender(
            self.target,
            self.account,
            patience=patience,
            pace=pace,
            seed=seed,
            defaults=defaults,
            watcher=self._watcher(),
        ) as sender:
            with _terminated_like_interrupted():
                exchanges: tuple[Exchange, ...] | None = None
                with suppress(StopIteration):
                    while True:
                        phase = next(self.plan) if exchanges is None else self.plan.send(exchanges)
                        exchanges = await self._exchange(phase, sender)
                await self._settle_doubts(sender)
                if shrink and not self.stop:
                    await self._make_smaller(sender)

    async def _settle_doubts(self, sender: Sender) -> None:
        left = self.account.attempts_left
        room = MOST_CASES if left is None else min(MOST_CASES, left)
        while not self.stop and (phases := self._doubts(room)):
            for phase in phases:
                room -= len(phase.cases)
                if len(await self._exchange(phase, sender)) < len(phase.cases):
                    return
        owed = [one for one in self._wanted() if one.incomplete and one.repeat]
        if not self.stop and repeats(owed, self.phases, self.exchanges):
            budget = f"the budget of {self.account.budget.requests} attempts has no room to ask again (--max-requests)"
            self.in_doubt = f"{budget}: {len(owed)} verdicts are in doubt"

    async def _make_smaller(self, sender: Sender) -> None:
        """Send failing requests in smaller forms. Nobody misses what the budget has no room for."""
        from conformance.run.shrink import shrinking

        search = shrinking(self.contract, self._wanted(), self.exchanges)
        with suppress(StopIteration):
            phase = next(search)
            while not self.stop:
                phase = search.send(await self._exchange(phase, sender))
        self.unsent = {case: why for case, why in self.unsent.items() if case not in self._shrunk}

    def _doubts(self, room: int) -> tuple[Phase, ...]:
        return repeats(self._wanted(), self.phases, self.exchanges, room)

    def _wanted(self) -> Iterator[Verdict]:
        return (one for one in self.verdicts() if self.select is None or one.requirement.id in self.select)

    def verdicts(self) -> tuple[Verdict, ...]:
        """What all that has come back shows; judged once for the same traffic."""
        traffic = self.traffic
        now = (len(traffic.planned), len(traffic.exchanges))
        if self.judged is None or self.judged[0] != now:
            self.judged = now, judge_all(self.contract, traffic)
        return self.judged[1]

    async def _exchange(self, phase: Phase, sender: Sender) -> tuple[Exchange, ...]:
        """Send what is not known of a wave. The very first case goes ahead, with what little else its wave has."""
        self._take(phase)
        cases = [case for case in phase.cases if case.id not in self.landed]
        try:
            if not self.landed and not self.stop and (probe := first(phase)) is not None:
                ahead = cases if len(cases) <= AHEAD else [probe]
                await self._probe(probe, ahead, sender)
                cases = [case for case in cases if case not in ahead]
            if cases and not self.stop:
                burst = sum(case.id not in self.landed for case in phase.cases[: phase.burst])
                await sender.send(replace(phase, cases=tuple(cases), burst=burst))
        except asyncio.CancelledError:
            self.stop = INTERRUPTED
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        self.unsent.update(sender.unsent)
        for case in cases:
            if case.id not in self.landed:
                self.unsent.setdefault(case.id, self.stop)
        return tuple(self.landed[case.id] for case in phase.cases if case.id in self.landed)

    async def _probe(self, probe: RequestCase, ahead: Sequence[RequestCase], sender: Sender) -> None:
        """Send the first cases. A reply that is no API's is kept, but not judged: it speaks of the way there."""
        sent = {x.case.id: x for x in await sender.send(Phase("first", tuple(ahead)))}
        if probe.id in sent and (reason := obstacle(sent[probe.id], self.target)):
            self.stop = reason
            for name in sent:
                self.unsent[name] = reason
                del self.landed[name]

    def _take(self, phase: Phase) -> None:
        twice = [
            name for name, times in Counter(case.id for case in (*self.planned, *phase.cases)).items() if times > 1
        ]
        if twice:
            raise ValueError(f"the plan has two cases with the id {twice[0]}")
        self.phases.append(phase)
        if self.recorder is not None and (self.known is None or phase not in self.known.phases):
            self.recorder.planned(phase)
        self.watcher.planned(phase)

    def _recall(self) -> None:
        """Take over what an interrupted run has recorded; what was in flight goes out again, as a further attempt."""
        if self.known is None:
            return
        for x in self.known.exchanges:
            self.landed[x.case.id] = x
            cost = (reported(x.usage) if x.successful else None) or Cost()
            self.account.attempts += len(x.attempts)
            self.account.settle(Cost(), cost)
        lost = {case: Attempt(at, None, ending=Ending.TRUNCATED, error=CUT_OFF) for case, at in self.known.lost.items()}
        for case in self.known.planned:
            if case.id in self.landed or case.id not in {*self.known.attempts, *lost}:
                continue
            self.earlier[case.id] = self.known.attempts.get(case.id, ())
            self.account.attempts += len(self.earlier[case.id])
            if case.id in lost:  # which the budget is not charged for: an unbroken run would have had room for the rest
                self.earlier[case.id] += (lost[case.id],)
                if self.recorder is not None:
                    self.recorder.attempted(case, lost[case.id], False)

    def _watcher(self) -> Watcher:
        heard, recorder = self.watcher, self.recorder

        def started(case: RequestCase) -> None:
            if recorder is not None:
                recorder.started(case)
            heard.started(case)

        def attempted(case: RequestCase, attempt: Attempt, final: bool) -> None:
            if recorder is not None:
                recorder.attempted(case, attempt, final)
            heard.attempted(case, attempt, final)

        def finished(x: Exchange) -> None:
            earlier = self.earlier.get(x.case.id)
            whole = Exchange(x.case, (*earlier, *x.attempts)) if earlier else x  # with all that was read of it
            self.landed[x.case.id] = whole
            heard.finished(whole)

        return Watcher(started, attempted, finished)

    @property
    def planned(self) -> tuple[RequestCase, ...]:
        return tuple(case for phase in self.phases for case in phase.cases)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """In the order of the plan, whatever order they ended in."""
        return tuple(self.landed[case.id] for case in self.planned if case.id in self.landed)

    @property
    def traffic(self) -> Traffic:
        return traffic(self.exchanges, self.planned, self.cache)

    @property
    def _shrunk(self) -> frozenset[str]:
        return frozenset(case.id for case in self.planned if case.origin == SHRINK)

    @property
    def plan_sha256(self) -> str:
        """The hash of all planned requests but those that doubts and failures led to: what two runs have in common."""
        plan = sha256()
        for case in self.planned:
            if not case.repeats and case.origin != SHRINK:
                plan.update(dumps(case_out(case)).encode("ascii"))
        return plan.hexdigest()

    def reasons(self) -> tuple[str, ...]:
        """Why the run is incomplete: each reason once, with the number of cases it left unsent."""
        if self.stop and self.stop != INTERRUPTED:
            return (self.stop,)
        counted = Counter(reason.partition(";")[0] for reason in self.unsent.values())
        if self.stop:
            counted.setdefault(INTERRUPTED, 0)
        planned = len(self.traffic.planned)
        unsent = (f"{why}: {count} of {planned} requests were not sent" for why, count in counted.items())
        return (*unsent, *filter(None, [self.in_doubt]))


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, which CI systems send, ends a run as Ctrl-C does: with a partial report."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    cancel: Callable[[], object] = task.cancel if task is not None else loop.stop
    try:
        loop.add_signal_handler(signal.SIGTERM, cancel)
    except (NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or not on this system
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
