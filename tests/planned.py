"""What tests of planning share: contracts, a target without a model, and plans made once."""

from __future__ import annotations

from functools import cache

from conformance import plan as planning
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.judge.fixtures import choice, completion, error, plain, stream
from conformance.model import Validity
from conformance.model.exchange import Exchange

PROVIDERS = providers()
TEXT = ", five, six, seven, eight, nine"


@cache
def contract(provider):
    return load(provider)


def options(**given):
    return planning.PlanOptions(**{"model": "m", **given})


def context(provider, profile="gate", **given):
    return planning.plan_context(contract(provider), checks(), options(profile=profile, **given))


@cache
def drawn(provider, profile, seed=0):
    return planning.draw(context(provider, profile, seed=seed))


@cache
def plan(provider, profile="gate", **more):
    bodies = drawn(provider, profile, more.get("seed", 0))
    return planned(contract(provider), profile=profile, has_key=True, drawn=bodies, **more)


def coverage(provider, exchanges):
    return planning.coverage(contract(provider), checks(), options(), exchanges)


def planned(contract, **given):
    return planning.plan(contract, checks(), options(**given))


def obedient(case):
    """A reply as every contract allows it, with a text that never changes."""
    body = case.body if isinstance(case.body, dict) else {}
    if case.validity is Validity.INVALID:
        return error(request=case.content)
    whole = completion(choice(TEXT))
    return stream(whole, request=body) if body.get("stream") is True else plain(whole, case.content)


def refusing(turned_down):
    """An obedient target that also refuses bodies of which `turned_down` says so."""

    def answer(case):
        body = case.body if isinstance(case.body, dict) else {}
        return error(request=case.content) if turned_down(body) else obedient(case)

    return answer


def planner(provider, answer=obedient, profile="gate", *, hears=bool, **more):
    """The waves that a target with these answers is sent; `hears`: which exchanges come back."""
    bodies = drawn(provider, profile)
    given = options(profile=profile, has_key=True, drawn=bodies, **more)
    found = planning.phases(contract(provider), checks(), given)
    phases = [next(found)]
    while True:
        replies = tuple(Exchange(case, answer(case).attempts) for case in phases[-1].cases)
        try:
            phases.append(found.send(tuple(x for x in replies if hears(x))))
        except StopIteration:
            return phases


def answered(phases, answer=obedient):
    return [Exchange(case, answer(case).attempts) for case in cases(phases)]


def cases(phases):
    return [case for phase in phases for case in phase.cases]


def bodies(found):
    return [case.body for case in found if isinstance(case.body, dict)]
