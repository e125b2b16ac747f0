"""pytest called from inside, with our plugins only; and report.html made again by way of it."""

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

# Nothing of the folder it is called in, and no plugin that happens to be installed, may change a verdict.
_ALONE: Final = (
    *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin", "-p", "no:cacheprovider"),
    *("-p", "conformance.pytest_plugin.items"),
    *("-c", os.devnull, "--noconftest", "--capture=no", "--no-header", "-q"),
)
SELDOM: Final = 100_000  # allocations


def pytest_alone(arguments: Sequence[str], listener: object) -> tuple[int, str]:
    """The exit status of one pytest session, and what it would have printed."""
    import pytest

    unheard = StringIO()
    with _no_plugins_by_chance(), _seldom_swept(), redirect_stdout(unheard), redirect_stderr(unheard):
        code = int(pytest.main([*arguments, *_ALONE], plugins=[listener]))
    return code, unheard.getvalue()


@contextmanager
def _seldom_swept() -> Iterator[None]:
    """Cycles are looked for less often: with all that a run imports, looking for them costs more than they do."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    if not frozen:
        gc.freeze()
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()


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


@dataclass(eq=False)
class _Before:
    """A pytest plugin that hands over what was judged before."""

    results: Mapping[str, Any]
    exchanges: Iterable[Exchange]

    def pytest_conformance_before(self) -> tuple[Mapping[str, Any], Iterable[Exchange]]:
        return self.results, self.exchanges


def draw(path: Path, results: Mapping[str, Any], exchanges: Iterable[Exchange]) -> None:
    """Write report.html as a run does, as pytest-html's page; our own page alone where pytest cannot make it."""
    from conformance.pytest_plugin.plugin import arguments
    from conformance.report import page

    path.unlink(missing_ok=True)
    words = [*arguments(results["provider"], {}), f"--html={path}", "--self-contained-html"]
    pytest_alone(words, _Before(results, exchanges))
    if not path.exists():
        path.write_text(page.render(results, exchanges), "utf-8")


__all__ = ["draw", "pytest_alone"]
