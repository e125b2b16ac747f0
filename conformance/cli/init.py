"""`conformance init`: a commented file of targets to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from conformance.cli.options import FILE
from conformance.cli.printing import say
from conformance.config.settings import SettingsError

TEMPLATE: Final = "config/targets.template.toml"


@click.command("init")
@click.argument("file", default=FILE, type=click.Path(path_type=Path))
def init_command(file: Path) -> None:
    """Write a commented file of targets. An existing file is never overwritten."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(files("conformance").joinpath(TEMPLATE).read_text("utf-8"))
    except FileExistsError:
        raise SettingsError(f"{file} exists already; delete it first, or give another name") from None
    say(f"{file}: edit it, check it with `conformance config`, then judge with `conformance run`")
