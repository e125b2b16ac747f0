"""A run under a plan: settings come from the plan, and what has changed since it was made stops the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance import contract as contracts
from conformance.config.settings import Settings, SettingsError
from conformance.contract import requirement_sets as frozen
from conformance.recording import plan_lock as locks
from conformance.recording.build import build
from conformance.recording.plan_lock import LockError, PlanLock

if TYPE_CHECKING:
    from conformance.model import Contract


def options(path: Path, provider: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a plan fixes, by key; a SettingsError where another value is `given`."""
    plan = opened(path)
    there = plan.told["contract"]["provider"]
    if provider != there:
        raise SettingsError(f"{path} is a plan for {there!r}, not for {provider!r}; name that provider")
    for name, why in (
        ("select", "a run under a plan judges all requirements"),
        ("resume", "a run under a plan is made in one go; begin again with a fresh plan"),
    ):
        if given.get(name):
            raise SettingsError(f"--{name} does not go with --plan: {why}")
    fixed = _fixed(plan, provider)
    for key, value in fixed.items():
        told = given.get(key)
        if told is not None and (tuple(told) if isinstance(value, tuple) else told) != value:
            option = f"--{key.replace('_', '-')}"
            shown = "nothing" if value in (None, "", (), False) else repr(value)
            raise SettingsError(f"{option} is {told!r}, and {path} fixes {shown}; leave it out, or plan again")
    return fixed


def _fixed(plan: PlanLock, provider: str) -> dict[str, Any]:
    told, target, ceilings = plan.told, plan.told["target"], plan.told["ceilings"]
    return {
        "profile": told["profile"],
        "seed": told["seed"],
        "base_url": target["base_url"],
        "model": target["model"],
        "name": "" if target["name"] == provider else target["name"],
        "claim": tuple(told["claims"]),
        "no_hostile": not told["hostile"],
        "requirements": told["requirements"]["date"],
        "max_requests": ceilings["requests"],
        "max_tokens": ceilings["completion_tokens"],
        "max_prompt_tokens": ceilings["prompt_tokens"],
        "max_seconds": ceilings["seconds"],
    }


def opened(path: Path) -> PlanLock:
    """A plan from its file; a SettingsError where it is none."""
    try:
        return locks.read(path)
    except LockError as error:
        raise SettingsError(str(error)) from None


def check(plan: PlanLock, contract: Contract, chosen: Settings, *, has_key: bool) -> None:
    """Refuse to run under a plan that is not what would be planned now, of the same drawn bodies."""
    from conformance.run import replan as redraw

    told, path = plan.told, chosen.plan
    again = "make a fresh plan with `conformance plan --lock`"
    if told["suite"] != build():
        made, here = told["suite"], build()
        builds = f"{made['version']} ({made['sha256'][:8]}), not by {here['version']} ({here['sha256'][:8]})"
        raise SettingsError(f"{path} was made by {builds}; {again}, or install that version")
    if contract.sha256 != told["contract"]["sha256"]:
        raise SettingsError(f"{path} was made for another contract of {contract.provider} than is here; {again}")
    then = frozen.in_force(contract.provider, told["requirements"]["date"], chosen.specs)
    if locks.set_hash(then) != told["requirements"]["sha256"]:
        raise SettingsError(f"{path} names the requirements of {then.date}, which have changed since; {again}")
    target = told["target"]
    if has_key is not target["has_key"]:
        was, now = (("with" if one else "without") for one in (target["has_key"], has_key))
        raise SettingsError(f"{path} was made {was} a key, and this run is {now} one; {again}")
    for option, sent, fixed in (
        ("--header", chosen.headers, target["headers"]),
        ("--query", chosen.query, target["query"]),
    ):
        if locks.masked(sent) != fixed:
            raise SettingsError(f"{option} names {len(sent)}, others than the {len(fixed)} of {path}; {again}")
    if not redraw.agrees(plan, contract):
        raise SettingsError(f"{path} is not what is planned here, with these versions of libraries; {again}")


def locked(chosen: Settings, contract: Contract, *, nonce: str | None, seeded: bool, has_key: bool) -> PlanLock:
    """A plan for a run with these settings. Without a seed of one's own, the seed follows from the nonce."""
    from dataclasses import replace

    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks
    from conformance.model.budget import planned_as
    from conformance.model.clock import today
    from conformance.run.launch import REFERENCE_MODEL

    try:
        number, origin = locks.fresh(nonce)
        then = frozen.in_force(contract.provider, chosen.requirements or today().isoformat(), chosen.specs)
    except (LockError, contracts.ContractError) as error:
        raise SettingsError(str(error)) from None
    if not chosen.hostile:
        raise SettingsError("--no-hostile does not go with --lock: a certificate speaks of hostile requests too")
    if chosen.select:
        raise SettingsError("--select does not go with --lock: a plan that is fixed shows all requirements")
    chosen = chosen if seeded else replace(chosen, seed=locks.seed_of(number))
    options = planning.PlanOptions(
        model=chosen.model or REFERENCE_MODEL,
        profile=planned_as(chosen.profile),
        seed=chosen.seed,
        budget=chosen.budget,
        claims=chosen.claims,
        hostile=chosen.hostile,
        has_key=has_key,
    )
    found = planning.plan(contract, load_checks(), options)
    return locks.make(chosen, contract, found, then, number, origin, has_key=has_key)
