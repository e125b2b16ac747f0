"""Requirements and exchanges in, verdicts out. Pure: the same bytes give the same verdicts, now and years later.

`catalogue` holds the checks, `checks/` one topic a file, `verdicts` counts what they find, `causes/` says what broken
requirements have in common, and the modules beside them when two replies may be compared. Never touches the network,
the disk or the clock, and knows no provider.
"""

from conformance.judge.traffic import Traffic
from conformance.judge.verdicts import RunningVerdicts, judge, judge_all

__all__ = ["RunningVerdicts", "Traffic", "judge", "judge_all"]
