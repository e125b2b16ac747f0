"""Settings → Run: the contract is loaded, the target found (or the reference started), the plan driven and judged."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance import contract as contracts
from conformance.config import waivers
from conformance.config.settings import Settings, SettingsError, chosen
from conformance.config.settings import settings as settings_from_options
from conformance.model import Contract
from conformance.model.budget import planned_as

if TYPE_CHECKING:
    from conformance.recording.plan_lock import PlanLock
    from conformance.run import Run
    from conformance.send import Target, TimeoutPolicy, Watcher

RECORDING: Final = "exchanges.ndjson"
REFERENCE_MODEL: Final = "reference"


def resolve_settings(provider: str, given: Mapping[str, Any]) -> Settings:
    """Settings from options by key; those that a plan fixes are read from it."""
    options = chosen(given)
    if not options.get("plan"):
        return settings_from_options(provider, given)
    from conformance.run.locked_run import fixed_options

    return settings_from_options(provider, given, fixed_options(Path(options["plan"]), provider, options))


def launch(settings: Settings, watcher: Watcher | None = None) -> Run:
    """Make one run. A SettingsError says what to change; everything a target can do wrong ends in the Run."""
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks
    from conformance.recording import RecordingError
    from conformance.run import ResumeError, run
    from conformance.send import RateLimits
    from conformance.send.sender import UNWATCHED

    contract = check(settings)
    kept = selected(settings, contract)
    fixed = _fixed(settings, contract)
    with target(settings, contract, canary=fixed.canary if fixed else "") as (where, model):
        options = planning.PlanOptions(
            model=model,
            profile=planned_as(settings.profile),
            seed=settings.seed,
            budget=settings.budget,
            claims=settings.claims,
            hostile=settings.hostile,
            select=settings.select,
            has_key=bool(where.key),
            drawn=fixed.drawn if fixed else None,
        )
        plan = planning.phases(contract, load_checks(), options)
        try:
            made = run(
                contract,
                where,
                plan,
                name=settings.target,
                model=model,
                profile=settings.profile,
                seed=settings.seed,
                budget=settings.budget,
                claims=settings.claims,
                patience=patience(settings),
                pace=RateLimits(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute),
                record=recorded(settings),
                resume=settings.resume,
                select=kept,
                shrink=settings.shrink and not fixed,  # a fixed plan has no room for what is not in it
                mark=fixed.mark if fixed else None,
                watcher=watcher or UNWATCHED,
            )
        except (ResumeError, RecordingError) as error:
            raise SettingsError(str(error)) from None
    return replace(made, verdicts=tuple(one for one in made.verdicts if one.requirement.id in kept))


def check(settings: Settings, *, of_target: bool = True) -> Contract:
    """Everything that can be wrong with settings is found here, before anything is sent or written."""
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks

    contract = load(settings)
    selected(settings, contract)
    waivers.check(waived(settings), settings.target, {row.id for row in contract.requirements})
    if settings.base_url and of_target:
        given(settings, contract)
    try:
        options = planning.PlanOptions(
            model=settings.model, profile=planned_as(settings.profile), claims=settings.claims
        )
        planning.plan_context(contract, load_checks(), options)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return contract


def load(settings: Settings) -> Contract:
    """The contract, or SettingsError that names those there are."""
    known = contracts.providers(settings.specs)
    if settings.provider not in known:
        raise SettingsError(
            f"there is no provider {settings.provider!r}; expected one of {', '.join(known)}, or --specs DIR"
        )
    from conformance.contract import requirement_sets as frozen
    from conformance.judge.catalogue import load as load_checks

    try:
        found = contracts.load(settings.provider, settings.specs, load_checks())
        if not settings.requirements:
            return found
        return frozen.pinned(found, frozen.in_force(settings.provider, settings.requirements, settings.specs))
    except contracts.ContractError as error:
        raise SettingsError(str(error)) from None


def selected(settings: Settings, contract: Contract) -> frozenset[str]:
    """The ids of the requirements that are to be judged."""
    ids = frozenset(row.id for row in contract.requirements)
    if not settings.select:
        return ids
    for glob in settings.select:
        if not any(fnmatchcase(one, glob) for one in ids):
            there = f"`conformance list {settings.provider}` shows them all"
            raise SettingsError(f"--select {glob!r} matches none of {len(ids)} requirements; {there}")
    return frozenset(one for one in ids if any(fnmatchcase(one, glob) for glob in settings.select))


def waived(settings: Settings) -> tuple[waivers.Waiver, ...]:
    """The accepted failures of the file that the settings name."""
    return waivers.read(settings.waivers) if settings.waivers else ()


def _fixed(settings: Settings, contract: Contract) -> PlanLock | None:
    """The plan that was made beforehand, proved to be still what it was, and a copy of it beside the recording."""
    if settings.plan is None:
        return None
    from conformance.recording import plan_lock
    from conformance.run import locked_run

    lock = locked_run.read(settings.plan)
    locked_run.check(lock, contract, settings, has_key=not settings.base_url or bool(settings.key))
    settings.folder.mkdir(parents=True, exist_ok=True)
    (settings.folder / plan_lock.NAME).write_bytes(settings.plan.read_bytes())
    return lock


@contextmanager
def target(settings: Settings, contract: Contract, *, canary: str = "") -> Iterator[tuple[Target, str]]:
    """The target and the model: the given one, or the embedded reference on a socket of its own."""
    from conformance.send import Target

    if settings.base_url:
        yield replace(given(settings, contract), canary=canary), settings.model
        return
    from conformance.reference import Reference, serve

    key = f"sk-reference-{secrets.token_hex(16)}"  # the user's own key has no business here
    model = settings.model or REFERENCE_MODEL
    with serve(Reference(contract, key=key, models=(model,))) as base_url:
        yield Target(base_url, contract.path, key, settings.headers, settings.query, canary=canary), model


def given(settings: Settings, contract: Contract) -> Target:
    """The target that the settings name."""
    from conformance.send import Target

    if not settings.model:
        raise SettingsError("no model is named; give --model NAME, as the target calls it")
    where = (settings.base_url, contract.path, settings.key, settings.headers, settings.query, settings.proxy_from_env)
    try:
        return Target(*where)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def recorded(settings: Settings) -> Path:
    """Where the exchanges of a target are kept."""
    return settings.folder / RECORDING


def patience(settings: Settings) -> TimeoutPolicy:
    """The time-outs that follow from the one that is set."""
    from conformance.send import TimeoutPolicy

    return TimeoutPolicy(first_byte=settings.timeout, whole=max(180.0, 2 * settings.timeout))
