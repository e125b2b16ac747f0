"""`conformance history`: the trend of each target over many runs."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli.printing import say
from conformance.config.settings import SettingsError


@click.command("history")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option("--out", type=click.Path(path_type=Path), help="Where the page is written. [DIR/history.html]")
def history_command(folder: Path, out: Path | None) -> int:
    """Draw the trend of each target, from all results.json files below DIR, as one HTML page."""
    from conformance.report import history

    runs, left_out = history.collect(folder)
    if not runs:
        reason = f": {left_out[0]}" if left_out else ""
        raise SettingsError(f"{folder} contains no readable results.json{reason}; give a folder of reports")
    page = out or folder / "history.html"
    page.write_text(history.render(runs, left_out), "utf-8")
    for reason in left_out:
        say(f"left out: {reason}", err=True)
    say(page)
    return 0
