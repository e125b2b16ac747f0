"""`conformance plan`: what a run would send, which requirements that covers, and its maximum cost. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import of_targets, options
from conformance.cli.printing import say
from conformance.cli.selected_targets import selected_jobs, single_job
from conformance.config.settings import Settings, SettingsError, from_environment, given_options
from conformance.model import Validity
from conformance.model.budget import PROFILES, Cost, ceiling, is_large, planned_as
from conformance.model.request_view import RequestView
from conformance.report.text import visible

if TYPE_CHECKING:
    from conformance.plan import Plan

MAX_UNCOVERED_SHOWN = 10


@click.command("plan")
@click.argument("provider", required=False)
@options(
    "base-url", "model", "profile", "seed", "specs", "select", "claim", "no-hostile", "allow-large", "max-requests",
    "max-tokens", "max-prompt-tokens", "max-seconds", "requests-per-minute", "requirements", "name", "header", "query",
    "credential", "api-key-env",
)  # fmt: skip
@of_targets("Plan only for targets whose name matches.")
@click.option(
    "--lock", metavar="FILE", type=click.Path(path_type=Path), help="Lock the plan in a file, for `run --plan`."
)
@click.option("--nonce", metavar="TEXT", help="The certifier's nonce for --lock. [random]")
@click.option("--price-in", type=click.FloatRange(0), help="The price of a million prompt tokens.")
@click.option("--price-out", type=click.FloatRange(0), help="The price of a million completion tokens.")
@click.option("--currency", default="USD", show_default=True, help="The currency of the prices.")
@click.option("--contexts", is_flag=True, help="List only the promises by setting, and why one is not shown in it.")
@click.option("--cases", is_flag=True, help="List only the request cases, with their validity.")
@click.option("--classes", is_flag=True, help="List only the classes of every input, and the requests that have them.")
def plan_command(
    provider: str | None,
    config: Path | None,
    globs: tuple[str, ...],
    price_in: float | None,
    price_out: float | None,
    currency: str,
    contexts: bool,
    cases: bool,
    classes: bool,
    lock: Path | None,
    nonce: str | None,
    **given: Any,
) -> None:
    """Show what a run of PROVIDER would send to a target that accepts every documented value. Sends nothing.

    Without PROVIDER, shows the same for the targets of conformance.toml. --lock fixes the plan in a file, so that a run
    that sends it can be certified: see docs/certification.md.
    """
    flags = {"cases": cases, "classes": classes, "contexts": contexts}
    requested = [name for name, is_set in flags.items() if is_set]
    if len(requested) > 1:
        raise SettingsError(f"--{' and --'.join(requested)} are {len(requested)} lists; expected one of them")
    jobs = selected_jobs(provider, config, globs, given)
    if lock is not None:
        chosen, options = single_job(jobs, "a locked plan")
        _lock(chosen, lock, nonce, options)
        return
    if nonce:
        raise SettingsError("--nonce needs --lock FILE: only a locked plan has a nonce")
    worst: list[Cost] = []
    for chosen, _ in jobs:
        dry_run = forecast(chosen)
        worst.append(_largest_cost(chosen))
        if len(jobs) > 1:
            say(f"{chosen.target}: contract {chosen.provider}")
        for line in LISTS[requested[0]](dry_run, chosen) if requested else _summary(dry_run, chosen):
            say(line)
        if len(jobs) > 1:
            say("")
    if not requested:
        _print_cost(worst, price_in, price_out, currency)


def _largest_cost(chosen: Settings) -> Cost:
    """The most tokens of a run: its ceilings, within which confirmation, follow-ups and shrinking stay as well."""
    return Cost(chosen.budget.prompt_tokens or 0, chosen.budget.completion_tokens or 0)


def _print_cost(worst: list[Cost], price_in: float | None, price_out: float | None, currency: str) -> None:
    """Print the maximum cost of all targets, in tokens and in money."""
    prompt, completion = sum(cost.prompt for cost in worst), sum(cost.completion for cost in worst)
    if len(worst) > 1:
        say(f"{len(worst)} targets: at most {prompt:,} prompt and {completion:,} completion tokens")
    if price_in is not None or price_out is not None:
        price = (prompt * (price_in or 0) + completion * (price_out or 0)) / 1e6
        say(f"at most {price:.4f} {currency} at these prices per million tokens")


def _cases(dry_run: Plan, _: Settings) -> Iterator[str]:
    for case in dry_run.cases:
        yield f"{case.id}  {case.validity}  {case.note}".rstrip()


def _classes(_: Plan, chosen: Settings) -> Iterator[str]:
    """The input model: input, class, expected validity, and the request of each profile that has it, or why none is."""
    from conformance.plan.input_classes import exercised

    plans = {
        profile: forecast(replace(chosen, profile=profile, budget=ceilings)) for profile, ceilings in PROFILES.items()
    }
    reached = {profile: exercised(run_plan.context, run_plan.cases) for profile, run_plan in plans.items()}
    full = reached["full"]
    rows = [("input", "class", "expected", *PROFILES)]
    for input_class in full.classes:
        reason = input_class.excluded or "no room"
        cases = [reached[profile].by.get(input_class.key, reason) for profile in PROFILES]
        rows.append((input_class.path, visible(input_class.name), input_class.expected.value, *cases))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    counts = ", ".join(f"{profile} {reach.met:,} of {len(reach.wanted):,}" for profile, reach in reached.items())
    excluded = len(full.classes) - len(full.wanted)
    yield f"classes: {counts}; {excluded:,} more are sent in no profile, for the reason given"


def _contexts(dry_run: Plan, _: Settings) -> Iterator[str]:
    """A line for each requirement, with the number of cases that show it in each setting, and the reasons for none."""
    from conformance.plan.setting_coverage import setting_coverage

    cells = list(setting_coverage(dry_run.context, dry_run.cases))
    settings = list(dict.fromkeys(cell.setting for cell in cells))
    reasons = {
        reason: index for index, reason in enumerate(dict.fromkeys(cell.reason for cell in cells if cell.reason))
    }
    rows: dict[str, list[str]] = {}
    for cell in cells:
        mark = str(cell.cases) if cell.cases else f"({_letter(reasons[cell.reason])})" if cell.reason else "HOLE"
        rows.setdefault(cell.requirement, []).append(mark)
    width = max(map(len, rows), default=0)
    yield f"{'':<{width}} " + " ".join(f"{name:>8}" for name in settings)
    for requirement, marks in rows.items():
        yield f"{requirement:<{width}} " + " ".join(f"{mark:>8}" for mark in marks)
    for reason, index in reasons.items():
        yield f"({_letter(index)}) {reason}"
    covered, holes = sum(bool(cell.cases) for cell in cells), sum(cell.hole for cell in cells)
    yield f"{covered:,} of {len(cells):,} promises in a setting are shown, {holes} are not and have no reason"


LISTS: Final = {"cases": _cases, "classes": _classes, "contexts": _contexts}


def _letter(index: int) -> str:
    return chr(ord("a") + index)


def _lock(chosen: Settings, path: Path, nonce: str | None, given: Mapping[str, Any]) -> None:
    from conformance.recording.plan_lock import LockError
    from conformance.run.launch import checked_contract
    from conformance.run.locked_run import make_lock

    contract = checked_contract(chosen, of_target=bool(chosen.base_url))
    seeded = "seed" in from_environment() | given_options(given)
    has_key = not chosen.base_url or bool(chosen.key)
    lock = make_lock(chosen, contract, nonce=nonce, seeded=seeded, has_key=has_key)
    try:
        lock.write(path)
    except LockError as error:
        raise SettingsError(str(error)) from None
    content = lock.document
    cases, requirements = sum(len(phase["cases"]) for phase in content["waves"]), content["requirements"]
    say(f"{cases} requests, {requirements['count']} requirements of {requirements['date']}")
    say(f"nonce {lock.nonce} ({content['nonce_origin']}), seed {content['seed']}, profile {content['profile']}")
    say(f"plan {lock.sha256}")
    say(f"{path}: conformance run {contract.provider} --plan {path}")


def forecast(chosen: Settings) -> Plan:
    """The plan of a run with these settings."""
    from conformance import plan as planning
    from conformance.judge.catalogue import load as load_checks
    from conformance.run.launch import REFERENCE_MODEL, checked_contract, failed_bodies

    contract = checked_contract(chosen, of_target=False)
    options = planning.PlanOptions(
        model=chosen.model or REFERENCE_MODEL,
        profile=planned_as(chosen.profile),
        seed=chosen.seed,
        budget=chosen.budget,
        claims=chosen.claims,
        hostile=chosen.hostile,
        allow_large=chosen.allow_large,
        select=chosen.select,
        has_key=not chosen.base_url or bool(chosen.key),
        failed=failed_bodies(chosen, chosen.model or REFERENCE_MODEL),
    )
    return planning.plan(contract, load_checks(), options)


def _summary(dry_run: Plan, chosen: Settings) -> Iterator[str]:
    for origin, count in dry_run.origins.items():
        yield f"{count:>5}  {origin}"
    yield (
        f"{len(dry_run.cases):>5}  requests in {len(dry_run.phases)} phases; "
        f"at most {chosen.budget.requests:,} with retries, confirmation, follow-ups and smaller forms of failures"
    )
    ids = {requirement.id for requirement in dry_run.contract.requirements}
    yield (
        f"requirements covered: {len(dry_run.covered)} of {len(ids)}; "
        "the others are triggered only by particular replies"
    )
    if dry_run.uncovered:
        rest = len(dry_run.uncovered) - MAX_UNCOVERED_SHOWN
        others = f" and {rest} more" if rest > 0 else ""
        names = ", ".join(dry_run.uncovered[:MAX_UNCOVERED_SHOWN])
        yield f"MUSTs not covered within the budget: {names}{others}"
    for strength, name in ((2, "pairs"), (3, "triples")):
        reach = dry_run.coverage(strength)
        yield f"{name} of values covered: {reach.met:,} of {reach.of:,} ({reach.share:.1%})"
    classes = dry_run.classes
    yield f"classes of inputs exercised: {classes.met:,} of {len(classes.wanted):,}"
    parameter, count = min(dry_run.drawn_parameters.items(), key=lambda item: item[1])
    drawn = [case for case in dry_run.drawn_cases if case.validity is not Validity.INVALID]
    invalid = len(dry_run.drawn_cases) - len(drawn)
    yield f"drawn bodies: {len(drawn)}, each parameter at least {count} times ({parameter}), and {invalid} invalid ones"
    worst, highest = dry_run.worst, _largest_cost(chosen)
    yield f"planned: about {worst.prompt:,} prompt tokens, and up to {worst.completion:,} completion tokens"
    yield f"at most {highest.prompt:,} prompt tokens and {highest.completion:,} completion tokens in all"
    if chosen.allow_large:
        large = [RequestView(case.body, {}) for case in dry_run.cases if isinstance(case.body, dict)]
        prompt = sum(ceiling(request).prompt for request in large if is_large(request))
        yield f"in addition, at most {prompt:,} prompt tokens of large prompts (--allow-large)"
    if chosen.requests_per_minute:
        minutes = len(dry_run.cases) / chosen.requests_per_minute
        yield f"{minutes:.1f} minutes at {chosen.requests_per_minute:g} requests a minute"
    yield f"plan {dry_run.sha256[:12]} (seed {chosen.seed}, {chosen.profile})"
