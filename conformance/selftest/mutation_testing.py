"""Mutation testing: the primary check of every fault must fail, and no check may fail because of a legal variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from multiprocessing import get_context
from typing import Any, Final
from zlib import crc32

from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.judge.causes import causes
from conformance.judge.finding_cache import FindingCache
from conformance.model import Contract, Outcome
from conformance.model.budget import usual
from conformance.model.exchange import Exchange
from conformance.plan import PlanContext, PlanOptions, draw, plan_context
from conformance.plan.planner import CaseGroups, Drawn, Planner
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
FIXED_TIME: Final = 1_760_000_000.0
"""The clock stands still, so that replies that a fault does not change are the same bytes."""
REMEMBERED: Final = 8  # inputs of a generator: most faults leave those of the plain run as they are
PROFILES: Final = ("gate", "full")
PLANTED: Final[Mapping[str, Fault | LegalVariant]] = {**FAULTS, **LEGAL_VARIANTS}


@dataclass(frozen=True)
class Baseline:
    """A contract and a profile, with the run against the unaltered reference and what all its runs share."""

    profile: str
    context: PlanContext
    drawn: Drawn
    coverage: RequirementCoverage
    plain: InProcessRun | None = None
    known: Mapping[str, Exchange] = field(default_factory=dict, repr=False)
    cache: FindingCache = field(default_factory=FindingCache, repr=False)
    case_groups: CaseGroups | None = field(default=None, repr=False)

    @property
    def contract(self) -> Contract:
        return self.context.contract

    def run(self, **planted: Any) -> tuple[Reference, InProcessRun]:
        """A run against the reference with these faults or legal variants."""
        reference = altered_reference(self.contract, KEY, now=_fixed_time, **planted)
        plan = Planner(self.context, self.drawn, serving=self.coverage, case_groups=self.case_groups).phases()
        attempts = usual(self.profile).requests
        cache = self.cache if self.plain is None else self.cache.copy()  # what the plain run concludes holds for all
        run = run_in_process(reference, plan, attempts=attempts, known=self.known, cache=cache)
        return reference, run


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result of one fault or legal variant under one contract and profile.

    `check` is the primary check of a fault, empty for a legal variant. `failed` are the checks that failed beyond the
    plain run, each with its first message; `allowed` are those that may fail with the primary check. `triggered` counts
    the replies that were altered. `crashed` says what raised, in the reference or in a check. `causes` is how many are
    shown, and `cause_is_first` whether the first of them has a requirement of the primary check.
    """

    provider: str
    profile: str
    name: str
    check: str
    input_class: str = ""
    others: tuple[str, ...] = ()
    triggered: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    crashed: tuple[str, ...] = ()
    causes: int = 0
    cause_is_first: bool = False

    @property
    def killed(self) -> bool:
        """Whether the primary check failed, or another that judges the same promise."""
        return not self.failed.keys().isdisjoint((self.check, *self.others))

    @property
    def accepted(self) -> bool:
        """Whether no check failed, as it must be with a legal variant."""
        return not self.failed and not self.crashed

    @property
    def area(self) -> str:
        return checks()[self.check].area if self.check else "legal variants"

    @property
    def unexpected(self) -> tuple[str, ...]:
        """The checks that failed though the fault does not declare them."""
        return tuple(sorted(self.failed.keys() - self.allowed - {self.check}))

    @property
    def why(self) -> str:
        """Why a fault survived, or which checks flagged a legal variant."""
        if self.crashed:
            return self.crashed[0]
        if not self.triggered and self.check:
            return "no request triggered it"
        if not self.failed:
            return "it was triggered, and no check failed" if self.check else ""
        return f"failed: {', '.join(sorted(self.failed))}" if self.check else "; ".join(self.failed.values())


@lru_cache(maxsize=len(PROFILES) * 5)
def baseline(provider: str, profile: str) -> Baseline:
    """A contract and a profile with their plain run."""
    options = PlanOptions(model=MODEL, profile=profile, has_key=True)
    context = plan_context(_contract(provider), checks(), options)
    drawn, coverage = draw(context), RequirementCoverage(context.contract, context.checks)
    unrun = Baseline(profile, context, drawn, coverage, case_groups=CaseGroups(drawn, REMEMBERED))
    _, plain = unrun.run()
    return replace(unrun, plain=plain, known={x.case.id: x for x in plain.exchanges})


def trial(where: Baseline, planted: Fault | LegalVariant) -> Trial:
    """Try one fault or legal variant."""
    is_fault = isinstance(planted, Fault)
    result = Trial(
        provider=where.contract.provider,
        profile=where.profile,
        name=planted.name,
        check=planted.check if isinstance(planted, Fault) else "",
        input_class=planted.input_class if isinstance(planted, Fault) else "",
        others=planted.others if isinstance(planted, Fault) else (),
        allowed=planted.also if isinstance(planted, Fault) else frozenset(),
    )
    try:
        reference, run = where.run(**{"faults" if is_fault else "variants": (planted,)})
    except Exception as error:  # noqa: BLE001 - the fault itself is wrong, and that is the result
        return replace(result, crashed=(f"the reference raised {type(error).__name__}: {error}",))
    failed: dict[str, str] = {}
    broken = run.broken - (where.plain.broken if where.plain else frozenset())
    for verdict in run.verdicts:
        if verdict.requirement.id in broken:
            failed.setdefault(verdict.requirement.check, f"{verdict.requirement.id}: {verdict.reason}")
    crashed = tuple(verdict.reason for verdict in run.verdicts if verdict.outcome is Outcome.ERROR)
    result = replace(result, triggered=reference.fired.get(planted.name, 0), failed=failed, crashed=crashed)
    return _with_causes(result, where.contract, run) if failed else result


def _with_causes(result: Trial, contract: Contract, run: InProcessRun) -> Trial:
    """The result with what a report would show first."""
    shown_causes = causes(contract, run.verdicts, run.exchanges)
    check_of = {verdict.requirement.id: verdict.requirement.check for verdict in run.verdicts}
    first = {check_of[name] for cause in shown_causes[:1] for name in cause.rows}
    return replace(
        result, causes=len(shown_causes), cause_is_first=not first.isdisjoint((result.check, *result.others))
    )


def applying(planted: Fault | LegalVariant) -> tuple[str, ...]:
    """The providers under whose contracts it can be triggered."""
    return tuple(name for name in providers() if planted.applies(_contract(name)))


def home(planted: Fault | LegalVariant) -> str:
    """One of these providers, chosen by a hash so that all contracts have a share; empty where none applies."""
    names = applying(planted)
    return names[crc32(planted.name.encode()) % len(names)] if names else ""


def pairs(names: str = "*", profiles: Sequence[str] = PROFILES, only: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Provider, profile and name of every trial, or of those whose names match a glob."""
    return [
        (provider, profile, planted.name)
        for profile in profiles
        for provider in only or providers()
        for planted in PLANTED.values()
        if fnmatchcase(planted.name, names) and planted.applies(_contract(provider))
    ]


def trials(keys: Sequence[tuple[str, str, str]], jobs: int = 1) -> Iterator[Trial]:
    """The results of these trials in their order, from `jobs` processes."""
    if jobs == 1:
        yield from map(_trial, keys)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_trial, keys, chunksize=8)


def _trial(key: tuple[str, str, str]) -> Trial:
    provider, profile, name = key
    return trial(baseline(provider, profile), PLANTED[name])


@cache
def _contract(provider: str) -> Contract:
    return load(provider)


def _fixed_time() -> float:
    return FIXED_TIME
