"""Commands that look things up: list, explain, drift."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from conformance.cli.options import options
from conformance.model import Contract, Requirement
from conformance.settings import SettingsError, settings


def contract_of(provider: str, given: dict[str, Any]) -> Contract:
    """The contract that a command speaks of."""
    from conformance.launch import load

    return load(settings(provider, given))


@click.command("list")
@click.argument("provider")
@options("specs", "select")
@click.option("--level", type=click.Choice(["MUST", "SHOULD", "MAY"]), help="Only this level.")
@click.option("--layer", type=click.Choice(["contract", "standard", "ecosystem"]), help="Only this layer.")
def list_command(provider: str, level: str | None, layer: str | None, **given: Any) -> None:
    """List the requirements of PROVIDER: id, level, layer and promise."""
    from conformance.launch import selected

    contract = contract_of(provider, given)
    ids = selected(settings(provider, given), contract)
    rows = [
        row
        for row in contract.requirements
        if row.id in ids and level in {None, row.level} and layer in {None, row.layer}
    ]
    width = max((len(row.id) for row in rows), default=0)
    for row in rows:
        click.echo(f"{row.id:<{width}}  {row.level:<6}  {row.layer:<9}  {row.promise}")
    counts = Counter(str(row.level) for row in rows)
    shown = ", ".join(f"{counts[one]} {one}" for one in ("MUST", "SHOULD", "MAY") if counts[one])
    left = f"; {len(contract.exclusions)} promises excluded, {len(contract.ambiguities)} points left open"
    click.echo(f"{len(rows)} requirements of {contract.title} ({contract.revision}): {shown or 'none'}{left}", err=True)


@click.command("explain")
@click.argument("id")
@click.option("--provider", help="Only this provider's requirement of that id.")
@options("specs")
def explain_command(id: str, provider: str | None, **given: Any) -> None:  # noqa: A002 (the name users see)
    """Explain the requirement ID: promise, source, why it matters, good and bad exchanges, how to mend a server."""
    from conformance import contract, explain

    names = (provider,) if provider else contract.providers(settings("", given).specs)
    found = list(_rows(id, [contract_of(name, given) for name in names]))
    if not found:
        raise SettingsError(_unknown(id, [contract_of(name, given) for name in names]))
    for number, (whose, row) in enumerate(found):
        card = explain.card(whose, row)
        click.echo(f"{whose.title}\n{card}\n" if number == 0 else _briefly(whose, row))
    click.echo("\n" + explain.examples(found[0][1]))


def _rows(wanted: str, contracts: list[Contract]) -> Iterator[tuple[Contract, Requirement]]:
    for contract in contracts:
        for row in contract.requirements:
            if row.id == wanted:
                yield contract, row


def _briefly(contract: Contract, row: Requirement) -> str:
    return f"also {contract.provider} ({row.level}, {row.layer}): {row.promise}  [{row.source.at}]"


def _unknown(wanted: str, contracts: list[Contract]) -> str:
    ids = {row.id for contract in contracts for row in contract.requirements}
    near = get_close_matches(wanted, ids, 3, 0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`conformance list PROVIDER` shows all"
    return f"there is no requirement {wanted!r}; {hint}"


@click.command("drift")
@click.argument("provider")
@click.option("--against", type=click.Path(path_type=Path), required=True, metavar="FILE", help="A newer document.")
@click.option("--json", "as_json", is_flag=True, help="The changes as one JSON document.")
@options("specs")
def drift_command(provider: str, against: Path, as_json: bool, **given: Any) -> int:
    """Compare the contract of PROVIDER with a newer document: OpenAPI as YAML, JSON, or inside a page.

    Exit code 0 without a change, 1 with one, 2 where FILE holds no such document.
    """
    from conformance import drift

    contract = contract_of(provider, given)
    try:
        changes = drift.drift(contract, drift.read_document(against), against)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if as_json:
        told = {"provider": contract.provider, "revision": contract.revision, "against": str(against)}
        click.echo(json.dumps({**told, "changes": [drift.as_json(one) for one in changes]}, indent=1))
    else:
        for change in changes:
            click.echo(str(change))
    number = f"{len(changes)} change{'' if len(changes) == 1 else 's'}" if changes else "no change"
    click.echo(f"{number} between {contract.title} ({contract.revision}) and {against}", err=True)
    return 1 if changes else 0
