"""One test, parametrised by the requirements of a contract: the verdict becomes the outcome in pytest."""

from __future__ import annotations

import warnings

import pytest

from conformance.model import Requirement
from conformance.pytest_plugin.plugin import Judged, NotMet


def test_requirement(requirement: Requirement, judged: Judged) -> None:
    """The target keeps this promise; the test is skipped, with a reason, if the run does not show it."""
    shown, message = judged(requirement.id)
    if shown == "failure":
        pytest.fail(message, pytrace=False)
    if shown == "skipped":
        pytest.skip(message)
    if shown == "expected":
        warnings.warn(NotMet(message), stacklevel=1)
        pytest.xfail(message)
