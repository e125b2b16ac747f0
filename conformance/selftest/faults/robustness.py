"""The server fails with 500, breaks off a reply, never ends it, or no longer answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.model import Ending
from conformance.model.json_text import loads
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Portion, Request, Response
from conformance.selftest.edits import echoing, scored, sent, server_error, streaming, successful, synthetic_response
from conformance.selftest.fault import Condition, fault, plant
from conformance.selftest.faults import errors

FAILED = (
    "valid_is_accepted", "combination_is_accepted", "channels_accept_alike", "error_is_json", "error_has_envelope",
    "error_message_is_clean", "alive_after_hostile", "repeat_is_answered", "error_field_conforms",
)  # fmt: skip
DEAD = (*FAILED, "response_is_complete", "no_server_error", "invalid_is_refused", "errors_agree_on_both_channels")
PARTIAL = (
    "done_is_sent", "last_event_is_terminated", "every_choice_finishes", "usage_chunk_is_sent",
    "stream_payloads_are_json", "plain_is_one_json_text", "alive_after_hostile", "repeat_is_answered",
    "channels_accept_alike", "combination_is_accepted", "done_is_terminated",
)  # fmt: skip

# Valid requests that are answered by 500.


def fails_on(name: str, says: str, only: Condition, *, also: tuple[str, ...] = (), **options: Any) -> None:
    """A fault that answers the valid requests that meet a condition by 500."""

    def fail(response: Response, call: Call) -> Response:
        return server_error() if successful(response) else response

    plant(name, says, Stage.RESPONSE, "no_server_error", fail, only=only, also=(*FAILED, *also), **options)


fails_on(
    "echo_with_logprobs_and_n_is_500",
    "The server fails on echo, logprobs and n together.",
    lambda call: echoing(call) and call.params.n > 1,
    needs=("echo", "logprobs"),
    imitates="One combination of echo, logprobs and stream failed with 500.",
)
fails_on(
    "echo_with_logprobs_is_500",
    "The server fails on echo with logprobs.",
    echoing,
    also=("first_echo_logprob_is_null_or_number",),
    needs=("echo", "logprobs"),
    imitates="A gateway could not parse the null that stands for an echoed prompt's first value.",
)
fails_on(
    "echo_of_tokens_is_500",
    "The server fails on the echo of a prompt of token ids.",
    lambda call: call.params.echo and any(prompt.given_as_tokens for prompt in call.params.prompts),
    needs=("echo",),
    imitates="Echo of a prompt of token ids failed with 500.",
)
fails_on(
    "logprobs_are_500",
    "The server fails on logprobs.",
    scored,
    needs=("logprobs",),
    when=("plain", "streamed"),
    imitates="An infinite log probability could not be written as JSON.",
)
fails_on(
    "null_members_are_500",
    "The server fails on a member that is null.",
    lambda call: isinstance(call.body, dict) and any(value is None for value in call.body.values()),
    imitates="Null in place of a member failed with 500.",
)
fails_on(
    "bias_is_500",
    "The server fails on logit_bias.",
    lambda call: bool(sent(call, "logit_bias")),
    needs=("logit_bias",),
    imitates="A bias on a token failed with 500.",
)
fails_on(
    "suffix_is_500",
    "The server fails on a suffix.",
    lambda call: bool(sent(call, "suffix")),
    needs=("suffix",),
    imitates="A suffix was answered by 500.",
)
fails_on(
    "absent_limit_is_500",
    "The server fails on a stream without max_tokens.",
    lambda call: call.streamed and sent(call, "max_tokens") is None,
    imitates="A stream without max_tokens failed an assertion.",
)
fails_on(
    "empty_prompt_is_500",
    "The server fails on an empty prompt.",
    lambda call: any(prompt.text == "" for prompt in call.params.prompts),
)
fails_on(
    "emoji_is_500",
    "The server fails on a character above U+FFFF.",
    lambda call: any(char > "\uffff" for prompt in call.params.prompts for char in prompt.text),
    imitates="Emoji in a prompt failed with 500.",
)


def _fail(response: Response, call: Call) -> Response:
    return server_error() if successful(response) or response.status == 400 else response


plant(
    "streams_are_500",
    "The server fails on every stream.",
    Stage.RESPONSE,
    "valid_is_accepted",
    _fail,
    only=streaming,
    also=("no_server_error", "drawn_is_accepted", "invalid_is_refused", *FAILED),
    imitates="Every stream failed with 500, behind a gateway.",
)
plant(
    "null_prompt_is_500",
    "The server fails on a prompt that is null.",
    Stage.RESPONSE,
    "valid_is_accepted",
    _fail,
    only=lambda call: isinstance(call.body, dict) and "prompt" in call.body and call.body["prompt"] is None,
    also=("no_server_error", "drawn_is_accepted", *FAILED),
    imitates="A prompt of null failed with 500.",
    fits=lambda contract: contract.parameters["prompt"].nullable,
)

# Invalid requests that are answered by 500.

plant(
    "temperature_below_0_is_500",
    "The server fails on a temperature below 0.",
    Stage.RESPONSE,
    "invalid_is_refused",
    _fail,
    only=lambda call: isinstance(heat := sent(call, "temperature"), (int, float)) and heat < 0,
    also=("no_server_error", "drawn_is_refused", "error_names_the_field", *errors.SHAPE),
    needs=("temperature",),
    imitates="A temperature of -0.01 failed with 500.",
)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=(
        "error_has_envelope", "invalid_is_refused", "errors_agree_on_both_channels", "error_names_the_field",
        "error_field_conforms", "error_status_is_documented",
    ),
    imitates="Invalid requests made servers fail with a 500.",
)  # fmt: skip
def refusals_are_500(response: Response, call: Call) -> Response:
    """Invalid requests are answered by 500."""
    return replace(response, status=500) if response.status in {400, 422} else response


@fault(
    Stage.RESPONSE,
    "no_server_error",
    only=lambda call: not isinstance(call.body, dict),
    also=("invalid_is_refused", "error_is_json", *errors.SHAPE),
    imitates="Malformed JSON was answered by 500 and plain text.",
)
def malformed_json_is_500(response: Response, call: Call) -> Response:
    """A body that is not a JSON object is answered by 500."""
    if response.status not in {400, 415, 422}:
        return response
    return synthetic_response(500, b"Internal Server Error", "text/plain")


# Replies that break off or never end.


def _cut(response: Response, portions: tuple[Portion, ...]) -> Response:
    return replace(response, portions=portions, ending=Ending.TRUNCATED)


@fault(
    Stage.RESPONSE,
    "response_is_complete",
    only=lambda call: call.streamed and call.number % 3 == 0,
    also=PARTIAL,
    imitates="Connections were closed in the middle of a stream.",
)
def streams_are_cut_sometimes(response: Response, call: Call) -> Response:
    """Every third connection closes in the middle of its stream."""
    return _cut(response, response.portions[: len(response.portions) // 2]) if successful(response) else response


@fault(Stage.RESPONSE, "response_is_complete", only=lambda call: not call.streamed and call.params.n > 1, also=PARTIAL)
def long_replies_are_cut(response: Response, call: Call) -> Response:
    """With n, a plain reply breaks off before its end."""
    if not successful(response):
        return response
    return _cut(response, (Portion(response.content[: len(response.content) * 2 // 3]),))


@fault(
    Stage.RESPONSE,
    "response_is_complete",
    only=lambda call: call.streamed and scored(call),
    also=PARTIAL,
    needs=("logprobs",),
    imitates="Echo with logprobs aborted the stream.",
)
def streams_with_logprobs_are_cut(response: Response, call: Call) -> Response:
    """A stream with log probabilities breaks off after its first chunk."""
    return _cut(response, response.portions[:1]) if successful(response) else response


@fault(Stage.RESPONSE, "complete_beside_others", when=("crowded",), also=("burst_does_not_mix", "done_is_sent"))
def connections_are_dropped(response: Response, call: Call) -> Response:
    """A reply breaks off when several requests are in progress."""
    return _cut(response, response.portions[:1])


@fault(
    Stage.RESPONSE,
    "response_is_complete",
    only=lambda call: call.streamed and call.number % 5 == 0,
    also=(*PARTIAL, "complete_beside_others"),
    imitates="The finish chunk was followed by silence with the connection open.",
)
def streams_fall_silent_sometimes(response: Response, call: Call) -> Response:
    """In every fifth stream, the last event never comes and the connection stays open."""
    if not successful(response):
        return response
    return replace(response, portions=response.portions[:-1], ending=Ending.TIMED_OUT)


@fault(Stage.RESPONSE, "response_is_complete", only=streaming, also=PARTIAL)
def streams_never_end(response: Response, call: Call) -> Response:
    """The connection stays open after `[DONE]`."""
    return replace(response, ending=Ending.TIMED_OUT) if successful(response) else response


# Requests that damage the server.


def _hostile(request: Request) -> bool:
    return not request.body.lstrip().startswith(b"{") or b"[[[[[[" in request.body or len(request.body) > 100_000


def _damaged(call: Call, name: str, request: Request, requests: int) -> bool:
    """Whether the server is damaged: for this number of requests after a hostile one."""
    if _hostile(request):
        call.notes[name] = requests
        return False
    remaining = call.notes.get(name, 0)
    call.notes[name] = remaining - 1
    return bool(remaining > 0)


@fault(Stage.ARRIVAL, "alive_after_hostile", also=DEAD, imitates="One malformed request killed the server for all.")
def hostile_requests_kill(request: Request, call: Call) -> Request | Response:
    """After a malformed or oversized body, the server drops the next forty requests."""
    dead = _damaged(call, "hostile_requests_kill", request, 40)
    return Response(None, ending=Ending.TRUNCATED) if dead else request


@fault(Stage.ARRIVAL, "alive_after_hostile", also=DEAD, imitates="A bias on an unknown token stopped the engine.")
def hostile_requests_break_the_engine(request: Request, call: Call) -> Request | Response:
    """After a malformed or oversized body, the server answers the next twelve requests by 500."""
    return server_error() if _damaged(call, "hostile_requests_break_the_engine", request, 12) else request


@fault(
    Stage.ARRIVAL,
    "alive_after_hostile",
    also=DEAD,
    needs=("max_tokens",),
    imitates="A request for zero tokens killed the server.",
    fits=lambda contract: contract.binding("max_tokens_zero") is not None,
)
def zero_tokens_kill(request: Request, call: Call) -> Request | Response:
    """A request with `max_tokens: 0` crashes the server, which never answers again."""
    if call.notes.get("zero_tokens_kill"):
        return Response(None, ending=Ending.TRUNCATED)
    try:
        body = loads(request.body)
    except ValueError:
        return request
    call.notes["zero_tokens_kill"] = isinstance(body, dict) and body.get("max_tokens") == 0
    return request


@fault(
    Stage.ARRIVAL,
    "repeat_is_answered",
    also=("invalid_is_refused", *FAILED, "no_server_error", "response_is_complete", "seed_repeats", "greedy_repeats"),
    imitates="The second of two equal requests failed in the prefix cache.",
)
def repeated_requests_fail(request: Request, call: Call) -> Request | Response:
    """A request that was answered before fails with 500."""
    seen: set[bytes] = call.notes.setdefault("repeated_requests_fail", set())
    if request.body in seen and request.method == "POST" and request.body.startswith(b"{"):
        return server_error()
    seen.add(request.body)
    return request
