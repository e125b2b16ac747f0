"""The covering arrays that are kept are those that would be made, and all that plans rest on."""

import pytest
from planned import PROVIDERS, contract, planned

from conformance.model.budget import PROFILES
from conformance.plan import covering_array as covering
from conformance.plan import covering_rows as arrays

ADVICE = "contracts or dimensions changed: run python bench/covering.py"


@pytest.fixture
def asked_for(monkeypatch):
    def listen(provider, profile):
        asked = []
        usual = covering.array
        monkeypatch.setattr(arrays, "array", lambda *one: asked.append(one) or usual(*one))
        planned(contract(provider), profile=profile, drawn=())
        return list(dict.fromkeys(asked))

    return listen


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_plan_rests_on_is_kept_as_it_would_be_made(asked_for, provider, profile):
    asked = asked_for(provider, profile)
    assert asked
    for one in asked:
        assert covering.key(one) in covering.stored(), ADVICE
        if profile == "gate" or provider == "nebius":  # the others take long, and show no more
            assert covering.make(*one) == covering.array(*one)


def test_nothing_else_is_kept(asked_for):
    every = {covering.key(one) for name in PROVIDERS for profile in PROFILES for one in asked_for(name, profile)}
    assert every == covering.stored().keys(), ADVICE


def test_what_is_not_kept_is_made():
    assert sorted(covering.array((2, 2), 2, (), ())) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    banned = (((0, 1), (1, 1)),)
    assert sorted(covering.array((2, 2), 2, banned, ((0, 0),))) == [(0, 1), (1, 0)]


def test_order_and_types_tell_arrays_apart():
    one = ((2, 3), 2, (), ())
    assert len({covering.key(some) for some in (one, ((3, 2), 2, (), ()), ((2, 3), 2, (), ((0, 0),)))}) == 3
