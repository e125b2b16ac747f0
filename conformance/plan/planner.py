"""The waves of a run: what is sent when, and what it makes of the replies that come in between."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from conformance.model import Phase, RequestCase, Validity
from conformance.model.budget import PROFILES, Budget
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.plan.adversarial import hostile
from conformance.plan.case_group import ORDER, CaseGroup, Sent
from conformance.plan.context import PlanContext
from conformance.plan.follow_ups import foundations, lessons
from conformance.plan.invalid_requests import invalids
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.profiles import RESERVE, plannable, share, smaller
from conformance.plan.protocol import protocol
from conformance.plan.relations import relations
from conformance.plan.remembered import Remembered
from conformance.plan.requirement_coverage import RequirementCoverage, must
from conformance.plan.row_requests import grid
from conformance.plan.sample_groups import arms, bursts, crowded, filters
from conformance.plan.samples import samples
from conformance.plan.set_cover import NOTHING, RemainingBudget, choose
from conformance.plan.single_values import cleared, edges, first, named, singles, suspects, unlimited

Drawn = Sequence[Mapping[str, Any]]
Phases = Generator[Phase, tuple[Exchange, ...], None]
LESSONS: Final = 8  # requests that replies may ask for beyond what was assumed of them
LEFT_OUT: Final = "left out"
ALONE: Final = frozenset({"accept", "refuse", "observe", "overflow"})


@dataclass
class Planner:
    """The state of one plan: what was sent, what that serves, what is left of the budget, what was learned."""

    context: PlanContext
    drawn: Drawn
    budget: Budget | None = None
    select: Collection[str] = ()
    known: LearnedTarget = field(default_factory=LearnedTarget)
    sent: Sent = field(default_factory=Sent)
    cases: list[RequestCase] = field(default_factory=list)
    doubted: list[RequestCase] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    serving: RequirementCoverage | None = None  # of the same contract, where other plans have asked it much already
    remembered: Remembered = field(default_factory=Remembered)  # of the same scene and drawn bodies

    def phases(self) -> Phases:
        """Wave after wave. Before each, everything that is still to come is planned anew with what is known by then."""
        profile = PROFILES["full" if self.context.full else "gate"]
        ceiling = smaller(profile, self.budget) if self.budget else profile
        for place, name in enumerate(ORDER):
            remaining = self._purse(ceiling)
            remaining.requests += LESSONS if self.context.full and name in {"values", "rows"} else 0
            chosen = self._choose(self._ahead(ORDER[place:]), remaining)
            refused = len(self.known.refused) + len(self.known.apart)
            yield from self._send(name, [one for one in chosen if one.phase == name])
            if name == "base" and self._base_is_refused():
                self.known.no_cold = True
                yield from self._send("base", self._choose(self._ahead(("base",)), self._purse(ceiling)))
            if name in {"values", "rows", "learned"}:
                self.known.swept = name != "values"
                yield from self._isolate(ceiling, ORDER[place + 1 :])
            if name == "rows" and len(self.known.refused) + len(self.known.apart) > refused:
                # rows that were refused for a value that is known by now are replaced by rows without it
                again = [replace(one, rank=3) for one in self._ahead(("rows",)) if not one.rank]
                chosen = self._choose([*again, *self._ahead(ORDER[place + 1 :])], self._purse(ceiling))
                yield from self._send("rows", [one for one in chosen if one.phase == "rows"])
        if ceiling != profile:
            # what the profile has and the lower ceiling has not: planned, and sent as far as anything is left
            gone = {case.content for case in self.cases}
            chosen = self._choose(list(self._bundles()), self._purse(profile))
            yield from self._send(LEFT_OUT, [one for one in chosen if any(c.content not in gone for c in one.cases)])

    @property
    def now(self) -> PlanContext:
        """The scene as it is known by now."""
        return replace(self.context, known=self.known)

    def _send(self, name: str, chosen: list[CaseGroup], *, doubted: bool = False) -> Phases:
        cases, burst = crowded(self.sent.assemble(chosen))
        if cases:
            exchanges = yield Phase(name, cases, serial=name == "hostile", burst=burst)
            self.cases += cases
            self.doubted += cases if doubted else ()
            self.done.update(slot for bundle in chosen for slot in bundle.own)
            refused = {x.case.id for x in exchanges if not x.successful}
            for case in cases:
                # a valid request that was refused shows no more than what it was to find out by itself
                found = alone_in(case) if case.id in refused and _expected(case) else self._serving.of(case)
                self.shown.update(found)
            self.known.learn(exchanges)

    def _isolate(self, ceiling: Budget, later: Sequence[str]) -> Phases:
        """What was refused in company is sent in smaller company, until the guilty are known.

        Most of what is set aside pays for that, then whatever is not needed for a MUST that is to come.
        """
        while not self.done.issuperset(slot for one in doubts(self.now) for slot in one.own):
            chosen = self._choose(self._ahead(("alone", *later)), self._purse(ceiling, doubting=True))
            before = len(self.cases)
            yield from self._send("alone", [one for one in chosen if one.phase == "alone"], doubted=True)
            if len(self.cases) == before:
                return

    def _ahead(self, names: Collection[str]) -> list[CaseGroup]:
        """The bundles of these waves that have not been sent."""
        return [one for one in self._bundles(names) if one.phase in names and not self.done.issuperset(one.own)]

    def _purse(self, ceiling: Budget, *, doubting: bool = False) -> RemainingBudget:
        """What is left to plan with. Most of what is set aside pays for finding out what was refused."""
        aside = share(ceiling, RESERVE * 2 / 3)
        spent, apart = (self._spent(cases) for cases in (self.cases, self.doubted))
        free = RemainingBudget(aside, aside.requests or 0, aside.prompt_tokens or 0, aside.completion_tokens or 0)
        if not doubting:
            free = RemainingBudget(
                aside,
                min(free.requests, apart.requests),
                min(free.prompt, apart.prompt),
                min(free.completion, apart.completion),
            )
        whole = share(ceiling, RESERVE * 8 / 9)  # a MUST that nobody asked for is worse than one that is in doubt
        left = [
            whole.requests and whole.requests - free.requests,
            whole.completion_tokens and whole.completion_tokens - free.completion,
            whole.prompt_tokens and whole.prompt_tokens - free.prompt,
        ]
        return RemainingBudget(
            plannable(ceiling),
            spent.requests - free.requests,
            spent.prompt - free.prompt,
            spent.completion - free.completion,
            Budget(*left) if self.doubted else NOTHING,
        )

    def _spent(self, cases: Sequence[RequestCase]) -> RemainingBudget:
        costs = [self._serving.cost(case) for case in cases]
        return RemainingBudget(
            Budget(), len(costs), sum(one.prompt for one in costs), sum(one.completion for one in costs)
        )

    def _choose(self, ahead: Sequence[CaseGroup], remaining: RemainingBudget) -> list[CaseGroup]:
        def made() -> list[CaseGroup]:
            return choose(ahead, remaining, self._serving, self.shown, self._wanted, self.context.defaults)

        return self.remembered.choice(made, ahead, remaining, self.shown)

    def _bundles(self, names: Collection[str] = ORDER) -> Iterator[CaseGroup]:
        for bundle in bundles(self.now, self.drawn, names, self.remembered):
            if not self.select or not bundle.rank or self._serving.by(bundle) & self._wanted:
                yield bundle

    def __post_init__(self) -> None:
        self._serving = self.serving or RequirementCoverage(self.context.contract, self.context.checks)
        self._wanted = must(self.context.contract)
        if self.select:
            rows = self.context.rows
            self._wanted = frozenset(row for row in rows if any(fnmatchcase(row, glob) for glob in self.select))

    def _base_is_refused(self) -> bool:
        """Whether the base is turned down, which may be for its temperature."""
        found = self.known.replies.get(dumps(self.context.base).encode())
        return found is not None and found.refused


def _expected(case: RequestCase) -> bool:
    """Whether a success was to be expected."""
    return case.validity is not Validity.INVALID


def alone_in(case: RequestCase) -> set[str]:
    """The requirements on accepting or refusing something that a case tries by itself."""
    return {one.key.partition(" ")[0] for one in case.groups if one.role == "probe" and one.kind in ALONE}


def doubts(context: PlanContext) -> Iterator[CaseGroup]:
    """What refusals make it worth to send."""
    yield from suspects(context)
    yield from cleared(context)


PARTS: Final = (
    first, protocol, singles, named, invalids, relations, foundations, doubts, edges, unlimited, grid, samples, filters,
    arms, lessons, bursts, hostile,
)  # fmt: skip
DRAWING: Final = {grid, samples}  # what is made from drawn values
ONLY: Final = {grid: "rows"}  # what takes long is not planned for waves that it has no part in


def bundles(
    context: PlanContext, drawn: Drawn = (), names: Collection[str] = ORDER, remembered: Remembered | None = None
) -> Iterator[CaseGroup]:
    """Every bundle of a plan, as far as it is known by now what the target accepts; those of some waves at least."""
    remembered = remembered or Remembered()
    for part in PARTS:
        if part not in ONLY or ONLY[part] in names:
            yield from remembered.of(part, context, *([drawn] if part in DRAWING else []))


__all__ = ["LEFT_OUT", "Drawn", "Phases", "Planner", "bundles"]
