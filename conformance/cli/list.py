"""`conformance list`: the requirements of a provider, or the checks that they are bound to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.cli.selected_targets import contract_of
from conformance.config.settings import SettingsError
from conformance.contract.derived_rows import fields
from conformance.model import Contract, Requirement

LEVELS: Final = ("MUST", "SHOULD", "MAY")
LAYERS: Final = ("contract", "standard", "ecosystem")


@click.command("list")
@click.argument("provider", required=False)
@options("specs", "select")
@click.option("--level", type=click.Choice(LEVELS), help="Only this level.")
@click.option("--layer", type=click.Choice(LAYERS), help="Only this layer.")
@click.option("--counts", is_flag=True, help="Print only the numbers, by area, level and layer.")
@click.option("--checks", is_flag=True, help="List checks instead, with the number of requirements that use each.")
def list_command(
    provider: str | None, level: str | None, layer: str | None, counts: bool, checks: bool, **given: Any
) -> None:
    """List the requirements of PROVIDER: id, level, layer and promise, then their numbers by area.

    The numbers go to standard error, so that the list can be piped. --checks without PROVIDER lists all checks.
    """
    from conformance.run import launch
    from conformance.run.launch import selected_requirements

    if provider is None and not checks:
        raise SettingsError("no provider is given; expected `conformance list PROVIDER`, or --checks")
    if provider is None:
        _print_checks(())
        return
    contract = contract_of(provider, given)
    ids = selected_requirements(launch.resolve_settings(provider, given), contract)
    rows = [
        row
        for row in contract.requirements
        if row.id in ids and level in {None, row.level} and layer in {None, row.layer}
    ]
    if checks:
        _print_checks(rows)
        return
    width = max((len(row.id) for row in rows), default=0)
    for row in () if counts else rows:
        say(f"{row.id:<{width}}  {row.level:<6}  {row.layer:<9}  {row.promise}")
    for line in _table(rows):
        say(line, err=not counts)
    say(_members(contract), err=not counts)
    omitted = f"{len(contract.exclusions)} promises excluded, {len(contract.ambiguities)} ambiguities observed"
    count = f"{len(rows)} requirements of {contract.title} ({contract.revision})"
    say(f"{count}; {omitted}; from {contract.document}", err=not counts)


def _members(contract: Contract) -> str:
    """How many members each schema has; one without any was read wrongly, or is written in an unknown form."""
    schemas = {
        "request": contract.request,
        "response": contract.response,
        "chunk": contract.chunk,
        **{f"error {status}": schema for status, schema in contract.errors.items()},
    }
    counts = (f"{name} {len(list(fields(schema)))}" for name, schema in schemas.items())
    return f"members in the schemas: {', '.join(counts)}"


def _table(rows: Sequence[Requirement]) -> Iterator[str]:
    """The number of requirements of each level and layer, by area and in all."""
    areas: dict[str, list[Requirement]] = {}
    for row in rows:
        areas.setdefault(row.area, []).append(row)
    columns = (*LEVELS, *LAYERS)
    width = max(map(len, ("area", "all", *areas)))
    yield "".join([f"{'area':<{width}}  {'rows':>5}", *(f"{name:>11}" for name in columns)])
    for area, members in [*sorted(areas.items()), ("all", list(rows))]:
        numbers = Counter([str(word) for row in members for word in (row.level, row.layer)])
        yield "".join([f"{area:<{width}}  {len(members):>5}", *(f"{numbers[name] or '·':>11}" for name in columns)])


def _print_checks(rows: Sequence[Requirement]) -> None:
    """Print each check with its area, its scope and, given requirements, the number of those that use it."""
    from conformance.judge.catalogue import load

    uses = Counter(row.check for row in rows)
    checks = sorted(load().values(), key=lambda check: (check.area, check.name))
    used = [check for check in checks if not rows or check.name in uses]
    width = max(len(check.name) for check in checks)
    for check in used:
        scope = f"group {check.group}" if check.group else str(check.scope)
        number = f"{uses[check.name]:>4}  " if rows else ""
        say(f"{number}{check.name:<{width}}  {check.area:<11}  {scope:<14}  {check.holds}")
    say(f"{len(used)} checks", err=True)
