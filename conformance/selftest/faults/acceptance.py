"""Requests that the contract calls valid are refused."""

from __future__ import annotations

from typing import Any

from conformance.model import Contract, Edge, Level
from conformance.model.json_text import MISSING, is_number
from conformance.model.parameter_traits import NO_TRAITS, Role
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal
from conformance.selftest.edits import echoing, plain, scored, sent, several_prompts, stopping
from conformance.selftest.fault import Condition, fault, plant
from conformance.selftest.faults.limits import binding_limit, closed
from conformance.selftest.own_parameters import own_parameters, with_role

CHECK = "valid_is_accepted"
NULLABLE = (
    "max_tokens", "temperature", "top_p", "n", "stop", "logprobs", "logit_bias", "stream", "echo", "seed", "suffix",
    "best_of", "stream_options", "presence_penalty", "frequency_penalty", "response_format",
)  # fmt: skip
FLOOR = Role.PROBABILITY_FLOOR
OPTIONAL = (
    "top_p", "top_k", *with_role(FLOOR), "n", "best_of", "stop", "logprobs", "logit_bias", "stream", "echo", "seed",
    "suffix",
    "user", "stream_options", "presence_penalty", "frequency_penalty", "repetition_penalty", "response_format",
    *(name for name, (_, known) in own_parameters().items() if known != NO_TRAITS and known.role is not FLOOR),
)  # fmt: skip


def _refused(message: str, param: str) -> Refusal:
    return Refusal(400, (Problem(message, param),))


def _accepts_zero(contract: Contract, name: str) -> bool:
    """Only where the document is clear that 0 belongs to the range."""
    limit = binding_limit(contract, name)
    return limit is not None and limit.low == 0 and limit.low_edge is Edge.CLOSED


def _is_promised(contract: Contract, requirement: str) -> bool:
    return any(row.id == requirement and row.level is not Level.MAY for row in contract.requirements)


# One parameter at a time.


@fault(
    Stage.REFUSAL,
    CHECK,
    parameters=(
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
    """The highest documented `{name}` is refused: `<` is written where `<=` is meant."""
    limit, value = call.reference.contract.limit(name), sent(call, name)
    equal = limit is not None and is_number(value) and value == limit.high
    return refusal or (_refused(f"{name} must be less than {value}", name) if equal else None)


@fault(
    Stage.REFUSAL,
    CHECK,
    also=("combination_is_accepted", "null_is_absent"),
    imitates="Null stop sequences were refused.",
    parameters=NULLABLE,
    fits=lambda contract, name: _is_promised(contract, f"request.{name}.null"),
)
def null_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """A `{name}` of null is refused."""
    is_null = isinstance(call.body, dict) and call.body.get(name, MISSING) is None
    return refusal or (_refused(f"{name} may not be null", name) if is_null else None)


@fault(
    Stage.REFUSAL,
    CHECK,
    parameters=OPTIONAL,
    fits=lambda contract, name: _is_promised(contract, f"request.{name}.accepts"),
    also=("context_overflow", "limits"),
)
def parameter_is_refused(refusal: Refusal | None, call: Call, name: str) -> Refusal | None:
    """The documented parameter `{name}` is refused as unknown."""
    return refusal or (_refused(f"{name} is not permitted", name) if sent(call, name) is not None else None)


@fault(
    Stage.REFUSAL, CHECK, fits=lambda contract: contract.unknown_fields == "valid", also=("combination_is_accepted",)
)
def unknown_members_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A member that the document does not name is refused, although the document allows any."""
    unknown = call.body.keys() - call.reference.contract.parameters.keys() if isinstance(call.body, dict) else ()
    return refusal or (_refused(f"{min(unknown)} is not permitted", min(unknown)) if unknown else None)


# One kind of request.


def refused(
    name: str,
    says: str,
    only: Condition,
    problem: str,
    *,
    check: str = CHECK,
    also: tuple[str, ...] = ("combination_is_accepted",),
    **options: Any,
) -> None:
    """A fault that refuses the requests that meet a condition; the problem's first word is the parameter to blame."""

    def refuse(refusal: Refusal | None, call: Call) -> Refusal | None:
        return refusal or _refused(problem, problem.partition(" ")[0])

    plant(name, says, Stage.REFUSAL, check, refuse, only=only, also=also, **options)


refused(
    "list_of_stops_is_refused",
    "Stop sequences in a list are refused.",
    lambda call: isinstance(sent(call, "stop"), list),
    "stop must be a string",
    also=("combination_is_accepted", "context_overflow"),
    needs=("stop",),
    fits=lambda contract: "array" in contract.parameters["stop"].types,
)
refused(
    "single_stop_is_refused",
    "A stop sequence that is a string is refused.",
    lambda call: isinstance(sent(call, "stop"), str),
    "stop must be a list",
    needs=("stop",),
)
refused(
    "token_prompts_are_refused",
    "A prompt of token ids is refused.",
    lambda call: any(prompt.given_as_tokens for prompt in call.params.prompts),
    "prompt must be a string",
)
refused(
    "batches_are_refused",
    "A request with several prompts is refused.",
    several_prompts,
    "prompt must not be a list of prompts",
)
refused(
    "zero_tokens_are_refused",
    "A `max_tokens` of 0 is refused, although 0 is documented.",
    lambda call: call.params.max_tokens == 0,
    "max_tokens must be positive",
    also=("combination_is_accepted", "echo_of_zero_tokens", "max_tokens_zero"),
    needs=("max_tokens",),
    fits=lambda contract: _accepts_zero(contract, "max_tokens"),
)
refused(
    "zero_logprobs_are_refused",
    "`logprobs: 0` is refused.",
    lambda call: call.params.logprobs == 0,
    "logprobs must be positive",
    also=("combination_is_accepted", "zero_logprobs_means_sampled_only"),
    needs=("logprobs",),
    fits=lambda contract: _accepts_zero(contract, "logprobs"),
)

# Combinations.

refused(
    "several_greedy_choices_are_refused",
    "An n above 1 is refused at temperature 0.",
    lambda call: call.params.n > 1 and call.params.sampling.temperature == 0,
    "n must be 1 when temperature is 0",
    check="combination_is_accepted",
    also=("valid_is_accepted", "choices_agree_when_greedy", "choices_are_complete", "twin_choices_agree"),
    needs=("n",),
    fits=lambda contract: _accepts_zero(contract, "temperature"),
    imitates="Several choices at temperature 0 were refused.",
)
refused(
    "several_scored_choices_are_refused",
    "n and logprobs are refused together, although each is accepted alone.",
    lambda call: call.params.n > 1 and scored(call),
    "n must be 1 where logprobs are asked for",
    check="combination_is_accepted",
    also=("valid_is_accepted", "choices_are_complete"),
    needs=("n", "logprobs"),
)

# Only in streams, or only outside of them.

refused(
    "batches_are_refused_in_streams",
    "A request for a stream is refused if it has several prompts.",
    lambda call: call.streamed and several_prompts(call),
    "prompt must not be a list of prompts when streaming",
    check="channels_accept_alike",
)
refused(
    "echo_with_logprobs_is_refused_in_streams",
    "A request for a stream is refused if it has both echo and logprobs.",
    lambda call: call.streamed and echoing(call),
    "echo with logprobs is not supported when streaming",
    check="channels_accept_alike",
    also=(),
    needs=("echo", "logprobs"),
    imitates="One combination of echo, logprobs and stream was refused.",
)
refused(
    "logprobs_are_refused_in_streams",
    "A request for a stream is refused if it has logprobs.",
    lambda call: call.streamed and scored(call),
    "logprobs must be null when streaming",
    check="channels_accept_alike",
    also=("valid_is_accepted", "combination_is_accepted"),
    needs=("logprobs",),
)
refused(
    "stops_are_refused_outside_of_streams",
    "A request for a plain reply is refused if it has stop sequences.",
    lambda call: plain(call) and stopping(call),
    "stop needs a stream",
    also=("channels_accept_alike", "context_overflow", "combination_is_accepted"),
    needs=("stop",),
)
