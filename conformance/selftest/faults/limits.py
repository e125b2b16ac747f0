"""Requests that the contract forbids are let in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.model import Contract, Edge, Level
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Refusal
from conformance.selftest.edits import asked, over
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import own_parameters, with_role

CHECK = "invalid_is_refused"
# What a single provider documents and is no number; the policy on the context decides what is refused itself.
OTHERS = tuple(
    name
    for name, (parameter, known) in own_parameters().items()
    if "number" not in parameter.types and known.role is not Role.CONTEXT_OVERFLOW
)
# Whoever lets an invalid request in on one channel, or at all, answers it with something.
LETS_IN = ("errors_agree_on_both_channels", "error_names_the_field")
NUMBERS = ("temperature", "top_p", "top_k", *with_role(Role.PROBABILITY_FLOOR), "n", "best_of", "logprobs",
           "presence_penalty", "frequency_penalty", "repetition_penalty")  # fmt: skip


def is_number(value: Any) -> bool:
    """Whether a member is a JSON number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def has_high(contract: Contract, name: str) -> bool:
    """Only where the contract names an upper bound."""
    limit = contract.limit(name)
    return limit is not None and limit.binding and limit.high is not None


def has_low(contract: Contract, name: str) -> bool:
    """Only where the contract names a lower bound."""
    limit = contract.limit(name)
    return limit is not None and limit.binding and limit.low is not None


def closed(contract: Contract, name: str) -> bool:
    """Only where the contract's upper bound belongs to the range."""
    limit = contract.limit(name)
    return limit is not None and limit.binding and limit.high is not None and limit.high_edge is Edge.CLOSED


def _above(call: Call, name: str) -> bool:
    limit, value = call.reference.contract.limit(name), asked(call, name)
    return limit is not None and limit.high is not None and is_number(value) and value > limit.high


def _below(call: Call, name: str) -> bool:
    limit, value = call.reference.contract.limit(name), asked(call, name)
    return limit is not None and limit.low is not None and is_number(value) and value < limit.low


@fault(
    Stage.REFUSAL,
    CHECK,
    each=NUMBERS,
    fits=has_high,
    also=LETS_IN,
    imitates="Servers passed numbers on to an engine that nobody had checked.",
)
def too_high_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` above its range is let in."""
    return over(refusal, name) if _above(call, name) else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    each=(*NUMBERS, "max_tokens"),
    fits=has_low,
    also=LETS_IN,
    imitates="`n: 0` was answered with one choice, `temperature: -1` with text.",
)
def too_low_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` below its range is let in."""
    return over(refusal, name) if _below(call, name) else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    each=("temperature", "n", "logprobs"),
    fits=has_high,
    also=LETS_IN,
    only=lambda call: call.streamed,
)
def too_high_is_accepted_in_streams(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` above its range is let in where a stream is asked for."""
    return over(refusal, name) if _above(call, name) else refusal


@fault(Stage.REFUSAL, CHECK, each=("stop",), also=LETS_IN, fits=lambda contract, name: has_high(contract, f"{name}[]"))
def five_stops_are_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """More stop sequences than documented are let in."""
    value = asked(call, name)
    return over(refusal, name) if isinstance(value, list) and len(value) > 4 else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    each=("logit_bias",),
    also=LETS_IN,
    fits=lambda contract, name: has_high(contract, f"{name}.*"),
)
def strong_bias_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A bias beyond 100 is let in."""
    bias = asked(call, name)
    strong = isinstance(bias, Mapping) and all(is_number(value) for value in bias.values())
    return over(refusal, name) if strong else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    also=(*LETS_IN, "context_overflow"),
    each=(
        "model",
        "prompt",
        "max_tokens",
        "temperature",
        "top_p",
        "n",
        "best_of",
        "logprobs",
        "echo",
        "stop",
        "stream",
        "stream_options",
        "logit_bias",
        "seed",
        "suffix",
        "user",
        "presence_penalty",
        "frequency_penalty",
        "response_format",
        *OTHERS,
    ),
)
def other_type_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` of another type is let in."""
    value = asked(call, name)
    return refusal if value is None or (is_number(value) and _by_range(refusal, name)) else over(refusal, name)


def _by_range(refusal: Refusal | None, name: str) -> bool:
    return refusal is not None and any(one.param == name and one.kind == "out_of_range" for one in refusal.problems)


@fault(Stage.BODY, CHECK, also=LETS_IN, each=("max_tokens", "temperature"))
def numbers_in_quotes_are_converted(body: Any, call: Call, name: str) -> Any:
    """A `{name}` in quotes counts as a number."""
    if not isinstance(body, dict) or not isinstance(body.get(name), str):
        return body
    try:
        return {**body, name: float(body[name]) if "." in body[name] else int(body[name])}
    except ValueError:
        return body


@fault(Stage.BODY, CHECK, also=LETS_IN, each=("stream", "echo"))
def any_value_is_taken_for_a_boolean(body: Any, call: Call, name: str) -> Any:
    """Whatever stands in `{name}` is taken as true or false."""
    if not isinstance(body, dict) or body.get(name) is None:
        return body
    return {**body, name: str(body[name]).lower() in {"true", "1", "yes"}}


@fault(Stage.BODY, CHECK, also=LETS_IN, each=("stop",), fits=lambda contract, name: has_high(contract, f"{name}[]"))
def extra_stops_are_dropped(body: Any, call: Call, name: str) -> Any:
    """Stop sequences after the fourth are dropped without a word."""
    if not isinstance(body, dict) or not isinstance(body.get(name), list):
        return body
    return {**body, name: body[name][:4]}


@fault(Stage.BODY, CHECK, also=LETS_IN, each=("temperature", "top_p", "n", "logprobs"), fits=has_high)
def values_are_clamped(body: Any, call: Call, name: str) -> Any:
    """A `{name}` beyond its range is moved to the nearest allowed value without a word."""
    limit = call.reference.contract.limit(name)
    value: Any = body.get(name) if isinstance(body, dict) else None
    if limit is None or limit.high is None or not is_number(value) or value <= limit.high:
        return body
    return {**body, name: int(limit.high) if isinstance(value, int) else limit.high}


@fault(
    Stage.REFUSAL,
    CHECK,
    each=("model", "prompt"),
    also=LETS_IN,
    fits=lambda contract, name: _must_be_sent(contract, name),
)
def required_member_may_be_missing(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A request without `{name}` is let in."""
    if not isinstance(call.body, dict) or name in call.body:
        return refusal
    call.params = replace(call.params, model=call.reference.models[0])
    return over(refusal, name)


@fault(
    Stage.REFUSAL,
    CHECK,
    also=LETS_IN,
    each=("best_of", "stream_options"),
    fits=lambda contract, name: _combined(contract, name),
)
def excluded_combination_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` beside members that exclude it is let in."""
    if refusal is None or asked(call, name) is None:
        return refusal
    left = tuple(one for one in refusal.problems if one.kind != "invalid_combination")
    return replace(refusal, problems=left) if left else None


def _combined(contract: Contract, name: str) -> bool:
    return any(
        name in one.where or name in one.given or name in (one.compare or ())
        for one in contract.combinations
        if one.validity == "invalid"
    )


def _must_be_sent(contract: Contract, name: str) -> bool:
    """Whether the document is clear that a request needs this member."""
    return any(row.id == f"request.{name}.required" and row.level is not Level.MAY for row in contract.requirements)
