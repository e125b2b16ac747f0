"""Which bundles a budget buys: first a set cover of what must be shown, then the dearest of the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.model import RequestCase
from conformance.model.budget import Budget, Cost
from conformance.plan.case_group import CaseGroup
from conformance.plan.requirement_coverage import RequirementCoverage

NOTHING: Final = Budget(0, 0, 0)
ALWAYS, FIRST, MIDDLE, LAST = 0, 2, 4, 99  # ranks: what goes before set cover, before SHOULD, before all else


@dataclass
class RemainingBudget:
    """What is left to plan with; `spare` is what may be added for a MUST that has no room otherwise."""

    budget: Budget
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    spare: Budget = NOTHING

    def affords(self, requests: int, spent: Cost) -> bool:
        limits = self.budget
        return all(
            most is None or used <= most
            for used, most in (
                (self.requests + requests, limits.requests),
                (self.prompt + spent.prompt, limits.prompt_tokens),
                (self.completion + spent.completion, limits.completion_tokens),
            )
        )

    def open_spare(self) -> None:
        """Add what is spare to what may be spent."""
        own, spare, self.spare = self.budget, self.spare, NOTHING
        requests, completion, prompt = (
            None if most is None else most + (more or 0)
            for most, more in (
                (own.requests, spare.requests),
                (own.completion_tokens, spare.completion_tokens),
                (own.prompt_tokens, spare.prompt_tokens),
            )
        )
        self.budget = Budget(requests, completion, prompt, own.seconds)

    def pay(self, requests: int, spent: Cost) -> None:
        self.requests += requests
        self.prompt += spent.prompt
        self.completion += spent.completion


@dataclass
class Choice:
    """The bundles chosen so far, the requests they share, and what they cost."""

    remaining: RemainingBudget
    serving: RequirementCoverage
    defaults: Mapping[str, Any]
    chosen: list[CaseGroup] = field(default_factory=list)
    prices: dict[str, Cost] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def price(self, bundle: CaseGroup) -> tuple[int, Cost]:
        """What a bundle costs on top of what is chosen."""
        return self._sum({slot: case for slot, case in bundle.slots if slot not in self.taken})

    def whole(self, bundles: Iterable[CaseGroup]) -> tuple[int, Cost]:
        """What all of these cost together."""
        return self._sum({slot: case for bundle in bundles for slot, case in bundle.slots})

    def take(self, bundle: CaseGroup) -> bool:
        """Choose a bundle if it can be paid for."""
        requests, spent = self.price(bundle)
        if not self.remaining.affords(requests, spent):
            return False
        self.remaining.pay(requests, spent)
        self.taken.update(slot for slot, _ in bundle.slots)
        self.chosen.append(bundle)
        return True

    def served(self) -> set[str]:
        return {one for bundle in self.chosen for one in self.serving.by(bundle)}

    def _sum(self, cases: Mapping[str, RequestCase]) -> tuple[int, Cost]:
        found = [self.prices.get(slot) or self._cost(slot, case) for slot, case in cases.items()]
        return len(found), Cost(sum([one.prompt for one in found]), sum([one.completion for one in found]))

    def _cost(self, slot: str, case: RequestCase) -> Cost:
        found = self.prices[slot] = self.serving.cost(case)
        return found


def choose(
    bundles: Sequence[CaseGroup],
    remaining: RemainingBudget,
    serving: RequirementCoverage,
    shown: Collection[str],
    wanted: Collection[str],
    defaults: Mapping[str, Any],
) -> list[CaseGroup]:
    """The bundles to send, in their order. `shown` were served before, `wanted` are to be covered."""
    choice = Choice(remaining, serving, defaults)
    if remaining.affords(*choice.whole(bundles)):
        return [bundle for bundle in bundles if choice.take(bundle)]
    rest = dict(enumerate(bundles))
    _fill(rest, choice, ALWAYS)
    _cover(rest, choice, set(wanted) - set(shown) - choice.served(), LAST)
    _fill(rest, choice, FIRST)
    for most in (MIDDLE, LAST):
        _cover(rest, choice, set(serving.all) - set(shown) - choice.served(), most)
    _fill(rest, choice, LAST)
    remaining.open_spare()
    _cover(rest, choice, set(wanted) - set(shown) - choice.served(), LAST)
    order = {id(bundle): place for place, bundle in enumerate(bundles)}
    return sorted(choice.chosen, key=lambda bundle: order[id(bundle)])


def _fill(rest: dict[int, CaseGroup], choice: Choice, most: int) -> None:
    """Take what is left in the order of its rank."""
    for place in sorted(rest, key=lambda one: (rest[one].rank, one)):
        if rest[place].rank <= most and choice.take(rest[place]):
            del rest[place]


def _cover(rest: dict[int, CaseGroup], choice: Choice, owed: set[str], most: int) -> None:
    """Greedy set cover: at each step the bundle that covers most for its price, the first of those that do.

    After each, only those are weighed anew that share a request or a requirement with what was chosen.
    """
    able = {place: set(choice.serving.by(bundle) & owed) for place, bundle in rest.items() if bundle.rank <= most}
    covers = {place: found for place, found in able.items() if found}
    sharing: dict[str, list[int]] = {}
    for place, found in covers.items():
        for one in (*found, *dict(rest[place].slots)):
            sharing.setdefault(one, []).append(place)
    worth = {place: _worth(rest[place], found, choice) for place, found in covers.items()}
    while worth:
        best = max(worth, key=worth.__getitem__)
        if not worth.pop(best):
            return
        found, bundle = covers.pop(best), rest[best]
        if not choice.take(bundle):
            continue
        del rest[best]
        for place in {place for one in (*found, *dict(bundle.slots)) for place in sharing[one] if place in covers}:
            covers[place] -= found
            worth[place] = _worth(rest[place], covers[place], choice)


def _worth(bundle: CaseGroup, found: Collection[str], choice: Choice) -> float:
    """What a bundle covers for its price."""
    if not found:
        return 0.0
    requests, spent = choice.price(bundle)
    return len(found) / (0.1 + requests + spent.completion / 200 + spent.prompt / 600)


__all__: Final = ["NOTHING", "Choice", "RemainingBudget", "choose"]
