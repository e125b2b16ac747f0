"""Cases that only make sense together, and how bundles share the requests that they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from conformance.model import Membership, RequestCase
from conformance.plan.context import identity, rename

# Waves in the order in which they are sent. What is learned in one is used in those after it.
ORDER: Final = ("base", "values", "rows", "learned", "hostile")


@dataclass(frozen=True)
class CaseGroup:
    """Cases of one wave that are chosen or left out together. A lower `rank` is dearer to a small budget.

    `copies` numbers the cases that are the same request: a case sent a second time is another exchange. `then` is
    what a later wave makes of the replies: it is set aside for, and counted, with what it rests on. `served` is noted
    by whoever finds it out: the requirements that it serves.
    """

    phase: str
    rank: int
    cases: tuple[RequestCase, ...]
    copies: tuple[int, ...] = ()
    then: CaseGroup | None = None
    served: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)

    @cached_property
    def named(self) -> tuple[tuple[str, RequestCase], ...]:
        """Each case with what makes it one request on the wire."""
        copies = self.copies or (0,) * len(self.cases)
        return tuple((identity(case, copy), case) for case, copy in zip(self.cases, copies, strict=True))

    @cached_property
    def slots(self) -> tuple[tuple[str, RequestCase], ...]:
        """Each case, what follows included, by its wave and what makes it one request."""
        own = tuple(zip(self.own, self.cases, strict=True))
        return own + (self.then.slots if self.then else ())

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The slots of this wave."""
        return tuple(f"{self.phase} {key}" for key, _ in self.named)


@dataclass
class Sent:
    """Requests that went out, by their identity: sending the same again is a further copy with an id of its own."""

    times: dict[str, int] = field(default_factory=dict)

    def assemble(self, bundles: Iterable[CaseGroup]) -> tuple[RequestCase, ...]:
        """The cases of one wave, each request once, with the groups of all bundles that want it."""
        gathered: dict[str, RequestCase] = {}
        groups: dict[str, list[Membership]] = {}
        copy: dict[str, int] = {}
        for bundle in bundles:
            for place, (key, case) in enumerate(bundle.named):
                gathered.setdefault(key, case)
                groups.setdefault(key, []).extend(case.groups)
                copy[key] = bundle.copies[place] if bundle.copies else 0
        whole = []
        for key, case in gathered.items():
            before = self.times.get(key, 0)
            self.times[key] = before + 1
            # copies within a wave are told apart by their number, later waves by counting on in steps of a thousand
            name = f"{case.origin}/{identity(case, copy[key] + 1000 * before)}"
            whole.append(rename(case, name, groups[key]))
        return tuple(whole)


__all__ = ["ORDER", "CaseGroup", "Sent"]
