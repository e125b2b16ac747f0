"""`conformance explain`: one requirement, or all of a provider: source, reason, examples, how to fix a server."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.cli.selected_targets import contract_of
from conformance.config.settings import SettingsError
from conformance.model import Contract, Requirement


@click.command("explain")
@click.argument("requirement_id", metavar="ID")
@click.argument("provider_argument", required=False, metavar="[PROVIDER]")
@click.option("--provider", help="The same as the argument PROVIDER.")
@options("specs")
def explain_command(
    requirement_id: str | None, provider_argument: str | None, provider: str | None, **given: Any
) -> None:
    """Explain the requirement ID: promise, source, why it matters, how to fix a server, good and bad exchanges.

    Without PROVIDER, explains it for the first provider that has a requirement of this id, and lists the others.
    `conformance explain PROVIDER` prints all requirements of a provider; `PROVIDER ID` means the same as `ID PROVIDER`.
    """
    from conformance import contract
    from conformance.report import docs_pages, requirement_card
    from conformance.run import launch

    providers = contract.providers(launch.resolve_settings("", given).specs)
    if requirement_id in providers:
        requirement_id, provider_argument = provider_argument, requirement_id
    chosen = provider_argument or provider
    if requirement_id is None:
        say(docs_pages.requirements(contract_of(str(chosen), given)), nl=False)
        return
    contracts = [contract_of(name, given) for name in ((chosen,) if chosen else providers)]
    matches = list(_requirements(requirement_id, contracts))
    if not matches:
        raise SettingsError(_unknown(requirement_id, contracts))
    first, requirement = matches[0]
    say(f"{first.title}, {first.method} {first.path}\n\n{requirement_card.card(first, requirement)}\n")
    say(requirement_card.examples(first, requirement))
    if len(matches) > 1:
        say("\n**The same requirement of other providers**\n")
    for other, requirement in matches[1:]:
        say(_summary(other, requirement))


def _requirements(requirement_id: str, contracts: list[Contract]) -> Iterator[tuple[Contract, Requirement]]:
    for contract in contracts:
        for requirement in contract.requirements:
            if requirement.id == requirement_id:
                yield contract, requirement


def _summary(contract: Contract, requirement: Requirement) -> str:
    origin = f"{contract.provider} ({requirement.level}, {requirement.layer})"
    return f"- {origin}: {requirement.promise} [{requirement.source.at}]"


def _unknown(requirement_id: str, contracts: list[Contract]) -> str:
    ids = {row.id for contract in contracts for row in contract.requirements}
    similar = get_close_matches(requirement_id, ids, 3, 0.5)
    hint = f"did you mean {', '.join(similar)}?" if similar else "`conformance list PROVIDER` shows all"
    return f"there is no requirement {requirement_id!r}; {hint}"
