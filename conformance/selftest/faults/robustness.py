"""The server fails, breaks off, falls silent, or does not get up again."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import Ending
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Portion, Request, Response
from conformance.selftest.edits import answered, asked, streaming, successful
from conformance.selftest.fault import fault

ACCEPTS = (
    "valid_is_accepted",
    "combination_is_accepted",
    "channels_accept_alike",
    "error_is_json",
    "error_has_envelope",
    "error_message_is_clean",
    "alive_after_hostile",
    "repeat_is_answered",
    "error_field_conforms",
)
PARTIAL = (
    "done_is_sent",
    "last_event_is_terminated",
    "every_choice_finishes",
    "usage_chunk_is_sent",
    "stream_payloads_are_json",
    "plain_is_one_json_text",
    "alive_after_hostile",
    "repeat_is_answered",
    "channels_accept_alike",
    "combination_is_accepted",
    "done_is_terminated",
)


def _failed(response: Response) -> Response:
    if not successful(response):
        return response
    told = {"error": {"message": "the engine failed", "type": "server_error", "param": "", "code": "internal_error"}}
    return answered(500, told)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    imitates="One cell of echo, logprobs and stream failed with 500.",
    only=lambda call: call.params.echo and call.params.logprobs is not None and call.params.n > 1,
    needs=("echo", "logprobs"),
)
def echo_with_logprobs_and_n_is_500(response: Response, call: Call) -> Response:
    """Echo, logprobs and n together make the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    imitates="Null in place of a member failed with 500.",
    only=lambda call: isinstance(call.body, dict) and any(value is None for value in call.body.values()),
)
def null_members_are_500(response: Response, call: Call) -> Response:
    """A member that is null makes the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    needs=("logit_bias",),
    only=lambda call: bool(asked(call, "logit_bias")),
    imitates="A bias on a token failed with 500.",
)
def bias_is_500(response: Response, call: Call) -> Response:
    """A bias makes the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    only=lambda call: call.streamed and asked(call, "max_tokens") is None,
    imitates="A stream without max_tokens failed an assertion.",
)
def absent_limit_is_500(response: Response, call: Call) -> Response:
    """A stream without max_tokens makes the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE, "no_server_error", also=ACCEPTS, only=lambda call: "" in [one.text for one in call.params.prompts]
)
def empty_prompt_is_500(response: Response, call: Call) -> Response:
    """An empty prompt makes the server fail."""
    return _failed(response)


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=ACCEPTS,
    imitates="Emoji in a prompt failed with 500.",
    only=lambda call: any(char > "\uffff" for one in call.params.prompts for char in one.text),
)
def emoji_is_500(response: Response, call: Call) -> Response:
    """A character beyond the basic plane makes the server fail."""
    return _failed(response)


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
    only=lambda call: call.streamed and call.params.logprobs is not None,
    also=PARTIAL,
    needs=("logprobs",),
    imitates="Echo with logprobs aborted the stream.",
)
def streams_with_logprobs_are_cut(response: Response, call: Call) -> Response:
    """A stream with log probabilities breaks off after its first chunk."""
    return _cut(response, response.portions[:1]) if successful(response) else response


@fault(
    Stage.RESPONSE,
    "response_is_complete",
    only=lambda call: call.streamed and call.number % 5 == 0,
    also=PARTIAL,
    imitates="The finish chunk was followed by silence with the connection open.",
)
def streams_fall_silent_sometimes(response: Response, call: Call) -> Response:
    """Every fifth stream is not closed after its last text."""
    if not successful(response):
        return response
    return replace(response, portions=response.portions[:-1], ending=Ending.TIMED_OUT)


@fault(Stage.RESPONSE, "response_is_complete", only=streaming, also=PARTIAL)
def streams_never_end(response: Response, call: Call) -> Response:
    """The connection stays open after `[DONE]`."""
    return replace(response, ending=Ending.TIMED_OUT) if successful(response) else response


def _hostile(request: Request) -> bool:
    return not request.body.lstrip().startswith(b"{") or b"[[[[[[" in request.body or len(request.body) > 100_000


@fault(
    Stage.ARRIVAL,
    "alive_after_hostile",
    also=(*ACCEPTS, "response_is_complete", "no_server_error", "invalid_is_refused", "errors_agree_on_both_channels"),
    imitates="One malformed request killed the server for all.",
)
def hostile_requests_kill(request: Request, call: Call) -> Request | Response:
    """After a malformed body, the next few requests find nobody at home."""
    if _hostile(request):
        call.notes["hostile_requests_kill"] = 40
        return request
    left = call.notes.get("hostile_requests_kill", 0)
    call.notes["hostile_requests_kill"] = left - 1
    return Response(None, ending=Ending.TRUNCATED) if left > 0 else request


@fault(
    Stage.ARRIVAL,
    "alive_after_hostile",
    also=(*ACCEPTS, "response_is_complete", "no_server_error", "invalid_is_refused", "errors_agree_on_both_channels"),
    imitates="A bias on an unknown token stopped the engine.",
)
def hostile_requests_break_the_engine(request: Request, call: Call) -> Request | Response:
    """After a malformed body, the next few requests fail with 500."""
    if _hostile(request):
        call.notes["hostile_requests_break_the_engine"] = 12
        return request
    left = call.notes.get("hostile_requests_break_the_engine", 0)
    call.notes["hostile_requests_break_the_engine"] = left - 1
    return _failed(Response(200)) if left > 0 else request


@fault(
    Stage.ARRIVAL,
    "repeat_is_answered",
    also=("invalid_is_refused", *ACCEPTS, "no_server_error", "response_is_complete", "seed_repeats", "greedy_repeats"),
    imitates="The second of two equal requests failed in the prefix cache.",
)
def repeated_requests_fail(request: Request, call: Call) -> Request | Response:
    """A request that was answered before fails with 500."""
    seen: set[bytes] = call.notes.setdefault("repeated_requests_fail", set())
    if request.body in seen and _plain_json(request):
        return _failed(Response(200))
    seen.add(request.body)
    return request


def _plain_json(request: Request) -> bool:
    return request.method == "POST" and request.body.startswith(b"{")
