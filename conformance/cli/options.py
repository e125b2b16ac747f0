"""The table of settings as options of a command, and the options that choose targets of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from conformance.config.settings import OPTIONS, Option

FILE: Final = "conformance.toml"

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*names: str) -> Callable[[Command], Command]:
    """Add the named settings as options, or all settings without names."""

    def add(command: Command) -> Command:
        for option in reversed(OPTIONS):
            if not names or option.name in names:
                command = _option(option)(command)
        return command

    return add


def of_targets(target_help: str) -> Callable[[Command], Command]:
    """Add `--config` and `--target`: which targets of which file."""

    def add(command: Command) -> Command:
        command = click.option("--target", "globs", metavar="GLOB", multiple=True, help=target_help)(command)
        path: Any = click.Path(path_type=Path)
        return click.option("--config", metavar="FILE", type=path, help=f"The file of targets. [{FILE}]")(command)

    return add


def _option(option: Option) -> Callable[[Command], Command]:
    # No default here: `settings` applies it, after the environment and the file of targets.
    text = option.help + (f" [{option.default}]" if option.default is not None else "")
    if option.kind is bool:
        return click.option(f"--{option.name}", option.key, is_flag=True, default=None, help=text)
    return click.option(
        f"--{option.name}",
        option.key,
        type=click.Choice(option.choices) if option.choices else option.kind,
        multiple=option.many,
        metavar=option.metavar or None,
        default=None,
        help=text,
    )
