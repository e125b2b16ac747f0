"""`conformance freeze`: save the current requirements as a set."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.cli.selected_targets import contract_of
from conformance.config.settings import SettingsError


@click.command("freeze")
@click.argument("provider")
@click.option("--date", "day", metavar="DATE", help="The date of the set. [today]")
@options("specs")
def freeze_command(provider: str, day: str | None, **given: Any) -> int:
    """Save the current requirements of PROVIDER as a set, for `run --requirements DATE`."""
    from conformance.contract import ContractError, requirement_sets
    from conformance.run.launch import resolve_settings

    contract = contract_of(provider, given)
    try:
        saved = requirement_sets.freeze(contract, day or datetime.now(UTC).date().isoformat())
        file = requirement_sets.write(saved, resolve_settings(provider, given).specs)
    except ContractError as error:
        raise SettingsError(str(error).replace("--requirements", "--date")) from None
    say(f"{len(saved.levels)} requirements of {contract.title}: {file}")
    return 0
