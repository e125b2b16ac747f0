"""Which bundles a budget buys: first a set cover of what must be shown, then the dearest of the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.budget import Budget, Cost
from conformance.model import RequestCase
from conformance.planning.bundle import Bundle
from conformance.planning.serving import Serving, cost

ALWAYS, FIRST, MIDDLE, LAST = 0, 2, 4, 99  # ranks: what goes before set cover, before SHOULD, before all else


@dataclass
class Purse:
    """What is left to plan with."""

    budget: Budget
    requests: int = 0
    prompt: int = 0
    completion: int = 0

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

    def pay(self, requests: int, spent: Cost) -> None:
        self.requests += requests
        self.prompt += spent.prompt
        self.completion += spent.completion


@dataclass
class Choice:
    """The bundles chosen so far, the requests they share, and what they cost."""

    purse: Purse
    serving: Serving
    defaults: Mapping[str, Any]
    chosen: list[Bundle] = field(default_factory=list)
    prices: dict[str, Cost] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def price(self, bundle: Bundle) -> tuple[int, Cost]:
        """What a bundle costs on top of what is chosen."""
        return self._sum({slot: case for slot, case in bundle.slots if slot not in self.taken})

    def whole(self, bundles: Iterable[Bundle]) -> tuple[int, Cost]:
        """What all of these cost together."""
        return self._sum({slot: case for bundle in bundles for slot, case in bundle.slots})

    def take(self, bundle: Bundle) -> bool:
        """Choose a bundle if it can be paid for."""
        requests, spent = self.price(bundle)
        if not self.purse.affords(requests, spent):
            return False
        self.purse.pay(requests, spent)
        self.taken.update(slot for slot, _ in bundle.slots)
        self.chosen.append(bundle)
        return True

    def served(self) -> set[str]:
        return {one for bundle in self.chosen for one in self.serving.by(bundle)}

    def _sum(self, cases: Mapping[str, RequestCase]) -> tuple[int, Cost]:
        found = [self.prices.get(slot) or self._cost(slot, case) for slot, case in cases.items()]
        return len(found), Cost(sum([one.prompt for one in found]), sum([one.completion for one in found]))

    def _cost(self, slot: str, case: RequestCase) -> Cost:
        found = self.prices[slot] = cost(case, self.defaults)
        return found


def choose(
    bundles: Sequence[Bundle],
    purse: Purse,
    serving: Serving,
    shown: Collection[str],
    wanted: Collection[str],
    defaults: Mapping[str, Any],
) -> list[Bundle]:
    """The bundles to send, in their order. `shown` were served before, `wanted` are to be covered."""
    choice = Choice(purse, serving, defaults)
    if purse.affords(*choice.whole(bundles)):
        return [bundle for bundle in bundles if choice.take(bundle)]
    rest = dict(enumerate(bundles))
    _fill(rest, choice, ALWAYS)
    _cover(rest, choice, set(wanted) - set(shown) - choice.served(), LAST)
    _fill(rest, choice, FIRST)
    for most in (MIDDLE, LAST):
        _cover(rest, choice, set(serving.all) - set(shown) - choice.served(), most)
    _fill(rest, choice, LAST)
    order = {id(bundle): place for place, bundle in enumerate(bundles)}
    return sorted(choice.chosen, key=lambda bundle: order[id(bundle)])


def _fill(rest: dict[int, Bundle], choice: Choice, most: int) -> None:
    """Take what is left in the order of its rank."""
    for place in sorted(rest, key=lambda one: (rest[one].rank, one)):
        if rest[place].rank <= most and choice.take(rest[place]):
            del rest[place]


def _cover(rest: dict[int, Bundle], choice: Choice, owed: set[str], most: int) -> None:
    """Greedy set cover: at each step the bundle that covers most for its price."""
    covers = {place: choice.serving.by(bundle) & owed for place, bundle in rest.items() if bundle.rank <= most}
    while owed:
        best, worth = None, 0.0
        for place, found in covers.items():
            gain = len(found & owed)
            if gain:
                requests, spent = choice.price(rest[place])
                value = gain / (0.1 + requests + spent.completion / 200 + spent.prompt / 600)
                if value > worth:
                    best, worth = place, value
        if best is None:
            return
        found = covers.pop(best)
        if choice.take(rest[best]):
            del rest[best]
            owed -= found


__all__: Final = ["Choice", "Purse", "choose"]
