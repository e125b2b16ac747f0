"""Which case groups a budget has room for: a set cover of the MUSTs, then what is expected to find most defects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Final

from conformance.model import RequestCase
from conformance.model.budget import Budget, Cost
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.expected_defects import ExpectedDefects, Shown
from conformance.plan.requirement_coverage import RequirementCoverage

NOTHING: Final = Budget(0, 0, 0)
# The price of a case group in requests: 200 completion tokens or 600 prompt tokens take about as long as a request.
COMPLETION_TOKENS_PER_REQUEST: Final = 200
PROMPT_TOKENS_PER_REQUEST: Final = 600
GUARANTEED: Final = 0.25  # of the requests of a budget at most, so that a low one has room for the MUSTs
TIE_BREAK: Final = 0.01  # of a requirement: too little to outweigh one
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
        current, extra, self.releasable = self.budget, self.releasable, NOTHING
        requests, completion, prompt = (
            None if ceiling is None else ceiling + (added or 0)
            for ceiling, added in (
                (current.requests, extra.requests),
                (current.completion_tokens, extra.completion_tokens),
                (current.prompt_tokens, extra.prompt_tokens),
            )
        )
        self.budget = Budget(requests, completion, prompt, current.seconds)

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
        """The requirements that the chosen case groups show, and the forms of values that they have."""
        return {goal for case_group in self.chosen for goal in self.serving.goals(case_group)}

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
    expected: ExpectedDefects | None = None,
    *,
    selected: bool = False,
) -> list[CaseGroup]:
    """The case groups to send, in their order. `shown`: requirements shown before; `wanted`: those to be covered first.

    With `selected` only `wanted` counts: what shows none of it, and what shows it in no other context, is not sent.

    A requirement is covered once every form of the values that it speaks of is sent. Where all fit, all are sent.
    Else: what is always sent, and what is guaranteed; a set cover of `wanted`; what is essential; what is expected to
    find most defects for its price (without `expected`: what is relevant, and a set cover of every requirement); the
    rest by rank; and, for what is wanted and still not covered, the reserve.

    Where something wanted has no room then, as where a target rejects much, the choice is made again: the set cover
    comes first and takes the fewest requests, and rows and what is guaranteed get what is left. Where even that leaves
    something out, as on a low budget, the first choice stands.
    """
    goals = serving.goals_of(wanted)
    missing = set(goals.difference(shown))
    if selected and expected is not None:
        worth = Worth(Selection(remaining, serving), expected, missing)
        return _enough(case_groups, worth)
    if remaining.affords(*Selection(remaining, serving).total_cost(case_groups)):
        selection = Selection(remaining, serving)
        return [case_group for case_group in case_groups if selection.take(case_group)]
    rest, worth = _cover(case_groups, Worth(Selection(replace(remaining), serving), expected, set(missing)))
    if _is_left_out(rest, worth):
        thrifty = Worth(Selection(replace(remaining), serving), expected, set(missing), thrifty=True)
        again = _cover(case_groups, thrifty)
        rest, worth = (rest, worth) if _is_left_out(*again) else again
    selection = worth.selection
    if expected is not None:
        _take_best(rest, worth, Rank.EXTRA)
    else:
        _fill(rest, worth, Rank.RELEVANT)
        worth.missing = set(serving.all) - set(shown) - selection.shown()
        _take_best(rest, worth, Rank.USEFUL, must=True)
        _take_best(rest, worth, must=True)
    _fill(rest, worth)
    selection.remaining.release_reserve()
    worth.missing = missing - set(selection.shown())
    _take_best(rest, worth, must=True)
    return _in_order(selection.chosen, case_groups)


def _enough(case_groups: Sequence[CaseGroup], worth: Worth) -> list[CaseGroup]:
    """The base requests, and the case groups that show a missing requirement, or one in a context of its own."""
    rest = dict(enumerate(case_groups))
    base = {index: case_group for index, case_group in rest.items() if case_group.phase == "base"}
    _fill(base, worth, Rank.ALWAYS)
    _take_best(rest, worth, must=True)
    worth.selection.remaining.release_reserve()
    _take_best(rest, worth)
    return _in_order(worth.selection.chosen, case_groups)


def _in_order(chosen: Iterable[CaseGroup], case_groups: Iterable[CaseGroup]) -> list[CaseGroup]:
    order = {id(case_group): index for index, case_group in enumerate(case_groups)}
    return sorted(chosen, key=lambda case_group: order[id(case_group)])


def _is_left_out(rest: Mapping[int, CaseGroup], worth: Worth) -> bool:
    """Whether a case group that is left shows a missing requirement."""
    return any(worth.selection.serving.goals(case_group) & worth.missing for case_group in rest.values())


def _cover(case_groups: Sequence[CaseGroup], worth: Worth) -> tuple[dict[int, CaseGroup], Worth]:
    """What comes before anything else is weighed, and the case groups that are left."""
    rest = dict(enumerate(case_groups))
    _fill(rest, worth, Rank.ALWAYS, without="rows" if worth.thrifty else "")
    if not worth.thrifty:
        _fill_guaranteed(rest, worth)
    _take_best(rest, worth, must=True)
    _fill(rest, worth, Rank.ALWAYS)
    _fill(rest, worth, Rank.ESSENTIAL)
    if worth.thrifty:
        _fill_guaranteed(rest, worth)
    return rest, worth


@dataclass
class Worth:
    """What case groups are worth beside those chosen: the requirements that are `missing`, and expected defects.

    With `thrifty`, expected defects only decide between case groups that show as many requirements for their price.
    """

    selection: Selection
    expected: ExpectedDefects | None
    missing: set[str]
    thrifty: bool = False
    already: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.already = dict(self.expected.before) if self.expected else {}

    def take(self, case_group: CaseGroup) -> bool:
        """Choose a case group if the budget has room for it."""
        if not self.selection.take(case_group):
            return False
        self.missing -= self.selection.serving.goals(case_group)
        for context, promises in self._shown(case_group).items():
            self.already[context] = self.already.get(context, 0) | promises
        return True

    def of(self, case_group: CaseGroup, *, must: bool) -> float:
        """What a case group adds for its price; with `must`, nothing without a missing requirement."""
        missing = len(self.missing & self.selection.serving.goals(case_group)) if must else 0
        if must and not missing:
            return 0.0
        gain = self.expected.gain(self._shown(case_group), self.already) if self.expected else 0.0
        requests, cost = self.selection.added_cost(case_group)
        tokens = cost.completion / COMPLETION_TOKENS_PER_REQUEST + cost.prompt / PROMPT_TOKENS_PER_REQUEST
        price = LEAST_PRICE + requests + tokens
        # between case groups that show as many requirements, the expected defects decide
        weight = TIE_BREAK if self.thrifty else 1.0
        return (missing + weight * gain / (1 + gain)) / price if must else gain / price

    def _shown(self, case_group: CaseGroup) -> Shown:
        return self.expected.of(case_group) if self.expected else {}


def _fill(rest: dict[int, CaseGroup], worth: Worth, lowest: int | None = None, without: str = "") -> None:
    """Take what is left in the order of its rank, down to `lowest`, but for one phase."""
    for index in sorted(rest, key=lambda index: (rest[index].rank, index)):
        ranked = (lowest is None or rest[index].rank <= lowest) and rest[index].phase != without
        if ranked and worth.take(rest[index]):
            del rest[index]


def _fill_guaranteed(rest: dict[int, CaseGroup], worth: Worth) -> None:
    """Take what is guaranteed, in its order, up to its share of the requests of the budget."""
    selection = worth.selection
    ceiling, before = selection.remaining.budget.requests, selection.remaining.requests
    for index in [index for index, case_group in rest.items() if case_group.guaranteed]:
        used = selection.remaining.requests - before + selection.added_cost(rest[index])[0]
        if (ceiling is None or used <= ceiling * GUARANTEED) and worth.take(rest[index]):
            del rest[index]


def _take_best(rest: dict[int, CaseGroup], worth: Worth, lowest: int | None = None, *, must: bool = False) -> None:
    """Greedy choice: at each step the case group that adds most for its price, the first of several equals.

    What is chosen lowers what others add, so a case group is weighed again only when it would be the next. Where it
    shares a request with others, these become cheaper, and are weighed again at once.
    """
    able = [index for index, case_group in rest.items() if lowest is None or case_group.rank <= lowest]
    sharing: dict[str, list[int]] = {}
    for index in able:
        for slot, _ in rest[index].slots:
            sharing.setdefault(slot, []).append(index)
    queue = [(-added, index) for index in able if (added := worth.of(rest[index], must=must))]
    heapify(queue)
    while queue:
        stale, index = heappop(queue)
        if index not in rest:
            continue
        added = worth.of(rest[index], must=must)
        if not added:
            continue
        if queue and (-added, index) > queue[0] and -added > stale:
            heappush(queue, (-added, index))
            continue
        case_group = rest[index]
        if worth.take(case_group):
            del rest[index]
            for other in {other for slot, _ in case_group.slots for other in sharing[slot] if other in rest}:
                if added := worth.of(rest[other], must=must):
                    heappush(queue, (-added, other))


__all__: Final = ["NOTHING", "RemainingBudget", "Selection", "choose"]
