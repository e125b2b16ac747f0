"""`conformance audit`: judge recorded traffic with the same checks, without a network."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.config.settings import Settings, SettingsError

MOST_LINES: Final = 20
"""Lines that are printed for each kind of messages that were not judged."""
FEW: Final = 3
PROGRESS_SECONDS: Final = 10.0
"""Seconds between two lines of progress where there is no terminal: a file that takes less time has none."""

if TYPE_CHECKING:
    from conformance.recording.load import Watch
    from conformance.run import Run
    from conformance.run.recorded import Audit, Reasons


@click.command("audit")
@click.argument("provider")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@options("specs", "select", "strict", "waivers", "name", "out")
@click.option("--quiet", "-q", is_flag=True, help="Print the summaries only.")
def audit_command(provider: str, files: tuple[Path, ...], quiet: bool, **given: Any) -> int:
    """Judge recorded traffic against the contract of PROVIDER.

    FILES are files, folders or patterns: HAR, cassettes of vcrpy, Ruby VCR and go-vcr, JSONL, raw transcripts, and
    recordings of this suite. Exchanges are grouped by the address and the model that they were sent to.

    Reports are written only with --out.
    """
    from conformance.recording.load import load
    from conformance.run import launch
    from conformance.run.launch import load_contract, selected_requirements
    from conformance.run.recorded import audit

    chosen = launch.resolve_settings(provider, given)
    contract = load_contract(chosen)
    selected = selected_requirements(chosen, contract)
    with _progress(quiet=quiet) as watch:
        audited = audit(contract, load(files, contract, watch), chosen.name, selected)
    if not audited.runs:
        raise SettingsError(_nothing(audited))
    documents = [_document(run, chosen) for run in audited.runs]
    for document in documents:
        if not quiet:
            _print_findings(document, one_of_many=len(documents) > 1)
    _print_not_judged(audited)
    _print_summaries(documents)
    if given.get("out"):
        _write_reports(documents, audited.runs, chosen)
    from conformance.cli.run import most_severe

    return most_severe([int(document["exit_code"]) for document in documents])


def _document(run: Run, chosen: Settings) -> dict[str, Any]:
    from conformance.report import results
    from conformance.run.launch import waivers_from_settings

    folder = str(chosen.out / run.target.name)
    return results.document(run, strict=chosen.strict, waivers=waivers_from_settings(chosen), folder=folder)


def _write_reports(documents: Sequence[Mapping[str, Any]], runs: Sequence[Run], chosen: Settings) -> None:
    from conformance.cli.pytest_session import write_report_page
    from conformance.report import index, outputs

    for document, run in zip(documents, runs, strict=True):
        folder = replace(chosen, name=run.target.name).folder
        outputs.write(folder, document, run.exchanges, page=False)
        write_report_page(folder / index.REPORT, document, run.exchanges)
        if len(runs) == 1:
            say(f"  report: {folder / index.REPORT}")
    if len(runs) > 1:
        say(f"reports: {outputs.write_index(chosen.out)}")


def _print_findings(document: Mapping[str, Any], *, one_of_many: bool) -> None:
    from conformance.report import terminal

    for block in terminal.blocks(document):
        say(block + "\n")
    missing = [row for row in document["requirements"] if not row["examined"] and not row["observations"]]
    if not missing or one_of_many:  # each list would be longer than all findings
        return
    say(f"The traffic shows nothing about {len(missing)} of {len(document['requirements'])} requirements:")
    for row in missing:
        say(f"  {row['id']} ({row['level']}): {row['reason']}")
    say("")


def _print_not_judged(audited: Audit) -> None:
    """Everything in the files that was not judged, with the reason, on standard error."""
    for reason in (*audited.unreadable, *audited.damaged):
        say(f"left out: {reason}", err=True)
    _print_reasons("left out", audited.left_out)
    _print_elsewhere(audited.elsewhere)
    _print_reasons("not judged", audited.not_judged)
    if audited.other_files:
        names = ", ".join(audited.other_files[:3]) + (", …" if len(audited.other_files) > 3 else "")
        number = len(audited.other_files)
        say(f"left out: {number} {'file is' if number == 1 else 'files are'} no recording ({names})", err=True)


def _print_reasons(word: str, reasons: Reasons) -> None:
    for reason in reasons.first[:MOST_LINES]:
        say(f"{word}: {reason}", err=True)
    if reasons.count > MOST_LINES:
        say(f"{word}: {reasons.count - MOST_LINES:,} more", err=True)


def _print_elsewhere(reasons: Reasons) -> None:
    """A recording of a whole session is mostly of other operations; more than a few are one line."""
    if reasons.count <= FEW:
        _print_reasons("left out", reasons)
    else:
        say(f"left out: {reasons.count:,} requests for other operations, such as {reasons.first[0]}", err=True)


def _print_summaries(documents: Sequence[Mapping[str, Any]]) -> None:
    from conformance.report import terminal

    for document in documents:
        say(terminal.summary(document))
        if len(documents) > 1:
            say(f"  {document['target']['base_url']}, model {document['target']['model'] or 'unknown'}")


def _nothing(audited: Audit) -> str:
    """Why there is nothing to judge, on one line."""
    if audited.unreadable:
        others = len(audited.unreadable) - 1
        return audited.unreadable[0] + (f" (and {others} more)" if others else "")
    reasons = [*audited.damaged, *audited.left_out.first, *audited.elsewhere.first]
    files = f"{len(audited.other_files)} files are no recordings" if audited.other_files else "there are no files"
    return f"there is no exchange of this operation ({reasons[0] if reasons else files}); expected at least one"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Watch]:
    """A function that shows how far the files were read: a bar on a terminal, elsewhere a line now and then."""
    if quiet:
        yield lambda *_: None
        return
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, done, total: bar.update(task, description=name, completed=done, total=total)


def _lines() -> Watch:
    last = time.monotonic()

    def watch(name: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say(f"{name}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB read", err=True)

    return watch
