"""`conformance run`: a pytest session with our plugin, whose terminal output replaces pytest's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.options import FILE, of_targets, options
from conformance.cli.printing import say
from conformance.cli.selected_targets import of_file, of_provider, refuse_both
from conformance.cli.target_processes import end_with_parent, judge_all
from conformance.config.settings import Settings
from conformance.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from conformance.model import Contract
    from conformance.send import Watcher


@click.command("run")
@click.argument("provider", required=False)
@options()
@of_targets("Judge only targets whose name matches.")
@click.option("--at-once", type=click.IntRange(1, 32), metavar="N", help="How many targets to judge at the same time.")
@click.option("--alone", is_flag=True, hidden=True)
@click.option("--quiet", "-q", is_flag=True, help="Print the summary only.")
@click.pass_obj
def run_command(
    debug: bool | None,
    /,
    provider: str | None,
    config: Path | None,
    globs: tuple[str, ...],
    at_once: int | None,
    alone: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Judge an endpoint against the contract of PROVIDER, or against `all` contracts one after the other.

    Without --base-url, judges the embedded reference provider, which needs no key and no network. Without PROVIDER,
    judges the targets of conformance.toml, several at the same time.
    """
    if alone:
        end_with_parent()
    if provider is None:
        jobs, usual = of_file(config, globs, given)
    else:
        refuse_both(config, globs, at_once)
        jobs, usual = of_provider(provider, given), 1
    chosen = [target for target, _ in jobs]
    before = [_written_at(target) for target in chosen]
    in_processes = provider is None and len(jobs) > 1
    if in_processes:
        codes = judge_all(chosen, str(config or FILE), given, quiet=quiet, at_once=min(at_once or usual, len(jobs)))
    else:
        codes = [_judge(target, options, quiet=quiet, debug=bool(debug)) for target, options in jobs]
    if not alone:
        written = [target if _written_at(target) != time else None for target, time in zip(chosen, before, strict=True)]
        _summarise(chosen, written, codes, in_processes=in_processes)
    return most_severe(codes)


def _written_at(chosen: Settings) -> int:
    """When the results of a target were written; older ones than the run belong to an earlier run."""
    path = chosen.folder / "results.json"
    return path.stat().st_mtime_ns if path.exists() else 0


def _summarise(
    chosen: Sequence[Settings], written: Sequence[Settings | None], codes: Sequence[int], *, in_processes: bool
) -> None:
    """Write and print one summary and one index of all targets; a target without new results has only its exit code."""
    from conformance.report import outputs, overview, results

    documents = [results.read(target.folder / "results.json") if target else None for target in written]
    rows = [
        overview.row(target.target, document, code)
        for target, document, code in zip(chosen, documents, codes, strict=True)
    ]
    out = chosen[0].out  # the same for all targets
    if any(written):
        if in_processes:  # each process wrote an index of the targets that were there at its end
            outputs.write_index(out)
        (out / "summary.md").write_text(overview.markdown(rows), "utf-8")
    if in_processes:
        outputs.publish_all(overview.markdown(rows), [document for document in documents if document])
    if len(rows) > 1:
        say("\n".join(overview.lines(rows)))
    if any(written):
        say(f"reports: {out / 'index.html'}")


def most_severe(codes: list[int]) -> int:
    """The exit code of several runs. A broken MUST is certain whatever else went wrong, so it outranks the others."""
    order = (ExitCode.BROKEN, ExitCode.SUITE_FAULT, ExitCode.USAGE_ERROR, ExitCode.INCOMPLETE)
    return next((code for code in order if code in codes), ExitCode.CONFORMANT)


@dataclass(eq=False)
class RunListener:
    """A pytest plugin that receives the progress, the results and the exit message of a run from our plugin."""

    watching: Callable[[Contract], Watcher] | None
    results: Mapping[str, Any] = field(default_factory=dict)
    exit_message: str = ""

    def pytest_conformance_watcher(self, contract: Contract) -> Watcher | None:
        return self.watching(contract) if self.watching is not None else None

    def pytest_conformance_results(self, results: Mapping[str, Any]) -> None:
        self.results = results

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        self.exit_message = str(getattr(excinfo.value, "msg", "") or "interrupted")


def _judge(chosen: Settings, given: Mapping[str, Any], *, quiet: bool, debug: bool) -> int:
    from conformance.cli.progress import progress
    from conformance.cli.pytest_session import pytest_session
    from conformance.pytest_plugin.plugin import arguments
    from conformance.run.launch import common_secrets

    chosen.folder.mkdir(parents=True, exist_ok=True)  # if that fails, nothing has been sent yet
    for name in common_secrets(chosen):
        say(f"conformance: {chosen.target}: {name} is a common word, so replies are not masked for it", err=True)
    with progress(chosen.target, quiet=quiet) as watching:
        listener = RunListener(watching)
        code, output = pytest_session(arguments(chosen.provider, given), listener)
    if not listener.results:
        say(output if debug else "", err=True, nl=False)
        message = listener.exit_message or "pytest ended without a result"
        say(f"conformance: {chosen.target}: {message.splitlines()[0]}", err=True)
        explained = {ExitCode.USAGE_ERROR, ExitCode.INCOMPLETE, ExitCode.SUITE_FAULT}
        return code if code in explained else ExitCode.SUITE_FAULT
    _print_results(listener.results, chosen, quiet=quiet)
    return code


def _print_results(results: Mapping[str, Any], chosen: Settings, *, quiet: bool) -> None:
    from conformance.report import terminal

    if not quiet:
        for block in terminal.blocks(results):
            say(block + "\n")
    say(terminal.summary(results))
    say(f"  report: {chosen.folder / 'report.html'}")
    sys.stdout.flush()
