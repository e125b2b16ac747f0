"""Cases that only make sense together, and how case groups share the requests that they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Final

from conformance.model import Membership, RequestCase
from conformance.plan.context import identity, rename

# The phases in the order in which they are sent. What is learned in one is used in those after it.
ORDER: Final = ("base", "values", "rows", "learned", "hostile")


class Rank(IntEnum):
    """How early a small budget takes a case group; a relation in a further setting ranks one or two lower.

    Set cover of the MUSTs comes between ALWAYS and the rest, that of the SHOULDs after RELEVANT and after USEFUL.
    """

    ALWAYS = 0  # the base request, rows of pairs
    ESSENTIAL = 1  # a value by itself where its rejection would spoil other requests
    RELEVANT = 2  # MUSTs on refusal, relations that detect many defects
    NORMAL = 3
    USEFUL = 4  # shown elsewhere as well
    OBSERVED = 5  # what the contract leaves open
    EXTRA = 6  # a second way to show what others show
    LAST_RESORT = 9  # only where nothing else shows a requirement


@dataclass(frozen=True)
class CaseGroup:
    """Cases of one phase that are chosen or left out together.

    `copies` numbers the cases that are the same request: a case that is sent a second time is another exchange. `then`
    is what a later phase makes of the replies: the budget counts it together with what it depends on. `guaranteed`
    groups are the least of their kind that a profile sends, whatever else there is to send. `kinds` are what the group
    tries that servers treat alike whatever the parameter is: a check, and a kind of values or of requests. `goals`
    caches the requirements that the group shows, see `RequirementCoverage.goals`.
    """

    phase: str
    rank: int
    cases: tuple[RequestCase, ...]
    copies: tuple[int, ...] = ()
    then: CaseGroup | None = None
    guaranteed: bool = False
    kinds: tuple[str, ...] = ()
    goals: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)

    @cached_property
    def by_identity(self) -> tuple[tuple[str, RequestCase], ...]:
        """Each case with the identity of its request on the wire."""
        copies = self.copies or (0,) * len(self.cases)
        return tuple((identity(case, copy), case) for case, copy in zip(self.cases, copies, strict=True))

    @cached_property
    def slots(self) -> tuple[tuple[str, RequestCase], ...]:
        """Each case, those of `then` included, by its phase and identity."""
        own = tuple(zip(self.own, self.cases, strict=True))
        return own + (self.then.slots if self.then else ())

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The slots of this phase."""
        return tuple(f"{self.phase} {key}" for key, _ in self.by_identity)


@dataclass
class Sent:
    """How often each request was sent, by identity: sending it again is a further copy with an id of its own."""

    times: dict[str, int] = field(default_factory=dict)

    def assemble(self, case_groups: Iterable[CaseGroup]) -> tuple[RequestCase, ...]:
        """The cases of one phase: each request once, as a member of every group that needs it."""
        cases: dict[str, RequestCase] = {}
        memberships: dict[str, list[Membership]] = {}
        copies: dict[str, int] = {}
        for case_group in case_groups:
            for index, (key, case) in enumerate(case_group.by_identity):
                cases.setdefault(key, case)
                memberships.setdefault(key, []).extend(case.groups)
                copies[key] = case_group.copies[index] if case_group.copies else 0
        assembled = []
        for key, case in cases.items():
            before = self.times.get(key, 0)
            self.times[key] = before + 1
            # copies within a phase count on by one, later phases by a thousand, so that no two have the same id
            name = f"{case.origin}/{identity(case, copies[key] + 1000 * before)}"
            assembled.append(rename(case, name, memberships[key]))
        return tuple(assembled)


__all__ = ["ORDER", "CaseGroup", "Rank", "Sent"]
