"""`conformance init` and `conformance config`: a file of targets, and what holds for each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import FILE, of_targets, options
from conformance.cli.selected_targets import refuse_both
from conformance.config.settings import KEY_VARIABLE, Settings, SettingsError

if TYPE_CHECKING:
    from conformance.config.targets import Entry

TEMPLATE: Final = "config/targets.template.toml"
HIDDEN: Final = frozenset({"header", "query"})


@click.command("init")
@click.argument("file", default=FILE, type=click.Path(path_type=Path))
def init_command(file: Path) -> None:
    """Write a commented file of targets. A file that is there is left alone."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(files("conformance").joinpath(TEMPLATE).read_text("utf-8"))
    except FileExistsError:
        raise SettingsError(f"{file} is there already; delete it first, or give another name") from None
    click.echo(f"{file}: change it, look with `conformance config`, judge with `conformance run`")


@click.command("config")
@click.argument("provider", required=False)
@options()
@of_targets("Show only targets of the file so named.")
def config_command(provider: str | None, config: Path | None, globs: tuple[str, ...], **given: Any) -> None:
    """Show what holds for a run and where each value comes from: flag, environment, file, profile, default.

    Keys are never shown, nor are values of headers and query parameters.
    """
    from conformance.config import targets
    from conformance.run.launch import resolve_settings

    if provider is not None:
        refuse_both(config, globs)
        _show(resolve_settings(provider, given), targets.everything(given))
        return
    for entry in targets.read(config or Path(FILE)).chosen(globs):
        _show(resolve_settings(entry.provider, targets.merged(entry, given)), targets.everything(given, entry), entry)


def _show(chosen: Settings, held: Mapping[str, tuple[Any, str]], entry: Entry | None = None) -> None:
    click.echo(f"{chosen.target}: contract {chosen.provider}, reports in {chosen.folder}{os.sep}")
    for name, value, origin in _lines(chosen, held):
        click.echo(f"  {name:<20}  {value:<28}  {origin}".rstrip())
    click.echo("")


def _lines(chosen: Settings, held: Mapping[str, tuple[Any, str]]) -> Iterator[tuple[str, str, str]]:
    from conformance.report.text import visible

    for key, (value, origin) in held.items():
        if key != "name":
            yield key.replace("_", "-"), visible(_said(key, value)), origin
    variable = chosen.api_key_env or KEY_VARIABLE
    there = "set" if os.environ.get(variable, "").strip() else "not set"
    yield "key", there, f"environment {variable}"


def _said(key: str, value: Any) -> str:
    if key == "base_url" and not value:
        return "the embedded reference"
    if value is None or value == ():
        return "–"
    if key in HIDDEN:
        return ", ".join(f"{one.partition(':' if key == 'header' else '=')[0].strip()} …" for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
