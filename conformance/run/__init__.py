"""A plan is driven through the transport and judged: one call, one `Run`."""

from __future__ import annotations

from conformance.run.result import Endpoint, Run, totals
from conformance.run.runner import Plan, ResumeError, run

__all__ = ["Endpoint", "Plan", "ResumeError", "Run", "run", "totals"]
