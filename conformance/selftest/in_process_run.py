"""The run loop with a sender that needs no network: mutation tests run the same loop as users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.judge.finding_cache import FindingCache
from conformance.model import BROKEN, Contract, RequestCase, Verdict
from conformance.model.budget import Account, Budget
from conformance.model.exchange import Exchange
from conformance.reference.core import Reference
from conformance.run.loop import PhaseSender, Plan, RunState
from conformance.selftest.in_process import InProcessSender
from conformance.send import Target


@dataclass(frozen=True)
class InProcessRun:
    """What was planned, what came back, and the verdicts on it."""

    planned: tuple[RequestCase, ...]
    exchanges: tuple[Exchange, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> frozenset[str]:
        """The ids of all broken requirements."""
        return frozenset(verdict.requirement.id for verdict in self.verdicts if verdict.outcome in BROKEN)

    @property
    def checks(self) -> frozenset[str]:
        """The checks of all broken requirements."""
        return frozenset(verdict.requirement.check for verdict in self.verdicts if verdict.outcome in BROKEN)


def run_in_process(
    reference: Reference,
    plan: Plan,
    *,
    attempts: int | None = None,
    known: Mapping[str, Exchange] | None = None,
    cache: FindingCache | None = None,
) -> InProcessRun:
    """Drive a plan against a reference in this process, with `attempts` in all where there is a limit.

    `known` are the exchanges of another run by case, and `cache` the conclusions on them.
    """

    def sender(account: Account, finished: Callable[[Exchange], object]) -> InProcessSender:
        return InProcessSender(reference, account, finished, known or {})

    return driven(reference.contract, plan, sender, Budget(requests=attempts), cache)


def driven(
    contract: Contract,
    plan: Plan,
    sender: Callable[[Account, Callable[[Exchange], object]], PhaseSender],
    budget: Budget,
    cache: FindingCache | None = None,
) -> InProcessRun:
    """Drive a plan with a sender that is made of the run's account and of the function that takes its exchanges."""
    state = RunState(
        contract=contract,
        target=Target("http://in-process", contract.path),
        plan=plan,
        account=Account(budget),
        cache=cache or FindingCache(),
    )
    asyncio.run(state.drive(sender(state.account, state.recording_watcher().finished), shrink=False))
    return InProcessRun(state.planned, state.exchanges, state.verdicts())
