"""The table of settings as options of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from conformance.config.settings import OPTIONS, Option

FILE: Final = "conformance.toml"

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*names: str) -> Callable[[Command], Command]:
    """All settings as options, or those that are named."""

    def add(command: Command) -> Command:
        for one in reversed(OPTIONS):
            if not names or one.name in names:
                command = _option(one)(command)
        return command

    return add


def of_targets(only: str) -> Callable[[Command], Command]:
    """`--config` and `--target`: which targets of which file."""

    def add(command: Command) -> Command:
        command = click.option("--target", "globs", metavar="GLOB", multiple=True, help=only)(command)
        path: Any = click.Path(path_type=Path)
        return click.option("--config", metavar="FILE", type=path, help=f"The file of targets. [{FILE}]")(command)

    return add


def _option(one: Option) -> Callable[[Command], Command]:
    says = one.help + (f" [{one.default}]" if one.default is not None else "")
    if one.kind is bool:
        return click.option(f"--{one.name}", one.key, is_flag=True, default=None, help=says)
    kind: Any = click.Choice(one.choices) if one.choices else one.kind
    # the default is set where settings are made, so that what was given can be told from what was not
    return click.option(
        f"--{one.name}", one.key, type=kind, multiple=one.many, metavar=one.metavar or None, default=None, help=says
    )
