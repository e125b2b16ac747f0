"""`conformance doctor`: what stands in the way of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.options import of_targets, options
from conformance.cli.selected_targets import named
from conformance.config.settings import Settings, SettingsError

if TYPE_CHECKING:
    from conformance.model import Contract


@click.command("doctor")
@click.argument("provider", required=False)
@options("base-url", "model", "header", "query", "api-key-env", "proxy-from-env", "specs", "timeout")
@of_targets("Look only at targets of the file so named.")
def doctor_command(provider: str | None, config: Path | None, globs: tuple[str, ...], **given: Any) -> int:
    """Look at everything between this machine and a target: address, key, model, clock, proxies, buffering.

    Sends three small requests at most. Exit code 3 where something stands in the way of a run. Without PROVIDER, the
    targets of conformance.toml are looked at, one after the other.
    """
    from conformance.run.launch import load

    worst = 0
    for one, _ in named(provider, config, globs, given):
        try:
            worst = max(worst, asyncio.run(_examined(one, load(one))))
        except SettingsError as error:
            if provider is not None:
                raise
            click.echo(f"{one.target}: {error}")  # the others can be looked at all the same
            worst = max(worst, 2)
    return worst


async def _examined(chosen: Settings, contract: Contract) -> int:
    from conformance.report.text import visible
    from conformance.run.doctor import State, examine
    from conformance.run.launch import patience, target

    worst = 0
    with target(chosen, contract) as (where, model):
        address = f"{where.base_url.rstrip('/')}{contract.path}"
        told = f"{chosen.target}: {address}, model {model}, {'with' if where.key else 'without'} a key"
        click.echo(visible(told))
        async for symptom in examine(where, contract, model, patience(chosen)):
            click.echo(f"  {symptom.state:<5}  {symptom.about:<11}  {visible(symptom.seen)}")
            worst = 3 if symptom.state is State.WRONG else worst
    return worst
