"""`conformance plan`: what a run would send, what that shows, and what it costs at most. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.options import of_targets, options
from conformance.cli.selected_targets import named, only
from conformance.config.settings import Settings, SettingsError, from_environment, present
from conformance.model.budget import Cost, planned_as

if TYPE_CHECKING:
    from conformance.plan import Plan

SHOWN = 10


@click.command("plan")
@click.argument("provider", required=False)
@options(
    "base-url", "model", "profile", "seed", "specs", "select", "claim", "no-hostile", "max-requests", "max-tokens",
    "max-prompt-tokens", "max-seconds", "requests-per-minute", "requirements", "name", "header", "query", "api-key-env",
)  # fmt: skip
@of_targets("Plan only for targets of the file so named.")
@click.option("--lock", metavar="FILE", type=click.Path(path_type=Path), help="Fix the plan in a file, for run --plan.")
@click.option("--nonce", metavar="TEXT", help="The certifier's nonce for --lock; without it one is drawn.")
@click.option("--price-in", type=click.FloatRange(0), help="Money for a million prompt tokens.")
@click.option("--price-out", type=click.FloatRange(0), help="Money for a million completion tokens.")
@click.option("--cases", is_flag=True, help="List the cases only, with their validity.")
def plan_command(
    provider: str | None,
    config: Path | None,
    globs: tuple[str, ...],
    price_in: float | None,
    price_out: float | None,
    cases: bool,
    lock: Path | None,
    nonce: str | None,
    **given: Any,
) -> None:
    """Show what a run of PROVIDER would send to a target that accepts every documented value. Sends nothing.

    Without PROVIDER, the same for the targets of conformance.toml. With --lock the plan is fixed, so that a run under
    it can be certified: see docs/certification.md.
    """
    jobs = named(provider, config, globs, given)
    if lock is not None:
        chosen, options = only(jobs, "a plan that is fixed")
        _lock(chosen, lock, nonce, options)
        return
    if nonce:
        raise SettingsError("--nonce goes with --lock FILE: only a plan that is fixed has one")
    worst: list[Cost] = []
    for chosen, _ in jobs:
        made = forecast(chosen)
        worst.append(made.worst)
        if len(jobs) > 1:
            click.echo(f"{chosen.target}: contract {chosen.provider}")
        for line in _listed(made) if cases else _told(made, chosen):
            click.echo(line)
        if len(jobs) > 1:
            click.echo("")
    if not cases:
        _sum(worst, price_in, price_out)


def _sum(worst: list[Cost], price_in: float | None, price_out: float | None) -> None:
    """What all targets cost at most, in tokens and in money."""
    prompt, completion = sum(one.prompt for one in worst), sum(one.completion for one in worst)
    if len(worst) > 1:
        click.echo(f"{len(worst)} targets: at most {prompt:,} prompt and {completion:,} completion tokens")
    if price_in is not None or price_out is not None:
        price = (prompt * (price_in or 0) + completion * (price_out or 0)) / 1e6
        click.echo(f"at most {price:.4f} in money, at these prices per million tokens")


def _listed(made: Plan) -> Iterator[str]:
    for case in made.cases:
        yield f"{case.id}  {case.validity}  {case.note}".rstrip()


def _lock(chosen: Settings, path: Path, nonce: str | None, given: Mapping[str, Any]) -> None:
    from conformance.recording.plan_lock import LockError
    from conformance.run.launch import check
    from conformance.run.locked_run import make_lock

    contract = check(chosen, of_target=bool(chosen.base_url))
    seeded = "seed" in from_environment() | present(given)
    has_key = not chosen.base_url or bool(chosen.key)
    made = make_lock(chosen, contract, nonce=nonce, seeded=seeded, has_key=has_key)
    try:
        made.write(path)
    except LockError as error:
        raise SettingsError(str(error)) from None
    told = made.document
    cases = sum(len(one["cases"]) for one in told["waves"])
    click.echo(f"{cases} requests, {told['requirements']['count']} requirements of {told['requirements']['date']}")
    click.echo(f"nonce {made.nonce} ({told['nonce_origin']}), seed {told['seed']}, profile {told['profile']}")
    click.echo(f"plan {made.sha256}")
    click.echo(f"{path}: conformance run {contract.provider} --plan {path}")


def forecast(chosen: Settings) -> Plan:
    """The plan of a run with these settings."""
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks
    from conformance.run.launch import REFERENCE_MODEL, check

    contract = check(chosen, of_target=False)
    options = planning.PlanOptions(
        model=chosen.model or REFERENCE_MODEL,
        profile=planned_as(chosen.profile),
        seed=chosen.seed,
        budget=chosen.budget,
        claims=chosen.claims,
        hostile=chosen.hostile,
        select=chosen.select,
        has_key=not chosen.base_url or bool(chosen.key),
    )
    return planning.plan(contract, load_checks(), options)


def _told(made: Plan, chosen: Settings) -> Iterator[str]:
    for origin, count in made.origins.items():
        yield f"{count:>5}  {origin}"
    yield f"{len(made.cases):>5}  requests in {len(made.phases)} waves; repeats, and what replies teach, come on top"
    ids = {row.id for row in made.contract.requirements}
    yield f"requirements shown: {len(made.covered)} of {len(ids)}; the others need an occasion that only a reply gives"
    if made.uncovered:
        more = f" and {len(made.uncovered) - SHOWN} more" if len(made.uncovered) > SHOWN else ""
        yield f"MUSTs that fall to the budget: {', '.join(made.uncovered[:SHOWN])}{more}"
    for strength, name in ((2, "pairs"), (3, "triples")):
        reach = made.coverage(strength)
        yield f"{name} of values: {reach.met:,} of {reach.of:,} ({reach.share:.1%})"
    if made.drawn_cases:
        rare = min(made.drawn_parameters.items(), key=lambda one: one[1])
        yield f"drawn bodies: {len(made.drawn_cases)}; each parameter at least {rare[1]} times ({rare[0]})"
    worst = made.worst
    yield f"at most {worst.prompt:,} prompt tokens (an estimate) and {worst.completion:,} completion tokens"
    if chosen.requests_per_minute:
        minutes = len(made.cases) / chosen.requests_per_minute
        yield f"{minutes:.1f} minutes at {chosen.requests_per_minute:g} requests a minute"
    yield f"plan {made.sha256[:12]} (seed {chosen.seed}, {chosen.profile})"
