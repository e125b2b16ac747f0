"""The table of generators: each contributes to the phases that it declares, and looks at the input that it declares."""

from dataclasses import replace

import pytest
from planned import PROVIDERS, answered, drawn, obedient, refusing
from planned import context as planned_context

from conformance.plan import planner as planning
from conformance.plan.case_group import ORDER
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.planner import ALONE, PARTS, STATES, CaseGroups, Input, Part, Planner


class Forgetful(CaseGroups):
    """Every generator is run each time."""

    def _of(self, part, context):
        return tuple(part.generate(context, self.drawn) if part.uses_drawn else part.generate(context))


class Declared(Forgetful):
    """Each part yields case groups of its declared phases only."""

    def _of(self, part, context):
        made = super()._of(part, context)
        assert {case_group.phase for case_group in made} <= {*part.phases}, part.generate.__name__
        return made


def phases(provider, answer, monkeypatch, case_groups, profile="gate"):
    monkeypatch.setattr(planning, "CaseGroups", case_groups)
    plan = Planner(planned_context(provider, profile, has_key=True), drawn(provider, profile)).phases()
    found = [next(plan)]
    while True:
        try:
            found.append(plan.send(answered(found[-1:], answer)))
        except StopIteration:
            return found


TARGETS = {
    "obedient": obedient,
    "refuses suffix": refusing(lambda body: "suffix" in body),
    "refuses temperature 0": refusing(lambda body: body.get("temperature") == 0),
    "refuses several together": refusing(lambda body: "echo" in body and "logprobs" in body),
    "refuses stop and n": refusing(lambda body: "stop" in body or body.get("n") == 2),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_kept_is_what_would_be_made(provider, target, monkeypatch):
    made = [phases(provider, TARGETS[target], monkeypatch, kind) for kind in (CaseGroups, Declared)]
    assert made[0] == made[1]


@pytest.mark.parametrize("target", ["obedient", "refuses several together"])
def test_the_same_in_full(target, monkeypatch):
    made = [phases("openai", TARGETS[target], monkeypatch, kind, "full") for kind in (CaseGroups, Declared)]
    assert made[0] == made[1]


def test_plans_that_share_case_groups_are_those_of_plans_that_do_not(monkeypatch):
    shared = CaseGroups(drawn("openai", "gate"), most=8)
    alone = [phases("openai", answer, monkeypatch, CaseGroups) for answer in TARGETS.values()]
    assert [phases("openai", answer, monkeypatch, lambda _: shared) for answer in TARGETS.values()] == alone


def test_every_phase_has_a_state_and_parts():
    assert tuple(state.phase for state in STATES) == ORDER
    assert {phase for part in PARTS for phase in part.phases} == {*ORDER, ALONE}


class Counting:
    """A generator that counts how often it is run."""

    def __init__(self):
        self.runs = 0

    def __call__(self, _context):
        self.runs += 1
        return iter(())


@pytest.mark.parametrize(
    ("kind", "replies", "rows", "values"),
    [(Input.VALUES, 1, 1, 2), (Input.ROWS, 1, 2, 3), (Input.REPLIES, 2, 3, 4)],
)
def test_a_generator_is_run_again_when_its_input_has_changed(kind, replies, rows, values, monkeypatch):
    count, known = Counting(), LearnedTarget()
    monkeypatch.setattr(planning, "PARTS", (Part(count, ("rows",), kind),))
    context, case_groups = planned_context("openai"), CaseGroups()

    def runs():
        list(case_groups.of(replace(context, known=known)))
        return count.runs

    assert runs() == 1
    case = context.case("value", {**context.bare, "user": "somebody"})
    known.learn(answered_case(case))
    assert runs() == replies
    known.rows_sent = True
    assert runs() == rows
    known.refused["n=2"] = {"n": 2}
    assert runs() == values


def test_a_generator_is_run_for_its_phases_only(monkeypatch):
    count = Counting()
    monkeypatch.setattr(planning, "PARTS", (Part(count, ("rows", "learned")),))
    list(CaseGroups().of(planned_context("openai"), ("base", "values")))
    assert count.runs == 0
    list(CaseGroups().of(planned_context("openai"), ("values", "rows")))
    assert count.runs == 1


def answered_case(case):
    from conformance.model.exchange import Exchange

    return [Exchange(case, obedient(case).attempts)]
