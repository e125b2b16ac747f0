"""One test, once for each requirement of a contract: what the run showed of it becomes pytest's outcome."""

from __future__ import annotations

import warnings

import pytest

from conformance.model import Requirement
from conformance.pytest_plugin.plugin import Judged, NotMet


def test_requirement(requirement: Requirement, judged: Judged) -> None:
    """The target keeps this promise, or it is said why that is not known."""
    shown, told = judged(requirement.id)
    if shown == "failure":
        pytest.fail(told, pytrace=False)
    if shown == "skipped":
        pytest.skip(told)
    if shown == "warning":
        warnings.warn(NotMet(told), stacklevel=1)
