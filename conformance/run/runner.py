"""One run against a target: its recording, its sender, the run loop, and the result, complete or not."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from conformance import __version__
from conformance.model import Contract
from conformance.model.budget import Account, Budget
from conformance.model.redaction import without_secrets
from conformance.recording import Recorder, Recording, read
from conformance.run.loop import INTERRUPTED, Plan, RunState
from conformance.run.reproducer import smallest
from conformance.run.result import Endpoint, Run, totals
from conformance.send import RateLimits, Sender, Target, TimeoutPolicy, Watcher
from conformance.send.sender import DEFAULT_TIMEOUTS, STEADY, UNWATCHED

UNLIMITED: Final = Budget()


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
    timeouts: TimeoutPolicy = DEFAULT_TIMEOUTS,
    pace: RateLimits = STEADY,
    record: Path | None = None,
    resume: bool = False,
    select: Collection[str] | None = None,
    shrink: bool = True,
    mark: Mapping[str, str] | None = None,
    watcher: Watcher = UNWATCHED,
    stop_after: int = 0,
    opened: Callable[[], object] = lambda: None,
) -> Run:
    """Send a plan to a target and judge what comes back. Ctrl-C and SIGTERM end it early, with a partial result.

    `record` is where exchanges are kept; with `resume`, what is recorded there is not sent again. `select` are the
    requirements whose verdicts are confirmed and whose failures are shrunk: all where it is None. `mark` identifies the
    plan lock in the header of the recording. Once `stop_after` selected requirements are seen to fail, the phases that
    remain are not sent; 0 sends all. `opened` is called once the recording belongs to this run.
    """
    endpoint = Endpoint(
        name or contract.provider,
        target.base_url,
        model,
        target.embedded,
        without_secrets(target.headers, target.credentials),
        without_secrets(target.query, target.credentials),
        target.key_variable if target.key else "",
    )
    header = {
        "suite_version": __version__,
        "contract": {"provider": contract.provider, "revision": contract.revision, "sha256": contract.sha256},
        "target": endpoint.described(),
        "profile": profile,
        "seed": seed,
        "claims": list(claims),
        **({"plan": dict(mark)} if mark else {}),
    }
    started_at, start = round(time.time(), 3), time.monotonic()
    previous = read(record) if resume and record is not None and record.exists() else None
    with _recorder(record, previous, {**header, "started_at": started_at}) as recorder:
        opened()
        state = RunState(
            contract=contract,
            target=target,
            plan=plan,
            account=Account(budget),
            recorder=recorder,
            watcher=watcher,
            previous=previous,
            select=select,
            stop_after=stop_after,
        )

        async def converse() -> None:
            async with Sender(
                target,
                state.account,
                timeouts=timeouts,
                pace=pace,
                seed=seed,
                defaults=contract.defaults,
                watcher=state.recording_watcher(),
            ) as sender:
                with _sigterm_cancels():
                    await state.drive(sender, shrink=shrink)

        try:
            asyncio.run(converse())
        except KeyboardInterrupt:  # it came while nothing was awaited, or a second time
            state.stop_reason = INTERRUPTED
        verdicts = state.verdicts()
        incomplete = state.incomplete_reasons()
        counts = totals(state.exchanges)
        if recorder is not None:
            recorder.unsent(state.unsent)
            summary = {"plan_sha256": state.plan_sha256, "totals": counts, "incomplete": list(incomplete)}
            recorder.close({**summary, "ended_at": round(time.time(), 3)})
    return Run(
        contract=contract,
        target=endpoint,
        profile=profile,
        seed=seed,
        plan_sha256=state.plan_sha256,
        planned=state.planned,
        exchanges=state.exchanges,
        verdicts=verdicts,
        totals=counts,
        started_at=started_at,
        duration_s=time.monotonic() - start,
        incomplete=incomplete,
        claims=claims,
        unsent=state.unsent,
        smallest=smallest(contract, verdicts, state.exchanges),
    )


@contextmanager
def _recorder(path: Path | None, previous: Recording | None, header: Mapping[str, Any]) -> Iterator[Recorder | None]:
    if path is None:
        yield None
        return
    if previous is not None:
        for member in ("suite_version", "contract", "target", "profile", "seed", "claims", "plan"):
            then, now = previous.header.get(member), header.get(member)
            if member == "target":
                then, now = _identity(then), _identity(now)
            if then != now and not (member == "target" and _differs_in_port_only(then, now)):
                difference = f"{member} is {then!r} there and {now!r} now"
                advice = "run with the same settings, or without --resume"
                raise ResumeError(f"{path} cannot be resumed: {difference}; {advice}")
    with Recorder(path, header) if previous is None else Recorder.resume(path, previous) as recorder:
        yield recorder


def _identity(target: Any) -> Any:
    """What identifies a target; header fields and the key may change from run to run."""
    names = ("name", "base_url", "model", "kind")
    return {name: target.get(name) for name in names} if isinstance(target, Mapping) else target


def _differs_in_port_only(then: Any, now: Any) -> bool:
    """Whether both are the same target on this machine: a local server has another port each time."""
    if not isinstance(then, Mapping) or {**then, "base_url": ""} != {**now, "base_url": ""}:
        return False
    return all(Target(target["base_url"], "").loopback for target in (then, now))


@contextmanager
def _sigterm_cancels() -> Iterator[None]:
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
