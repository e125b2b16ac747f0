"""The plan made again with the recorded replies: what was sent must be what it asks for, wave by wave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance import plan as planning
from conformance.certificate.reasons import Rejection
from conformance.judge.catalogue import load as load_checks
from conformance.model import Contract, Phase, RequestCase
from conformance.model.budget import planned_as
from conformance.model.exchange import Exchange
from conformance.recording import Recording
from conformance.recording.plan_lock import PlanLock


def _options(lock: PlanLock) -> planning.PlanOptions:
    """The options that the plan was made with."""
    told = lock.told
    return planning.PlanOptions(
        model=told["target"]["model"],
        profile=planned_as(told["profile"]),
        seed=told["seed"],
        budget=lock.budget,
        claims=told["claims"],
        hostile=told["hostile"],
        has_key=told["target"]["has_key"],
        drawn=lock.drawn,
    )


def agrees(lock: PlanLock, contract: Contract) -> bool:
    """Whether this installation plans what the plan holds: other versions of libraries may not."""
    return planning.plan(contract, load_checks(), _options(lock)).phases == lock.phases


def departures(recording: Recording, lock: PlanLock, contract: Contract) -> Iterator[Rejection]:
    """Where a recording departs from its plan; the first place is enough."""
    plan = planning.phases(contract, load_checks(), _options(lock))
    landed = {x.case.id: x for x in recording.exchanges}
    replies: tuple[Exchange, ...] | None = None
    sent = list(recording.phases)
    while True:
        try:
            asked = next(plan) if replies is None else plan.send(replies)
        except StopIteration:
            break
        if not sent:
            yield Rejection(
                "PLAN_DEPARTED", f"the wave {asked.name!r} of {len(asked.cases)} requests was never planned"
            )
            return
        found = sent.pop(0)
        if found != asked:
            yield Rejection("PLAN_DEPARTED", _told(found, asked))
            return
        replies = tuple(landed[case.id] for case in found.cases if case.id in landed)
    yield from _adapted(recording.phases[: len(recording.phases) - len(sent)], lock)
    yield from _repeats(recording, sent, lock)
    yield from _ceilings(recording, lock)


def _told(found: Phase, asked: Phase) -> str:
    if found.name != asked.name or (found.serial, found.burst) != (asked.serial, asked.burst):
        return f"the wave {found.name!r} was sent where the plan asks for {asked.name!r}"
    here, there = {case.id: case for case in found.cases}, {case.id: case for case in asked.cases}
    lost, added = sorted(there.keys() - here.keys()), sorted(here.keys() - there.keys())
    changed = [name for name in here.keys() & there.keys() if here[name] != there[name]]
    for words, names in (("lacks", lost), ("also has", added), ("has another", sorted(changed))):
        if names:
            return f"the wave {found.name!r} {words} {names[0]} ({len(names)} such requests)"
    return f"the requests of the wave {found.name!r} stand in another order than the plan's"


def _adapted(phases: Sequence[Phase], lock: PlanLock) -> Iterator[Rejection]:
    """What replies led to stays within what the plan allows."""
    fixed, limits = {case.id for phase in lock.phases for case in phase.cases}, lock.told["adaptive"]
    strange = next((phase.name for phase in phases if phase.name not in limits["waves"]), "")
    if strange:
        yield Rejection("PLAN_DEPARTED", f"there is a wave {strange!r}; the plan allows {', '.join(limits['phases'])}")
    new = sum(case.id not in fixed for phase in phases for case in phase.cases)
    if new > limits["most"]:
        yield Rejection("PLAN_DEPARTED", f"{new} requests follow from replies; the plan allows {limits['most']}")


def _repeats(recording: Recording, rest: Sequence[Phase], lock: PlanLock) -> Iterator[Rejection]:
    """After the plan, only requests that were sent before, a bounded number of times."""
    originals = {case.id: case for case in recording.planned if not case.repeats}
    limits = lock.told["repeats"]
    copies = [case for phase in rest for case in phase.cases]
    for case in copies:
        if case.repeats not in originals or not _same(case, originals[case.repeats]):
            yield Rejection("PLAN_DEPARTED", f"{case.id} was sent, is not in the plan, and repeats nothing that is")
            return
    often = Counter(case.repeats for case in copies)
    if len(copies) > limits["most"] or any(count >= limits["copies"] for count in often.values()):
        told = f"{len(copies)} requests were repeated, one {max(often.values())} times"
        yield Rejection("PLAN_DEPARTED", f"{told}; the plan allows {limits['most']}, each {limits['copies'] - 1} times")


def _same(copy: RequestCase, original: RequestCase) -> bool:
    return copy == replace(original, id=copy.id, repeats=original.id, groups=())


def _ceilings(recording: Recording, lock: PlanLock) -> Iterator[Rejection]:
    attempts, most = sum(map(len, recording.attempts.values())), lock.budget.requests
    if most is not None and attempts > most:
        yield Rejection("PLAN_DEPARTED", f"{attempts} attempts were made; the plan allows {most}")
