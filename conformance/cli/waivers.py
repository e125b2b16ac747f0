"""`conformance waivers`: drafts of the waivers that a run would need in order to pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from conformance.cli.printing import say
from conformance.config.settings import SettingsError


@click.command("waivers")
@click.option(
    "--from", "sources", multiple=True, required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="A results.json, or a folder that contains one for each target.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Draft waivers for broken SHOULDs as well.")
def waivers_command(sources: tuple[Path, ...], strict: bool) -> None:
    """Print a waiver, as TOML, for each failure that makes the run non-conformant and is not yet waived.

    Reason, owner and link are empty: `conformance run` refuses the file until they are filled in.
    """
    from conformance.model.clock import today
    from conformance.report.waivers import drafts

    texts = [
        draft for source in sources for results in _results(source) for draft in drafts(results, today(), strict=strict)
    ]
    say("\n".join(texts) if texts else "# every failure is waived, or there is none", nl=not texts)


def _results(source: Path) -> Iterator[dict[str, Any]]:
    from conformance.report import index, results

    if source.is_dir():
        own_file = source / index.RESULTS
        paths = [own_file] if own_file.exists() else sorted(source.glob(f"*/{index.RESULTS}"))
    else:
        paths = [source]
    if not paths:
        raise SettingsError(f"{source} contains no {index.RESULTS}; give a folder that `conformance run` wrote")
    for path in paths:
        try:
            yield results.checked(path)
        except ValueError as error:
            raise SettingsError(str(error)) from None
