"""`conformance run`: pytest with our plugin, its own talk replaced by ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import options
from conformance.settings import Settings, SettingsError, settings

if TYPE_CHECKING:
    from conformance.model import Contract
    from conformance.transport import Watcher

# Nothing of the folder it is called in, and no plugin that happens to be installed, may change a verdict.
ALONE: Final = (
    *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", "-p", "no:cacheprovider"),
    *("-c", os.devnull, "--noconftest", "--capture=no", "--no-header", "-q"),
)


@click.command("run")
@click.argument("provider")
@options()
@click.option("--quiet", "-q", is_flag=True, help="Print the summary only.")
@click.pass_obj
def run_command(debug: bool | None, /, provider: str, quiet: bool, **given: Any) -> int:
    """Judge an endpoint against the contract of PROVIDER, or `all` contracts one after the other.

    Without --base-url, the embedded reference provider is judged: no key, no network.
    """
    from conformance import contract, launch

    if provider == "all" and given.get("name"):
        raise SettingsError("--name goes with one provider; targets of `all` are named after their providers")
    specs = settings(provider, given).specs
    names = contract.providers(specs) if provider == "all" else (provider,)
    chosen = [settings(name, given) for name in names]
    for one in chosen:
        launch.check(one)
    codes = [_judged(one, given, quiet=quiet, debug=bool(debug)) for one in chosen]
    click.echo(f"reports: {chosen[0].out / 'index.html'}")
    return gravest(codes)


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
    import pytest

    from conformance.cli.progress import progress
    from conformance.plugin import arguments

    chosen.folder.mkdir(parents=True, exist_ok=True)  # where that is impossible, before anything is sent
    unheard = StringIO()
    with progress(chosen.target, quiet=quiet) as watching, _no_plugins_by_chance():
        talk = Talk(watching)
        with redirect_stdout(unheard), redirect_stderr(unheard):
            code = int(pytest.main([*arguments(chosen.provider, given), *ALONE], plugins=[talk]))
    if not talk.results:
        click.echo(unheard.getvalue() if debug else "", err=True, nl=False)
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


@contextmanager
def _no_plugins_by_chance() -> Iterator[None]:
    """Only the plugins that are named are loaded; options of the caller's environment are left out too."""
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
