"""Which case groups a budget has room for: a greedy set cover of the requirements first, then the rest by rank."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from conformance.model import RequestCase
from conformance.model.budget import Budget, Cost
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.requirement_coverage import RequirementCoverage

NOTHING: Final = Budget(0, 0, 0)
# The price of a case group in requests: 200 completion tokens or 600 prompt tokens take about as long as a request.
COMPLETION_TOKENS_PER_REQUEST: Final = 200
PROMPT_TOKENS_PER_REQUEST: Final = 600
GUARANTEED: Final = 0.25  # of the requests of a budget at most, so that a low one has room for the MUSTs
LEAST_PRICE: Final = 0.1  # of a case group all of whose requests are chosen already


@dataclass
class RemainingBudget:
    """What is left to plan with; `releasable` may be added for a MUST that has no room otherwise."""

    budget: Budget
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    releasable: Budget = NOTHING

    def affords(self, requests: int, cost: Cost) -> bool:
        """Whether this many more requests at this cost stay within the budget."""
        limits = self.budget
        return all(
            most is None or used <= most
            for used, most in (
                (self.requests + requests, limits.requests),
                (self.prompt + cost.prompt, limits.prompt_tokens),
                (self.completion + cost.completion, limits.completion_tokens),
            )
        )

    def release_reserve(self) -> None:
        """Add what is releasable to the budget, once."""
        own, extra, self.releasable = self.budget, self.releasable, NOTHING
        requests, completion, prompt = (
            None if most is None else most + (more or 0)
            for most, more in (
                (own.requests, extra.requests),
                (own.completion_tokens, extra.completion_tokens),
                (own.prompt_tokens, extra.prompt_tokens),
            )
        )
        self.budget = Budget(requests, completion, prompt, own.seconds)

    def charge(self, requests: int, cost: Cost) -> None:
        """Count requests and their cost as spent."""
        self.requests += requests
        self.prompt += cost.prompt
        self.completion += cost.completion


@dataclass
class Selection:
    """The case groups chosen so far, the requests they share, and their cost."""

    remaining: RemainingBudget
    serving: RequirementCoverage
    chosen: list[CaseGroup] = field(default_factory=list)
    costs: dict[str, Cost] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def added_cost(self, case_group: CaseGroup) -> tuple[int, Cost]:
        """The requests that a case group adds to those chosen, and their cost."""
        return self._sum({slot: case for slot, case in case_group.slots if slot not in self.taken})

    def total_cost(self, case_groups: Iterable[CaseGroup]) -> tuple[int, Cost]:
        """The number of requests of all these together, and their cost."""
        return self._sum({slot: case for case_group in case_groups for slot, case in case_group.slots})

    def take(self, case_group: CaseGroup) -> bool:
        """Choose a case group if the budget has room for it."""
        requests, cost = self.added_cost(case_group)
        if not self.remaining.affords(requests, cost):
            return False
        self.remaining.charge(requests, cost)
        self.taken.update(slot for slot, _ in case_group.slots)
        self.chosen.append(case_group)
        return True

    def shown(self) -> set[str]:
        """The requirements that the chosen case groups show."""
        return {requirement for case_group in self.chosen for requirement in self.serving.by(case_group)}

    def _sum(self, cases: Mapping[str, RequestCase]) -> tuple[int, Cost]:
        costs = [self.costs.get(slot) or self._cost(slot, case) for slot, case in cases.items()]
        return len(costs), Cost(sum([cost.prompt for cost in costs]), sum([cost.completion for cost in costs]))

    def _cost(self, slot: str, case: RequestCase) -> Cost:
        cost = self.costs[slot] = self.serving.cost(case)
        return cost


def choose(
    case_groups: Sequence[CaseGroup],
    remaining: RemainingBudget,
    serving: RequirementCoverage,
    shown: Collection[str],
    wanted: Collection[str],
) -> list[CaseGroup]:
    """The case groups to send, in their order. `shown`: requirements shown before; `wanted`: those to be covered first.

    Where all fit, all are sent. Else: what is always sent; a set cover of `wanted`; what is essential, and what is
    guaranteed; what is relevant; a set cover of every requirement; the rest by rank; and, for what is wanted and still
    not covered, the reserve.
    """
    selection = Selection(remaining, serving)
    if remaining.affords(*selection.total_cost(case_groups)):
        return [case_group for case_group in case_groups if selection.take(case_group)]
    rest = dict(enumerate(case_groups))
    _fill(rest, selection, Rank.ALWAYS)
    _cover(rest, selection, set(wanted) - set(shown) - selection.shown())
    _fill(rest, selection, Rank.ESSENTIAL)
    _fill_guaranteed(rest, selection)
    _fill(rest, selection, Rank.RELEVANT)
    _cover(rest, selection, set(serving.all) - set(shown) - selection.shown(), Rank.USEFUL)
    _cover(rest, selection, set(serving.all) - set(shown) - selection.shown())
    _fill(rest, selection)
    remaining.release_reserve()
    _cover(rest, selection, set(wanted) - set(shown) - selection.shown())
    order = {id(case_group): index for index, case_group in enumerate(case_groups)}
    return sorted(selection.chosen, key=lambda case_group: order[id(case_group)])


def _fill(rest: dict[int, CaseGroup], selection: Selection, lowest: int | None = None) -> None:
    """Take what is left in the order of its rank, down to `lowest`."""
    for index in sorted(rest, key=lambda index: (rest[index].rank, index)):
        if (lowest is None or rest[index].rank <= lowest) and selection.take(rest[index]):
            del rest[index]


def _fill_guaranteed(rest: dict[int, CaseGroup], selection: Selection) -> None:
    """Take what is guaranteed, in its order, up to its share of the requests of the budget."""
    ceiling, before = selection.remaining.budget.requests, selection.remaining.requests
    for index in [index for index, case_group in rest.items() if case_group.guaranteed]:
        used = selection.remaining.requests - before + selection.added_cost(rest[index])[0]
        if (ceiling is None or used <= ceiling * GUARANTEED) and selection.take(rest[index]):
            del rest[index]


def _cover(rest: dict[int, CaseGroup], selection: Selection, missing: set[str], lowest: int | None = None) -> None:
    """Greedy set cover: at each step the case group that covers most for its price, the first of several equals.

    After each step, only those are weighed again that share a request or a requirement with what was chosen.
    """
    covers = {
        index: shown
        for index, case_group in rest.items()
        if (lowest is None or case_group.rank <= lowest) and (shown := set(selection.serving.by(case_group) & missing))
    }
    sharing: dict[str, list[int]] = {}
    for index, shown in covers.items():
        for name in (*shown, *dict(rest[index].slots)):
            sharing.setdefault(name, []).append(index)
    worth = {index: _worth(rest[index], shown, selection) for index, shown in covers.items()}
    while worth:
        best = max(worth, key=worth.__getitem__)
        if not worth.pop(best):
            return
        shown, case_group = covers.pop(best), rest[best]
        if not selection.take(case_group):
            continue
        del rest[best]
        names = (*shown, *dict(case_group.slots))
        for index in {index for name in names for index in sharing[name] if index in covers}:
            covers[index] -= shown
            worth[index] = _worth(rest[index], covers[index], selection)


def _worth(case_group: CaseGroup, shown: Collection[str], selection: Selection) -> float:
    """The number of requirements that a case group covers for its price."""
    if not shown:
        return 0.0
    requests, cost = selection.added_cost(case_group)
    tokens = cost.completion / COMPLETION_TOKENS_PER_REQUEST + cost.prompt / PROMPT_TOKENS_PER_REQUEST
    return len(shown) / (LEAST_PRICE + requests + tokens)


__all__: Final = ["NOTHING", "RemainingBudget", "Selection", "choose"]
