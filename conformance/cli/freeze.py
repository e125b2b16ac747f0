"""Sets of requirements: `conformance freeze` keeps the one in force, `conformance frozen` shows what changed since."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from conformance.cli.list import contract_of
from conformance.cli.options import options
from conformance.config.settings import SettingsError


@click.command("freeze")
@click.argument("provider")
@click.option("--date", "day", metavar="DATE", help="The date of the set. [today]")
@options("specs")
def freeze_command(provider: str, day: str | None, **given: Any) -> int:
    """Keep the requirements of PROVIDER that are in force now as a set, for `run --requirements DATE`."""
    from conformance.contract import ContractError
    from conformance.contract import requirement_sets as frozen
    from conformance.run.launch import resolve_settings

    contract = contract_of(provider, given)
    try:
        found = frozen.freeze(contract, day or datetime.now(UTC).date().isoformat())
        file = frozen.write(found, resolve_settings(provider, given).specs)
    except ContractError as error:
        raise SettingsError(str(error).replace("--requirements", "--date")) from None
    click.echo(f"{len(found.levels)} requirements of {contract.title}: {file}")
    return 0


@click.command("frozen")
@click.argument("provider")
@click.argument("before", required=False)
@click.argument("after", required=False)
@options("specs")
def frozen_command(provider: str, before: str | None, after: str | None, **given: Any) -> int:
    """List the sets of PROVIDER, or what changed from the set in force on BEFORE to that on AFTER, or to now.

    Exit code 0 without a change, 1 with one.
    """
    from conformance.contract import ContractError
    from conformance.contract import requirement_sets as frozen
    from conformance.run.launch import resolve_settings

    contract = contract_of(provider, given)
    specs = resolve_settings(provider, given).specs
    try:
        if before is None:
            for day in frozen.dates(provider, specs):
                click.echo(f"{day}  {len(frozen.in_force(provider, day, specs).levels)} requirements")
            return 0
        old = frozen.in_force(provider, before, specs)
        new = frozen.in_force(provider, after, specs) if after else frozen.freeze(contract, contract.revision)
    except ContractError as error:
        raise SettingsError(str(error)) from None
    changes = list(frozen.differences(old, new))
    for change in changes:
        click.echo(change)
    told = f"{len(changes)} change{'' if len(changes) == 1 else 's'}" if changes else "no change"
    click.echo(f"{told} from the set of {old.date} to {f'that of {new.date}' if after else 'now'}", err=True)
    return 1 if changes else 0
