"""pytest sessions in this process: no plugins but ours, output captured; and report.html written by such a session."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from conformance.model.exchange import Exchange

# Neither the current folder nor an installed plugin may influence a verdict.
_ISOLATED: Final = (
    *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", "-p", "no:cacheprovider"),
    *("-p", "conformance.pytest_plugin.items"),
    *("-c", os.devnull, "--noconftest", "--capture=no", "--no-header", "-q"),
)
GC_THRESHOLD: Final = 100_000  # allocations between two collections; Python's default is 700


def pytest_session(arguments: Sequence[str], listener: object) -> tuple[int, str]:
    """Run one pytest session; its exit status and everything that it would have printed."""
    import pytest

    captured = StringIO()
    with _only_named_plugins(), _fewer_collections(), redirect_stdout(captured), redirect_stderr(captured):
        code = int(pytest.main([*arguments, *_ISOLATED], plugins=[listener]))
    return code, captured.getvalue()


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Run the garbage collector less often: traversing all imported modules takes longer than it is worth."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    if not frozen:
        gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()


@contextmanager
def _only_named_plugins() -> Iterator[None]:
    """Disable plugin autoload, and ignore pytest options and plugins of the caller's environment."""
    overrides = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
    before = {name: os.environ.get(name) for name in overrides}
    os.environ.update(overrides)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@dataclass(eq=False)
class _EarlierRun:
    """A pytest plugin that hands over the results and exchanges of an earlier run."""

    results: Mapping[str, Any]
    exchanges: Iterable[Exchange]

    def pytest_conformance_before(self) -> tuple[Mapping[str, Any], Iterable[Exchange]]:
        return self.results, self.exchanges


def write_report_page(path: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange]) -> None:
    """Write report.html as a run does, through pytest-html; without pytest's table if that fails."""
    from conformance.pytest_plugin.plugin import arguments
    from conformance.report import page

    path.unlink(missing_ok=True)
    words = [*arguments(results["provider"], {}), f"--html={path}", "--self-contained-html"]
    pytest_session(words, _EarlierRun(results, exchanges))
    if not path.exists():
        path.write_text(page.render(results, exchanges, str(path.parent)), "utf-8")


__all__ = ["pytest_session", "write_report_page"]
