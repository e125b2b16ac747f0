"""Nothing that is printed is a command: neither for a terminal nor for the log of a CI system."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conformance import cli
from conformance.cli import _guarded
from conformance.cli.printing import escape
from tests.test_certificate_submission import case, check, submitted, whole  # noqa: F401 - fixtures

FORGED = "Mallory\r\u001b[1A\u001b[2Kok    certificate  valid\nok    files\n::error::x\n##[group]x\u202e"
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]|^\s*::|##\[", re.MULTILINE)


def test_every_command_prints_in_one_way():
    folder = Path(cli.__file__).parent
    others = [
        path.name for path in folder.glob("*.py") if re.search(r"\b(click\.s?echo|print)\(", path.read_text("utf-8"))
    ]
    assert others == ["printing.py"]


@pytest.mark.parametrize(
    "text", [FORGED, "::warning file=a::b", "  ::set-output name=a::b", "a ##[command]b", "\u009b31m"]
)
def test_escapes_and_workflow_commands_become_text(text):
    assert not UNSAFE.search(escape(text))
    assert not UNSAFE.search(escape(escape(text)))


@pytest.mark.parametrize("text", ["a\n  b: c\n\n", "std::string ## heading", "Größe …", "a :: b"])
def test_an_honest_text_is_printed_as_it_is(text):
    assert escape(text) == text


def test_a_product_cannot_forge_a_line_of_the_checklist(check, submitted):  # noqa: F811
    path = submitted / "product.toml"
    path.write_text(re.sub(r'vendor = "[^"]*"', lambda _: f"vendor = {json.dumps(FORGED)}", path.read_text()))
    (submitted / "x\nok    files        3 entries").write_text("")
    _, out = check()
    assert not UNSAFE.search(out)
    marks = [line.split()[:2] for line in out.splitlines()]
    assert all(mark[0] in {"ok", "NO", "open"} for mark in marks)
    assert ["ok", "files"] not in marks


def test_a_statement_cannot_forge_a_line_of_verify(case, capsys):  # noqa: F811
    ours = "completionsConformance"
    case.resigned(
        lambda told: (
            told["predicate"][ours]["areas"]["core"].update(lacking=[FORGED]),
            told["predicate"][ours]["target"].update(name=FORGED),
            told["predicate"][ours].update(level="none", issuer=FORGED),
        )
    )
    for given in ((), ("--bundle", case.bundle), ("--trust", case.trust)):
        arguments = ("verify", case.certificate, "--specs", case.specs[0], *given)
        assert _guarded([str(one) for one in arguments], debug=False) != 0
        told = capsys.readouterr()
        assert not UNSAFE.search(told.out + told.err)
        assert not any(line.startswith(("ok", "VALID")) for line in told.out.splitlines())


@pytest.mark.parametrize(
    "arguments", [("list",), ("explain", "openai"), ("diff", "a"), ("report",), ("verify",), ("run",)]
)
def test_an_argument_that_is_refused_is_no_command(arguments, capsys):
    assert _guarded([*arguments, FORGED], debug=False) != 0
    told = capsys.readouterr()
    assert not UNSAFE.search(told.out + told.err)
