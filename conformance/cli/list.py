"""Commands that look things up: list, explain, drift."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click

from conformance.cli.options import options
from conformance.config.settings import SettingsError
from conformance.model import Contract, Requirement

LEVELS: Final = ("MUST", "SHOULD", "MAY")
LAYERS: Final = ("contract", "standard", "ecosystem")


def contract_of(provider: str, given: dict[str, Any]) -> Contract:
    """The contract that a command speaks of."""
    from conformance.run.launch import load, resolve_settings

    return load(resolve_settings(provider, given))


@click.command("list")
@click.argument("provider", required=False)
@options("specs", "select")
@click.option("--level", type=click.Choice(LEVELS), help="Only this level.")
@click.option("--layer", type=click.Choice(LAYERS), help="Only this layer.")
@click.option("--counts", is_flag=True, help="Only the numbers, by area, level and layer.")
@click.option("--checks", is_flag=True, help="The checks that requirements are bound to, and how often.")
def list_command(
    provider: str | None, level: str | None, layer: str | None, counts: bool, checks: bool, **given: Any
) -> None:
    """List the requirements of PROVIDER: id, level, layer and promise, with their numbers by area.

    The numbers go to standard error, so that the list can be piped; --counts gives them alone. With --checks no
    PROVIDER is needed.
    """
    from conformance.run.launch import resolve_settings, selected

    if provider is None and not checks:
        raise SettingsError("no provider is named; expected `conformance list PROVIDER`, or --checks")
    if provider is None:
        _checks(())
        return
    contract = contract_of(provider, given)
    ids = selected(resolve_settings(provider, given), contract)
    rows = [
        row
        for row in contract.requirements
        if row.id in ids and level in {None, row.level} and layer in {None, row.layer}
    ]
    if checks:
        _checks(rows)
        return
    width = max((len(row.id) for row in rows), default=0)
    for row in () if counts else rows:
        click.echo(f"{row.id:<{width}}  {row.level:<6}  {row.layer:<9}  {row.promise}")
    for line in _counted(rows):
        click.echo(line, err=not counts)
    left = f"{len(contract.exclusions)} promises excluded, {len(contract.ambiguities)} points left open"
    click.echo(f"{len(rows)} requirements of {contract.title} ({contract.revision}); {left}", err=not counts)


def _counted(rows: Sequence[Requirement]) -> Iterator[str]:
    """How many there are of each level and layer in each area, and in all."""
    areas: dict[str, list[Requirement]] = {}
    for row in rows:
        areas.setdefault(row.area, []).append(row)
    columns = (*LEVELS, *LAYERS)
    width = max(map(len, ("area", "all", *areas)))
    yield "".join([f"{'area':<{width}}  {'rows':>5}", *(f"{name:>11}" for name in columns)])
    for area, found in [*sorted(areas.items()), ("all", list(rows))]:
        numbers = Counter([str(word) for row in found for word in (row.level, row.layer)])
        yield "".join([f"{area:<{width}}  {len(found):>5}", *(f"{numbers[name] or '·':>11}" for name in columns)])


def _checks(rows: Sequence[Requirement]) -> None:
    """Every check with its area and scope; beside it the number of rows that bind it, where there are any."""
    from conformance.judge.catalogue import load

    bound = Counter(row.check for row in rows)
    known = sorted(load().values(), key=lambda check: (check.area, check.name))
    shown = [check for check in known if not rows or check.name in bound]
    width = max(len(check.name) for check in known)
    for check in shown:
        scope = f"group {check.group}" if check.group else str(check.scope)
        number = f"{bound[check.name]:>4}  " if rows else ""
        click.echo(f"{number}{check.name:<{width}}  {check.area:<11}  {scope:<14}  {check.holds}")
    click.echo(f"{len(shown)} checks", err=True)


@click.command("explain")
@click.argument("id")
@click.argument("of", required=False, metavar="[PROVIDER]")
@click.option("--provider", help="The same as the argument.")
@options("specs")
def explain_command(id: str, of: str | None, provider: str | None, **given: Any) -> None:  # noqa: A002
    """Explain the requirement ID: promise, source, why it matters, good and bad exchanges, how to mend a server.

    Without PROVIDER, the requirement of that id of the first that has it, and in brief those of the others.
    """
    from conformance import contract
    from conformance.report import requirement_card as explain
    from conformance.run.launch import resolve_settings

    only = of or provider
    names = (only,) if only else contract.providers(resolve_settings("", given).specs)
    contracts = [contract_of(name, given) for name in names]
    found = list(_rows(id, contracts))
    if not found:
        raise SettingsError(_unknown(id, contracts))
    whose, row = found[0]
    click.echo(f"{whose.title}, {whose.method} {whose.path}\n\n{explain.card(whose, row)}\n")
    click.echo(explain.examples(whose, row))
    if len(found) > 1:
        click.echo("\n**Of others**\n")
    for other, same in found[1:]:
        click.echo(_briefly(other, same))


def _rows(wanted: str, contracts: list[Contract]) -> Iterator[tuple[Contract, Requirement]]:
    for contract in contracts:
        for row in contract.requirements:
            if row.id == wanted:
                yield contract, row


def _briefly(contract: Contract, row: Requirement) -> str:
    return f"- {contract.provider} ({row.level}, {row.layer}): {row.promise} [{row.source.at}]"


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
    from conformance.contract import drift

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
