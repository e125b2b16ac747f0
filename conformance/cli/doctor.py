"""`conformance doctor`: check the prerequisites of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.options import of_targets, options
from conformance.cli.printing import say
from conformance.cli.selected_targets import selected_jobs
from conformance.config.settings import Settings, SettingsError
from conformance.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from conformance.model import Contract


@click.command("doctor")
@click.argument("provider", required=False)
@options("base-url", "model", "header", "query", "api-key-env", "proxy-from-env", "specs", "timeout")
@of_targets("Check only targets whose name matches.")
def doctor_command(provider: str | None, config: Path | None, globs: tuple[str, ...], **given: Any) -> int:
    """Check the prerequisites of a run: address, key, model, clock, proxies, buffering.

    Sends at most three small requests to each target. Exit code 3 if something prevents a run. Without PROVIDER, checks
    the targets of conformance.toml, one after the other.
    """
    from conformance.run.launch import load_contract

    worst: int = ExitCode.CONFORMANT
    for chosen, _ in selected_jobs(provider, config, globs, given):
        try:
            worst = max(worst, asyncio.run(_print_symptoms(chosen, load_contract(chosen))))
        except SettingsError as error:
            if provider is not None:
                raise
            say(f"{chosen.target}: {error}")  # the other targets can still be checked
            worst = max(worst, ExitCode.USAGE_ERROR)
    return worst


async def _print_symptoms(chosen: Settings, contract: Contract) -> int:
    from conformance.report.text import visible
    from conformance.run.doctor import State, examine
    from conformance.run.launch import open_target, timeout_policy

    worst: int = ExitCode.CONFORMANT
    with open_target(chosen, contract) as (target, model):
        address = f"{target.base_url.rstrip('/')}{contract.path}"
        heading = f"{chosen.target}: {address}, model {model}, {'with' if target.key else 'without'} a key"
        say(visible(heading))
        async for symptom in examine(target, contract, model, timeout_policy(chosen)):
            say(f"  {symptom.state:<5}  {symptom.about:<11}  {visible(symptom.seen)}")
            worst = ExitCode.INCOMPLETE if symptom.state is State.WRONG else worst
    return worst
