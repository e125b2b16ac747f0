"""Settings or a plan in, a `Run` out: what was planned and sent, what came back, the verdicts, why it is incomplete.

`loop` drives a plan through a sender, and `runner` makes one run of it; `launch` makes a run from settings,
`locked_run` from a plan lock, and `replan` plans a recorded run again. `preflight` decides whether an API answers at
all, `confirm` what is sent again; `shrink` and `reproducer` find the smallest request that shows a failure; `doctor`
checks a target before a run.

Never imports reports, certificates, the command line or pytest, and none of the self-tests, which drive this loop too.
"""

from __future__ import annotations

from conformance.run.loop import Plan
from conformance.run.result import EMBEDDED, Endpoint, Run, totals
from conformance.run.runner import ResumeError, run

__all__ = ["EMBEDDED", "Endpoint", "Plan", "ResumeError", "Run", "run", "totals"]
