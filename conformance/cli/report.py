"""`conformance report`: rebuild all pages and files from results.json and the recording. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.printing import say
from conformance.config.settings import SettingsError
from conformance.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.exchange import Exchange

TRAFFIC: Final = "traffic.har"


@click.command("report")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--har", is_flag=True, help=f"Also write {TRAFFIC}: the exchanges for browsers and HTTP viewers.")
def report_command(folders: tuple[Path, ...], har: bool) -> int:
    """Rebuild report.html, index.html and the machine-readable files from results.json and exchanges.ndjson.

    DIR is the folder of a target, or one that contains several. Exit code 2 if something could not be read.
    """
    from conformance.report import index, outputs

    problems: list[str] = []
    for folder in folders:
        targets = list(_targets(folder, index.RESULTS))
        if not targets:
            raise SettingsError(f"{folder} contains no {index.RESULTS}; give a folder that `conformance run` wrote")
        for target in targets:
            problems += _rebuilt(target, har=har)
        parent = folder if targets != [folder] else folder.parent
        if parent == folder or (parent / "index.html").exists():
            say(outputs.write_index(parent))
    for problem in problems:
        say(f"conformance: {problem}", err=True)
    return ExitCode.USAGE_ERROR if problems else ExitCode.CONFORMANT


def _targets(folder: Path, file: str) -> Iterator[Path]:
    if (folder / file).is_file():
        yield folder
    else:
        yield from sorted(path.parent for path in folder.glob(f"*/{file}"))


def _rebuilt(folder: Path, *, har: bool) -> Iterator[str]:
    """Rebuild one target as far as possible; yields a message for each problem."""
    from conformance.cli.pytest_session import write_report_page
    from conformance.recording import RecordingError
    from conformance.recording import har as har_file
    from conformance.report import index, outputs, results
    from conformance.report.replay_commands import Destination
    from conformance.run.launch import RECORDING

    try:
        document = results.read(folder / index.RESULTS)
    except ValueError as error:
        yield str(error)
        return
    exchanges: tuple[Exchange, ...] = ()
    if (folder / RECORDING).exists():
        try:
            exchanges = recorded(folder / RECORDING, document)
        except RecordingError as error:
            yield f"{error}: the report shows evidence without bytes"
    outputs.derive(folder, document, exchanges, page=False)
    write_report_page(folder / index.REPORT, document, exchanges)
    say(folder / index.REPORT)
    if har and exchanges:
        har_file.write(folder / TRAFFIC, Destination.of(document["target"]).url(exchanges[0].case), exchanges)
        say(folder / TRAFFIC)


def recorded(path: Path, results: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """The exchanges of these results; RecordingError if the file is of another run, or was changed."""
    from conformance.recording import RecordingError, read

    recording = read(path)
    plan = (recording.footer or {}).get("plan_sha256")
    if plan != results["plan_sha256"]:
        problem = f"is of the plan {plan:.12}…" if isinstance(plan, str) else "was never closed"
        raise RecordingError(
            f"{path} {problem}; expected the plan {results['plan_sha256']:.12}… of the results beside it"
        )
    return recording.exchanges
