"""What the checks are worth: every fault must be caught by its check, and no oddity may be held against anybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache, partial
from multiprocessing import get_context
from typing import Any, Final
from zlib import crc32

from conformance.contract import load, providers
from conformance.judge import Traffic, judge_all
from conformance.judge.catalogue import load as checks
from conformance.judge.finding_cache import Recall
from conformance.model import Contract, Outcome
from conformance.model.budget import usual
from conformance.model.exchange import Exchange
from conformance.plan import PlanContext, PlanOptions, draw, plan_context
from conformance.plan.planner import Drawn, Planner
from conformance.plan.requirement_coverage import RequirementCoverage
from conformance.reference.core import Reference
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.fault import Fault
from conformance.selftest.faults import FAULTS
from conformance.selftest.in_process_run import InProcessRun, run_in_process
from conformance.selftest.legal_variant import LegalVariant
from conformance.selftest.legal_variants import LEGAL_VARIANTS

KEY: Final = "a-key"
MODEL: Final = "reference"
NOON: Final = 1_760_000_000.0  # the clock stands still: what a fault leaves alone comes back byte for byte
PROFILES: Final = ("gate", "full")
PLANTED: Final[Mapping[str, Fault | LegalVariant]] = {**FAULTS, **LEGAL_VARIANTS}


@dataclass(frozen=True)
class Baseline:
    """A contract and a profile, with the run that nothing is wrong with, and what all runs here have in common."""

    profile: str
    scene: PlanContext
    drawn: Drawn
    serving: RequirementCoverage
    plain: InProcessRun | None = None
    known: Mapping[str, Exchange] = field(default_factory=dict, repr=False)
    recall: Recall | None = field(default=None, repr=False)

    @property
    def contract(self) -> Contract:
        return self.scene.contract

    def run(self, **planted: Any) -> tuple[Reference, InProcessRun]:
        """A rehearsal against the reference with these faults or oddities."""
        provider = altered_reference(self.contract, KEY, now=_noon, **planted)
        plan = Planner(self.scene, self.drawn, serving=self.serving).phases()
        return provider, run_in_process(provider, plan, self.known, Recall(self.recall), usual(self.profile).requests)


@dataclass(frozen=True)
class Trial:
    """What became of one fault or oddity on one ground.

    `check`: the one that must fall, empty for an oddity. `fell`: the checks that fell above the plain run, each with
    the first message. `besides`: those that may. `broke`: what crashed, of the reference or of a check.
    """

    provider: str
    profile: str
    name: str
    check: str
    fired: int
    fell: Mapping[str, str]
    besides: frozenset[str] = frozenset()
    broke: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether the check that must fall did."""
        return self.check in self.fell

    @property
    def area(self) -> str:
        return checks()[self.check].area if self.check else "oddities"

    @property
    def beyond(self) -> tuple[str, ...]:
        """The checks that fell and were not said to."""
        return tuple(sorted(self.fell.keys() - self.besides - {self.check}))

    @property
    def why(self) -> str:
        """How it came to survive, or what was held against it."""
        if self.broke:
            return self.broke[0]
        if not self.fired and self.check:
            return "no request gave it an occasion"
        if not self.fell:
            return "it showed, and no check fell" if self.check else ""
        return f"fell: {', '.join(sorted(self.fell))}" if self.check else "; ".join(self.fell.values())


@lru_cache(maxsize=len(PROFILES) * 5)
def baseline(provider: str, profile: str) -> Baseline:
    """A contract and a profile with their plain run."""
    options = PlanOptions(model=MODEL, profile=profile, has_key=True)
    scene = plan_context(_contract(provider), checks(), options)
    bare = Baseline(profile, scene, draw(scene), RequirementCoverage(scene.contract, scene.checks))
    _, plain = bare.run()
    recall = Recall()
    judge_all(scene.contract, Traffic(plain.exchanges, plain.planned, recall))
    return replace(bare, plain=plain, known={x.case.id: x for x in plain.exchanges}, recall=recall)


def trial(where: Baseline, planted: Fault | LegalVariant) -> Trial:
    """One fault or oddity on one ground."""
    about = partial(Trial, where.contract.provider, where.profile, planted.name)
    check, besides, part = "", frozenset[str](), "variants"
    if isinstance(planted, Fault):
        check, besides, part = planted.check, planted.also, "faults"
    try:
        provider, run = where.run(**{part: (planted,)})
    except Exception as error:  # noqa: BLE001 - it is wrong itself, and that is what the trial says
        return about(check, 0, {}, besides, (f"the reference raised {type(error).__name__}: {error}",))
    fell: dict[str, str] = {}
    new = run.broken - (where.plain.broken if where.plain else frozenset())
    for verdict in run.verdicts:
        if verdict.requirement.id in new:
            fell.setdefault(verdict.requirement.check, f"{verdict.requirement.id}: {verdict.reason}")
    broke = tuple(verdict.reason for verdict in run.verdicts if verdict.outcome is Outcome.ERROR)
    return about(check, provider.fired.get(planted.name, 0), fell, besides, broke)


def applying(planted: Fault | LegalVariant) -> tuple[str, ...]:
    """The providers whose contracts give it an occasion."""
    return tuple(name for name in providers() if planted.applies(_contract(name)))


def home(planted: Fault | LegalVariant) -> str:
    """One of them, always the same; over all faults, each has its share. Empty where it applies to none."""
    found = applying(planted)
    return found[crc32(planted.name.encode()) % len(found)] if found else ""


def pairs(names: str = "*", profiles: Sequence[str] = PROFILES, only: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Provider, profile and name of every trial there is, or of those that match."""
    return [
        (provider, profile, planted.name)
        for profile in profiles
        for provider in only or providers()
        for planted in PLANTED.values()
        if fnmatchcase(planted.name, names) and planted.applies(_contract(provider))
    ]


def trials(wanted: Sequence[tuple[str, str, str]], jobs: int = 1) -> Iterator[Trial]:
    """These trials in their order, in as many processes."""
    if jobs == 1:
        yield from map(_trial, wanted)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_trial, wanted, chunksize=8)


def _trial(wanted: tuple[str, str, str]) -> Trial:
    provider, profile, name = wanted
    return trial(baseline(provider, profile), PLANTED[name])


@cache
def _contract(provider: str) -> Contract:
    return load(provider)


def _noon() -> float:
    return NOON
