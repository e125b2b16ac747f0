"""Contract and budget → waves of requests. Nothing here touches the network.

A plan is a generator: it yields a wave, is handed what came back, learns, and goes on. It is deterministic for a
deterministic target, and everything that is drawn at random is drawn before the first wave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from conformance.model import Contract
from conformance.model.budget import PROFILES, Budget
from conformance.model.exchange import Exchange
from conformance.plan.context import PlanContext
from conformance.plan.covering_rows import Coverage
from conformance.plan.dry_run import Plan, reached, simulate
from conformance.plan.planner import LEFT_OUT, Drawn, Phases, Planner
from conformance.plan.profiles import RESERVE
from conformance.plan.samples import draw


def phases(
    contract: Contract,
    *,
    model: str,
    profile: str = "gate",
    seed: int = 0,
    budget: Budget | None = None,
    claims: Collection[str] = (),
    hostile: bool = True,
    select: Collection[str] = (),
    has_key: bool = False,
    drawn: Drawn | None = None,
) -> Phases:
    """The waves of a run.

    `budget` lowers the ceilings of the profile; what does not fit is the last wave, so that it counts as planned.
    `claims` are words such as "no echo". `select` are globs of requirement ids: nothing that serves none of them is
    sent. `has_key`: cases without and with a wrong key make sense. `drawn` are the bodies of a stored plan.
    """
    context = setting(contract, model, profile, seed, claims, hostile=hostile, has_key=has_key)
    return Planner(context, draw(context) if drawn is None else drawn, budget, select).phases()


def plan(
    contract: Contract,
    *,
    model: str,
    profile: str = "gate",
    seed: int = 0,
    budget: Budget | None = None,
    claims: Collection[str] = (),
    hostile: bool = True,
    select: Collection[str] = (),
    has_key: bool = False,
    drawn: Drawn | None = None,
) -> Plan:
    """The same without a target, as if it accepted every documented value."""
    context = setting(contract, model, profile, seed, claims, hostile=hostile, has_key=has_key)
    return simulate(Planner(context, draw(context) if drawn is None else drawn, budget, select))


def coverage(
    contract: Contract,
    exchanges: Iterable[Exchange],
    *,
    model: str,
    profile: str = "gate",
    claims: Collection[str] = (),
    strength: int = 2,
) -> Coverage:
    """The share of the combinations of so many values that was sent and answered, less what the target refuses."""
    return reached(setting(contract, model, profile, 0, claims), exchanges, strength)


def setting(
    contract: Contract,
    model: str,
    profile: str = "gate",
    seed: int = 0,
    claims: Collection[str] = (),
    *,
    hostile: bool = True,
    has_key: bool = False,
) -> PlanContext:
    """The scene of a plan; a ValueError names a profile or a claim that is not known."""
    if profile not in PROFILES:
        raise ValueError(f"the profile is {profile!r}; expected one of {', '.join(PROFILES)}")
    without = frozenset(claim.strip().removeprefix("no ").strip() for claim in claims)
    unknown = sorted(without - contract.parameters.keys())
    if unknown:
        known = ", ".join(name for name, one in contract.parameters.items() if not one.required)
        raise ValueError(f"a claim is 'no {unknown[0]}'; expected 'no PARAMETER' with one of {known}")
    return PlanContext(contract, model, profile == "full", seed, without, has_key, hostile)


__all__ = [
    "LEFT_OUT",
    "PROFILES",
    "RESERVE",
    "Budget",
    "Coverage",
    "Plan",
    "PlanContext",
    "coverage",
    "draw",
    "phases",
    "plan",
    "setting",
]  # fmt: skip
