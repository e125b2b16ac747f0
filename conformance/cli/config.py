"""`conformance config`: the effective settings of a run, and where each value comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import FILE, of_targets, options
from conformance.cli.printing import say
from conformance.cli.selected_targets import refuse_both
from conformance.config.settings import KEY_VARIABLE, Settings

if TYPE_CHECKING:
    from conformance.config.targets import Entry

HIDDEN: Final = frozenset({"header", "query"})


@click.command("config")
@click.argument("provider", required=False)
@options()
@of_targets("Show only targets whose name matches.")
def config_command(provider: str | None, config: Path | None, globs: tuple[str, ...], **given: Any) -> None:
    """Show the effective settings and where each value comes from: flag, environment, file, profile, default.

    API keys and the values of headers and query parameters are never shown.
    """
    from conformance.config import targets
    from conformance.run.launch import resolve_settings

    if provider is not None:
        refuse_both(config, globs)
        _show(resolve_settings(provider, given), targets.all_options(given))
        return
    for entry in targets.read(config or Path(FILE)).chosen(globs):
        _show(resolve_settings(entry.provider, targets.merged(entry, given)), targets.all_options(given, entry), entry)


def _show(chosen: Settings, values: Mapping[str, tuple[Any, str]], entry: Entry | None = None) -> None:
    say(f"{chosen.target}: contract {chosen.provider}, reports in {chosen.folder}{os.sep}")
    for name, value, origin in _lines(chosen, values):
        say(f"  {name:<20}  {value:<28}  {origin}".rstrip())
    say("")


def _lines(chosen: Settings, values: Mapping[str, tuple[Any, str]]) -> Iterator[tuple[str, str, str]]:
    from conformance.report.text import visible

    for key, (value, origin) in values.items():
        if key != "name":
            yield key.replace("_", "-"), visible(_text(key, value)), origin
    variable = chosen.api_key_env or KEY_VARIABLE
    state = "set" if os.environ.get(variable, "").strip() else "not set"
    yield "key", state, f"environment {variable}"


def _text(key: str, value: Any) -> str:
    from conformance.model.redaction import without_userinfo

    if key == "base_url" and not value:
        return "the embedded reference"
    if key == "base_url":
        return without_userinfo(value)
    if value is None or value == ():
        return "–"
    if key in HIDDEN:
        return ", ".join(f"{pair.partition(':' if key == 'header' else '=')[0].strip()} …" for pair in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
