"""A plan is driven through the transport and judged: one call, one `Run`."""

from __future__ import annotations

from conformance.runner.drive import Plan, ResumeError, run
from conformance.runner.outcome import Endpoint, Run, totals

__all__ = ["Endpoint", "Plan", "ResumeError", "Run", "run", "totals"]
