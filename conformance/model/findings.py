"""Findings: the results of a check on single occurrences; and verdicts, which they add up to for a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from conformance.model.promises import Requirement


class Outcome(StrEnum):
    """What became of a requirement. ERROR is the suite's own fault, never the target's."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    WARN = "warn"
    FLAKY = "flaky"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"
    NOT_RUN = "not_run"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Satisfied:
    """An occurrence that keeps the promise, or `count` of them at once."""

    at: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Violation:
    """An occurrence that breaks the promise: what was observed first, then what was expected.

    `case`: the exchange that shows it, where a group leaves that open. `flaky`: when the request was sent again, the
    promise was kept. `steady`: it counts only if the target answers the same request always in the same way.
    """

    message: str
    at: str = ""
    case: str = ""
    flaky: bool = False
    steady: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What a target does at a point that the document leaves open: shown, never judged."""

    subject: str
    value: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """An occurrence that was expected, and shows neither that the promise is kept nor that it is broken.

    `repeat` asks for the same exchanges once more, or for those of `cases` alone where it names any.
    """

    reason: str
    repeat: bool = False
    cases: tuple[str, ...] = ()


ENOUGH_REPLIES: Final = 3
"""How many replies to one request show what the target does with it. Comparisons need as many on each side, and
confirmation sends a request until there are as many: with fewer, a comparison would stay undecided."""

GONE_AFTER: Final = 8
"""Requests in a row without a response in time, after which nothing is sent before a probe is answered.
A choice: as many as are in flight at once, so that a single request that blocks the target is not enough."""

BUSY: Final = frozenset({502, 503, 504})
"""Statuses that load or a gateway may cause. Where one request always gets one, the checks on acceptance judge it."""

Finding: TypeAlias = Satisfied | Violation | Observation | Inconclusive


@dataclass(frozen=True, slots=True)
class Evidence:
    """A broken promise at one place: the case, the place in its response, what was observed and expected."""

    case: str
    at: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one requirement.

    `examined`: the number of occurrences; `exchanges`: the number of exchanges or groups that had one; `violations`:
    the number of occurrences that broke the promise. `incomplete`: the run owes this verdict. `repeat`: for each doubt,
    the cases that settle it when they are sent again.

    The other members have the cases of one exchange or group in each item. `broke`: those that broke the promise, the
    case that shows it first. `kept`: those that kept it, if the requirement is broken. `due`: those that were expected
    to show it, if none did.
    """

    requirement: Requirement
    outcome: Outcome
    reason: str = ""
    examined: int = 0
    exchanges: int = 0
    violations: int = 0
    evidence: tuple[Evidence, ...] = ()
    observations: tuple[Observation, ...] = ()
    incomplete: bool = False
    repeat: tuple[tuple[str, ...], ...] = ()
    broke: tuple[tuple[str, ...], ...] = ()
    kept: tuple[tuple[str, ...], ...] = ()
    due: tuple[tuple[str, ...], ...] = ()


BROKEN: Final = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.FLAKY})
