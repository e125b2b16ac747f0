"""Judging again only what changed gives what judging everything gives."""

from dataclasses import replace

import pytest

from conformance.judge import Traffic, judge_all
from conformance.judge.finding_cache import FindingCache
from conformance.judge.fixtures import case, choice, completion, contract, plain
from conformance.model import Layer, Level, Membership, Requirement, Source
from conformance.model.exchange import Exchange
from conformance.selftest.mutation_testing import PLANTED, baseline, trial

FINE = plain(completion(choice()))


def row(check, **params):
    return Requirement(f"toy.{check}", check, Level.MUST, Layer.CONTRACT, "It holds.", Source("#"), {}, params)


def bare(x):
    """The same bytes with nothing computed of them yet."""
    return Exchange(x.case, x.attempts)


@pytest.mark.parametrize(
    ("provider", "profile", "name"),
    [
        ("openai", "gate", "usage_chunk_comes_twice"),
        ("novita", "gate", "usage_chunk_comes_twice"),
        ("fireworks", "full", "limit_is_shared_among_choices"),
        ("fireworks", "full", "greedy_is_best_effort"),
    ],
)
def test_a_trial_with_cached_findings_equals_one_judged_from_the_start(provider, profile, name):
    where = baseline(provider, profile)
    planted = PLANTED[name]
    _, run = where.run(**{"faults" if getattr(planted, "check", "") else "variants": (planted,)})
    uncached = judge_all(where.contract, Traffic([bare(x) for x in run.exchanges], run.planned))
    assert uncached == run.verdicts
    assert run.broken or any(case.repeats for case in run.planned), "it must change what is judged"


def test_a_trial_does_not_change_the_next_one():
    where = baseline("novita", "gate")
    planted = [PLANTED[name] for name in ("usage_chunk_comes_twice", "any_key_will_do")]
    first = [trial(where, one) for one in planted]
    assert [trial(where, one) for one in reversed(planted)] == first[::-1]
    assert judge_all(where.contract, Traffic(where.plain.exchanges, where.plain.planned)) == where.plain.verdicts


def test_an_exchange_that_was_judged_is_not_judged_again(monkeypatch):
    from conformance.judge.catalogue import CATALOGUE, load

    load()
    seen = []
    check = CATALOGUE["choices_are_complete"]
    function = check.function
    counting = replace(check, function=lambda x, context: (seen.append(x), *function(x, context)))
    monkeypatch.setitem(CATALOGUE, "choices_are_complete", counting)
    context = contract(requirements=(row("choices_are_complete"),))
    cache = FindingCache()
    plain_run = judge_all(context, Traffic([FINE], (), cache))
    other = replace(FINE, case=replace(FINE.case, id="case/other"))
    both = judge_all(context, Traffic([FINE, other], (), cache.copy()))
    assert seen == [FINE, other]
    assert both[0].examined == 2 * plain_run[0].examined
    assert judge_all(context, Traffic([FINE, other])) == both


def test_a_group_that_a_repeat_joins_is_judged_anew():
    group = (Membership("repeat", "same", "first"),), (Membership("repeat", "same", "second"),)
    one, two = (
        replace(FINE, case=case({"temperature": 0}, groups=some, id=f"case/{n}")) for n, some in enumerate(group)
    )
    other = replace(plain(completion(choice(text="else"))), case=replace(two.case, id="case/2", repeats=two.case.id))
    context = contract(requirements=(row("greedy_repeats"),))
    cache = FindingCache()
    before = judge_all(context, Traffic([one, two], (), cache))
    after = judge_all(context, Traffic([one, two, other], (), cache.copy()))
    assert after == judge_all(context, Traffic([one, two, other]))
    assert after != before
