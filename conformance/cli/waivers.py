"""`conformance waivers`: drafts of what would have to be accepted for a run to pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from conformance.config.settings import SettingsError


@click.command("waivers")
@click.option(
    "--from", "sources", multiple=True, required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="A results.json, or a folder that holds one for each target.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Draft waivers for SHOULDs as well.")
def waivers_command(sources: tuple[Path, ...], strict: bool) -> None:
    """Print a waiver for each failure that gates and is not waived, as TOML.

    Reason, owner and link are empty: a file is refused until somebody has filled them in.
    """
    from conformance.model.clock import today
    from conformance.report.waivers import drafts

    written = [
        draft for source in sources for found in _results(source) for draft in drafts(found, today(), strict=strict)
    ]
    click.echo("\n".join(written) if written else "# nothing that is not waived gates", nl=not written)


def _results(source: Path) -> Iterator[dict[str, Any]]:
    from conformance.report import index, results

    here = source / index.RESULTS
    paths = [source] if not source.is_dir() else [here] if here.exists() else sorted(source.glob(f"*/{index.RESULTS}"))
    if not paths:
        raise SettingsError(f"{source} holds no {index.RESULTS}; give a folder that `conformance run` wrote")
    for path in paths:
        try:
            yield results.checked(path)
        except ValueError as error:
            raise SettingsError(str(error)) from None
