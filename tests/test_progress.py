"""Progress is drawn for a person in front of a terminal, and for nobody else."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from conformance.cli import _guarded
from conformance.cli.progress import progress
from conformance.config.settings import settings
from conformance.judge.fixtures import case, choice, completion, plain, response, usage
from conformance.model import Ending, Phase
from conformance.run.launch import load_contract

OPENAI = load_contract(settings("openai", {}))
ASKED = {"model": "m", "prompt": "2+2=", "max_tokens": 1}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch):
    drawn = Terminal()
    monkeypatch.setattr("conformance.cli.progress.sys", SimpleNamespace(stderr=drawn))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "160")
    return drawn


def exchanges():
    good = completion(choice(), usage=usage(4, 1))
    yield plain(good, ASKED, id="a")
    yield plain({**good, "usage": usage(4, 1, total=9)}, ASKED, id="b")
    yield response(b"", ASKED, id="c", status=None, ending=Ending.TIMED_OUT, error="silent")


def shown(name, screen):
    """What a person saw last while a run of three requests was under way."""
    with progress(name, quiet=False) as watching:
        watcher = watching(OPENAI)
        made = list(exchanges())
        watcher.planned(Phase("one", tuple(x.case for x in made)))
        for x in made:
            watcher.finished(x)
        watcher.planned(Phase("two", (replace(case(ASKED), id="d"),)))
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).replace("\r", "\n").split("\n")


def test_a_terminal_shows_requests_rate_tokens_failures_and_time_left(screen):
    lines = [line for line in shown("openai", screen) if "so far" in line]
    assert re.search(
        r"^openai .* 3/4 [-\d]:[-\d]{2}:[-\d]{2} [\d.]+/s, 10 tokens, [1-9]\d* broken so far, 1 without a reply",
        lines[-1],
    )


def test_the_name_of_a_target_is_only_text(screen):
    assert any("[red]x[/nothing]" in line for line in shown("[red]x[/nothing]", screen))


def test_a_requirement_that_breaks_twice_is_one_failure(screen):
    with progress("x", quiet=False) as watching:
        watcher = watching(OPENAI)
        wrong = [replace(x, case=replace(x.case, id=name)) for name in "ab" for x in [list(exchanges())[1]]]
        for x in wrong:
            watcher.planned(Phase(x.case.id, (x.case,)))
            watcher.finished(x)
        watcher.planned(Phase("end", ()))
    found = re.findall(r"(\d+) broken so far", screen.getvalue())
    assert len({one for one in found if one != "0"}) == 1


@pytest.mark.parametrize("reason", ["quiet", "no terminal", "NO_COLOR"])
def test_elsewhere_nothing_is_drawn(screen, monkeypatch, reason):
    if reason == "no terminal":
        screen.isatty = lambda: False
    if reason == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    with progress("x", quiet=reason == "quiet") as watching:
        assert watching is None
    assert screen.getvalue() == ""


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_a_run_in_a_pipe_is_plain_text(capfd, tmp_path, monkeypatch, options):
    def phases(contract, checks, options):
        body = {"model": options.model, "max_tokens": 2}
        yield Phase("only", (replace(case(body), id="scenario/a0", origin="scenario"),))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("conformance.plan.phases", phases)
    _guarded(["run", "openai", *options], debug=True)
    out, err = capfd.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert "\r" not in out
    assert out.count("\nUNKNOWN ") == 0 if options else "openai:" in out
