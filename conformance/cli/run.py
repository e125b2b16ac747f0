"""`conformance run`: pytest with our plugin, its own talk replaced by ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.options import FILE, of_targets, options
from conformance.cli.selected_targets import of_file, of_provider, refuse_both
from conformance.cli.target_processes import end_with_parent, judge_all
from conformance.config.settings import Settings

if TYPE_CHECKING:
    from conformance.model import Contract
    from conformance.send import Watcher


@click.command("run")
@click.argument("provider", required=False)
@options()
@of_targets("Judge only targets of the file so named.")
@click.option("--at-once", type=click.IntRange(1, 32), metavar="N", help="How many targets are judged at once.")
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
    """Judge an endpoint against the contract of PROVIDER, or `all` contracts one after the other.

    Without --base-url, the embedded reference provider is judged: no key, no network. Without PROVIDER, the targets
    of conformance.toml are judged, several at once.
    """
    if alone:
        end_with_parent()
    if provider is None:
        jobs, most = of_file(config, globs, given)
    else:
        refuse_both(config, globs, at_once)
        jobs, most = of_provider(provider, given), 1
    chosen = [one for one, _ in jobs]
    before = [_stamp(one) for one in chosen]
    if provider is None and len(jobs) > 1:
        codes = judge_all(chosen, str(config or FILE), given, quiet=quiet, at_once=min(at_once or most, len(jobs)))
    else:
        codes = [_judged(one, options, quiet=quiet, debug=bool(debug)) for one, options in jobs]
    if not alone:
        written = [one if _stamp(one) != stamp else None for one, stamp in zip(chosen, before, strict=True)]
        _together(chosen, written, codes, publish=len(jobs) > 1 and provider is None)
    return gravest(codes)


def _stamp(chosen: Settings) -> int:
    """When the results of a target were written; what a run did not write is not its result."""
    path = chosen.folder / "results.json"
    return path.stat().st_mtime_ns if path.exists() else 0


def _together(
    chosen: Sequence[Settings], written: Sequence[Settings | None], codes: Sequence[int], *, publish: bool
) -> None:
    """One summary and one index of all targets."""
    from conformance.report import outputs, overview, results

    found = [results.read(one.folder / "results.json") if one else None for one in written]
    rows = [overview.row(one.target, *pair) for one, pair in zip(chosen, zip(found, codes, strict=True), strict=True)]
    out = chosen[0].out  # one for all targets
    if any(written):
        if publish:  # each wrote one in a process of its own
            outputs.write_index(out)
        (out / "summary.md").write_text(overview.markdown(rows), "utf-8")
    if publish:
        outputs.publish_all(overview.markdown(rows), [one for one in found if one])
    if len(rows) > 1:
        click.echo("\n".join(overview.lines(rows)))
    if any(written):
        click.echo(f"reports: {out / 'index.html'}")


def gravest(codes: list[int]) -> int:
    """The exit code of several runs: a broken promise outranks all, then our own fault, misuse, what is incomplete."""
    return next((code for code in (1, 4, 2, 3) if code in codes), 0)


@dataclass(eq=False)
class Talk:
    """A pytest plugin that listens to ours."""

    watching: Callable[[Contract], Watcher] | None
    results: Mapping[str, Any] = field(default_factory=dict)
    exit_said: str = ""

    def pytest_conformance_watcher(self, contract: Contract) -> Watcher | None:
        return self.watching(contract) if self.watching is not None else None

    def pytest_conformance_results(self, results: Mapping[str, Any]) -> None:
        self.results = results

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        self.exit_said = str(getattr(excinfo.value, "msg", "") or "interrupted")


def _judged(chosen: Settings, given: Mapping[str, Any], *, quiet: bool, debug: bool) -> int:
    from conformance.cli.progress import progress
    from conformance.cli.pytest_session import pytest_alone
    from conformance.pytest_plugin.plugin import arguments

    chosen.folder.mkdir(parents=True, exist_ok=True)  # where that is impossible, before anything is sent
    with progress(chosen.target, quiet=quiet) as watching:
        talk = Talk(watching)
        code, unheard = pytest_alone(arguments(chosen.provider, given), talk)
    if not talk.results:
        click.echo(unheard if debug else "", err=True, nl=False)
        said = talk.exit_said or "pytest ended without a result"
        click.echo(f"conformance: {chosen.target}: {said.splitlines()[0]}", err=True)
        return code if code in {2, 3, 4} else 4
    _tell(talk.results, chosen, quiet=quiet)
    return code


def _tell(results: Mapping[str, Any], chosen: Settings, *, quiet: bool) -> None:
    from conformance.report import terminal

    if not quiet:
        for block in terminal.blocks(results):
            click.echo(block + "\n")
    click.echo(terminal.summary(results))
    click.echo(f"  report: {chosen.folder / 'report.html'}")
    sys.stdout.flush()
