"""`conformance diff`: what changed from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from conformance.cli.printing import say
from conformance.config.settings import SettingsError


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--format", "format_name", type=click.Choice(["terminal", "markdown", "html", "json"]), default="terminal"
)
@click.option("--strict", is_flag=True, help="Exit code 1 for a new failure of a SHOULD as well.")
def diff_command(before: Path, after: Path, format_name: str, strict: bool) -> int:
    """Show what changed from run BEFORE to run AFTER: two folders of reports, or two results.json files.

    Exit code 1 if a MUST fails that did not fail before. A failure of a new requirement is not a regression.
    """
    from conformance.report.diff import compare
    from conformance.report.diff_formats import FORMATS

    comparison = compare(_read(before), _read(after))
    say(FORMATS[format_name](comparison, strict=strict), nl=False)
    return comparison.exit_code(strict=strict)


def _read(path: Path) -> dict[str, Any]:
    from conformance.report import results

    try:
        return results.checked(path / "results.json" if path.is_dir() else path)
    except ValueError as error:
        raise SettingsError(str(error)) from None
