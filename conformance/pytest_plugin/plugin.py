"""pytest: options, one item for each requirement of a contract, pytest-html's page with our report in front.

The run is made once, before the first item; items only show what came of it. The exit status is that of
`conformance run`: 0 conformant, 1 broken, 2 misused, 3 incomplete, 4 a fault of the suite. Where a plugin hands over
what was judged before, nothing is sent, and the page alone is made again.

PYTEST_DONT_REWRITE: nothing is asserted here, and the command line imports this file before pytest does.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from pytest_html import extras  # type: ignore[import-untyped]
from pytest_html.basereport import BaseReport  # type: ignore[import-untyped]

from conformance.config.settings import Settings, SettingsError
from conformance.model import Contract, Layer, Level, Requirement, Source
from conformance.model.exchange import Exchange
from conformance.model.exit_codes import ExitCode
from conformance.pytest_plugin import options as plugin_options
from conformance.pytest_plugin.options import arguments as arguments
from conformance.report import index, outputs, results, tally, terminal
from conformance.report import pytest_html as dressing
from conformance.report.text import visible
from conformance.run import launch

if TYPE_CHECKING:
    from conformance.run import Run
    from conformance.send import Watcher

Judged: TypeAlias = Callable[[str], tuple[str, str]]
Before: TypeAlias = tuple[Mapping[str, Any], Iterable[Exchange]]
SUITE: Final = "conformance.suite.test_contract"
KEPT: Final = frozenset({"Python", "Platform", "Packages"})


class NotMet(UserWarning):
    """A SHOULD that the target does not meet, or a broken promise that does not gate."""


@dataclass
class Session:
    """What one pytest session knows of its run. `asked` is None where what was judged before is shown again."""

    rows: Sequence[Requirement]
    asked: tuple[Settings, Contract] | None = None
    run: Run | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    exchanges: Iterable[Exchange] = ()
    interrupted: bool = False

    @cached_property
    def by_id(self) -> Mapping[str, Mapping[str, Any]]:
        """The judged rows."""
        return {row["id"]: row for row in self.results["requirements"]}

    def tell(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """How a requirement is shown, and the words for it."""
        shown = tally.shown_as(row, strict=self.results["strict"])
        if shown == "skipped":
            return shown, visible(f"{row['outcome'].replace('_', ' ')}: {row['reason']}")
        return shown, terminal.block(row, self.results) if shown != "passed" else ""


SESSION: Final = pytest.StashKey[Session]()


@dataclass(eq=False)
class Interruption:
    """A plugin for one session that hears of Ctrl-C before there is a run; later, the run itself ends early."""

    config: pytest.Config

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        ours = self.config.stash[SESSION]
        if not ours.results and issubclass(excinfo.type, KeyboardInterrupt):
            ours.interrupted = True
            _without_page(self.config)


class Hooks:
    """What other plugins may implement, such as the command line's progress display."""

    @pytest.hookspec(firstresult=True)
    def pytest_conformance_watcher(self, contract: Contract) -> Watcher | None:
        """Who is told of requests as they go out and come back."""

    @pytest.hookspec(firstresult=True)
    def pytest_conformance_before(self) -> Before | None:
        """Results and exchanges of an earlier run, to be shown again."""

    def pytest_conformance_results(self, results: Mapping[str, Any], run: Run) -> None:
        """All verdicts are there and the files are written."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Our own hooks."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--provider`, and every option of `conformance run` under a prefix."""
    plugin_options.add(parser.getgroup("conformance", "conformance of a POST /completions endpoint"))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> None:
    """Short names come last: by now every plugin has been loaded and has its own."""
    plugin_options.add_short(parser.getgroup("conformance"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read the options and the contract; whatever is wrong with them ends here, in one line."""
    before: Before | None = config.hook.pytest_conformance_before()
    if before is not None:
        found, exchanges = before
        config.stash[SESSION] = Session(tuple(map(_promise, found["requirements"])), None, None, found, exchanges)
        return
    try:
        asked = plugin_options.asked(config)
        if asked is None:
            return
        contract = launch.check(asked)
        kept = launch.selected(asked, contract)
        if hasattr(config, "workerinput"):
            raise SettingsError("a run is one conversation; leave out -n")
    except SettingsError as error:
        pytest.exit(str(error), returncode=ExitCode.USAGE_ERROR)
    rows = tuple(row for row in contract.requirements if row.id in kept)
    config.stash[SESSION] = Session(rows, (asked, contract))
    config.pluginmanager.register(Interruption(config))
    if not config.option.htmlpath and not config.option.collectonly:
        config.option.htmlpath = str(asked.folder / index.REPORT)
        config.option.self_contained_html = True


def _promise(row: Mapping[str, Any]) -> Requirement:
    """A requirement as results tell it: its contract may have changed since."""
    source = Source(row["source"]["at"], row["source"]["page"])
    return Requirement(row["id"], row["check"], Level(row["level"]), Layer(row["layer"]), row["promise"], source)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each requirement, named after it."""
    if metafunc.module.__name__ != SUITE:
        return
    session = metafunc.config.stash.get(SESSION, None)
    if session is None:
        raise pytest.UsageError("no contract is named; give --provider NAME")
    metafunc.parametrize("requirement", [pytest.param(row, id=row.id) for row in session.rows])


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Make the run before the first item."""
    ours = session.config.stash.get(SESSION, None)
    ids = {row for item in session.items if (row := _row_id(item))}
    if ours is not None and not session.items:
        _without_page(session.config)
    if ours is not None and ours.asked and ids and not session.config.option.collectonly:
        _make_run(session.config, ours, *ours.asked, ids)
    return (yield)


def _row_id(item: pytest.Item) -> str:
    """The requirement that an item of the suite is for; empty for everybody else's items."""
    if getattr(item, "module", None) is not sys.modules.get(SUITE, item):
        return ""
    found: str = item.callspec.params["requirement"].id  # type: ignore[attr-defined]
    return found


def _make_run(config: pytest.Config, ours: Session, asked: Settings, contract: Contract, ids: set[str]) -> None:
    watcher = config.hook.pytest_conformance_watcher(contract=contract)
    try:
        run = launch.launch(asked, watcher)
        run = replace(run, verdicts=tuple(one for one in run.verdicts if one.requirement.id in ids))
        found = results.document(run, strict=asked.strict, waivers=launch.waived(asked))
        outputs.write(asked.folder, found, None if _pages(config) else run.exchanges)
        outputs.write_index(asked.out)
        outputs.publish(found)
        ours.run, ours.results, ours.exchanges = run, found, run.exchanges
    except SettingsError as error:
        _without_page(config)
        pytest.exit(str(error), returncode=ExitCode.USAGE_ERROR)
    except OSError as error:
        _without_page(config)
        pytest.exit(
            f"{error.filename or 'a file'} cannot be written: {error.strerror}", returncode=ExitCode.USAGE_ERROR
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is ours
        _without_page(config)
        traceback.print_exc()
        pytest.exit(f"a fault of this suite, please report it: {error}", returncode=ExitCode.SUITE_FAULT)


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
    return lambda name: ours.tell(ours.by_id[name])


def row_of(item: pytest.Item) -> Mapping[str, Any] | None:
    """The judged requirement that an item is for; None for everybody else's items."""
    ours = item.config.stash.get(SESSION, None)
    return ours.by_id.get(_row_id(item)) if ours is not None and ours.results else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Our own fault shows in the setup, so that pytest calls it an error and not a failure."""
    row = row_of(item)
    if row is not None and row["outcome"] == "error":
        pytest.fail(terminal.block(row, item.config.stash[SESSION].results), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give the report its row, for pytest-html's table."""
    report = yield
    row = row_of(item)
    if row is not None and (report.when == "call" or report.failed):
        dress(report, row)
    return report


def dress(report: pytest.TestReport, row: Mapping[str, Any]) -> None:
    """Give a report its row, for pytest-html's table."""
    report.row = row  # type: ignore[attr-defined]
    if row["evidence"]:
        report.extras = [extras.html(dressing.link(row))]  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Set the exit status that `conformance run` has."""
    ours = session.config.stash.get(SESSION, None)
    if ours is None:
        return
    if not ours.results:
        nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        session.exitstatus = (
            ExitCode.INCOMPLETE if ours.interrupted else ExitCode.USAGE_ERROR if nothing else exitstatus
        )
        return
    session.exitstatus = _status(ours, exitstatus, foreign=not all(map(_row_id, session.items)))
    if ours.run is not None:
        session.config.hook.pytest_conformance_results(results=ours.results, run=ours.run)


def _status(ours: Session, exitstatus: int, *, foreign: bool) -> int:
    code: int = ours.results["exit_code"]
    if exitstatus == pytest.ExitCode.INTERNAL_ERROR and code != ExitCode.BROKEN:
        return ExitCode.SUITE_FAULT
    if exitstatus == pytest.ExitCode.INTERRUPTED and code == ExitCode.CONFORMANT:
        return ExitCode.INCOMPLETE
    return exitstatus if foreign and code == ExitCode.CONFORMANT else code


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The last lines of the run, and where its reports are."""
    ours = config.stash.get(SESSION, None)
    if ours is not None and ours.asked and ours.results:
        terminalreporter.section("conformance")
        terminalreporter.write_line(terminal.summary(ours.results))
        terminalreporter.write_line(f"  reports in {ours.asked[0].folder}{os.sep}")


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_metadata(metadata: dict[str, Any], config: pytest.Config) -> None:
    """Leave out what CI systems put into the environment: some of it is secret."""
    if SESSION in config.stash or config.option.conformance_provider:
        for name in metadata.keys() - KEPT:
            del metadata[name]


def pytest_html_report_title(report: Any) -> None:
    """What a browser's tab says."""
    report.title = "Conformance report"


def pytest_html_results_summary(prefix: list[str], session: pytest.Session) -> None:
    """Our report, whole; its script folds pytest-html's own table below."""
    ours = session.config.stash.get(SESSION, None)
    if ours is not None and ours.results:
        prefix.append(dressing.front(ours.results, ours.exchanges))


def pytest_html_results_table_header(cells: list[str]) -> None:
    """pytest-html needs result and testId; the rest is ours."""
    cells[:] = dressing.header(cells[0])


def pytest_html_results_table_row(report: Any, cells: list[str]) -> None:
    """The columns of a requirement."""
    row = getattr(report, "row", None)
    if row is not None:
        cells[:] = dressing.cells(row, cells[0])
    elif getattr(report, "tells_nothing", False):
        del cells[:]


def pytest_html_results_table_html(report: Any, data: list[str]) -> None:
    """What there is to say stands in our report already."""
    if getattr(report, "row", None) is not None:
        del data[:]
