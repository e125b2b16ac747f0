"""What a plan says a run costs at most is never exceeded on a conforming target."""

import pytest
from planned import plan

from conformance.contract import providers
from conformance.model import Validity
from conformance.model.budget import ANY_CONTEXT, PROFILES, Account, Budget, ceiling, is_large
from conformance.model.request_view import RequestView
from conformance.run.result import totals
from conformance.selftest.mutation_testing import baseline

RUNS = [
    pytest.param(provider, profile, marks=[pytest.mark.slow] if profile == "full" else [])
    for provider in providers()
    for profile in PROFILES
]


@pytest.mark.parametrize(("provider", "profile"), RUNS)
def test_a_run_stays_within_its_ceilings_and_each_request_within_its_own(provider, profile):
    where = baseline(provider, profile)
    spent, most = totals(where.plain.exchanges), PROFILES[profile]
    assert spent["attempts"] <= most.requests
    assert spent["prompt_tokens"] <= most.prompt_tokens
    assert spent["completion_tokens"] <= most.completion_tokens
    for x in where.plain.exchanges:
        if x.successful and x.case.validity is not Validity.INVALID and isinstance(x.case.body, dict):
            request = RequestView(x.case.body, where.contract.defaults)
            cost = totals([x])
            assert cost["prompt_tokens"] <= ceiling(request).prompt, x.case.id
            if request.max_tokens is not None and request.max_tokens <= ANY_CONTEXT:
                assert cost["completion_tokens"] <= ceiling(request).completion, x.case.id


@pytest.mark.parametrize("profile", PROFILES)
def test_a_large_prompt_is_sent_only_if_it_is_asked_for(profile):
    sent = [x.case.body for x in baseline("openai", profile).plain.exchanges]
    assert not [body for body in sent if isinstance(body, dict) and is_large(RequestView(body, {}))]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_plan_has_a_large_prompt_only_with_that_option(allowed):
    cases = plan("openai", "full", allow_large=allowed).cases
    assert sum(case.note == "a megabyte of prompt" for case in cases) == allowed


def test_every_byte_may_be_a_token():
    request = RequestView({"prompt": ["é", "abc"], "suffix": "ab", "max_tokens": 5, "n": 2}, {})
    assert ceiling(request).prompt == 2 + 3 + 2 * (4 + 2)
    account = Account(Budget(prompt_tokens=16))
    assert "the next may take 17" in account.refuses(ceiling(request))
