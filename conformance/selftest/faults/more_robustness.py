"""More cells in which the server fails, and one request that takes it along."""

from __future__ import annotations

from conformance.model import Ending
from conformance.model.json_text import loads
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal, Request, Response
from conformance.selftest.edits import asked
from conformance.selftest.fault import fault
from conformance.selftest.faults.robustness import ACCEPTS, _failed


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=(*ACCEPTS, "first_echo_logprob_is_null_or_number"),
    needs=("echo", "logprobs"),
    only=lambda call: call.params.echo and call.params.logprobs is not None,
    imitates="A gateway could not parse the null that stands for an echoed prompt's first value.",
)
def echo_with_logprobs_is_500(response: Response, call: Call) -> Response:
    """Echo with log probabilities makes the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    needs=("echo",),
    only=lambda call: call.params.echo and any(prompt.given_as_tokens for prompt in call.params.prompts),
    imitates="Echo of a prompt that was given as tokens failed with 500.",
)
def echo_of_tokens_is_500(response: Response, call: Call) -> Response:
    """The echo of a prompt that was given as token ids makes the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    needs=("logprobs",),
    variants=("plain", "streamed"),
    only=lambda call: call.params.logprobs is not None,
    imitates="An infinite log probability could not be written as JSON.",
)
def logprobs_are_500(response: Response, call: Call) -> Response:
    """Log probabilities make the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    needs=("suffix",),
    only=lambda call: bool(asked(call, "suffix")),
    imitates="A suffix was answered by 500.",
)
def suffix_is_500(response: Response, call: Call) -> Response:
    """A suffix makes the server fail."""
    return _failed(response)


@fault(
    Stage.ARRIVAL,
    "alive_after_hostile",
    also=(*ACCEPTS, "response_is_complete", "no_server_error", "invalid_is_refused", "errors_agree_on_both_channels"),
    needs=("max_tokens",),
    imitates="A request for zero tokens killed the server.",
    fits=lambda contract: contract.binding("max_tokens_zero") is not None,
)
def zero_tokens_kill(request: Request, call: Call) -> Request | Response:
    """After a request for zero tokens, nobody is at home any more."""
    if call.notes.get("zero_tokens_kill"):
        return Response(None, ending=Ending.TRUNCATED)
    try:
        body = loads(request.body)
    except ValueError:
        return request
    call.notes["zero_tokens_kill"] = isinstance(body, dict) and body.get("max_tokens") == 0
    return request


@fault(
    Stage.REFUSAL,
    "error_names_a_sent_field",
    also=("valid_is_accepted", "combination_is_accepted", "error_names_the_field", "invalid_is_refused"),
    imitates="A gateway sent completions to a chat route, which missed its messages.",
)
def prompts_are_taken_for_messages(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Every request is turned away because the engine behind wants messages."""
    return Refusal(400, (Problem("messages: field required", "messages", "missing"),))
