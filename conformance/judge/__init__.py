"""Requirements and exchanges in, verdicts out. Pure: the same bytes give the same verdicts, now and years later.

`catalogue` holds the checks, `checks/` one topic a file, `verdicts` counts what they find, and the modules beside them
say when two replies may be compared. Never touches the network, the disk or the clock, and knows no provider.
"""

from conformance.judge.verdicts import RunningVerdicts, Traffic, judge, judge_all

__all__ = ["RunningVerdicts", "Traffic", "judge", "judge_all"]
