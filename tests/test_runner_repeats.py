"""What is sent again when there is not room for all doubts."""

from dataclasses import replace

from conformance.contract import load
from conformance.judge.fixtures import case, completion, plain
from conformance.model import Level, Outcome, Phase, Verdict
from conformance.run.confirm import COPIES, confirmation_phases

ROWS = load("openai").requirements
MUST = next(row for row in ROWS if row.level is Level.MUST)
SHOULD = next(row for row in ROWS if row.level is Level.SHOULD)


def sent(*doubts, room=120):
    """The cases that go out again for verdicts of a level with these doubts, by wave."""
    names = dict.fromkeys(name for _, cases in doubts for one in cases for name in one)
    exchanges = [replace(plain(completion()), case=case({"prompt": name}, id=name)) for name in names]
    verdicts = [Verdict(row, Outcome.INCONCLUSIVE, repeat=cases) for row, cases in doubts]
    phases = confirmation_phases(verdicts, [Phase("first", tuple(x.case for x in exchanges))], exchanges, room)
    return [[one.repeats for one in phase.cases] for phase in phases]


def test_each_case_in_doubt_goes_out_until_there_are_enough_of_it():
    assert sent((MUST, (("a", "b"),))) == [["a", "b"]] * (COPIES - 1)


def test_a_doubt_is_settled_wholly_or_not_at_all():
    assert sent((MUST, (("a", "b"), ("c", "d"))), room=5) == [["a", "b"]] * 2
    assert sent((MUST, (("a", "b"),)), room=3) == []


def test_what_must_hold_goes_first_and_each_row_has_one_doubt_before_any_has_two():
    doubts = (SHOULD, (("s", "t"),)), (MUST, (("a", "b"), ("c", "d")))
    assert sent(*doubts, room=4) == [["a", "b"]] * 2
    assert sent(*doubts, room=8) == [["a", "b", "s", "t"]] * 2


def test_a_case_that_two_doubts_share_is_paid_for_once():
    assert sent((MUST, (("a", "b"),)), (SHOULD, (("a", "c"),)), room=6) == [["a", "b", "c"]] * 2
