"""`conformance run`: one provider or all of them."""

from __future__ import annotations

from typing import Any

import click

from conformance.cli.options import options
from conformance.settings import Settings, SettingsError, settings


@click.command("run")
@click.argument("provider")
@options()
@click.option("--quiet", "-q", is_flag=True, help="Only the summary.")
def run_command(provider: str, quiet: bool, **given: Any) -> int:
    """Judge an endpoint against the contract of PROVIDER, or `all` contracts one after the other.

    Without --base-url, the embedded reference provider is judged: no key, no network.
    """
    from conformance import contract

    specs = settings(provider, given).specs
    if provider == "all" and given.get("name"):
        raise SettingsError("--name goes with one provider; targets of `all` are named after their providers")
    names = contract.providers(specs) if provider == "all" else (provider,)
    codes = [_judged(settings(name, given), quiet=quiet) for name in names]
    return gravest(codes)


def gravest(codes: list[int]) -> int:
    """The exit code of several runs: a broken promise outranks all, then our own fault, misuse, what is incomplete."""
    return next((code for code in (1, 4, 2, 3) if code in codes), 0)


def _judged(chosen: Settings, *, quiet: bool) -> int:
    from conformance.launch import launch
    from conformance.report import index, results, terminal

    made = launch(chosen)
    found = results.document(made, strict=chosen.strict)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    (chosen.folder / "results.json").write_text(results.dumps(found), "utf-8")
    page = index.write(chosen.out)
    if not quiet:
        for block in terminal.blocks(found):
            click.echo(block + "\n")
    click.echo(terminal.summary(found))
    click.echo(f"  reports: {chosen.folder}/, {page}")
    return int(found["exit_code"])
