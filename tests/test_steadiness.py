"""Where a target answers one request in several ways, a difference between two requests is no evidence."""

from dataclasses import replace

from conformance.contract import load
from conformance.judge import Traffic, judge_all
from conformance.judge.fixtures import choice, completion, plain
from conformance.model import Membership, Outcome

COLD = {"model": "m", "prompt": "1, 2", "max_tokens": 5, "temperature": 0}
SUFFIX = {**COLD, "suffix": " end"}


def reply(text, asked, number, *groups):
    x = plain(completion(choice(text)), asked)
    return replace(x, case=replace(x.case, id=f"{number}", groups=groups))


def never(first, second, *others):
    """The verdict on a stop sequence that cannot occur, from three replies on each side and other requests."""
    sides = ((first, "without", COLD), (second, "with", {**COLD, "stop": ["no"]}))
    exchanges = [
        reply(text, asked, f"{role} {turn}", Membership("never", "stop plain", role))
        for text, role, asked in sides
        for turn in range(3)
    ]
    exchanges += [reply(text, asked, place) for place, (text, asked) in enumerate(others)]
    verdicts = judge_all(load("openai"), Traffic(exchanges))
    return next(one for one in verdicts if one.requirement.id == "stop.never")


def test_a_difference_counts_where_the_same_request_is_answered_in_the_same_way():
    assert never(" 3, 4", " 5, 6").outcome is Outcome.WARN
    assert never(" 3, 4", " 5, 6", (" 7", SUFFIX), (" 7", SUFFIX)).outcome is Outcome.WARN


def test_a_difference_is_inconclusive_where_the_same_prompt_was_answered_in_several_ways():
    found = never(" 3, 4", " 5, 6", (" 7", SUFFIX), (" 8", SUFFIX))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "not deterministic" in found.reason


def test_other_prompts_and_sampled_texts_do_not_make_a_prompt_nondeterministic():
    other, warm = {**SUFFIX, "prompt": "A, B"}, {**SUFFIX, "temperature": 1}
    assert never(" 3, 4", " 5, 6", (" 7", other), (" 8", other)).outcome is Outcome.WARN
    assert never(" 3, 4", " 5, 6", (" 7", warm), (" 8", warm)).outcome is Outcome.WARN


def test_a_batch_that_contains_the_prompt_makes_it_nondeterministic_too():
    batch = {**SUFFIX, "prompt": ["A, B", "1, 2"]}
    assert never(" 3, 4", " 5, 6", (" 7", batch), (" 8", batch)).outcome is Outcome.INCONCLUSIVE
