"""What a plan remembers changes nothing but the time that it takes."""

import pytest
from planned import PROVIDERS, answered, checks, contract, drawn, obedient, refusing
from planned import context as planned_context

from conformance.plan.case_group import ORDER, CaseGroup
from conformance.plan.context import PlanContext
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.planner import ONLY, PARTS, Planner, bundles
from conformance.plan.remembered import KEPT, Remembered, Seen


class Forgetful(Remembered):
    def of(self, part, context, *more):
        return tuple(part(context, *more))

    def choice(self, made, *_):
        return made()


def planner(provider, answer, remembered, profile="gate"):
    where = planned_context(provider, profile, has_key=True)
    plan = Planner(where, drawn(provider, profile), remembered=remembered).phases()
    phases = [next(plan)]
    while True:
        try:
            phases.append(plan.send(answered(phases[-1:], answer)))
        except StopIteration:
            return phases


TARGETS = {
    "obedient": obedient,
    "refuses suffix": refusing(lambda body: "suffix" in body),
    "refuses temperature 0": refusing(lambda body: body.get("temperature") == 0),
    "refuses several together": refusing(lambda body: "echo" in body and "logprobs" in body),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plans_that_share_what_they_remember_equal_plans_that_do_not(provider):
    shared = Remembered()
    for answer in (*TARGETS.values(), obedient):
        assert planner(provider, answer, shared) == planner(provider, answer, Forgetful())


def context(known):
    return PlanContext(contract("openai"), checks(), "m", known=known)


class Part:
    """A part of a plan that counts how often it is made, and looks where it is told to."""

    def __init__(self, look):
        self.look, self.made = look, 0

    def __call__(self, context):
        self.made += 1
        self.look(context.known)
        yield CaseGroup("rows", self.made, ())


LOOKS = {
    "suspect": lambda known: "x" in known.suspect,
    "refused": lambda known: known.spoils({"n": 2}),
    "reply": lambda known: known.reply(b"{}"),
    "text": lambda known: known.text(b"{}"),
    "replies": lambda known: list(known.replies.values()),
    "context": lambda known: known.context(),
    "cold": lambda known: known.no_cold,
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_part_is_made_again_when_what_it_looked_at_is_another(name):
    part, remembered, known = Part(LOOKS[name]), Remembered(), LearnedTarget()
    first = remembered.of(part, context(known))
    assert remembered.of(part, context(known)) is first
    known.accepted.add("n=2")  # at which none of them looks
    assert remembered.of(part, context(known)) is first
    known.suspect.add("x")
    known.refused["n=2"] = {"n": 2}
    known.no_cold = True
    known.replies[b"{}"] = obedient(context(known).case("value", context(known).bare))
    again = remembered.of(part, context(known))
    assert (again is first) is (name == "context")
    assert remembered.of(part, context(LearnedTarget())) is first


def test_little_is_kept():
    part, remembered = Part(lambda known: known.suspect), Remembered()
    for number in range(50):
        remembered.of(part, context(LearnedTarget(suspect={str(number)})))
    remembered.of(part, context(LearnedTarget(suspect={"0"})))
    remembered.of(part, context(LearnedTarget(suspect={"49"})))
    assert part.made == 50
    assert [len(kept) for kept in remembered._made.values()] == [2 * KEPT]


def test_looks_behave_like_what_is_looked_at():
    known = LearnedTarget(refused={"n=2": {"n": 2}}, suspect={"x"})
    x = obedient(context(known).case("value", context(known).bare))
    known.learn([x])
    seen = Seen(known)
    assert seen.spoils({"n": 2})
    assert not seen.spoils({"n": 1})
    assert seen.reply(x.case.content) is x
    assert x.case.content in seen.replies
    assert b"other" not in seen.replies
    assert list(seen.replies.values()) == [x]
    assert seen.text(x.case.content) == known.text(x.case.content) != ""
    assert (seen.suspect, seen.no_cold, seen.context()) == ({"x"}, False, None)


@pytest.mark.parametrize("profile", ["gate", "full"])
def test_what_is_planned_for_one_wave_only_is(profile):
    where = planned_context("novita", profile)
    for part, phase in ONLY.items():
        assert part in PARTS
        assert {bundle.phase for bundle in part(where)} == {phase}
    without = list(bundles(where, (), [name for name in ORDER if name not in ONLY.values()]))
    whole = list(bundles(where, ()))
    assert [one for one in whole if one in without] == without
    assert len(without) < len(whole)
