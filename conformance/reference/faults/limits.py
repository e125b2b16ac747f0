"""Requests that the contract forbids are let in, and such as it allows are turned away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.model import Contract, Edge
from conformance.reference.alter import Call, Stage
from conformance.reference.bending import asked, over
from conformance.reference.fault import fault
from conformance.reference.message import Problem, Refusal
from conformance.strictjson import MISSING

CHECK = "invalid_is_refused"
# Whoever lets an invalid request in on one channel, or at all, answers it with something.
LETS_IN = ("errors_agree_on_both_channels", "error_names_the_field")
NUMBERS = ("temperature", "top_p", "top_k", "min_p", "n", "best_of", "logprobs", "max_tokens", "presence_penalty",
           "frequency_penalty", "repetition_penalty")  # fmt: skip


def _number(value: Any) -> bool:
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
    return limit is not None and limit.high is not None and _number(value) and value > limit.high


def _below(call: Call, name: str) -> bool:
    limit, value = call.reference.contract.limit(name), asked(call, name)
    return limit is not None and limit.low is not None and _number(value) and value < limit.low


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
    each=NUMBERS,
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
    strong = isinstance(bias, Mapping) and all(_number(value) for value in bias.values())
    return over(refusal, name) if strong else refusal


@fault(
    Stage.REFUSAL,
    CHECK,
    also=LETS_IN,
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
        "metadata",
        "extra_body",
        "service_tier",
        "ignore_eos",
        "models",
        "images",
    ),
)
def other_type_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` of another type is let in."""
    value = asked(call, name)
    return refusal if value is None or (_number(value) and _by_range(refusal, name)) else over(refusal, name)


def _by_range(refusal: Refusal | None, name: str) -> bool:
    return refusal is not None and any(one.param == name and one.kind == "out_of_range" for one in refusal.problems)


@fault(Stage.BODY, CHECK, also=LETS_IN, each=("max_tokens", "temperature", "n", "top_p", "seed"))
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
    if limit is None or limit.high is None or not _number(value) or value <= limit.high:
        return body
    return {**body, name: int(limit.high) if isinstance(value, int) else limit.high}


@fault(
    Stage.REFUSAL,
    CHECK,
    each=("model", "prompt"),
    also=LETS_IN,
    fits=lambda contract, name: contract.parameters[name].required,
)
def required_member_may_be_missing(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A request without `{name}` is let in."""
    if not isinstance(call.body, dict) or name in call.body:
        return refusal
    call.wish = replace(call.wish, model=call.reference.models[0])
    return over(refusal, name)


@fault(
    Stage.REFUSAL,
    CHECK,
    also=LETS_IN,
    each=("best_of", "stream_options"),
    fits=lambda contract, name: any(
        row.id.startswith("combination") or name in str(row.params.get("combination", "")) or _combined(contract, name)
        for row in contract.requirements
    ),
)
def combination_is_accepted(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
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


def _refused(message: str, param: str) -> Refusal:
    return Refusal(400, (Problem(message, param),))


ACCEPTS = "valid_is_accepted"


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    each=("temperature", "top_p", "n", "logprobs", "presence_penalty", "frequency_penalty", "best_of", "min_p"),
    fits=closed,
    also=("narrow_sampling_is_greedy", "choices_are_complete"),
)
def highest_value_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """The highest documented `{name}` is turned away: a `<` stands where `<=` was meant."""
    limit, value = call.reference.contract.limit(name), asked(call, name)
    equal = limit is not None and _number(value) and value == limit.high
    return refusal or (_refused(f"{name} must be less than {value}", name) if equal else None)


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    also=("null_is_absent",),
    imitates="Null stop sequences were refused.",
    each=(
        "max_tokens",
        "temperature",
        "top_p",
        "n",
        "stop",
        "logprobs",
        "logit_bias",
        "stream",
        "echo",
        "seed",
        "suffix",
        "best_of",
        "stream_options",
        "presence_penalty",
        "frequency_penalty",
        "response_format",
    ),
    fits=lambda contract, name: contract.parameters[name].nullable,
)
def null_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` of null is turned away."""
    told = isinstance(call.body, dict) and call.body.get(name, MISSING) is None
    return refusal or (_refused(f"{name} may not be null", name) if told else None)


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    each=(
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "n",
        "best_of",
        "stop",
        "logprobs",
        "logit_bias",
        "stream",
        "echo",
        "seed",
        "suffix",
        "user",
        "stream_options",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "response_format",
        "metadata",
        "extra_body",
        "service_tier",
        "ignore_eos",
        "mirostat_lr",
        "mirostat_target",
        "context_length_exceeded_behavior",
        "models",
        "images",
    ),
)
def parameter_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A documented parameter, `{name}`, is turned away as unknown."""
    return refusal or (_refused(f"{name} is not permitted", name) if asked(call, name) is not None else None)


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    needs=("n",),
    imitates="Several choices at temperature 0 were refused.",
    only=lambda call: call.wish.n > 1 and call.wish.sampling.temperature == 0,
    also=("choices_agree_when_greedy", "choices_are_complete", "twin_choices_agree"),
)
def several_greedy_choices_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """n above 1 at temperature 0 is turned away."""
    return refusal or _refused("n must be 1 when temperature is 0", "n")


@fault(Stage.REFUSAL, ACCEPTS, only=lambda call: isinstance(asked(call, "stop"), list), needs=("stop",))
def list_of_stops_is_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Stop sequences in a list are turned away."""
    return refusal or _refused("stop must be a string", "stop")


@fault(Stage.REFUSAL, ACCEPTS, only=lambda call: isinstance(asked(call, "stop"), str), needs=("stop",))
def single_stop_is_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A stop sequence that is not in a list is turned away."""
    return refusal or _refused("stop must be a list", "stop")


@fault(Stage.REFUSAL, ACCEPTS, only=lambda call: any(one.given_as_tokens for one in call.wish.prompts))
def token_prompts_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A prompt of token ids is turned away."""
    return refusal or _refused("prompt must be a string", "prompt")


@fault(Stage.REFUSAL, ACCEPTS, only=lambda call: len(call.wish.prompts) > 1)
def batches_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """More than one prompt is turned away."""
    return refusal or _refused("only one prompt is supported", "prompt")


@fault(Stage.REFUSAL, ACCEPTS, only=lambda call: call.streamed and len(call.wish.prompts) > 1)
def batches_are_refused_in_streams(refusal: Refusal | None, call: Call) -> Refusal | None:
    """More than one prompt is turned away where a stream is asked for."""
    return refusal or _refused("streaming supports one prompt", "prompt")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: call.wish.echo and call.wish.logprobs is not None and call.streamed,
    needs=("echo", "logprobs"),
    imitates="One cell of echo, logprobs and stream was refused.",
)
def echo_with_logprobs_is_refused_in_streams(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Echo and logprobs together are turned away where a stream is asked for."""
    return refusal or _refused("echo with logprobs is not supported when streaming", "echo")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: call.wish.max_tokens == 0,
    needs=("max_tokens",),
    also=("echo_of_zero_tokens", "max_tokens_zero"),
)
def zero_tokens_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A `max_tokens` of 0 is turned away, where 0 is documented."""
    return refusal or _refused("max_tokens must be positive", "max_tokens")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: call.wish.logprobs == 0,
    needs=("logprobs",),
    also=("zero_logprobs_means_sampled_only",),
)
def zero_logprobs_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """`logprobs: 0` is turned away."""
    return refusal or _refused("logprobs must be positive", "logprobs")


@fault(Stage.REFUSAL, ACCEPTS, fits=lambda contract: contract.unknown_fields == "valid")
def unknown_members_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A member that the document does not name is turned away, where the document allows any."""
    unknown = call.body.keys() - call.reference.contract.parameters.keys() if isinstance(call.body, dict) else ()
    return refusal or (_refused(f"{min(unknown)} is not permitted", min(unknown)) if unknown else None)
