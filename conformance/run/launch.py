"""One run from settings: load the contract, connect to the target or start the reference, plan, and drive the run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance import contract as contracts
from conformance.config import waivers
from conformance.config.settings import Settings, SettingsError, set_options
from conformance.config.settings import settings as settings_from_options
from conformance.model import Contract
from conformance.model.budget import planned_as

if TYPE_CHECKING:
    from conformance.recording.plan_lock import PlanLock
    from conformance.run import Run
    from conformance.send import Target, TimeoutPolicy, Watcher

RECORDING: Final = "exchanges.ndjson"
REFERENCE_MODEL: Final = "reference"
TOTAL_AT_LEAST: Final = 180.0
"""The least time-out of a whole reply, in seconds: a long completion takes time after a quick first byte."""


def resolve_settings(provider: str, given: Mapping[str, Any]) -> Settings:
    """Settings from options by key; those that a plan lock fixes are read from it."""
    options = set_options(given)
    if not options.get("plan"):
        return settings_from_options(provider, given)
    from conformance.run.locked_run import fixed_options

    return settings_from_options(provider, given, fixed_options(Path(options["plan"]), provider, options))


def launch(settings: Settings, watcher: Watcher | None = None, stop_after: int = 0) -> Run:
    """Make one run. A SettingsError says what to change; whatever a target does wrong is part of the Run.

    Once `stop_after` requirements are seen to fail, no further phase is sent; 0 sends all.
    """
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks
    from conformance.recording import RecordingError
    from conformance.run import ResumeError, run
    from conformance.send import RateLimits
    from conformance.send.sender import UNWATCHED

    contract = checked_contract(settings)
    selected = selected_requirements(settings, contract)
    lock = _lock(settings, contract)
    with open_target(settings, contract, canary=lock.canary if lock else "") as (target, model):
        options = planning.PlanOptions(
            model=model,
            profile=planned_as(settings.profile),
            seed=settings.seed,
            budget=settings.budget,
            claims=settings.claims,
            hostile=settings.hostile,
            allow_large=settings.allow_large,
            select=settings.select,
            has_key=bool(target.key),
            drawn=lock.drawn if lock else None,
            failed=failed_bodies(settings, model),
        )
        try:
            result = run(
                contract,
                target,
                planning.phases(contract, load_checks(), options),
                name=settings.target,
                model=model,
                profile=settings.profile,
                seed=settings.seed,
                budget=settings.budget,
                claims=settings.claims,
                timeouts=timeout_policy(settings),
                pace=RateLimits(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute),
                record=recording_path(settings),
                resume=settings.resume,
                select=selected,
                shrink=settings.shrink and not lock,  # shrunk requests are not in the locked plan
                mark=lock.mark if lock else None,
                opened=partial(_keep_plan, settings),
                watcher=watcher or UNWATCHED,
                stop_after=stop_after,
            )
        except (ResumeError, RecordingError) as error:
            raise SettingsError(str(error)) from None
    return replace(result, verdicts=tuple(verdict for verdict in result.verdicts if verdict.requirement.id in selected))


def checked_contract(settings: Settings, *, of_target: bool = True) -> Contract:
    """The contract; whatever is wrong with the settings raises here, before anything is sent or written."""
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks

    if of_target:
        refuse_reference_by_mistake(settings)
    contract = load_contract(settings)
    selected_requirements(settings, contract)
    waivers.check(waivers_from_settings(settings), settings.target, {row.id for row in contract.requirements})
    if settings.base_url and of_target:
        target_from_settings(settings, contract)
    try:
        options = planning.PlanOptions(
            model=settings.model, profile=planned_as(settings.profile), claims=settings.claims
        )
        planning.plan_context(contract, load_checks(), options)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return contract


def refuse_reference_by_mistake(settings: Settings) -> None:
    """Raise SettingsError if settings describe a target without an address: the reference would be judged instead."""
    if settings.without_base_url:
        given = ", ".join(settings.without_base_url)
        advice = "give --base-url URL; only a run without any of these judges the embedded reference"
        raise SettingsError(f"{given} is given, but no base URL of a target; {advice}")


def load_contract(settings: Settings) -> Contract:
    """The contract of the provider, pinned to a requirement set where the settings name a date."""
    known = contracts.providers(settings.specs)
    if settings.provider not in known:
        raise SettingsError(
            f"there is no provider {settings.provider!r}; expected one of {', '.join(known)}, or --specs DIR"
        )
    from conformance.contract import requirement_sets
    from conformance.judge.catalogue import load as load_checks

    try:
        contract = contracts.load(settings.provider, settings.specs, load_checks())
        if not settings.requirements:
            return contract
        in_force = requirement_sets.in_force(settings.provider, settings.requirements, settings.specs)
        return requirement_sets.pinned(contract, in_force)
    except contracts.ContractError as error:
        raise SettingsError(str(error)) from None


def selected_requirements(settings: Settings, contract: Contract) -> frozenset[str]:
    """The ids of the requirements to judge: those that match --select, or all."""
    ids = frozenset(row.id for row in contract.requirements)
    if not settings.select:
        return ids
    for glob in settings.select:
        if not any(fnmatchcase(name, glob) for name in ids):
            advice = f"`conformance list {settings.provider}` shows them all"
            raise SettingsError(f"--select {glob!r} matches none of {len(ids)} requirements; {advice}")
    return frozenset(name for name in ids if any(fnmatchcase(name, glob) for glob in settings.select))


def waivers_from_settings(settings: Settings) -> tuple[waivers.Waiver, ...]:
    """The waivers in the file that the settings name."""
    return waivers.read(settings.waivers) if settings.waivers else ()


def _lock(settings: Settings, contract: Contract) -> PlanLock | None:
    """The plan lock of --plan, checked."""
    if settings.plan is None:
        return None
    from conformance.run import locked_run

    lock = locked_run.read(settings.plan)
    locked_run.check(lock, contract, settings, has_key=not settings.base_url or bool(settings.key))
    return lock


def _keep_plan(settings: Settings) -> None:
    """Copy the plan lock beside the recording, once the recording belongs to this run."""
    from conformance.recording.plan_lock import NAME

    if settings.plan is not None and settings.plan.resolve() != (settings.folder / NAME).resolve():
        new_lock = settings.folder / f"{NAME}.new"
        new_lock.write_bytes(settings.plan.read_bytes())
        new_lock.replace(settings.folder / NAME)


@contextmanager
def open_target(settings: Settings, contract: Contract, *, canary: str = "") -> Iterator[tuple[Target, str]]:
    """The target and the model: the given one, or the embedded reference, served on a socket of its own."""
    from conformance.send import Target

    refuse_reference_by_mistake(settings)
    if settings.base_url:
        yield replace(target_from_settings(settings, contract), canary=canary), settings.model
        return
    from conformance.reference import Reference, serve

    key = f"sk-reference-{secrets.token_hex(16)}"  # never the user's own key
    model = settings.model or REFERENCE_MODEL
    # a resumed run meets a new reference, whose ids must not be those of the one before
    entropy = 1 + secrets.randbelow(0xFFFF) if settings.resume else 0
    with serve(Reference(contract, key=key, models=(model,), entropy=entropy)) as base_url:
        yield Target(base_url, contract.path, key, canary=canary, embedded=True), model


def target_from_settings(settings: Settings, contract: Contract) -> Target:
    """The target that the settings name."""
    from conformance.send import Target

    if not settings.model:
        raise SettingsError("no model is named; give --model NAME, as the target calls it")
    try:
        return Target(
            base_url=settings.base_url,
            path=contract.path,
            key=settings.key,
            headers=settings.headers,
            query=settings.query,
            credentials=settings.credentials,
            key_variable=settings.key_variable,
            keep_undecodable=settings.keep_undecodable,
            proxy_from_env=settings.proxy_from_env,
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None


def common_secrets(settings: Settings) -> tuple[str, ...]:
    """The settings whose secret is a common word, which cannot be masked; none where settings are faulty."""
    from conformance.send import Target

    if not settings.base_url:  # the embedded reference never gets the user's key
        return ()
    with suppress(ValueError):
        target = Target(settings.base_url, "", settings.key, settings.headers, settings.query)
        return replace(target, credentials=settings.credentials).common_secrets
    return ()


def recording_path(settings: Settings) -> Path:
    """Where the exchanges of a target are recorded."""
    return settings.folder / RECORDING


def failed_bodies(settings: Settings, model: str) -> tuple[Mapping[str, Any], ...]:
    """The drawn bodies that failed in earlier runs of this target; on resumption, in runs before the resumed one."""
    from conformance.recording import RecordingError, drawn_failures, read

    try:
        failures = drawn_failures.read(settings.folder / drawn_failures.NAME)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if failures and settings.resume and recording_path(settings).exists():
        with suppress(RecordingError):  # which the run will report
            began = read(recording_path(settings)).header["started_at"]
            failures = drawn_failures.known_before(
                failures, datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds")
            )
    return drawn_failures.bodies(failures, model)


def timeout_policy(settings: Settings) -> TimeoutPolicy:
    """The time-outs that follow from --timeout."""
    from conformance.send import TimeoutPolicy

    return TimeoutPolicy(first_byte=settings.timeout, total=max(TOTAL_AT_LEAST, 2 * settings.timeout))
