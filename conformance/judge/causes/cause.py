"""A broken requirement with its exchanges, a cause that is being put together, and the cause as it is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from conformance.judge.catalogue import Check, Scope, load
from conformance.judge.causes.kinds import Harm
from conformance.judge.causes.topics import Topic
from conformance.model import Level, Validity, Verdict
from conformance.model.exchange import Exchange

MOST_OF: Final = 0.8
"""The share of a row's failures from which on a condition counts as true of all of them."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why requirements are broken: a kind, named after what it concerns, with the requirements that break with it.

    `rows` are the ids of its broken requirements, the one that shows it best first; `blocked` those that cannot be
    judged because of it. `observed` and `expected` are empty where the evidence of the first row says it. `matrix` has
    parameter, rule and outcome of each row on validation.
    """

    id: str
    kind: str
    name: str
    level: Level
    harm: Harm
    means: str
    rows: tuple[str, ...]
    blocked: tuple[str, ...] = ()
    observed: str = ""
    expected: str = ""
    broken: int = 0
    examined: int = 0
    matrix: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class BrokenRow:
    """A broken requirement with the exchanges that show it broken; `cases` are the ids of these and of their groups."""

    verdict: Verdict
    topic: Topic
    failing: tuple[Exchange, ...]
    cases: frozenset[str]

    @property
    def id(self) -> str:
        """The id of the requirement."""
        return self.verdict.requirement.id

    @property
    def check(self) -> Check | None:
        """The check that the requirement is bound to."""
        return load().get(self.verdict.requirement.check)

    @property
    def group(self) -> str:
        """The kind of groups that the check looks at; empty where it looks at single exchanges."""
        return self.check.group if self.check else ""

    @property
    def scope(self) -> Scope | None:
        """The exchanges that the check looks at."""
        return self.check.scope if self.check else None

    @property
    def area(self) -> str:
        """The area of the check."""
        return self.check.area if self.check else ""

    @property
    def level(self) -> int:
        """How weakly the requirement binds: 0 for a MUST."""
        return list(Level).index(self.verdict.requirement.level)

    @property
    def parameter(self) -> str:
        """The parameter that the requirement names; empty where it names none."""
        return str(self.verdict.requirement.params.get("parameter") or "")

    @property
    def rule(self) -> str:
        """The keyword that the requirement is about, or else the last word of its id."""
        return str(self.verdict.requirement.params.get("keyword") or self.id.rpartition(".")[2])

    def mostly(self, condition: Callable[[Exchange], bool]) -> bool:
        """Whether the condition is true of nearly all exchanges that show the requirement broken."""
        return bool(self.failing) and sum(map(condition, self.failing)) >= MOST_OF * len(self.failing)


@dataclass
class Draft:
    """A cause that is still being put together. Its first row shows it best.

    `subject` and `settings` complete the name of its kind; `about` tells it from other causes of this kind. `affects`
    says which exchanges it spoils, besides those that show its rows broken.
    """

    kind: str
    rows: list[BrokenRow]
    subject: str = ""
    about: str = ""
    settings: tuple[str, ...] = ()
    observed: str = ""
    expected: str = ""
    counted: tuple[int, int] = (0, 0)
    affects: Callable[[Exchange], bool] = lambda _: False

    @property
    def key(self) -> str:
        """The id of the cause: the same in every run that has it, because it holds no counts."""
        return ".".join((self.kind, *filter(None, [self.about]), *self.settings))


def is_invalid(x: Exchange) -> bool:
    """Whether the request is invalid, or no JSON object at all."""
    return x.case.validity is Validity.INVALID or not isinstance(x.case.body, Mapping)
