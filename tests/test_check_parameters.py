"""docs/check-parameters.md describes every parameter that a contract gives to a check."""

import re
from pathlib import Path

from conformance.contract import load, providers
from conformance.judge.catalogue import load as catalogue

PAGE = Path(__file__).parents[1] / "docs" / "check-parameters.md"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|", re.MULTILINE)


def documented() -> set[tuple[str, str]]:
    """Pairs of parameter and check; "the same" repeats the checks of the row above."""
    pairs, checks = set(), []
    for parameter, cell in ROW.findall(PAGE.read_text("utf-8")):
        checks = re.findall(r"`(\w+)`", cell) or checks
        pairs |= {(parameter, check) for check in checks}
    return pairs


def used() -> set[tuple[str, str]]:
    requirements = [requirement for name in providers() for requirement in load(name).requirements]
    return {(parameter, requirement.check) for requirement in requirements for parameter in requirement.params}


def test_every_parameter_in_use_is_described():
    assert used() - documented() == set()


def test_every_described_parameter_belongs_to_a_check():
    assert {check for _, check in documented()} <= catalogue().keys()
