"""A recorded run planned again with its replies: what was sent must be what the plan asks for, phase by phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance import plan as planning
from conformance.contract.requirement_sets import RequirementSet
from conformance.judge.catalogue import load as load_checks
from conformance.model import Contract, Phase, RequestCase
from conformance.model.budget import planned_as
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.recording import Recording
from conformance.recording.plan_lock import FORMAT, MEMBERS, PlanLock, requirements_out
from conformance.run.locked_run import allowances


def agrees(lock: PlanLock, contract: Contract) -> bool:
    """Whether this installation plans the locked requests: other versions of libraries may draw other bodies."""
    return planning.plan(contract, load_checks(), _plan_options(lock)).phases == lock.phases


def misstatements(lock: PlanLock, contract: Contract, required: RequirementSet) -> Iterator[str]:
    """Statements of the lock that do not follow from its own nonce, settings and contract."""
    plan = planning.plan(contract, load_checks(), _plan_options(lock))
    expected = {
        **allowances(plan),
        "requirements": requirements_out(required),
        "format": FORMAT,
    }
    for name, value in expected.items():
        if lock.document.get(name) != value:
            yield f"{name} of plan.lock is not what this build plans with the same settings"
    if lock.phases != plan.phases:
        yield "requests of plan.lock are not what this build plans with the same settings"
    revision = lock.document["contract"]["revision"]
    if revision != contract.revision:
        yield f"plan.lock names revision {revision!r:.40} of the contract; expected {contract.revision!r:.40}"
    if unknown := lock.document.keys() - MEMBERS:
        yield f"plan.lock has the member {min(unknown)!r:.40}, which no plan has"


def draw_mismatch(lock: PlanLock, contract: Contract) -> str:
    """Why this installation draws other bodies than the lock has: they depend on the versions of libraries."""
    fresh = planning.draw(planning.plan_context(contract, load_checks(), _plan_options(lock)))
    if lock.document["drawn"] == [dumps(body) for body in fresh]:
        return ""
    return f"this installation draws other bodies than the {len(lock.drawn)} of the plan"


def departures(recording: Recording, lock: PlanLock, contract: Contract) -> Iterator[str]:
    """Where a recording departs from its plan, one message each; nothing after a phase that differs."""
    plan = planning.phases(contract, load_checks(), _plan_options(lock))
    completed = {exchange.case.id: exchange for exchange in recording.exchanges}
    replies: tuple[Exchange, ...] | None = None
    remaining, repeats = list(recording.phases), list[Phase]()
    while True:
        while remaining and all(case.repeats for case in remaining[0].cases):  # see `RunState._answers_again`
            repeats.append(remaining.pop(0))
        try:
            planned = next(plan) if replies is None else plan.send(replies)
        except StopIteration:
            break
        if not remaining:
            yield f"the recording ends before the phase {planned.name!r} of {len(planned.cases)} requests"
            return
        recorded = remaining.pop(0)
        if recorded != planned:
            yield _difference(recorded, planned)
            return
        replies = tuple(completed[case.id] for case in recorded.cases if case.id in completed)
    planned_phases = [phase for phase in recording.phases if phase not in repeats and phase not in remaining]
    yield from _adaptive_departures(planned_phases, lock)
    yield from _repeat_departures(recording, [*repeats, *remaining], lock)
    yield from _ceiling_departures(recording, lock)


def _plan_options(lock: PlanLock) -> planning.PlanOptions:
    """The options that the plan was made with."""
    document = lock.document
    return planning.PlanOptions(
        model=document["target"]["model"],
        profile=planned_as(document["profile"]),
        seed=document["seed"],
        budget=lock.budget,
        claims=document["claims"],
        hostile=document["hostile"],
        has_key=document["target"]["has_key"],
        drawn=lock.drawn,
    )


def _difference(recorded: Phase, planned: Phase) -> str:
    """How a recorded phase differs from the planned one."""
    if (recorded.name, recorded.serial, recorded.burst) != (planned.name, planned.serial, planned.burst):
        return f"the phase {recorded.name!r} was sent where the plan asks for {planned.name!r}"
    sent, expected = ({case.id: case for case in phase.cases} for phase in (recorded, planned))
    missing, added = sorted(expected.keys() - sent.keys()), sorted(sent.keys() - expected.keys())
    changed = sorted(name for name in sent.keys() & expected.keys() if sent[name] != expected[name])
    for verb, names in (("lacks", missing), ("also has", added), ("has another", changed)):
        if names:
            return f"the phase {recorded.name!r} {verb} {names[0]} ({len(names)} such requests)"
    return f"the requests of the phase {recorded.name!r} are in another order than the plan's"


def _adaptive_departures(phases: Sequence[Phase], lock: PlanLock) -> Iterator[str]:
    """Departures of requests that follow from replies: more of them, or in other phases, than the lock allows."""
    locked = {case.id for phase in lock.phases for case in phase.cases}
    allowed = lock.document["adaptive"]
    unknown = next((phase.name for phase in phases if phase.name not in allowed["waves"]), None)
    if unknown is not None:
        yield f"there is a phase {unknown!r}; the plan allows {', '.join(allowed['waves'])}"
    added = sum(case.id not in locked for phase in phases for case in phase.cases)
    if added > allowed["most"]:
        yield f"{added} requests follow from replies; the plan allows {allowed['most']}"


def _repeat_departures(recording: Recording, phases: Sequence[Phase], lock: PlanLock) -> Iterator[str]:
    """Departures after the plan, where only earlier requests may be sent, a bounded number of times."""
    originals = {case.id: case for case in recording.planned if not case.repeats}
    allowed = lock.document["repeats"]
    copies = [case for phase in phases for case in phase.cases]
    for case in copies:
        if case.repeats not in originals or not _is_copy(case, originals[case.repeats]):
            yield f"{case.id} was sent, is not in the plan, and repeats no planned request"
            return
    counts = Counter(case.repeats for case in copies)
    if len(copies) > allowed["most"] or any(count >= allowed["copies"] for count in counts.values()):
        message = f"{len(copies)} requests were repeated, one of them {max(counts.values())} times"
        yield f"{message}; the plan allows {allowed['most']}, each {allowed['copies'] - 1} times"


def _is_copy(copy: RequestCase, original: RequestCase) -> bool:
    return copy == replace(original, id=copy.id, repeats=original.id, groups=())


def _ceiling_departures(recording: Recording, lock: PlanLock) -> Iterator[str]:
    attempts, ceiling = sum(map(len, recording.attempts.values())), lock.budget.requests
    if ceiling is not None and attempts > ceiling:
        yield f"{attempts} attempts were made; the plan allows {ceiling}"
