"""Faults and legal variants: each is documented, applies to some contract, and never crashes the reference."""

import asyncio
import json
from dataclasses import replace

import pytest

from conformance.contract import load, providers
from conformance.judge.catalogue import load as catalogue
from conformance.judge.fixtures import case
from conformance.model import Credential, Ending, Membership, Phase
from conformance.model.budget import Account, Budget
from conformance.reference.alterations import Stage
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.fault import fault
from conformance.selftest.faults import FAULTS
from conformance.selftest.in_process import InProcessSender, exchange
from conformance.selftest.legal_variants import LEGAL_VARIANTS

CONTRACTS = {name: load(name) for name in providers()}


def bodies():
    """Requests that together make most faults show."""
    shared = {"model": "reference", "max_tokens": 6, "temperature": 0}
    for stream in (False, True):
        usage = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        for members in (
            {"prompt": "One é two"}, {"prompt": ["a", "b c"], "n": 2}, {"prompt": [1, 2], "logprobs": 2, "echo": True},
            {"prompt": "x", "temperature": 1, "n": 3, "logprobs": 3, "top_p": 0.5, "top_k": 9, "min_p": 0.1},
            {"prompt": "stop", "stop": [" ", "e"], "max_tokens": 40, "user": "u"}, {"prompt": "s", "suffix": "end"},
            {"prompt": "p", "seed": 4, "temperature": 1, "presence_penalty": 1, "frequency_penalty": 1},
            {"prompt": "b", "logit_bias": {"7": 100, "8": -100}, "n": 2, "logprobs": 0, "repetition_penalty": 1.5},
            {"prompt": "j", "response_format": {"type": "json_object"}, "max_tokens": 30, "service_tier": "flex"},
            {"prompt": "e", "ignore_eos": True, "max_tokens": 20}, {"prompt": "z", "max_tokens": 0, "echo": True},
            {"prompt": "long", "max_tokens": 200}, {"prompt": "l", "stop": "x", "logprobs": 5, "n": 2, "echo": True},
        ):  # fmt: skip
            yield {**shared, **usage, **members}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_says_what_goes_wrong_and_which_check_detects_it(name):
    planted = FAULTS[name]
    assert planted.says.endswith(".")
    assert planted.check in catalogue()
    areas = {check.area for check in catalogue().values()}
    assert set(planted.besides) <= areas | catalogue().keys()
    assert any(planted.applies(contract) for contract in CONTRACTS.values()), "it applies to no contract"


def test_each_fault_is_counted_under_its_own_name():
    assert all(planted.alteration.name == name for name, planted in FAULTS.items())


def test_the_catalogues_are_in_the_order_of_names():
    assert list(FAULTS) == sorted(FAULTS)
    assert list(LEGAL_VARIANTS) == sorted(LEGAL_VARIANTS)


@pytest.mark.parametrize("name", sorted(LEGAL_VARIANTS))
def test_a_legal_variant_says_what_is_unusual(name):
    assert LEGAL_VARIANTS[name].says.endswith(".")
    assert any(LEGAL_VARIANTS[name].applies(contract) for contract in CONTRACTS.values())


@pytest.mark.parametrize("name", sorted(FAULTS) + sorted(LEGAL_VARIANTS))
def test_no_fault_or_legal_variant_crashes_the_reference(name):
    planted = {**FAULTS, **LEGAL_VARIANTS}[name]
    contract = next(contract for contract in CONTRACTS.values() if planted.applies(contract))
    provider = altered_reference(contract, key="k", **{"faults" if name in FAULTS else "variants": (planted,)})
    for number, body in enumerate(bodies()):
        x = exchange(provider, replace(case(body), id=f"c/{number}"))
        assert x.status is not None or x.ending is not Ending.COMPLETE
    unusual = json.dumps({"model": None, "prompt": {}, "n": 10**9, "stream": 7}).encode()
    for content in (b"", b"[]", b"{", b"\xff", unusual):
        for credential in Credential:
            x = exchange(provider, replace(case({}), content=content, credential=credential))
            assert x.status is not None or x.ending is not Ending.COMPLETE


def test_a_fault_counts_how_often_it_changed_something():
    provider = altered_reference(CONTRACTS["openai"], faults=(FAULTS["done_is_left_out"],))
    exchange(provider, case({"model": "reference"}))
    assert provider.fired == {}
    x = exchange(provider, case({"model": "reference", "stream": True}))
    assert provider.fired == {"done_is_left_out": 1}
    assert b"[DONE]" not in x.content


def test_an_intermittent_fault_shows_on_every_third_call():
    provider = altered_reference(CONTRACTS["openai"], faults=(FAULTS["done_is_left_out_when_sometimes"],))
    seen = [b"[DONE]" in exchange(provider, case({"model": "reference", "stream": True})).content for _ in range(6)]
    assert seen == [True, True, False, True, True, False]


def test_a_fault_of_concurrent_requests_shows_only_in_a_burst():
    provider = altered_reference(CONTRACTS["openai"], key="k", faults=(FAULTS["prompts_are_exchanged_in_a_crowd"],))
    asked = {"model": "reference", "temperature": 0}
    cases = [
        replace(case({**asked, "prompt": text}), id=text, groups=(Membership("burst", "b", text),)) for text in "ab"
    ]
    sender = InProcessSender(provider, Account(Budget()), finished=lambda _: None)
    alone, together = (
        [x.choices[0].text for x in asyncio.run(sender.send(Phase("two", tuple(cases), burst=burst)))]
        for burst in (0, 2)
    )
    assert together == alone[::-1] != alone


def test_two_faults_cannot_share_a_name():
    def done_is_left_out(frames, call):
        """Again."""

    with pytest.raises(ValueError, match="two faults"):
        fault(Stage.FRAMES, "done_is_sent")(done_is_left_out)


def test_a_request_that_gets_429_is_answered_when_it_is_sent_again():
    provider = altered_reference(CONTRACTS["openai"], variants=(LEGAL_VARIANTS["each_request_waits_once"],))
    x = exchange(provider, case({"model": "reference"}))
    assert [attempt.status for attempt in x.attempts] == [429, 200]
