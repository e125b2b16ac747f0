"""The only way in which commands print: no text can control a terminal or a CI log."""

from __future__ import annotations

import re
from typing import Final

import click

from conformance.report.text import visible

_COMMAND: Final = re.compile(r"^(\s*):(?=:)|##(?=\[)", re.MULTILINE)
"""Where GitHub's runner reads a command in a log: `::name` at the start of a line, `##[name]` anywhere in it."""


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text without escapes, invisible characters and workflow commands; line feeds stay."""
    click.echo(escape(str(text)), err=err, nl=nl)


def escape(text: str) -> str:
    """The text with control characters as pictures, and workflow commands with a space inside, which ends them."""
    return _COMMAND.sub(lambda match: f"{match[0]} ", visible(text, lines=True))


def line(text: str) -> str:
    """A text from a file or a target, as part of a line: its line feeds are shown, not printed."""
    return visible(text)
