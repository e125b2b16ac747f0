"""The pytest plugin: options, one item for each requirement of a contract, our report on pytest-html's page.

The whole run is made before the first item; items only report its verdicts. The exit status is that of
`conformance run`. If another plugin hands over the results of an earlier run, nothing is sent, and only the page is
written again.

PYTEST_DONT_REWRITE: there is no assertion here, and the command line imports this file before pytest does.
"""

from __future__ import annotations

import errno
import glob
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pytest
from pytest_html import extras  # type: ignore[import-untyped]
from pytest_html.basereport import BaseReport  # type: ignore[import-untyped]

from conformance.config.settings import Settings, SettingsError
from conformance.model import Contract, Layer, Level, Requirement, Source
from conformance.model.exchange import Exchange
from conformance.model.exit_codes import ExitCode
from conformance.model.json_text import MISSING
from conformance.pytest_plugin import options as plugin_options
from conformance.pytest_plugin.options import arguments as arguments
from conformance.report import findings, index, outputs, results, tally, terminal
from conformance.report import pytest_html as table
from conformance.report.text import visible
from conformance.run import launch

if TYPE_CHECKING:
    from conformance.run import Run
    from conformance.send import Watcher

Judged: TypeAlias = Callable[[str], tuple[str, str]]
Before: TypeAlias = tuple[Mapping[str, Any], Iterable[Exchange]]
SUITE: Final = "conformance.suite.test_contract"
MOST_LINES: Final = 20
"""Broken requirements that the last section lists."""
KEPT: Final = frozenset({"Python", "Platform", "Packages"})


class NotMet(UserWarning):
    """A SHOULD that the target does not meet, or a failure that is waived or not scored."""


@dataclass
class Session:
    """The state of one pytest session. `to_run` is None if the results of an earlier run are shown."""

    requirements: Sequence[Requirement]
    to_run: tuple[Settings, Contract] | None = None
    run: Run | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    exchanges: Iterable[Exchange] = ()
    interrupted: bool = False

    @cached_property
    def by_id(self) -> Mapping[str, Mapping[str, Any]]:
        """The entries of results.json by requirement id."""
        return {row["id"]: row for row in self.results["requirements"]}

    def shown(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """How a requirement appears in pytest ("failure", "skipped", …), with a message unless it passed."""
        shown_as = tally.shown_as(row, strict=self.results["strict"])
        if shown_as == "skipped":
            return shown_as, visible(f"{row['outcome'].replace('_', ' ')}: {row['reason']}")
        return shown_as, terminal.block(row, self.results) if shown_as != "passed" else ""


SESSION: Final = pytest.StashKey[Session]()


@dataclass(eq=False)
class Interruption:
    """A plugin for one session that handles Ctrl-C before the run has results; during the run, the run handles it."""

    config: pytest.Config

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        session = self.config.stash[SESSION]
        if not session.results and issubclass(excinfo.type, KeyboardInterrupt):
            session.interrupted = True
            _write_no_page(self.config)


class Hooks:
    """Hooks for other plugins, such as the progress display of the command line."""

    @pytest.hookspec(firstresult=True)
    def pytest_conformance_watcher(self, contract: Contract) -> Watcher | None:
        """Return a watcher that is called for each planned phase and each finished request."""

    @pytest.hookspec(firstresult=True)
    def pytest_conformance_before(self) -> Before | None:
        """Return results and exchanges of an earlier run, which are then shown instead of making a run."""

    def pytest_conformance_results(self, results: Mapping[str, Any], run: Run) -> None:
        """Called when all verdicts are known and the files are written."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register our hooks."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--provider`, and every option of `conformance run` with a prefix."""
    plugin_options.add(parser.getgroup("conformance", "conformance of a POST /completions endpoint"))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> None:
    """Add names without the prefix last, when every plugin is loaded and has taken its own."""
    plugin_options.add_short(parser.getgroup("conformance"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read the options and the contract; an error in them ends the session with one line."""
    before: Before | None = config.hook.pytest_conformance_before()
    if before is not None:
        document, exchanges = before
        requirements = tuple(map(_requirement, document["requirements"]))
        config.stash[SESSION] = Session(requirements, results=document, exchanges=exchanges)
        _register_markers(config, requirements)
        return
    try:
        settings = plugin_options.settings_of(config)
        if settings is None and any(argument and SUITE.startswith(argument) for argument in config.args):
            raise SettingsError("no provider is given; expected --provider NAME")
        if settings is None:
            return
        contract = launch.checked_contract(settings)
        selected = launch.selected_requirements(settings, contract)
        if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", None):
            raise SettingsError("pytest-xdist is not supported: a run is one sequence of requests; leave out -n")
    except SettingsError as error:
        pytest.exit(str(error), returncode=ExitCode.USAGE_ERROR)
    requirements = tuple(row for row in contract.requirements if row.id in selected)
    config.stash[SESSION] = Session(requirements, (settings, contract))
    _register_markers(config, requirements)
    config.pluginmanager.register(Interruption(config))
    if getattr(config.option, "htmlpath", MISSING) is None and not config.option.collectonly:
        config.option.htmlpath = str(settings.folder / index.REPORT)
        config.option.self_contained_html = True


def _register_markers(config: pytest.Config, requirements: Iterable[Requirement]) -> None:
    """Level, layer and area of each requirement as markers: `-m "MUST and framing"`."""
    for name in sorted({name for row in requirements for name in _markers(row)}):
        config.addinivalue_line("markers", f"{name}: requirements of this level, layer or area")


def _markers(row: Requirement) -> tuple[str, str, str]:
    return row.level.value, row.layer.value, row.area.replace("-", "_")


def _requirement(row: Mapping[str, Any]) -> Requirement:
    """A requirement as it was at the time of the results; the contract may have changed since."""
    source = Source(row["source"]["at"], row["source"]["page"], row["source"].get("quote", ""))
    return Requirement(row["id"], row["check"], Level(row["level"]), Layer(row["layer"]), row["promise"], source)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate one item for each requirement, named after it."""
    if metafunc.module.__name__ != SUITE:
        return
    session = metafunc.config.stash.get(SESSION, None)
    if session is None:
        raise pytest.UsageError("no provider is given; expected --provider NAME")
    rows = [
        pytest.param(row, id=row.id, marks=[getattr(pytest.mark, name) for name in _markers(row)])
        for row in session.requirements
    ]
    metafunc.parametrize("requirement", rows)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Make the whole run before the first item: what is selected by now decides what is sent."""
    state = session.config.stash.get(SESSION, None)
    ids = {name for item in session.items if (name := _requirement_id(item))}
    if state is not None and not session.items:
        _write_no_page(session.config)
    if state is not None and state.to_run and ids and not session.config.option.collectonly:
        _make_run(session.config, state, *state.to_run, ids)
    return (yield)


def _requirement_id(item: pytest.Item) -> str:
    """The requirement id of an item of the suite; empty for any other item."""
    if getattr(item, "module", None) is not sys.modules.get(SUITE, item):
        return ""
    name: str = item.callspec.params["requirement"].id  # type: ignore[attr-defined]
    return name


def _disk_full(error: BaseException) -> OSError | None:
    """The error that says that the disk is full, if that is what went wrong."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} else None


def _no_room(error: OSError) -> str:
    advice = "make room, and continue with --resume, or start again if the run has a locked plan"
    return f"{error.filename or 'a file'}: {error.strerror}; {advice}"


def _make_run(config: pytest.Config, state: Session, settings: Settings, contract: Contract, ids: set[str]) -> None:
    watcher = config.hook.pytest_conformance_watcher(contract=contract)
    most_failures = config.option.maxfail
    if len(ids) < len(state.requirements) and settings.plan is None:  # a locked plan is sent as it is
        settings = replace(settings, select=tuple(map(glob.escape, sorted(ids))))
    try:
        run = launch.launch(settings, watcher, **({"stop_after": most_failures} if most_failures else {}))
        run = replace(run, verdicts=tuple(verdict for verdict in run.verdicts if verdict.requirement.id in ids))
        document = results.document(
            run,
            strict=settings.strict,
            waivers=launch.waivers_from_settings(settings),
            folder=str(settings.folder),
            send={"out": str(settings.out), "specs": [str(folder) for folder in settings.specs]},
        )
        own_page = bool(_pages(config)) and Path(config.option.htmlpath) == settings.folder / index.REPORT
        outputs.write(settings.folder, document, run.exchanges, page=not own_page)
        outputs.write_index(settings.out)
        outputs.publish(document)
        state.run, state.results, state.exchanges = run, document, run.exchanges
    except SettingsError as error:
        _write_no_page(config)
        pytest.exit(str(error), returncode=ExitCode.USAGE_ERROR)
    except OSError as error:
        _write_no_page(config)
        if _disk_full(error) is not None:
            pytest.exit(_no_room(error), returncode=ExitCode.INCOMPLETE)
        pytest.exit(
            f"{error.filename or 'a file'} cannot be written: {error.strerror}", returncode=ExitCode.USAGE_ERROR
        )
    except Exception as error:  # noqa: BLE001 - any other error is a fault of the suite
        _write_no_page(config)
        if (full := _disk_full(error)) is not None:
            pytest.exit(_no_room(full), returncode=ExitCode.INCOMPLETE)
        traceback.print_exc()
        pytest.exit(f"internal error of the suite, please report it: {error}", returncode=ExitCode.SUITE_FAULT)


def _pages(config: pytest.Config) -> list[Any]:
    return [plugin for plugin in config.pluginmanager.get_plugins() if isinstance(plugin, BaseReport)]


def _write_no_page(config: pytest.Config) -> None:
    """Without a run, write no page: an empty one must not replace that of the last run."""
    for plugin in _pages(config):
        config.pluginmanager.unregister(plugin)


@pytest.fixture(scope="session")
def judged(pytestconfig: pytest.Config) -> Judged:
    """A function from a requirement id to how the requirement appears in pytest, with its message."""
    state = pytestconfig.stash[SESSION]
    return lambda name: state.shown(state.by_id[name])


def row_of(item: pytest.Item) -> Mapping[str, Any] | None:
    """The entry of results.json for an item of the suite; None for any other item."""
    state = item.config.stash.get(SESSION, None)
    return state.by_id.get(_requirement_id(item)) if state is not None and state.results else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail in the setup where the run has no verdict that it needs: pytest then reports an error and not a failure."""
    row = row_of(item)
    shown_as, message = item.config.stash[SESSION].shown(row) if row is not None else ("", "")
    if shown_as == "error":
        pytest.fail(message, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the requirement's entry to the report of its item."""
    report = yield
    row = row_of(item)
    if row is not None and (report.when == "call" or report.failed):
        add_row(report, row)
    if row is not None and report.failed:
        # pytest accepts any object with `toterminal`, but exports no type for it
        report.longrepr = Block(str(report.longrepr), findings.message(row), str(item.path))  # type: ignore[assignment]
    return report


class Block:
    """The block of a broken requirement as pytest shows a failure: its short summary has the finding alone."""

    def __init__(self, text: str, finding: str, path: str) -> None:
        self.text = text
        self.reprcrash = ReportedAt(path, 0, visible(finding))

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: pytest.TerminalReporter) -> None:
        """Called by pytest to print the failure."""
        for line in self.text.splitlines():
            writer.line(line)


class ReportedAt(NamedTuple):
    """What pytest takes the line of its short summary from."""

    path: str
    lineno: int
    message: str


def add_row(report: pytest.TestReport, row: Mapping[str, Any]) -> None:
    """Attach a requirement's entry to a report, for pytest-html's table."""
    report.row = row  # type: ignore[attr-defined]
    if row["evidence"]:
        report.extras = [extras.html(table.link(row))]  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Set the exit status of `conformance run`."""
    state = session.config.stash.get(SESSION, None)
    if state is None:
        return
    if not state.results:
        session.exitstatus = ExitCode.INCOMPLETE if state.interrupted else exitstatus
        return
    session.exitstatus = _status(state, exitstatus, other_tests=not all(map(_requirement_id, session.items)))
    if state.run is not None:
        session.config.hook.pytest_conformance_results(results=state.results, run=state.run)


def _status(state: Session, exitstatus: int, *, other_tests: bool) -> int:
    code: int = state.results["exit_code"]
    if exitstatus == pytest.ExitCode.INTERNAL_ERROR and code != ExitCode.BROKEN:
        return ExitCode.SUITE_FAULT
    if exitstatus == pytest.ExitCode.INTERRUPTED and code == ExitCode.CONFORMANT:
        return ExitCode.INCOMPLETE
    return exitstatus if other_tests and code == ExitCode.CONFORMANT else code


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the summary of the run, and where its reports are."""
    state = config.stash.get(SESSION, None)
    if state is not None and state.to_run and state.results:
        terminalreporter.section("conformance")
        for line in _broken(state):
            terminalreporter.write_line(line)
        terminalreporter.write_line(terminal.summary(state.results))
        terminalreporter.write_line(f"  reports in {state.to_run[0].folder}{os.sep}")


def _broken(state: Session) -> Iterator[str]:
    """One line for each requirement that failed, whole: those of the short summary are cut to the terminal's width."""
    rows = [row for row in state.results["requirements"] if state.shown(row)[0] == "failure"]
    for row in rows[:MOST_LINES]:
        yield f"{row['id']} ({row['level']}): {visible(findings.message(row))}"
    if len(rows) > MOST_LINES:
        yield f"and {len(rows) - MOST_LINES} more"


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_metadata(metadata: dict[str, Any], config: pytest.Config) -> None:
    """Leave out environment variables of CI systems: some contain secrets."""
    if SESSION in config.stash or config.option.conformance_provider:
        for name in metadata.keys() - KEPT:
            del metadata[name]


@pytest.hookimpl(optionalhook=True)
def pytest_html_report_title(report: Any) -> None:
    """Set the title of the page."""
    report.title = "Conformance report"


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_summary(prefix: list[str], session: pytest.Session) -> None:
    """Put our whole report on the page; its script folds the table of pytest-html below."""
    state = session.config.stash.get(SESSION, None)
    if state is not None and state.results:
        folder = str(Path(session.config.option.htmlpath).parent)
        prefix.append(table.front(state.results, state.exchanges, folder))


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_table_header(cells: list[str]) -> None:
    """Set the columns: pytest-html needs `result` and `testId`, the others are ours."""
    cells[:] = table.header(cells[0])


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_table_row(report: Any, cells: list[str]) -> None:
    """Fill the columns of a requirement."""
    row = getattr(report, "row", None)
    if row is not None:
        cells[:] = table.cells(row, cells[0])
    elif getattr(report, "omit_from_table", False):
        del cells[:]


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_table_html(report: Any, data: list[str]) -> None:
    """Leave out the captured output: our report contains it already."""
    if getattr(report, "row", None) is not None:
        del data[:]
