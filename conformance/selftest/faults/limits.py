"""Request bodies that the contract calls invalid are accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.model import Contract, Edge, Level, Limit
from conformance.model.json_text import is_number
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Refusal
from conformance.selftest.edits import sent, without_problems_of
from conformance.selftest.fault import fault
from conformance.selftest.own_parameters import own_parameters, with_role

CHECK = "invalid_is_refused"
# An invalid request that is accepted, on one channel or on both, is also not refused by name or alike.
ACCEPTED = ("errors_agree_on_both_channels", "error_names_the_field")
NUMBERS = (
    "temperature", "top_p", "top_k", *with_role(Role.PROBABILITY_FLOOR), "n", "best_of", "logprobs", "presence_penalty",
    "frequency_penalty", "repetition_penalty",
)  # fmt: skip
# The parameters of single providers that are not numbers. The one for requests beyond the context decides itself what
# is refused.
OTHERS = tuple(
    name
    for name, (parameter, known) in own_parameters().items()
    if "number" not in parameter.types and known.role is not Role.CONTEXT_OVERFLOW
)
TYPED = (
    "model", "prompt", "max_tokens", "temperature", "top_p", "n", "best_of", "logprobs", "echo", "stop", "stream",
    "stream_options", "logit_bias", "seed", "suffix", "user", "presence_penalty", "frequency_penalty",
    "response_format", *OTHERS,
)  # fmt: skip

# Under which contracts a fault shows.


def binding_limit(contract: Contract, name: str) -> Limit | None:
    """The contract's limit of a parameter, where providers must keep to it."""
    limit = contract.limit(name)
    return limit if limit is not None and limit.binding else None


def has_high(contract: Contract, name: str) -> bool:
    """Only where the contract names an upper bound."""
    limit = binding_limit(contract, name)
    return limit is not None and limit.high is not None


def has_low(contract: Contract, name: str) -> bool:
    """Only where the contract names a lower bound."""
    limit = binding_limit(contract, name)
    return limit is not None and limit.low is not None


def closed(contract: Contract, name: str) -> bool:
    """Only where the contract's upper bound belongs to the range."""
    limit = binding_limit(contract, name)
    return limit is not None and limit.high is not None and limit.high_edge is Edge.CLOSED


def _limits_items(contract: Contract, name: str) -> bool:
    return has_high(contract, f"{name}[]")


def _required(contract: Contract, name: str) -> bool:
    """Only where the document is clear that a request needs this member."""
    return any(row.id == f"request.{name}.required" and row.level is not Level.MAY for row in contract.requirements)


def _excluded(contract: Contract, name: str) -> bool:
    """Only where the contract forbids a combination with this member."""
    return any(
        name in combination.where or name in combination.given or name in (combination.compare or ())
        for combination in contract.combinations
        if combination.validity == "invalid"
    )


# Numbers beyond their range.


def _above(call: Call, name: str) -> bool:
    limit, value = call.reference.contract.limit(name), sent(call, name)
    return limit is not None and limit.high is not None and is_number(value) and value > limit.high


def _below(call: Call, name: str) -> bool:
    limit, value = call.reference.contract.limit(name), sent(call, name)
    return limit is not None and limit.low is not None and is_number(value) and value < limit.low


@fault(
    Stage.REFUSAL,
    CHECK,
    parameters=NUMBERS,
    fits=has_high,
    also=ACCEPTED,
    imitates="Servers passed numbers on to an engine without checking them.",
)
def too_high_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` above its range is accepted."""
    return without_problems_of(refusal, name) if _above(call, name) else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    parameters=(*NUMBERS, "max_tokens"),
    fits=has_low,
    also=ACCEPTED,
    imitates="`n: 0` was answered with one choice, `temperature: -1` with text.",
)
def too_low_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` below its range is accepted."""
    return without_problems_of(refusal, name) if _below(call, name) else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    parameters=("temperature", "n", "logprobs"),
    fits=has_high,
    also=ACCEPTED,
    only=lambda call: call.streamed,
)
def too_high_is_accepted_in_streams(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` above its range is accepted where a stream is requested."""
    return without_problems_of(refusal, name) if _above(call, name) else refusal


@fault(Stage.BODY, CHECK, also=ACCEPTED, parameters=("temperature", "top_p", "n", "logprobs"), fits=has_high)
def values_are_clamped(body: Any, call: Call, name: str) -> Any:
    """A `{name}` beyond its range is silently replaced by the nearest allowed value."""
    limit = call.reference.contract.limit(name)
    value: Any = body.get(name) if isinstance(body, dict) else None
    if limit is None or limit.high is None or not is_number(value) or value <= limit.high:
        return body
    return {**body, name: int(limit.high) if isinstance(value, int) else limit.high}


# Lists and maps beyond their limits.


@fault(Stage.REFUSAL, CHECK, parameters=("stop",), also=ACCEPTED, fits=_limits_items)
def five_stops_are_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """More stop sequences than documented are accepted."""
    value = sent(call, name)
    return without_problems_of(refusal, name) if isinstance(value, list) and len(value) > 4 else refusal


@fault(Stage.BODY, CHECK, also=ACCEPTED, parameters=("stop",), fits=_limits_items)
def extra_stops_are_dropped(body: Any, call: Call, name: str) -> Any:
    """Stop sequences after the fourth are silently dropped."""
    if not isinstance(body, dict) or not isinstance(body.get(name), list):
        return body
    return {**body, name: body[name][:4]}


@fault(
    Stage.REFUSAL,
    CHECK,
    parameters=("logit_bias",),
    also=ACCEPTED,
    fits=lambda contract, name: has_high(contract, f"{name}.*"),
)
def strong_bias_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A bias above 100 is accepted."""
    bias = sent(call, name)
    numbers = isinstance(bias, Mapping) and all(is_number(value) for value in bias.values())
    return without_problems_of(refusal, name) if numbers else refusal


# Other types.


@fault(Stage.REFUSAL, CHECK, also=(*ACCEPTED, "context_overflow"), parameters=TYPED)
def other_type_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` of another type than documented is accepted."""
    value = sent(call, name)
    if value is None or (is_number(value) and _is_out_of_range(refusal, name)):
        return refusal
    return without_problems_of(refusal, name)


def _is_out_of_range(refusal: Refusal | None, name: str) -> bool:
    problems = refusal.problems if refusal is not None else ()
    return any(problem.param == name and problem.kind == "out_of_range" for problem in problems)


@fault(Stage.BODY, CHECK, also=ACCEPTED, parameters=("max_tokens", "temperature"))
def numbers_in_quotes_are_converted(body: Any, call: Call, name: str) -> Any:
    """A `{name}` that is a string is converted to a number."""
    if not isinstance(body, dict) or not isinstance(body.get(name), str):
        return body
    try:
        return {**body, name: float(body[name]) if "." in body[name] else int(body[name])}
    except ValueError:
        return body


@fault(Stage.BODY, CHECK, also=ACCEPTED, parameters=("stream", "echo"))
def any_value_is_taken_for_a_boolean(body: Any, call: Call, name: str) -> Any:
    """A `{name}` of any type is converted to a boolean."""
    if not isinstance(body, dict) or body.get(name) is None:
        return body
    return {**body, name: str(body[name]).lower() in {"true", "1", "yes"}}


# Missing and conflicting members.


@fault(Stage.REFUSAL, CHECK, parameters=("model", "prompt"), also=ACCEPTED, fits=_required)
def required_member_may_be_missing(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A request without `{name}` is accepted."""
    if not isinstance(call.body, dict) or name in call.body:
        return refusal
    call.params = replace(call.params, model=call.reference.models[0])
    return without_problems_of(refusal, name)


@fault(Stage.REFUSAL, CHECK, also=ACCEPTED, parameters=("best_of",), fits=_excluded)
def excluded_combination_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` that conflicts with other members is accepted."""
    if refusal is None or sent(call, name) is None:
        return refusal
    others = tuple(problem for problem in refusal.problems if problem.kind != "invalid_combination")
    return replace(refusal, problems=others) if others else None
