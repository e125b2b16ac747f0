"""Which bundles a budget buys: first a set cover of what must be shown, then the dearest of the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from conformance.asked import Asked
from conformance.budget import Budget, Cost, worst_case
from conformance.catalogue import Scope, Terms, load
from conformance.judge import serves
from conformance.model import Contract, Level, RequestCase, Requirement, Validity
from conformance.planning.bundle import Bundle
from conformance.strictjson import dumps

# Roles that give something to compare with: a group shows nothing before the other role is there.
PREPARES: Final = frozenset(
    {"control", "without", "absent", "first", "one", "short", "greedy", "forced", "hostile", "plain"}
)


@dataclass
class Serving:
    """Which requirements a case serves. Rows that look at the same thing in the same way are asked once."""

    contract: Contract
    _found: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, case: RequestCase) -> frozenset[str]:
        """The ids of the requirements that a case is due to show."""
        return self._by_content(case).union(self._by_group(case))

    def _by_content(self, case: RequestCase) -> frozenset[str]:
        key = f"{case.credential} {case.hang_up_after} {case.validity} {hash(case.content)}"
        found = self._found.get(key)
        if found is None:
            served = [ids for row, ids in self._alike if serves(row, case, self._terms[row.id])]
            found = self._found[key] = frozenset(one for ids in served for one in ids)
        return found

    def _by_group(self, case: RequestCase) -> Iterable[str]:
        for one in case.groups:
            if one.role in PREPARES or one.role.startswith(("solo-", "single-")):
                continue
            row, _, _ = one.key.partition(" ")
            for found in self._groups.get(one.kind, ()):
                if load()[found.check].keyed:
                    if found.id == row:
                        yield found.id
                elif found.params.get("parameter") in {None, row}:
                    yield found.id

    @property
    def all(self) -> tuple[str, ...]:
        """Every requirement that is more than an observation."""
        return tuple(row.id for row in self.contract.requirements if row.level is not Level.MAY)

    @cached_property
    def _alike(self) -> list[tuple[Requirement, tuple[str, ...]]]:
        alike: dict[str, list[Requirement]] = {}
        for row in self.contract.requirements:
            if load()[row.check].scope is not Scope.GROUP and load()[row.check].due is not None:
                alike.setdefault(dumps([row.check, dict(row.when), dict(row.params)]), []).append(row)
        return [(rows[0], tuple(row.id for row in rows)) for rows in alike.values()]

    @cached_property
    def _terms(self) -> Mapping[str, Terms]:
        readings: dict[bytes, Asked] = {}
        return {row.id: Terms(self.contract, row.params, readings) for row, _ in self._alike}

    @cached_property
    def _groups(self) -> Mapping[str, list[Requirement]]:
        found: dict[str, list[Requirement]] = {}
        for row in self.contract.requirements:
            found.setdefault(load()[row.check].group, []).append(row)
        return found


def cost(case: RequestCase, defaults: Mapping[str, Any]) -> Cost:
    """What a case may cost: nothing where it must be refused; a hostile prompt is counted apart."""
    if case.validity is Validity.INVALID:
        return Cost()
    found = worst_case(Asked(case.body if isinstance(case.body, Mapping) else {}, defaults))
    return Cost(0 if case.hostile else found.prompt, found.completion)


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
    defaults: Mapping[str, Any]
    chosen: list[Bundle] = field(default_factory=list)
    prices: dict[str, Cost] = field(default_factory=dict)
    taken: set[tuple[str, str]] = field(default_factory=set)

    def price(self, bundle: Bundle) -> tuple[int, Cost]:
        """What a bundle costs on top of what is chosen."""
        new = {key: case for key, case in bundle.named if (bundle.wave, key) not in self.taken}
        found = [self.prices.get(key) or self._cost(key, case) for key, case in new.items()]
        return len(new), Cost(sum([one.prompt for one in found]), sum([one.completion for one in found]))

    def whole(self, bundles: Iterable[Bundle]) -> tuple[int, Cost]:
        """What all of these cost together."""
        everything = {(bundle.wave, key): case for bundle in bundles for key, case in bundle.named}
        found = [self._cost(key, case) for (_, key), case in everything.items()]
        return len(found), Cost(sum([one.prompt for one in found]), sum([one.completion for one in found]))

    def _cost(self, key: str, case: RequestCase) -> Cost:
        found = self.prices[key] = cost(case, self.defaults)
        return found

    def take(self, bundle: Bundle) -> bool:
        """Choose a bundle if it can be paid for."""
        requests, spent = self.price(bundle)
        if not self.purse.affords(requests, spent):
            return False
        self.purse.pay(requests, spent)
        self.taken.update((bundle.wave, key) for key, _ in bundle.named)
        self.chosen.append(bundle)
        return True


FIRST, MIDDLE, LAST = 2, 4, 99  # ranks: what is always sent if it fits, what goes before the rest


def choose(
    bundles: Sequence[Bundle],
    purse: Purse,
    serving: Serving,
    shown: Collection[str],
    wanted: Collection[str],
    defaults: Mapping[str, Any],
) -> list[Bundle]:
    """The bundles to send, in their order. `shown` were served before, `wanted` are to be covered."""
    choice = Choice(purse, defaults)
    if purse.affords(*choice.whole(bundles)):
        return [bundle for bundle in bundles if choice.take(bundle)]
    rest = dict(enumerate(bundles))
    for place, bundle in list(rest.items()):
        if bundle.rank == 0 and choice.take(bundle):
            del rest[place]
    owed = set(wanted) - set(shown)
    owed -= {one for bundle in choice.chosen for case in bundle.cases for one in serving.of(case)}
    for place in _cover(rest, choice, serving, owed):
        del rest[place]
    _fill(rest, choice, FIRST)
    served = {one for bundle in choice.chosen for case in bundle.cases for one in serving.of(case)}
    unseen = set(serving.all) - served - set(shown)
    for most in (MIDDLE, LAST):
        for place in _cover({one: bundle for one, bundle in rest.items() if bundle.rank <= most}, choice, serving, unseen):
            del rest[place]
    _fill(rest, choice, LAST)
    order = {id(bundle): place for place, bundle in enumerate(bundles)}
    return sorted(choice.chosen, key=lambda bundle: order[id(bundle)])


def _fill(rest: dict[int, Bundle], choice: Choice, most: int) -> None:
    """Take what is left in the order of its rank."""
    for place in sorted(rest, key=lambda one: (rest[one].rank, one)):
        if rest[place].rank <= most and choice.take(rest[place]):
            del rest[place]


def _cover(rest: Mapping[int, Bundle], choice: Choice, serving: Serving, owed: set[str]) -> Iterator[int]:
    """Greedy set cover: at each step the bundle that covers most for its price."""
    covers = {
        place: {one for case in bundle.cases for one in serving.of(case)} & owed for place, bundle in rest.items()
    }
    dropped: set[int] = set()
    while owed:
        best, worth = None, 0.0
        for place, found in covers.items():
            gain = len(found & owed) if place not in dropped else 0
            if gain:
                requests, spent = choice.price(rest[place])
                value = gain / (0.1 + requests + spent.completion / 50 + spent.prompt / 200)
                if value > worth:
                    best, worth = place, value
        if best is None:
            return
        dropped.add(best)
        if choice.take(rest[best]):
            owed -= covers[best]
            yield best


def must(contract: Contract) -> frozenset[str]:
    """The requirements that a run owes a verdict on."""
    return frozenset(row.id for row in contract.requirements if row.level is Level.MUST)


__all__ = ["Choice", "Purse", "Serving", "choose", "cost", "must"]
