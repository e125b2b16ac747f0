"""A `Contract`, the checks of its requirements and `PlanOptions` in; phases of requests out. Nothing is sent here.

A plan is a generator: it yields a phase, is sent the exchanges that came back, and plans the next phase with them. It
is deterministic for a deterministic target: whatever is drawn at random is drawn from a seed before the first phase.

Imports `model` and `contract` only. Never the judge: of each check it sees the `Trigger`, which the caller hands in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from conformance.contract.applicability import Trigger
from conformance.model import Contract
from conformance.model.budget import PROFILES, Budget
from conformance.model.exchange import Exchange
from conformance.plan.context import PlanContext
from conformance.plan.covering_rows import Coverage
from conformance.plan.drawn_requests import again
from conformance.plan.dry_run import Plan, reached, simulate
from conformance.plan.planner import LEFT_OUT, Drawn, Phases, Planner
from conformance.plan.profiles import RESERVE
from conformance.plan.samples import draw

Checks = Mapping[str, Trigger]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What to plan.

    `budget` lowers the ceilings of the profile; what does not fit becomes the last phase, so that it counts as planned.
    `claims` are words such as "no echo". `allow_large`: a prompt of a megabyte may be sent. `select` are globs of
    requirement ids: only cases that show one of these are planned. `has_key`: cases without a key and with a wrong key
    make sense. `drawn` are the bodies of a stored plan, `failed` those that failed in earlier runs: they come before
    what is drawn.
    """

    model: str
    profile: str = "gate"
    seed: int = 0
    budget: Budget | None = None
    claims: Collection[str] = ()
    hostile: bool = True
    allow_large: bool = False
    select: Collection[str] = ()
    has_key: bool = False
    drawn: Drawn | None = None
    failed: Drawn = ()


def phases(contract: Contract, checks: Checks, options: PlanOptions) -> Phases:
    """The phases of a run."""
    return _planner(contract, checks, options).phases()


def plan(contract: Contract, checks: Checks, options: PlanOptions) -> Plan:
    """The same without a target, as if it accepted every documented value."""
    return simulate(_planner(contract, checks, options))


def coverage(
    contract: Contract, checks: Checks, options: PlanOptions, exchanges: Iterable[Exchange], strength: int = 2
) -> Coverage:
    """The share of the combinations of `strength` values that was sent and answered, less what the target refuses."""
    return reached(plan_context(contract, checks, options), exchanges, strength)


def plan_context(contract: Contract, checks: Checks, options: PlanOptions) -> PlanContext:
    """The context of a plan; a ValueError names a profile or a claim that does not exist."""
    if options.profile not in PROFILES:
        raise ValueError(f"the profile is {options.profile!r}; expected one of {', '.join(PROFILES)}")
    without = frozenset(claim.strip().removeprefix("no ").strip() for claim in options.claims)
    unknown = sorted(without - contract.parameters.keys())
    if unknown:
        known = ", ".join(name for name, parameter in contract.parameters.items() if not parameter.required)
        raise ValueError(f"a claim is 'no {unknown[0]}'; expected 'no PARAMETER' with one of {known}")
    return PlanContext(
        contract=contract,
        checks=checks,
        model=options.model,
        full=options.profile == "full",
        seed=options.seed,
        without=without,
        has_key=options.has_key,
        hostile=options.hostile,
        allow_large=options.allow_large,
    )


def _planner(contract: Contract, checks: Checks, options: PlanOptions) -> Planner:
    context = plan_context(contract, checks, options)
    drawn = (*again(context, options.failed), *draw(context)) if options.drawn is None else options.drawn
    return Planner(context, drawn, options.budget, options.select)


__all__ = [
    "LEFT_OUT",
    "PROFILES",
    "RESERVE",
    "Budget",
    "Coverage",
    "Plan",
    "PlanContext",
    "PlanOptions",
    "coverage",
    "draw",
    "phases",
    "plan",
    "plan_context",
]  # fmt: skip
