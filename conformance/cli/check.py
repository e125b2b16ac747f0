"""`conformance doctor`: what stands in the way of a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.options import options
from conformance.settings import Settings, settings

if TYPE_CHECKING:
    from conformance.model import Contract


@click.command("doctor")
@click.argument("provider")
@options("base-url", "model", "header", "query", "api-key-env", "proxy-from-env", "specs", "timeout")
def doctor_command(provider: str, **given: Any) -> int:
    """Look at everything between this machine and a target: address, key, model, clock, proxies, buffering.

    Sends three small requests at most. Exit code 3 where something stands in the way of a run.
    """
    from conformance.launch import load

    chosen = settings(provider, given)
    return asyncio.run(_examined(chosen, load(chosen)))


async def _examined(chosen: Settings, contract: Contract) -> int:
    from conformance.doctor import State, examine
    from conformance.launch import patience, target
    from conformance.report.text import visible

    worst = 0
    with target(chosen, contract) as (where, model):
        click.echo(f"{where.base_url}{contract.path}, model {model}, {'with' if where.key else 'without'} a key")
        async for symptom in examine(where, contract, model, patience(chosen)):
            click.echo(f"  {symptom.state:<5}  {symptom.about:<11}  {visible(symptom.seen)}")
            worst = 3 if symptom.state is State.WRONG else worst
    return worst
