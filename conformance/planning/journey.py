"""The waves of a run: what is sent when, and what it makes of the replies that come in between."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from conformance.budget import PROFILES, Budget
from conformance.exchange import Exchange
from conformance.model import RequestCase, Wave
from conformance.planning.bundle import ORDER, Bundle, Sent
from conformance.planning.crowds import arms, bursts, filters
from conformance.planning.grid import grid
from conformance.planning.hostile import hostile
from conformance.planning.invalids import invalids
from conformance.planning.known import Known
from conformance.planning.learned import foundations, lessons
from conformance.planning.profiles import RESERVE, plannable, share, smaller
from conformance.planning.protocol import protocol
from conformance.planning.relations import relations
from conformance.planning.samples import samples
from conformance.planning.scene import Scene
from conformance.planning.selection import Purse, choose
from conformance.planning.serving import Serving, cost, must
from conformance.planning.singles import edges, first, named, singles, suspects, unlimited
from conformance.strictjson import dumps

Drawn = Sequence[Mapping[str, Any]]
Waves = Generator[Wave, tuple[Exchange, ...], None]
LEFT_OUT: Final = "left out"


@dataclass
class Journey:
    """The state of one plan: what was sent, what that serves, what is left of the budget, what was learned."""

    scene: Scene
    drawn: Drawn
    budget: Budget | None = None
    select: Collection[str] = ()
    known: Known = field(default_factory=Known)
    sent: Sent = field(default_factory=Sent)
    cases: list[RequestCase] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    serving: Serving | None = None  # of the same contract, where other plans have asked it much already

    def waves(self) -> Waves:
        """Wave after wave. Before each, everything that is still to come is planned anew with what is known by then."""
        profile = PROFILES["full" if self.scene.full else "gate"]
        ceiling = smaller(profile, self.budget) if self.budget else profile
        self._doubts = Purse(share(ceiling, RESERVE / 2))
        for place, name in enumerate(ORDER):
            chosen = self._choose(self._ahead(ORDER[place:]), self._purse(plannable(ceiling)))
            refused = len(self.known.refused)
            yield from self._send(name, [one for one in chosen if one.wave == name])
            if name == "base" and self._base_is_refused():
                self.known.no_cold = True
                yield from self._send("base", self._choose(self._ahead(("base",)), self._purse(plannable(ceiling))))
            if name in {"values", "rows"}:
                self.known.swept = name == "rows"
                yield from self._isolate()
            if name == "rows" and len(self.known.refused) > refused:
                # rows that were refused for a value that is known by now are replaced by rows without it
                again = [one for one in self._ahead(("rows",)) if not one.rank]
                yield from self._send("rows", self._choose(again, self._doubts))
        if ceiling != profile:
            # what the profile has and the lower ceiling has not: planned, and sent as far as anything is left
            gone = {case.content for case in self.cases}
            chosen = self._choose(list(self._bundles()), self._purse(plannable(profile)))
            yield from self._send(LEFT_OUT, [one for one in chosen if any(c.content not in gone for c in one.cases)])

    @property
    def now(self) -> Scene:
        """The scene as it is known by now."""
        return replace(self.scene, known=self.known)

    def _send(self, name: str, chosen: list[Bundle]) -> Waves:
        cases = self.sent.assemble(chosen)
        if cases:
            exchanges = yield Wave(name, cases, serial=name == "hostile", burst=name == "burst")
            self.cases += cases
            self.done.update(slot for bundle in chosen for slot in bundle.own)
            self.shown.update(one for case in cases for one in self._serving.of(case))
            self.known.learn(exchanges)

    def _isolate(self) -> Waves:
        """What was refused in company is sent in smaller company, until the guilty are known.

        Half of what is set aside for doubts pays for that.
        """
        while self.known.suspect:
            before = set(self.known.suspect)
            yield from self._send("alone", self._choose(self._ahead(("alone",)), self._doubts))
            if self.known.suspect == before:
                return

    def _ahead(self, names: Collection[str]) -> list[Bundle]:
        """The bundles of these waves that have not been sent."""
        return [one for one in self._bundles() if one.wave in names and not self.done.issuperset(one.own)]

    def _purse(self, budget: Budget) -> Purse:
        costs = [cost(case, self.scene.defaults) for case in self.cases]
        return Purse(budget, len(costs), sum(one.prompt for one in costs), sum(one.completion for one in costs))

    def _choose(self, ahead: Sequence[Bundle], purse: Purse) -> list[Bundle]:
        return choose(ahead, purse, self._serving, self.shown, self._wanted, self.scene.defaults)

    def _bundles(self) -> Iterator[Bundle]:
        for bundle in bundles(self.now, self.drawn):
            if not self.select or not bundle.rank or self._serving.by(bundle) & self._wanted:
                yield bundle

    def __post_init__(self) -> None:
        self._doubts = Purse(Budget())
        self._serving = self.serving or Serving(self.scene.contract)
        self._wanted = must(self.scene.contract)
        if self.select:
            rows = self.scene.rows
            self._wanted = frozenset(row for row in rows if any(fnmatchcase(row, glob) for glob in self.select))

    def _base_is_refused(self) -> bool:
        """Whether the base is turned down, which may be for its temperature."""
        found = self.known.replies.get(dumps(self.scene.base).encode())
        return found is not None and found.refused


def bundles(scene: Scene, drawn: Drawn = ()) -> Iterator[Bundle]:
    """Every bundle of a plan, as far as it is known by now what the target accepts."""
    yield from first(scene)
    yield from protocol(scene)
    yield from singles(scene)
    yield from named(scene)
    yield from invalids(scene)
    yield from relations(scene)
    yield from foundations(scene)
    yield from suspects(scene)
    yield from edges(scene)
    yield from unlimited(scene)
    yield from grid(scene)
    yield from samples(scene, drawn)
    yield from filters(scene)
    yield from arms(scene)
    yield from lessons(scene)
    yield from bursts(scene)
    yield from hostile(scene)


__all__ = ["LEFT_OUT", "Drawn", "Journey", "Waves", "bundles"]
