"""Sampling filters, told by one reply: no token is sampled that top_k, top_p or min_p rules out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, log
from typing import Any

from conformance.contract.parameters import bends
from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import choices_with_logprobs, is_number
from conformance.judge.checks.logprobs_values import alternatives_by_position
from conformance.judge.fixtures import choice, completion, example, logprobs, plain
from conformance.judge.tolerances import LOGPROB_NOISE
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange
from conformance.model.parameter_traits import Bends, Role
from conformance.model.request_view import RequestView

WHOLE = 0.999  # alternatives that make up all probability were listed after the filter, and show nothing of it


def narrows(request: RequestView, context: CheckContext) -> bool:
    """Due where the filter leaves few tokens, and the reply lists enough of them to see which."""
    name, number = context.get("parameter", ""), request.logprobs or 0
    value = request.get(name)
    straight = not bends(context.contract, request, Bends.LOGITS, Bends.GRAMMAR)
    if not is_number(value) or number < 1 or request.echo or not straight or request.max_tokens == 0:
        return False
    if name == "top_k":
        return bool(0 < value <= number)
    return bool(0 < value < 1) and request.number("temperature", 1) == 1


@check(
    "effects",
    Scope.SUCCESS,
    expected_when=narrows,
    good=lambda: example(_sampled("top_k", 2, -1.0), parameter="top_k"),
    bad=lambda: (
        example(_sampled("top_k", 1, -2.0), parameter="top_k")
        + example(_sampled("top_p", 0.3, -2.0), parameter="top_p")
        + example(_sampled("floor", 0.5, -2.0), parameter="floor")
    ),
)
def filter_bounds_the_choice(x: Exchange, context: CheckContext) -> Findings:
    """No token is sampled that top_k, top_p or min_p rules out.

    The filters keep nonsense out of long texts; one token from the tail can derail everything that follows.

    Fix: apply the filter to the distribution that is drawn from, and draw from what it leaves.
    """
    request = context.request(x)
    if not narrows(request, context):
        return
    name = context.get("parameter", "")
    floor = context.contract.by_role(Role.PROBABILITY_FLOOR)
    for found, lists in choices_with_logprobs(x):
        values = lists.get("token_logprobs", [])
        places = [
            (place, top)
            for place, top in alternatives_by_position(lists)
            if place < len(values) and is_number(values[place])
        ]
        seen = 0
        for place, top in places:
            if not all(is_number(value) and value <= 0 for value in top.values()):
                continue
            seen += 1
            fault = next(_ruled_out(name, name == floor, request.get(name), values[place], top), "")
            if fault:
                token = show((lists.get("tokens") or [None] * len(values))[place : place + 1])
                yield Violation(f"token {place}, {token}, at {values[place]:.3f} {fault}", found.at)
                break
        else:
            if seen:
                yield Satisfied(found.at)


def _ruled_out(name: str, is_floor: bool, bound: float, value: float, top: Mapping[str, Any]) -> Iterator[str]:
    """Why the filter forbids a token of this log probability beside these alternatives."""
    better = sorted((one for one in top.values() if one > value + LOGPROB_NOISE), reverse=True)
    if not better:
        return
    mass = sum(map(exp, better))
    if name == "top_k" and len(better) >= bound:
        yield f"has {len(better)} likelier ones before it; expected one of the first {bound}, as top_k says"
    elif name == "top_p" and mass > bound + 0.02 and sum(map(exp, top.values())) < WHOLE:
        yield f"has likelier ones of {mass:.3f} together before it; expected less than top_p, {bound}"
    elif is_floor and value < better[0] + log(bound) - LOGPROB_NOISE:
        yield f"is below {bound} times the likeliest, at {better[0]:.3f}; expected none below {name}"


def _sampled(name: str, value: float, at: float) -> Exchange:
    """A reply whose token stands at `at`, beside the likeliest one at -0.7."""
    lists = {**logprobs([" 4"], [at]), "top_logprobs": [{" 5": -0.7, " 4": at}]}
    return plain(completion(choice(" 4", logprobs=lists)), {"logprobs": 2, name: value})
