"""The phases of a run, what is planned for each, and what its replies lead to.

Design
======
A plan is a state machine. In each state one phase is sent; its replies decide whether more follows before the next
state. `STATES` is that machine:

    base     the base request           refused for its temperature: sent again at a temperature near 0
    values   each value by itself       values that a joint case leaves in doubt are isolated (phase `alone`)
    rows     combinations of values     isolated again; rows that held a rejected value are replaced by others
    learned  follow-ups to replies      isolated again
    hostile  adversarial requests       one after another, nothing follows

A lower budget than the profile's adds a last phase, `left out`: what the profile has and the budget has not.

Before each phase but the first everything that is still to come is planned with what is known by then, because a small
budget must know what it will be needed for. `PARTS` lists the generators of requests. Each declares the phases that it
contributes to (the others are planned without it) and its input: what of the target it looks at. Generators that look
at accepted and rejected values only are run again only when these have changed, see `factors.accepted_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Final

from conformance.model import Phase, RequestCase, Validity
from conformance.model.budget import PROFILES, Budget
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.plan.adversarial import adversarial_requests
from conformance.plan.case_group import ORDER, CaseGroup, Rank, Sent
from conformance.plan.context import PlanContext
from conformance.plan.drawn_requests import LOOK_ALIKE, drawn_requests
from conformance.plan.expected_defects import ExpectedDefects
from conformance.plan.factors import accepted_values
from conformance.plan.follow_ups import follow_ups, prerequisites
from conformance.plan.invalid_requests import invalid_requests, types_in_doubt
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.profiles import RESERVE, plannable, share, smaller
from conformance.plan.protocol import protocol
from conformance.plan.relations import defaults_in_doubt, relations
from conformance.plan.requirement_coverage import RequirementCoverage, must
from conformance.plan.row_requests import combination_rows
from conformance.plan.sample_groups import burst_first, bursts, filtered_samples, sample_arms
from conformance.plan.set_cover import NOTHING, RemainingBudget, choose
from conformance.plan.single_values import (
    base_requests,
    isolated_values,
    members_of_rows,
    single_values,
    without_open_members,
    without_token_limit,
)
from conformance.plan.stop_classes import stop_classes
from conformance.plan.valid_inputs import classes_in_doubt, range_ends, valid_inputs

Drawn = Sequence[Mapping[str, Any]]
Phases = Generator[Phase, tuple[Exchange, ...], None]
Generate = Callable[..., Iterator[CaseGroup]]
FOLLOW_UPS: Final = 8  # requests that replies may lead to beyond those that the budget already counts
ISOLATING: Final = 3 / 4  # of the reserve, which is for isolating rejected values before anything else
LEFT_OUT: Final = "left out"
ALONE: Final = "alone"
IN_ORDER: Final = frozenset({"base", "hostile"})
EVERY_PHASE: Final = (*ORDER, ALONE)
ACCEPTANCE_KINDS: Final = frozenset({"accept", "refuse", "observe", "overflow"})


@dataclass(frozen=True)
class State:
    """A state of the plan: the phase that is sent in it, and what its replies may lead to before the next state."""

    phase: str
    repeats_base: bool = False
    isolates: bool = False
    replaces_rows: bool = False
    follow_ups: int = 0  # more requests than the budget has, because not all that is set aside will be needed


STATES: Final = (
    State("base", repeats_base=True),
    State("values", isolates=True, follow_ups=FOLLOW_UPS),
    State("rows", isolates=True, replaces_rows=True, follow_ups=FOLLOW_UPS),
    State("learned", isolates=True),
    State("hostile"),
)


class Input(Enum):
    """What of the target a generator looks at, besides contract and options."""

    VALUES = auto()  # which values it accepts, see `factors.accepted_values`
    ROWS = auto()  # the same, and all replies once rows were sent
    REPLIES = auto()  # anything that it replied

    def key(self, context: PlanContext) -> Hashable:
        """What the input is now; None where it may be another each time."""
        if self is Input.REPLIES or (self is Input.ROWS and context.known.rows_sent):
            return None
        return accepted_values(context)


@dataclass(frozen=True)
class Part:
    """A generator of requests, the phases that it contributes to, and its input."""

    generate: Generate
    phases: tuple[str, ...]
    input: Input = Input.VALUES
    uses_drawn: bool = False


def isolating_requests(context: PlanContext) -> Iterator[CaseGroup]:
    """What isolates the values that refusals leave in doubt."""
    yield from isolated_values(context, classes_in_doubt(context) if context.known.in_doubt else ())
    yield from without_open_members(context)


# Their order is the order of requests within a phase.
PARTS: Final = (
    Part(base_requests, ("base",)),
    Part(protocol, ("rows", "learned")),
    Part(single_values, ("values", "rows", "learned")),
    Part(members_of_rows, ("values",)),
    Part(invalid_requests, ("values", "rows", "learned"), uses_drawn=True),
    Part(valid_inputs, ("rows",)),
    Part(relations, ("base", "values", "rows")),
    Part(prerequisites, ("values", "rows")),
    Part(isolating_requests, (ALONE,), Input.REPLIES),
    Part(range_ends, ("values", "rows"), Input.REPLIES),
    Part(without_token_limit, ("rows",)),
    Part(combination_rows, ("rows",), Input.ROWS, uses_drawn=True),
    Part(drawn_requests, ("rows",), uses_drawn=True),
    Part(filtered_samples, ("rows",)),
    Part(sample_arms, ("rows",)),
    Part(follow_ups, ("learned",), Input.REPLIES),
    Part(stop_classes, ("rows", "learned"), Input.REPLIES),
    Part(types_in_doubt, ("learned",), Input.REPLIES),
    Part(defaults_in_doubt, ("learned",), Input.REPLIES),
    Part(bursts, ("values", "learned"), Input.REPLIES),
    Part(adversarial_requests, ("hostile",)),
)


@dataclass
class CaseGroups:
    """The case groups of every part; what a part made is kept for its last `most` inputs.

    Several plans of one context and the same drawn bodies may share them.
    """

    drawn: Drawn = ()
    most: int = 1
    _made: dict[Generate, dict[Hashable, tuple[CaseGroup, ...]]] = field(default_factory=dict, repr=False)

    def of(self, context: PlanContext, phases: Collection[str] = EVERY_PHASE) -> Iterator[CaseGroup]:
        """The case groups of the parts that contribute to one of these phases."""
        for part in PARTS:
            if not set(phases).isdisjoint(part.phases):
                yield from self._of(part, context)

    def _of(self, part: Part, context: PlanContext) -> tuple[CaseGroup, ...]:
        key = part.input.key(context)
        kept = self._made.setdefault(part.generate, {})
        made = kept.pop(key, None)
        if made is None:
            made = tuple(part.generate(context, self.drawn) if part.uses_drawn else part.generate(context))
        if key is not None:
            kept[key] = made
            if len(kept) > self.most:
                del kept[next(iter(kept))]  # the one that was not used for longest
        return made


@dataclass
class Planner:
    """One plan in progress: what was sent, what that shows, what is left of the budget, what was learned."""

    context: PlanContext
    drawn: Drawn
    budget: Budget | None = None
    select: Collection[str] = ()
    known: LearnedTarget = field(default_factory=LearnedTarget)
    serving: RequirementCoverage | None = None  # shared by several plans of one contract
    case_groups: CaseGroups | None = None  # shared by several plans of one context
    by_rank: bool = False  # whether `gate` chooses by rank as well, as `full` does, instead of by expected defects
    sent: Sent = field(default_factory=Sent)
    cases: list[RequestCase] = field(default_factory=list)
    isolating: list[RequestCase] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._case_groups = self.case_groups or CaseGroups(self.drawn)
        self._serving = self.serving or RequirementCoverage(self.context.contract, self.context.checks)
        self._wanted = must(self.context.contract)
        if self.select:
            rows = self.context.rows
            self._wanted = frozenset(row for row in rows if any(fnmatchcase(row, glob) for glob in self.select))
        only = self._wanted if self.select else None
        self._expected = None if self.context.full or self.by_rank else ExpectedDefects(self._serving, only)

    def phases(self) -> Phases:
        """Phase after phase; send in what came back for each."""
        profile = PROFILES[self.context.profile]
        ceiling = smaller(profile, self.budget) if self.budget else profile
        for index, state in enumerate(STATES):
            later = ORDER[index + 1 :]
            remaining = self._remaining(ceiling)
            remaining.requests += state.follow_ups if self.context.full else 0
            rejected = self.known.rejections
            # the base request is sent whatever else is, and decides what that is
            to_come = ORDER[index:] if index else (state.phase,)
            yield from self._send(state.phase, self._choose(self._ahead(to_come), remaining))
            if state.repeats_base and self._base_is_refused():
                self.known.rejects_temperature_zero = True
                yield from self._send(state.phase, self._choose(self._ahead((state.phase,)), self._remaining(ceiling)))
            if state.isolates:
                self.known.rows_sent = state.phase != "values"
                yield from self._isolate(ceiling, later)
            if state.replaces_rows and self.known.rejections > rejected:
                rows = [replace(row, rank=Rank.NORMAL) for row in self._ahead((state.phase,)) if not row.rank]
                chosen = self._choose([*rows, *self._ahead(later)], self._remaining(ceiling))
                yield from self._send(state.phase, chosen)
        if ceiling != profile:
            yield from self._send_left_out(profile)

    @property
    def now(self) -> PlanContext:
        """The context with what is known by now."""
        return replace(self.context, known=self.known)

    def _send(self, phase: str, chosen: Sequence[CaseGroup]) -> Phases:
        """Send those of the chosen case groups that belong to this phase, and learn from what comes back."""
        yield from self._send_all(phase, [case_group for case_group in chosen if case_group.phase == phase])

    def _send_left_out(self, profile: Budget) -> Phases:
        """What the profile has and a lower ceiling has not: planned, and sent as far as anything is left."""
        sent = {case.content for case in self.cases}
        chosen = self._choose(list(self._planned(EVERY_PHASE)), self._remaining(profile))
        new = [case_group for case_group in chosen if any(case.content not in sent for case in case_group.cases)]
        yield from self._send_all(LEFT_OUT, new)

    def _send_all(self, phase: str, chosen: list[CaseGroup]) -> Phases:
        cases, burst = burst_first(self._ordered(phase, self.sent.assemble(chosen)))
        if not cases:
            return
        exchanges = yield Phase(phase, cases, serial=phase == "hostile", burst=burst)
        self.cases += cases
        self.isolating += cases if phase == ALONE else ()
        self.done.update(slot for case_group in chosen for slot in case_group.own)
        if self._expected is not None:
            self._expected.count(chosen)
        refused = {exchange.case.id for exchange in exchanges if not exchange.successful}
        for case in cases:
            # a refused case that was not invalid shows whether its own value is accepted, and nothing else
            in_vain = case.id in refused and case.validity is not Validity.INVALID
            shown = self._serving.goals_of(tried_alone(case)) if in_vain else self._serving.of(case)
            shown |= set() if case.id in refused else self._serving.forms(case)
            self.shown.update(shown if case.id in refused else shown - converted(case))
        self.known.learn(exchanges)

    def _ordered(self, phase: str, cases: tuple[RequestCase, ...]) -> tuple[RequestCase, ...]:
        """The cases in the order of this seed: as planned for 0, else shuffled where nothing depends on the order.

        Some defects show only after certain other requests, so runs of another seed have another order.
        """
        if not (self.context.full and self.context.seed) or phase in IN_ORDER:
            return cases
        shuffled = list(cases)
        Random(f"{self.context.seed} {phase}").shuffle(shuffled)  # noqa: S311
        return tuple(shuffled)

    def _isolate(self, ceiling: Budget, later: Sequence[str]) -> Phases:
        """Bisect rejected combinations until each rejected value is known, or the budget does not allow more.

        Most of the reserve may be spent on it, then whatever is not needed for a MUST that is still to come.
        """
        while not self.done.issuperset(slot for case_group in isolating_requests(self.now) for slot in case_group.own):
            before = len(self.cases)
            chosen = self._choose(self._ahead((ALONE,)), self._set_aside(ceiling))
            yield from self._send(ALONE, chosen)
            if len(self.cases) == before:
                chosen = self._choose(self._ahead((ALONE, *later)), self._remaining(ceiling, isolating=True))
                yield from self._send(ALONE, chosen)
            if len(self.cases) == before:
                return

    def _ahead(self, phases: Collection[str]) -> list[CaseGroup]:
        """The case groups of these phases that have not been sent."""
        return [
            case_group
            for case_group in self._planned(phases)
            if case_group.phase in phases and not self.done.issuperset(case_group.own)
        ]

    def _set_aside(self, ceiling: Budget) -> RemainingBudget:
        """What is left of the part of the reserve that is for isolating rejected values."""
        isolated = self._spent(self.isolating)
        isolated.budget = share(ceiling, RESERVE[self.context.profile] * ISOLATING)
        return isolated

    def _remaining(self, ceiling: Budget, *, isolating: bool = False) -> RemainingBudget:
        """The budget that is left to plan with: the ceiling less the reserve and what was spent.

        Three quarters of the reserve are for isolating rejected values: spending them does not count, and other
        requests cannot have what is left of them. What isolation leaves of 8/9 of the reserve may be released for a
        MUST that has no room otherwise: a MUST without any request is worse than one that was not confirmed.
        """
        aside = share(ceiling, RESERVE[self.context.profile] * ISOLATING)
        spent, isolated = (self._spent(cases) for cases in (self.cases, self.isolating))
        free = RemainingBudget(aside, aside.requests or 0, aside.prompt_tokens or 0, aside.completion_tokens or 0)
        if not isolating:
            free = RemainingBudget(
                aside,
                min(free.requests, isolated.requests),
                min(free.prompt, isolated.prompt),
                min(free.completion, isolated.completion),
            )
        most = share(ceiling, RESERVE[self.context.profile] * 8 / 9)
        releasable = Budget(
            requests=most.requests and most.requests - free.requests,
            completion_tokens=most.completion_tokens and most.completion_tokens - free.completion,
            prompt_tokens=most.prompt_tokens and most.prompt_tokens - free.prompt,
        )
        return RemainingBudget(
            plannable(ceiling, self.context.profile),
            spent.requests - free.requests,
            spent.prompt - free.prompt,
            spent.completion - free.completion,
            releasable if self.isolating else NOTHING,
        )

    def _spent(self, cases: Sequence[RequestCase]) -> RemainingBudget:
        costs = [self._serving.cost(case) for case in cases]
        return RemainingBudget(
            Budget(), len(costs), sum(cost.prompt for cost in costs), sum(cost.completion for cost in costs)
        )

    def _choose(self, ahead: Sequence[CaseGroup], remaining: RemainingBudget) -> list[CaseGroup]:
        return choose(
            ahead, remaining, self._serving, self.shown, self._wanted, self._expected, selected=bool(self.select)
        )

    def _planned(self, phases: Collection[str]) -> Iterator[CaseGroup]:
        """The case groups of these phases; with `select`, those that show something selected."""
        for case_group in self._case_groups.of(self.now, phases):
            base = not case_group.rank and (case_group.phase == "base" or self.context.full)
            if not self.select or base or self._serving.goals(case_group) & self._wanted:
                yield case_group

    def _base_is_refused(self) -> bool:
        """Whether the base request is refused, which may be for its temperature."""
        exchange = self.known.replies.get(dumps(self.context.base).encode())
        return exchange is not None and exchange.refused


def tried_alone(case: RequestCase) -> set[str]:
    """The requirements on accepting or refusing something that a case tries by itself."""
    probed = [part for part in case.groups if part.role == "probe" and part.kind in ACCEPTANCE_KINDS]
    return {part.key.partition(" ")[0] for part in probed}


def converted(case: RequestCase) -> set[str]:
    """The requirements on types that a look-alike shows only where it is refused."""
    return {part.key.partition(" ")[0] for part in case.groups if part.role == LOOK_ALIKE}


__all__ = ["LEFT_OUT", "PARTS", "CaseGroups", "Drawn", "Phases", "Planner"]
