"""Commands that look at several runs: diff, history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from conformance.config.settings import SettingsError


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--format", "shown", type=click.Choice(["terminal", "markdown", "html", "json"]), default="terminal")
@click.option("--strict", is_flag=True, help="A new failure of a SHOULD counts as well.")
def diff_command(before: Path, after: Path, shown: str, strict: bool) -> int:
    """Show what changed from run BEFORE to run AFTER: folders of runs, or files like results.json.

    Exit code 1 for a new failure of a MUST. A requirement that is new is not a regression.
    """
    from conformance.report.diff import compare
    from conformance.report.diff_formats import FORMATS

    found = compare(_read(before), _read(after))
    click.echo(FORMATS[shown](found, strict=strict), nl=False)
    return found.exit_code(strict=strict)


@click.command("history")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option("--out", type=click.Path(path_type=Path), help="Where the page is written; DIR/history.html by default.")
def history_command(folder: Path, out: Path | None) -> int:
    """Draw the trend of each target from all results.json files below DIR, as one HTML file."""
    from conformance.report import history

    found, left_out = history.collect(folder)
    if not found:
        why = f": {left_out[0]}" if left_out else ""
        raise SettingsError(f"{folder} holds no results.json that can be read{why}")
    page = out or folder / "history.html"
    page.write_text(history.render(found, left_out), "utf-8")
    for reason in left_out:
        click.echo(f"left out: {reason}", err=True)
    click.echo(page)
    return 0


def _read(path: Path) -> dict[str, Any]:
    from conformance.report import results

    try:
        return results.checked(path / "results.json" if path.is_dir() else path)
    except ValueError as error:
        raise SettingsError(str(error)) from None
