"""Sampling filters, judged by single replies: no token is sampled that top_k, top_p or min_p excludes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

WHOLE = 0.999  # alternatives with more probability than this were normalised after the filter, so they cannot show it
TOP_P_ROUNDING = 0.02  # what rounded probabilities may add up to beyond top_p. A choice


def narrows(request: RequestView, context: CheckContext) -> bool:
    """Expected where the filter leaves few tokens, and the reply lists enough alternatives to see which."""
    name, number = context.get("parameter", ""), request.logprobs or 0
    value = request.get(name)
    unaltered = not bends(context.contract, request, Bends.LOGITS, Bends.GRAMMAR)
    if not is_number(value) or number < 1 or request.echo or not unaltered or request.max_tokens == 0:
        return False
    if name == "top_k":
        return bool(0 < value <= number)
    return bool(0 < value < 1) and 0 < request.number("temperature", 1) <= 1


@check(
    "effects",
    Scope.SUCCESS,
    expected_when=narrows,
    good=lambda: (
        example(_sampled("top_k", 2, -1.0), parameter="top_k")
        + example(_sampled("top_p", 0.65, -1.0, temperature=0.5), parameter="top_p")
    ),
    bad=lambda: (
        example(_sampled("top_k", 1, -2.0), parameter="top_k")
        + example(_sampled("top_p", 0.3, -2.0), parameter="top_p")
        + example(_sampled("floor", 0.5, -2.0), parameter="floor")
        + example(_sampled("top_p", 0.3, -2.0, temperature=0.5), parameter="top_p")
    ),
)
def filter_bounds_the_choice(x: Exchange, context: CheckContext) -> Findings:
    """No token is sampled that top_k, top_p or min_p excludes.

    The filters keep improbable tokens out of long texts; a single one can spoil everything that follows.

    Fix: apply the filter to the distribution before drawing from it.
    """
    request = context.request(x)
    if not narrows(request, context):
        return
    name = context.get("parameter", "")
    floor = context.contract.by_role(Role.PROBABILITY_FLOOR)
    for answer, lists in choices_with_logprobs(x):
        values = lists.get("token_logprobs", [])
        positions = [
            (position, top)
            for position, top in alternatives_by_position(lists)
            if position < len(values) and is_number(values[position])
        ]
        examined = 0
        for position, top in positions:
            if not all(is_number(value) and value <= 0 for value in top.values()):
                continue
            examined += 1
            value = values[position]
            reason = _why_excluded(name, value, top, request, is_floor=name == floor)
            if reason:
                token = show((lists.get("tokens") or [None] * len(values))[position : position + 1])
                yield Violation(f"token {position}, {token}, has log probability {value:.3f}, {reason}", answer.at)
                break
        else:
            if examined:
                yield Satisfied(answer.at)


def _why_excluded(name: str, value: float, top: Mapping[str, Any], request: RequestView, *, is_floor: bool) -> str:
    """Why the filter excludes a token of this log probability beside these alternatives; empty if it does not."""
    bound = request.get(name)
    likelier = sorted((logprob for logprob in top.values() if logprob > value + LOGPROB_NOISE), reverse=True)
    if not likelier:
        return ""
    if name == "top_k" and len(likelier) >= bound:
        return f"below {len(likelier)} likelier tokens; expected one of the {bound} likeliest, as top_k is {bound}"
    mass = least_mass(likelier, top, request)
    if name == "top_p" and mass > bound + TOP_P_ROUNDING and sum(map(exp, top.values())) < WHOLE:
        return f"below tokens of probability {mass:.3f} together; expected less than top_p, which is {bound}"
    # below temperature 1 the ratio of two probabilities is smaller yet
    if is_floor and value < likelier[0] + log(bound) - LOGPROB_NOISE:
        return f"the likeliest has {likelier[0]:.3f}; expected at least {bound} of its probability, which is {name}"
    return ""


def least_mass(likelier: Sequence[float], top: Mapping[str, Any], request: RequestView) -> float:
    """The least probability that the likelier tokens have together, whether values are before or after temperature.

    Values before it have to be raised to its inverse power and divided by the sum over the vocabulary. The tokens that
    are not listed are at most as likely as the last of those that were requested, so that sum has an upper bound.
    """
    after = sum(map(exp, likelier))
    power = 1 / request.number("temperature", 1)
    if power <= 1:
        return after
    listed_logprobs = sorted(top.values(), reverse=True)
    least = listed_logprobs[: request.logprobs][-1]
    unlisted = max(0.0, 1 - sum(map(exp, listed_logprobs)))
    total = sum(exp(logprob * power) for logprob in listed_logprobs) + unlisted * exp(least * (power - 1))
    return min(after, sum(exp(logprob * power) for logprob in likelier) / total)


def _sampled(name: str, value: float, at: float, **parameters: float) -> Exchange:
    """A reply whose token has the log probability `at`, beside the likeliest one with -0.7."""
    lists = {**logprobs([" 4"], [at]), "top_logprobs": [{" 5": -0.7, " 4": at}]}
    return plain(completion(choice(" 4", logprobs=lists)), {"logprobs": 2, name: value, **parameters})
