"""A run under a plan lock: the lock is made from settings, fixes the options of the run, and is checked before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance import contract as contracts
from conformance.config.settings import Settings, SettingsError
from conformance.contract import requirement_sets
from conformance.model.budget import planned_as
from conformance.model.json_text import dumps
from conformance.model.redaction import without_secrets
from conformance.recording import plan_lock
from conformance.recording.build import build
from conformance.recording.canonical_json import digest
from conformance.recording.plan_lock import LockError, PlanLock

if TYPE_CHECKING:
    from conformance.model import Contract
    from conformance.plan import Plan

ISOLATION: Final = "alone"
"""The phase in which members of a refused combination are sent in smaller combinations."""


def fixed_options(path: Path, provider: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a lock fixes, by key; a SettingsError where `given` asks for another value."""
    document = read(path).document
    locked_provider = document["contract"]["provider"]
    if provider != locked_provider:
        raise SettingsError(f"{path} is a plan for {locked_provider!r}, not for {provider!r}; name that provider")
    for name, why in (
        ("select", "a run under a plan judges all requirements"),
        ("resume", "a run under a plan is made in one go; start again with a fresh plan"),
    ):
        if given.get(name):
            raise SettingsError(f"--{name} cannot be combined with --plan: {why}")
    target, ceilings = document["target"], document["ceilings"]
    fixed = {
        "profile": document["profile"],
        "seed": document["seed"],
        "base_url": target["base_url"],
        "model": target["model"],
        "name": "" if target["name"] == provider else target["name"],
        "claim": tuple(document["claims"]),
        "no_hostile": not document["hostile"],
        "requirements": document["requirements"]["date"],
        "max_requests": ceilings["requests"],
        "max_tokens": ceilings["completion_tokens"],
        "max_prompt_tokens": ceilings["prompt_tokens"],
        "max_seconds": ceilings["seconds"],
    }
    for key, value in fixed.items():
        other = given.get(key)
        if other is not None and (tuple(other) if isinstance(value, tuple) else other) != value:
            option = f"--{key.replace('_', '-')}"
            fixed_value = "nothing" if value in (None, "", (), False) else repr(value)
            raise SettingsError(f"{option} is {other!r}, and {path} fixes {fixed_value}; leave it out, or plan again")
    return fixed


def read(path: Path) -> PlanLock:
    """A plan lock from its file; a SettingsError where it is not one."""
    try:
        return plan_lock.read(path)
    except LockError as error:
        raise SettingsError(str(error)) from None


def check(lock: PlanLock, contract: Contract, settings: Settings, *, has_key: bool) -> None:
    """Refuse to run where the suite, the contract, the settings or what would be planned differ from the lock."""
    from conformance.run import replan

    document, path = lock.document, settings.plan
    again = "make a fresh plan with `conformance plan --lock`"
    locked_build, this_build = document["suite"], build()
    if locked_build != this_build:
        locked_by, present = (f"{suite['version']} ({suite['sha256'][:8]})" for suite in (locked_build, this_build))
        raise SettingsError(f"{path} was made by {locked_by}, not by {present}; {again}, or install that version")
    if contract.sha256 != document["contract"]["sha256"]:
        raise SettingsError(f"{path} was made for another contract of {contract.provider} than is here; {again}")
    in_force = requirement_sets.in_force(contract.provider, document["requirements"]["date"], settings.specs)
    if plan_lock.set_hash(in_force) != document["requirements"]["sha256"]:
        raise SettingsError(f"{path} names the requirements of {in_force.date}, which have changed since; {again}")
    target = document["target"]
    if has_key is not target["has_key"]:
        then, now = (("with" if key else "without") for key in (target["has_key"], has_key))
        raise SettingsError(f"{path} was made {then} a key, and this run is {now} one; {again}")
    for option, sent, fixed in (
        ("--header", settings.headers, target["headers"]),
        ("--query", settings.query, target["query"]),
    ):
        if locked_pairs(sent, settings.credentials) != fixed:
            raise SettingsError(f"{option} names {len(sent)}, others than the {len(fixed)} of {path}; {again}")
    if not replan.agrees(lock, contract):
        raise SettingsError(f"{path} is not what is planned here, with these versions of libraries; {again}")


def make_lock(settings: Settings, contract: Contract, *, nonce: str | None, seeded: bool, has_key: bool) -> PlanLock:
    """Lock the plan of a run with these settings. Unless a seed is given, it follows from the nonce."""
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks
    from conformance.model.clock import today
    from conformance.run.launch import REFERENCE_MODEL

    try:
        nonce, origin = plan_lock.nonce_and_origin(nonce)
        day = settings.requirements or today().isoformat()
        in_force = requirement_sets.in_force(contract.provider, day, settings.specs)
    except (LockError, contracts.ContractError) as error:
        raise SettingsError(str(error)) from None
    if not settings.hostile:
        raise SettingsError("--no-hostile cannot be combined with --lock: a certificate covers hostile requests too")
    if settings.select:
        raise SettingsError("--select cannot be combined with --lock: a locked plan covers all requirements")
    if not seeded:
        settings = replace(settings, seed=plan_lock.seed_of(nonce))
    options = planning.PlanOptions(
        model=settings.model or REFERENCE_MODEL,
        profile=planned_as(settings.profile),
        seed=settings.seed,
        budget=settings.budget,
        claims=settings.claims,
        hostile=settings.hostile,
        has_key=has_key,  # and no bodies that failed in earlier runs: a locked plan follows from its nonce alone
    )
    plan = planning.plan(contract, load_checks(), options)
    folder = contracts.home(contract.provider, settings.specs)
    return plan_lock.lock(
        {
            "nonce": nonce,
            "nonce_origin": origin,
            "planned_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "suite": build(),
            "contract": {
                "provider": contract.provider,
                "revision": contract.revision,
                "sha256": contract.sha256,
                "openapi_sha256": digest((folder / "openapi.yaml").read_bytes()),
                "contract_sha256": digest((folder / "contract.yaml").read_bytes()),
            },
            "requirements": plan_lock.requirements_out(in_force),
            "profile": settings.profile,
            "seed": settings.seed,
            "target": {
                "name": settings.target,
                "base_url": settings.base_url,
                "path": contract.path,
                "model": plan.context.model,
                "headers": locked_pairs(settings.headers, settings.credentials),
                "query": locked_pairs(settings.query, settings.credentials),
                "has_key": has_key,
            },
            "claims": list(settings.claims),
            "hostile": settings.hostile,
            "ceilings": asdict(settings.budget),
            **allowances(plan),
            "drawn": [dumps(body) for body in plan.drawn],
            "waves": [plan_lock.phase_out(phase) for phase in plan.phases],
        }
    )


def allowances(plan: Plan) -> dict[str, Any]:
    """What a run may send beyond the locked requests: repeats, and requests that follow from replies."""
    from conformance import plan as planning
    from conformance.plan.case_group import ORDER
    from conformance.run.confirm import COPIES, MOST_CASES

    return {
        "repeats": {"copies": COPIES, "most": MOST_CASES},
        "adaptive": {"waves": sorted({*ORDER, ISOLATION, planning.LEFT_OUT}), "most": len(plan.cases)},
    }


def locked_pairs(pairs: Sequence[tuple[str, str]], credentials: Sequence[str]) -> list[list[str]]:
    """Extra headers or query parameters, with the values of secret ones left out."""
    return [[name, "(secret)" if value is None else value] for name, value in without_secrets(pairs, credentials)]
