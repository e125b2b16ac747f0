"""`conformance report`: every page and file again, from results.json and the recording beside it. Nothing is judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.config.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.exchange import Exchange

TRAFFIC: Final = "traffic.har"


@click.command("report")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--har", is_flag=True, help=f"Write {TRAFFIC} as well: the exchanges for browsers and HTTP viewers.")
def report_command(folders: tuple[Path, ...], har: bool) -> int:
    """Rebuild report.html, index.html and the files for machines from results.json and exchanges.ndjson.

    DIR is a target's folder, or one that holds several. Exit code 2 where something could not be read.
    """
    from conformance.report import index, outputs

    troubles: list[str] = []
    for folder in folders:
        targets = list(_targets(folder, index.RESULTS))
        if not targets:
            raise SettingsError(f"{folder} holds no {index.RESULTS}; give a folder that `conformance run` wrote")
        for one in targets:
            troubles += _rebuilt(one, har=har)
        above = folder if targets != [folder] else folder.parent
        if above == folder or (above / "index.html").exists():
            click.echo(outputs.write_index(above))
    for trouble in troubles:
        click.echo(f"conformance: {trouble}", err=True)
    return 2 if troubles else 0


def _targets(folder: Path, wanted: str) -> Iterator[Path]:
    if (folder / wanted).is_file():
        yield folder
    else:
        yield from sorted(path.parent for path in folder.glob(f"*/{wanted}"))


def _rebuilt(folder: Path, *, har: bool) -> Iterator[str]:
    """Rebuild one target; what is wrong is yielded, and what can be made without it is made."""
    from conformance.cli.pytest_session import draw
    from conformance.recording import RecordingError
    from conformance.recording import har as traffic
    from conformance.report import index, outputs, results
    from conformance.run.launch import RECORDING

    try:
        found = results.read(folder / index.RESULTS)
    except ValueError as error:
        yield str(error)
        return
    exchanges: tuple[Exchange, ...] = ()
    if (folder / RECORDING).exists():
        try:
            exchanges = recorded(folder / RECORDING, found)
        except RecordingError as error:
            yield f"{error}: evidence is shown without bytes"
    outputs.derive(folder, found, None)
    draw(folder / index.REPORT, found, exchanges)
    click.echo(folder / index.REPORT)
    if har and exchanges:
        traffic.write(folder / TRAFFIC, results.address(found["target"], exchanges[0].case), exchanges)
        click.echo(folder / TRAFFIC)


def recorded(path: Path, results: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """The exchanges that the results speak of; RecordingError where the file is of another run, or was changed."""
    from conformance.recording import RecordingError, read

    found = read(path)
    there = (found.footer or {}).get("plan_sha256")
    if there != results["plan_sha256"]:
        said = f"was made of the plan {there:.12}…" if isinstance(there, str) else "was never closed"
        raise RecordingError(f"{path} {said}; expected the plan {results['plan_sha256']:.12}… of the results beside it")
    return found.exchanges
