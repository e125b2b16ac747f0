"""Requests that the contract allows are turned away."""

from __future__ import annotations

from conformance.model import Contract, Edge, Level
from conformance.model.json_text import MISSING
from conformance.model.parameter_traits import NO_TRAITS, Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal
from conformance.selftest.edits import asked
from conformance.selftest.fault import fault
from conformance.selftest.faults.limits import closed, is_number
from conformance.selftest.own_parameters import own_parameters, with_role


def _refused(message: str, param: str) -> Refusal:
    return Refusal(400, (Problem(message, param),))


ACCEPTS = "valid_is_accepted"
FLOOR = Role.PROBABILITY_FLOOR


def _takes_its_lowest(contract: Contract, name: str) -> bool:
    """Whether the document is clear that 0 belongs to the range."""
    limit = contract.limit(name)
    return limit is not None and limit.binding and limit.low == 0 and limit.low_edge is Edge.CLOSED


def _must_be_taken(contract: Contract, name: str) -> bool:
    """Whether every provider of this contract has to accept the parameter."""
    return any(row.id == f"request.{name}.accepts" and row.level is not Level.MAY for row in contract.requirements)


def _null_must_be_taken(contract: Contract, name: str) -> bool:
    """Whether null is documented for the parameter, and not left to the provider."""
    return any(row.id == f"request.{name}.null" and row.level is not Level.MAY for row in contract.requirements)


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    each=(
        "temperature",
        "top_p",
        "n",
        "logprobs",
        "presence_penalty",
        "frequency_penalty",
        "best_of",
        *with_role(FLOOR),
    ),
    fits=closed,
    also=("combination_is_accepted", "narrow_sampling_is_greedy", "choices_are_complete"),
)
def highest_value_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """The highest documented `{name}` is turned away: a `<` stands where `<=` was meant."""
    limit, value = call.reference.contract.limit(name), asked(call, name)
    equal = limit is not None and is_number(value) and value == limit.high
    return refusal or (_refused(f"{name} must be less than {value}", name) if equal else None)


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    also=(
        "combination_is_accepted",
        "null_is_absent",
    ),
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
    fits=_null_must_be_taken,
)
def null_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` of null is turned away."""
    told = isinstance(call.body, dict) and call.body.get(name, MISSING) is None
    return refusal or (_refused(f"{name} may not be null", name) if told else None)


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    each=(
        "top_p",
        "top_k",
        *with_role(FLOOR),
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
        *(name for name, (_, known) in own_parameters().items() if known != NO_TRAITS and known.role is not FLOOR),
    ),
    fits=_must_be_taken,
    also=(
        "context_overflow",
        "limits",
    ),
)
def parameter_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A documented parameter, `{name}`, is turned away as unknown."""
    return refusal or (_refused(f"{name} is not permitted", name) if asked(call, name) is not None else None)


@fault(
    Stage.REFUSAL,
    "combination_is_accepted",
    needs=("n",),
    fits=lambda contract: _takes_its_lowest(contract, "temperature"),
    imitates="Several choices at temperature 0 were refused.",
    only=lambda call: call.params.n > 1 and call.params.sampling.temperature == 0,
    also=("valid_is_accepted", "choices_agree_when_greedy", "choices_are_complete", "twin_choices_agree"),
)
def several_greedy_choices_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """n above 1 at temperature 0 is turned away."""
    return refusal or _refused("n must be 1 when temperature is 0", "n")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: isinstance(asked(call, "stop"), list),
    needs=("stop",),
    fits=lambda contract: "array" in contract.parameters["stop"].types,
    also=(
        "combination_is_accepted",
        "context_overflow",
    ),
)
def list_of_stops_is_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Stop sequences in a list are turned away."""
    return refusal or _refused("stop must be a string", "stop")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: isinstance(asked(call, "stop"), str),
    needs=("stop",),
    also=("combination_is_accepted",),
)
def single_stop_is_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A stop sequence that is not in a list is turned away."""
    return refusal or _refused("stop must be a list", "stop")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: any(one.given_as_tokens for one in call.params.prompts),
    also=("combination_is_accepted",),
)
def token_prompts_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A prompt of token ids is turned away."""
    return refusal or _refused("prompt must be a string", "prompt")


@fault(Stage.REFUSAL, ACCEPTS, only=lambda call: len(call.params.prompts) > 1, also=("combination_is_accepted",))
def batches_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """More than one prompt is turned away."""
    return refusal or _refused("only one prompt is supported", "prompt")


@fault(
    Stage.REFUSAL,
    "channels_accept_alike",
    only=lambda call: call.streamed and len(call.params.prompts) > 1,
    also=("combination_is_accepted",),
)
def batches_are_refused_in_streams(refusal: Refusal | None, call: Call) -> Refusal | None:
    """More than one prompt is turned away where a stream is asked for."""
    return refusal or _refused("streaming supports one prompt", "prompt")


@fault(
    Stage.REFUSAL,
    "channels_accept_alike",
    only=lambda call: call.params.echo and call.params.logprobs is not None and call.streamed,
    needs=("echo", "logprobs"),
    imitates="One cell of echo, logprobs and stream was refused.",
)
def echo_with_logprobs_is_refused_in_streams(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Echo and logprobs together are turned away where a stream is asked for."""
    return refusal or _refused("echo with logprobs is not supported when streaming", "echo")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: call.params.max_tokens == 0,
    needs=("max_tokens",),
    fits=lambda contract: _takes_its_lowest(contract, "max_tokens"),
    also=("combination_is_accepted", "echo_of_zero_tokens", "max_tokens_zero"),
)
def zero_tokens_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A `max_tokens` of 0 is turned away, where 0 is documented."""
    return refusal or _refused("max_tokens must be positive", "max_tokens")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    only=lambda call: call.params.logprobs == 0,
    needs=("logprobs",),
    fits=lambda contract: _takes_its_lowest(contract, "logprobs"),
    also=(
        "combination_is_accepted",
        "zero_logprobs_means_sampled_only",
    ),
)
def zero_logprobs_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """`logprobs: 0` is turned away."""
    return refusal or _refused("logprobs must be positive", "logprobs")


@fault(
    Stage.REFUSAL, ACCEPTS, fits=lambda contract: contract.unknown_fields == "valid", also=("combination_is_accepted",)
)
def unknown_members_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A member that the document does not name is turned away, where the document allows any."""
    unknown = call.body.keys() - call.reference.contract.parameters.keys() if isinstance(call.body, dict) else ()
    return refusal or (_refused(f"{min(unknown)} is not permitted", min(unknown)) if unknown else None)


@fault(
    Stage.REFUSAL,
    "combination_is_accepted",
    needs=("n", "logprobs"),
    also=("valid_is_accepted", "choices_are_complete"),
    only=lambda call: call.params.n > 1 and call.params.logprobs is not None,
)
def several_scored_choices_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """n and log probabilities are each taken, and turned away together."""
    return refusal or _refused("n must be 1 where logprobs are asked for", "n")


@fault(
    Stage.REFUSAL,
    "channels_accept_alike",
    needs=("logprobs",),
    also=("valid_is_accepted", "combination_is_accepted"),
    only=lambda call: call.streamed and call.params.logprobs is not None,
)
def logprobs_are_refused_in_streams(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Log probabilities are turned away where a stream is asked for."""
    return refusal or _refused("logprobs must be null when streaming", "logprobs")


@fault(
    Stage.REFUSAL,
    ACCEPTS,
    needs=("stop",),
    also=("channels_accept_alike", "context_overflow", "combination_is_accepted"),
    only=lambda call: not call.streamed and bool(call.params.stops),
)
def stops_are_refused_outside_of_streams(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Stop sequences are turned away where no stream is asked for."""
    return refusal or _refused("stop needs a stream", "stop")
