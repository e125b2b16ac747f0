"""Refusals that are not documents, have another shape, name nothing or the wrong thing, or look like success."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.model import Contract
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Portion, Problem, Refusal, Response
from conformance.selftest.edits import Json, refusing, streaming, synthetic_response, with_header
from conformance.selftest.fault import fault

SHAPE = (
    "error_has_envelope", "error_field_conforms", "error_names_the_field", "error_is_json",
    "errors_agree_on_both_channels",
)  # fmt: skip
STATUS = (
    "invalid_is_refused", "errors_agree_on_both_channels", "error_names_the_field", "context_overflow",
    "error_status_is_documented", "refusal_is_not_a_success",
)  # fmt: skip


def enveloped(contract: Contract) -> bool:
    """Only where the common envelope is expected."""
    return contract.binding("error_has_envelope") is not None


# Not JSON.


@fault(Stage.RESPONSE, "error_is_json", also=SHAPE, imitates="Errors of the web framework were plain text.")
def errors_are_plain_text(response: Response, call: Call) -> Response:
    """Refusals are plain text."""
    if not refusing(response):
        return response
    portions = (Portion(b"Bad Request: check temperature"),)
    return replace(with_header(response, "content-type", "text/plain"), portions=portions)


@fault(Stage.RESPONSE, "error_is_json", also=SHAPE)
def errors_are_pages(response: Response, call: Call) -> Response:
    """A proxy replaces refusals with an HTML page of its own."""
    if not refusing(response):
        return response
    page = b"<html><head><title>400 Bad Request</title></head><body><center>nginx</center></body></html>"
    return replace(with_header(response, "content-type", "text/html"), portions=(Portion(page),))


@fault(
    Stage.RESPONSE,
    "error_is_json",
    only=lambda call: not isinstance(call.body, dict),
    also=SHAPE,
    imitates="A missing key was refused with an empty body.",
)
def early_errors_have_no_body(response: Response, call: Call) -> Response:
    """A request that is refused before its body is parsed gets a status and an empty body."""
    return replace(response, portions=()) if refusing(response) else response


# Another shape.


@fault(
    Stage.ERROR,
    "error_has_envelope",
    also=SHAPE,
    fits=enveloped,
    imitates="Servers put the error's members at the top level, and SDKs showed no message.",
)
def errors_are_flat(body: Json, call: Call) -> Json:
    """The members of `error` stand at the top level of the document."""
    return {"object": "error", **body["error"]} if isinstance(body.get("error"), dict) else body


@fault(
    Stage.ERROR,
    "error_has_envelope",
    also=SHAPE,
    fits=enveloped,
    imitates="`error` was a string in place of an object.",
)
def error_is_a_string(body: Json, call: Call) -> Json:
    """`error` is a string."""
    return {"error": body["error"]["message"]} if isinstance(body.get("error"), dict) else body


@fault(
    Stage.ERROR,
    "error_has_envelope",
    also=(*SHAPE, "error_message_is_clean"),
    fits=enveloped,
    imitates="An error had an empty message.",
)
def error_message_is_empty(body: Json, call: Call) -> Json:
    """The error's message is an empty string, and so is its parameter."""
    return {"error": {**body["error"], "message": "", "param": ""}} if isinstance(body.get("error"), dict) else body


# Silent or misleading.


@fault(Stage.REFUSAL, "error_names_the_field")
def errors_name_nothing(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A refusal says that the request is invalid, but not which parameter."""
    if refusal is None or refusal.first.param is None:
        return refusal
    return replace(refusal, problems=(Problem("the request is invalid", None, refusal.first.kind),))


@fault(Stage.REFUSAL, "error_names_the_field", also=("error_names_a_sent_field",))
def errors_name_another_field(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A refusal blames `messages`, a member of another operation's requests."""
    if refusal is None or refusal.first.param is None:
        return refusal
    return replace(refusal, problems=(Problem("messages: field required", "messages", "missing"),))


@fault(
    Stage.REFUSAL,
    "error_names_a_sent_field",
    also=(
        "error_names_the_field", "valid_is_accepted", "channels_accept_alike", "combination_is_accepted",
        "errors_agree_on_both_channels", "usage_chunk_is_sent",
    ),
    only=lambda call: call.streamed and call.params.n > 1,
    imitates="A gateway added stream_options by itself, and passed on the refusal of it.",
)  # fmt: skip
def gateway_adds_a_member(refusal: Refusal | None, call: Call) -> Refusal | None:
    """With n, a stream is refused because of a member that the client never sent."""
    return refusal or Refusal(400, (Problem("stream_settings: extra fields not permitted", "stream_settings"),))


@fault(
    Stage.REFUSAL,
    "error_names_a_sent_field",
    also=("valid_is_accepted", "combination_is_accepted", "error_names_the_field", "invalid_is_refused"),
    imitates="A gateway sent completions to a chat route, which missed its messages.",
)
def prompts_are_taken_for_messages(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Every request is refused because the engine behind the gateway expects `messages`."""
    return Refusal(400, (Problem("messages: field required", "messages", "missing"),))


# The wrong status, or another answer in streams.


@fault(
    Stage.RESPONSE,
    "refusal_is_not_a_success",
    also=(*STATUS, "plain_field_conforms"),
    imitates="Errors came with a status of 200.",
)
def errors_come_with_200(response: Response, call: Call) -> Response:
    """Refusals have the status 200."""
    return replace(response, status=200) if refusing(response) else response


@fault(
    Stage.RESPONSE,
    "refusal_is_not_a_success",
    also=(*STATUS, "stream_carries_no_error"),
    only=streaming,
    imitates="An invalid request for a stream was answered by 200 and an error event.",
)
def errors_come_as_events(response: Response, call: Call) -> Response:
    """A refused request for a stream gets the status 200 and an error event."""
    if not refusing(response):
        return response
    event = b"data: " + response.content + b"\n\n"
    return replace(with_header(response, "content-type", "text/event-stream"), status=200, portions=(Portion(event),))


@fault(
    Stage.RESPONSE,
    "errors_agree_on_both_channels",
    also=("error_is_json", "error_names_the_field", *SHAPE),
    only=streaming,
)
def errors_differ_in_streams(response: Response, call: Call) -> Response:
    """A refused request for a stream gets another status, and a document of another shape, than a plain one."""
    if not refusing(response):
        return response
    return synthetic_response(422 if response.status == 400 else 400, {"message": "invalid request", "success": False})


# Messages that show internals.


def _with_message(body: Json, message: str) -> Json:
    if isinstance(body.get("error"), dict):
        return {**body, "error": {**body["error"], "message": message}}
    problems: Any = body.get("detail")
    return {"detail": [{**problem, "msg": message} for problem in problems]} if isinstance(problems, list) else body


@fault(Stage.ERROR, "error_message_is_clean", also=("error_names_the_field",))
def errors_show_a_stack_trace(body: Json, call: Call) -> Json:
    """The error's message is a stack trace with file paths of the server."""
    trace = "Traceback (most recent call last):\n  File \"/opt/engine/api.py\", line 214, in create\nKeyError: 'n'"
    return _with_message(body, trace)


@fault(
    Stage.ERROR,
    "error_message_is_clean",
    also=("error_names_the_field",),
    imitates="A message held the JSON of another service's refusal, escaped.",
)
def errors_hold_escaped_json(body: Json, call: Call) -> Json:
    """The error's message is the JSON document of an inner service."""
    document = '{"detail":[{"type":"less_than_equal","loc":["body"],"msg":"Input should be less than 2"}]}'
    return _with_message(body, document)
