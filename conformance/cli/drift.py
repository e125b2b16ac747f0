"""`conformance drift`: what a newer document of a provider would change in its contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.cli.selected_targets import contract_of
from conformance.config.settings import SettingsError


@click.command("drift")
@click.argument("provider")
@click.option("--against", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The newer document.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as one JSON document.")
@options("specs")
def drift_command(provider: str, against: Path, as_json: bool, **given: Any) -> int:
    """Compare the contract of PROVIDER with a newer OpenAPI document: YAML, JSON, or embedded in a web page.

    Exit code 0 without a change, 1 with one, 2 if FILE contains no such document.
    """
    from conformance.contract import drift

    contract = contract_of(provider, given)
    try:
        changes = drift.drift(contract, drift.read_document(against), against)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if as_json:
        compared = {"provider": contract.provider, "revision": contract.revision, "against": str(against)}
        say(json.dumps({**compared, "changes": [drift.as_json(change) for change in changes]}, indent=1))
    else:
        for change in changes:
            say(str(change))
    number = f"{len(changes)} change{'' if len(changes) == 1 else 's'}" if changes else "no change"
    say(f"{number} between {contract.title} ({contract.revision}) and {against}", err=True)
    return 1 if changes else 0
