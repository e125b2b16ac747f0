"""What a check says of one occurrence, and the verdict on a requirement that findings add up to."""

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

    `case` names the exchange it shows in, where a group leaves that open. `flaky`: sent again, it was kept as well.
    `steady`: it only counts of a target that answers the same request in the same way.
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
    """An occurrence that was due and shows nothing either way.

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

    `examined` counts occurrences, `exchanges` the exchanges or groups that showed any, `violations` the occurrences
    that broke the promise. `incomplete`: the run owes this verdict. `repeat`: what settles each doubt, if sent again.
    `broke` and `kept` are the cases of each exchange or group that broke a broken promise, the one that shows it
    first, or that kept it; `due` are those that were expected to show it, where none did.
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
