"""pytest: options, one item for each requirement of a contract, pytest-html's page with our report in front.

The run is made once, before the first item; items only show what came of it. The exit status is that of
`conformance run`: 0 conformant, 1 broken, 2 misused, 3 incomplete, 4 a fault of the suite.
"""

from __future__ import annotations

import os
import sys
import traceback
from argparse import ArgumentError
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from pytest_html import extras
from pytest_html.basereport import BaseReport

from conformance import launch
from conformance.model import Contract, Requirement
from conformance.report import index, outputs, page, results, standing, terminal
from conformance.report.text import visible
from conformance.settings import OPTIONS, Option, Settings, SettingsError, settings

if TYPE_CHECKING:
    from conformance.runner import Run
    from conformance.transport import Watcher

Judged: TypeAlias = Callable[[str], tuple[str, str]]
SUITE: Final = "conformance.suite.test_contract"
KEPT: Final = frozenset({"Python", "Platform", "Packages"})
COLUMNS: Final = ("area", "id", "level", "layer", "outcome", "promise", "examined", "source")


class NotMet(UserWarning):
    """A SHOULD that the target does not meet, or a broken promise that does not gate."""


@dataclass
class Session:
    """What one pytest session knows of its run."""

    settings: Settings
    contract: Contract
    rows: Sequence[Requirement]
    run: Run | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    by_id: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    html: Any = None


SESSION: Final = pytest.StashKey[Session]()


class Hooks:
    """What other plugins may implement, such as the command line's progress display."""

    @pytest.hookspec(firstresult=True)
    def pytest_conformance_watcher(self, contract: Contract) -> Watcher | None:
        """Who is told of requests as they go out and come back."""

    def pytest_conformance_results(self, results: Mapping[str, Any], run: Run) -> None:
        """All verdicts are there and the files are written."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of a POST /completions endpoint")
    group.addoption("--provider", dest="conformance_provider", metavar="NAME", help="Judge by this provider's contract.")
    for option in OPTIONS:
        group.addoption(f"--conformance-{option.name}", **_declared(option))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> None:
    """The command line's own names as well, where no plugin claims them: all have been loaded by now."""
    group = parser.getgroup("conformance")
    for option in OPTIONS:
        with suppress(ValueError, ArgumentError):
            group.addoption(f"--{option.name}", **_declared(option))


def _declared(option: Option) -> dict[str, Any]:
    declared: dict[str, Any] = {"dest": f"conformance_{option.key}", "help": option.help, "default": None}
    if option.kind is bool:
        return {**declared, "action": "store_true"}
    shape = {"metavar": option.metavar} if option.metavar else {"choices": option.choices}
    return {**declared, **shape, "type": option.kind, "action": "append" if option.many else "store"}


def arguments(provider: str, given: Mapping[str, Any]) -> list[str]:
    """The pytest arguments for a run with these options, by key as OPTIONS declares them."""
    words = ["--pyargs", "conformance.suite", "-p", "conformance.plugin", f"--provider={provider}"]
    for option in OPTIONS:
        value = given.get(option.key)
        if option.kind is bool:
            words += [f"--conformance-{option.name}"] if value else []
        else:
            listed = value if option.many else [value]
            words += [f"--conformance-{option.name}={one}" for one in listed or () if one is not None]
    return words


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    provider = config.option.conformance_provider
    if not provider:
        return
    try:
        asked = settings(provider, {one.key: getattr(config.option, f"conformance_{one.key}") for one in OPTIONS})
        contract = launch.load(asked)
        kept = launch.selected(asked, contract)
        if hasattr(config, "workerinput"):
            raise SettingsError("a run is one conversation; leave out -n")
    except SettingsError as error:
        pytest.exit(str(error), returncode=standing.MISUSED)
    rows = tuple(row for row in contract.requirements if row.id in kept)
    config.stash[SESSION] = Session(asked, contract, rows)
    if not config.option.htmlpath and not config.option.collectonly:
        config.option.htmlpath = str(asked.folder / index.REPORT)
        config.option.self_contained_html = True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ != SUITE:
        return
    session = metafunc.config.stash.get(SESSION, None)
    if session is None:
        raise pytest.UsageError("no contract is named; give --provider NAME")
    metafunc.parametrize("requirement", [pytest.param(row, id=row.id) for row in session.rows])


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    ours = session.config.stash.get(SESSION, None)
    ids = {item.callspec.params["requirement"].id for item in session.items if _is_ours(item)}
    if ours is not None and ids and not session.config.option.collectonly:
        _make_run(session.config, ours, ids)
    return (yield)


def _is_ours(item: pytest.Item) -> bool:
    return item.parent is not None and getattr(item.parent, "obj", None) is sys.modules.get(SUITE)


def _make_run(config: pytest.Config, ours: Session, ids: set[str]) -> None:
    watcher = config.hook.pytest_conformance_watcher(contract=ours.contract)
    try:
        run = launch.launch(ours.settings, watcher)
    except SettingsError as error:
        _without_page(config)
        pytest.exit(str(error), returncode=standing.MISUSED)
    except Exception as error:  # whatever it is, it is ours
        _without_page(config)
        traceback.print_exc()
        pytest.exit(f"a fault of this suite, please report it: {error}", returncode=standing.SUITE_FAULT)
    run = replace(run, verdicts=tuple(one for one in run.verdicts if one.requirement.id in ids))
    ours.run = run
    ours.results = results.document(run, strict=ours.settings.strict)
    ours.by_id = {row["id"]: row for row in ours.results["requirements"]}
    outputs.write(ours.settings.folder, ours.results, None if _pages(config) else run.exchanges)
    outputs.write_index(ours.settings.out)


def _pages(config: pytest.Config) -> list[Any]:
    return [plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, BaseReport)]


def _without_page(config: pytest.Config) -> None:
    """No run, no report: an empty one must not replace the last."""
    for plugin in _pages(config):
        config.pluginmanager.unregister(plugin)


@pytest.fixture(scope="session")
def judged(pytestconfig: pytest.Config) -> Judged:
    """How a requirement is shown, and the words for it."""
    ours = pytestconfig.stash[SESSION]

    def tell(id: str) -> tuple[str, str]:  # noqa: A002
        row = ours.by_id[id]
        shown = standing.shown_as(row, strict=ours.settings.strict)
        if shown == "skipped":
            return shown, visible(f"{row['outcome'].replace('_', ' ')}: {row['reason']}")
        return shown, terminal.block(row, ours.contract.provider) if shown != "passed" else ""

    return tell


def _row(item: pytest.Item) -> Mapping[str, Any] | None:
    ours = item.config.stash.get(SESSION, None)
    return ours.by_id.get(item.callspec.params["requirement"].id) if ours is not None and _is_ours(item) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    row = _row(item)
    if row is not None and row["outcome"] == "error":  # in the setup, so that pytest calls it an error
        pytest.fail(terminal.block(row, item.config.stash[SESSION].contract.provider), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give the report its row, for pytest-html's table."""
    report = yield
    row = _row(item)
    if row is not None and (report.when == "call" or report.failed):
        report.row = row  # type: ignore[attr-defined]
        if row["evidence"]:
            there = f'<a href="#{escape(row["id"])}">evidence of {escape(row["id"])}</a>'
            report.extras = [extras.html(there)]  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Set the exit status that `conformance run` has."""
    ours = session.config.stash.get(SESSION, None)
    if ours is None:
        return
    if ours.run is None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = standing.MISUSED
        return
    session.exitstatus = _status(ours, exitstatus, foreign=not all(map(_is_ours, session.items)))
    session.config.hook.pytest_conformance_results(results=ours.results, run=ours.run)


def _status(ours: Session, exitstatus: int, *, foreign: bool) -> int:
    code: int = ours.results["exit_code"]
    if exitstatus == pytest.ExitCode.INTERNAL_ERROR and code != standing.BROKEN:
        return standing.SUITE_FAULT
    if exitstatus == pytest.ExitCode.INTERRUPTED and code == standing.CONFORMANT:
        return standing.INCOMPLETE
    return exitstatus if foreign and code == standing.CONFORMANT else code


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    ours = config.stash.get(SESSION, None)
    if ours is not None and ours.run is not None:
        terminalreporter.section("conformance")
        terminalreporter.write_line(terminal.summary(ours.results))
        terminalreporter.write_line(f"  reports in {ours.settings.folder}{os.sep}")


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_metadata(metadata: dict[str, Any], config: pytest.Config) -> None:
    """Leave out what CI systems put into the environment: some of it is secret."""
    if SESSION in config.stash or config.option.conformance_provider:
        for name in metadata.keys() - KEPT:
            del metadata[name]


def pytest_html_report_title(report: Any) -> None:
    report.title = "Conformance"


def pytest_html_results_summary(prefix: list[str], session: pytest.Session) -> None:
    """Our report, whole; its script folds pytest-html's own table below."""
    ours = session.config.stash.get(SESSION, None)
    if ours is not None and ours.run is not None:
        report = page.fragment(ours.results, ours.run.exchanges)
        prefix.append(f"<style>{page.asset('style.css')}</style>{report}<script>{page.asset('report.js')}</script>")


def pytest_html_results_table_header(cells: list[str]) -> None:
    named = "".join(f'<th class="sortable" data-column-type="{name}">{name}</th>|' for name in COLUMNS)
    cells[:] = [cells[0], '<th class="sortable" data-column-type="testId" hidden></th>', *named.split("|")[:-1]]


def pytest_html_results_table_row(report: Any, cells: list[str]) -> None:
    row = getattr(report, "row", None)
    if row is None:
        return
    told = {**row, "source": row["source"]["at"] or row["source"]["page"]}
    shown = [f'<td class="col-{name}">{escape(visible(str(told[name])))}</td>' for name in COLUMNS]
    cells[:] = [cells[0], f'<td class="col-testId" hidden>test-{escape(row["id"])}</td>', *shown]


def pytest_html_results_table_html(report: Any, data: list[str]) -> None:
    if getattr(report, "row", None) is not None and report.outcome != "failed":
        del data[:]
