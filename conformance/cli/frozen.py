"""`conformance frozen`: the requirement sets of a provider, and what changed between two of them."""

from __future__ import annotations

from typing import Any

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.cli.selected_targets import contract_of
from conformance.config.settings import SettingsError


@click.command("frozen")
@click.argument("provider")
@click.argument("before", required=False)
@click.argument("after", required=False)
@options("specs")
def frozen_command(provider: str, before: str | None, after: str | None, **given: Any) -> int:
    """List the requirement sets of PROVIDER, or compare two of them.

    With the dates BEFORE and AFTER, shows what changed between the sets in force on those days; without AFTER, what
    changed from BEFORE until now. Exit code 0 without a change, 1 with one.
    """
    from conformance.contract import ContractError, requirement_sets
    from conformance.run.launch import resolve_settings

    contract = contract_of(provider, given)
    specs = resolve_settings(provider, given).specs
    try:
        if before is None:
            for day in requirement_sets.dates(provider, specs):
                say(f"{day}  {len(requirement_sets.in_force(provider, day, specs).levels)} requirements")
            return 0
        old = requirement_sets.in_force(provider, before, specs)
        new = (
            requirement_sets.in_force(provider, after, specs)
            if after
            else requirement_sets.freeze(contract, contract.revision)
        )
    except ContractError as error:
        raise SettingsError(str(error)) from None
    changes = list(requirement_sets.differences(old, new))
    for change in changes:
        say(change)
    number = f"{len(changes)} change{'' if len(changes) == 1 else 's'}" if changes else "no change"
    say(f"{number} from the set of {old.date} to {f'that of {new.date}' if after else 'now'}", err=True)
    return 1 if changes else 0
