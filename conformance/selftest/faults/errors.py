"""Refusals that do not look like one, say too little, or say too much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.model import Contract
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Portion, Problem, Refusal, Response
from conformance.selftest.edits import Json, answered, headed, streaming
from conformance.selftest.fault import fault

SHAPE = (
    "error_has_envelope",
    "error_field_conforms",
    "error_names_the_field",
    "error_is_json",
    "errors_agree_on_both_channels",
)
STATUS = (
    "invalid_is_refused",
    "errors_agree_on_both_channels",
    "error_names_the_field",
    "context_overflow",
    "error_status_is_documented",
    "refusal_is_not_a_success",
)


def _refusing(response: Response) -> bool:
    return response.status is not None and 400 <= response.status < 500


def enveloped(contract: Contract) -> bool:
    """Only where the common envelope is expected."""
    return contract.binding("error_has_envelope") is not None


@fault(Stage.RESPONSE, "error_is_json", also=SHAPE, imitates="Errors of the web framework were plain text.")
def errors_are_plain_text(response: Response, call: Call) -> Response:
    """Refusals are plain text."""
    if not _refusing(response):
        return response
    return replace(
        headed(response, "content-type", "text/plain"), portions=(Portion(b"Bad Request: check temperature"),)
    )


@fault(Stage.RESPONSE, "error_is_json", also=SHAPE)
def errors_are_pages(response: Response, call: Call) -> Response:
    """A proxy in front replaces refusals by its own page."""
    if not _refusing(response):
        return response
    page = b"<html><head><title>400 Bad Request</title></head><body><center>nginx</center></body></html>"
    return replace(headed(response, "content-type", "text/html"), portions=(Portion(page),))


@fault(
    Stage.RESPONSE,
    "error_is_json",
    only=lambda call: not isinstance(call.body, dict),
    also=SHAPE,
    imitates="A missing key was refused with an empty body.",
)
def early_errors_have_no_body(response: Response, call: Call) -> Response:
    """What is refused before the body is understood gets a status and nothing more."""
    return replace(response, portions=()) if _refusing(response) else response


@fault(
    Stage.ERROR,
    "error_has_envelope",
    also=SHAPE,
    fits=enveloped,
    imitates="Servers put the error's members at the top level, and SDKs showed no message.",
)
def errors_are_flat(body: Json, call: Call) -> Json:
    """The members of the error stand at the top level."""
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
    """The message is an empty string, and no parameter is named."""
    return {"error": {**body["error"], "message": "", "param": ""}} if isinstance(body.get("error"), dict) else body


@fault(
    Stage.ERROR,
    "error_field_conforms",
    also=(*SHAPE, "error_message_is_clean"),
    fits=lambda contract: bool(contract.errors),
)
def errors_are_of_another_shape(body: Json, call: Call) -> Json:
    """Refusals have the shape of another provider."""
    if "error" in body:
        return {"error": {"code": 400, "message": [str(body["error"].get("message", ""))]}}
    return {"detail": str(body.get("detail", ""))}


@fault(
    Stage.ERROR,
    "error_field_conforms",
    also=SHAPE,
    fits=lambda contract: bool(contract.errors),
    imitates="`code` came as the status, a number, where a string is documented.",
)
def error_types_are_mixed_up(body: Json, call: Call) -> Json:
    """Members of an error are numbers and lists where strings are documented."""
    if isinstance(body.get("error"), dict):
        return {"error": {**body["error"], "code": 400, "type": ["invalid"]}}
    listed: Any = body.get("detail")
    return (
        {"detail": [{**one, "loc": ".".join(map(str, one["loc"])), "msg": None} for one in listed]} if listed else body
    )


def _silent(refusal: Refusal | None) -> Refusal | None:
    if refusal is None or refusal.first.param is None:
        return refusal
    return replace(refusal, problems=(Problem("the request is invalid", None, refusal.first.kind),))


@fault(Stage.REFUSAL, "error_names_the_field")
def errors_name_nothing(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A refusal says that the request is invalid, not what about it."""
    return _silent(refusal)


@fault(Stage.REFUSAL, "error_names_the_field", also=("error_names_a_sent_field",))
def errors_name_another_field(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A refusal blames `messages`, a member of another operation."""
    if refusal is None or refusal.first.param is None:
        return refusal
    return replace(refusal, problems=(Problem("messages: field required", "messages", "missing"),))


@fault(
    Stage.REFUSAL,
    "error_names_a_sent_field",
    also=(
        "error_names_the_field",
        "valid_is_accepted",
        "channels_accept_alike",
        "combination_is_accepted",
        "errors_agree_on_both_channels",
        "usage_chunk_is_sent",
    ),
    only=lambda call: call.streamed and call.params.n > 1,
    imitates="A gateway added stream_options by itself, and passed on the refusal of it.",
)
def gateway_adds_a_member(refusal: Refusal | None, call: Call) -> Refusal | None:
    """With n, a stream is refused for a member that the client never sent."""
    return refusal or Refusal(400, (Problem("stream_settings: extra fields not permitted", "stream_settings"),))


@fault(
    Stage.RESPONSE,
    "refusal_is_not_a_success",
    also=(*STATUS, "plain_field_conforms"),
    imitates="Errors came with a status of 200.",
)
def errors_come_with_200(response: Response, call: Call) -> Response:
    """Refusals have a status of 200."""
    return replace(response, status=200) if _refusing(response) else response


@fault(
    Stage.RESPONSE,
    "refusal_is_not_a_success",
    also=(*STATUS, "stream_carries_no_error"),
    only=streaming,
    imitates="An invalid request for a stream was answered by 200 and an error event.",
)
def errors_come_as_events(response: Response, call: Call) -> Response:
    """Where a stream is asked for, a refusal is an event under a status of 200."""
    if not _refusing(response):
        return response
    event = b"data: " + response.content + b"\n\n"
    return replace(headed(response, "content-type", "text/event-stream"), status=200, portions=(Portion(event),))


@fault(
    Stage.RESPONSE,
    "errors_agree_on_both_channels",
    also=("error_is_json", "error_names_the_field", *SHAPE),
    only=streaming,
)
def errors_differ_in_streams(response: Response, call: Call) -> Response:
    """Where a stream is asked for, a refusal has another status and another shape."""
    if not _refusing(response):
        return response
    status = 422 if response.status == 400 else 400
    return answered(status, {"message": "invalid request", "success": False})


@fault(Stage.ERROR, "error_message_is_clean", also=("error_names_the_field",))
def errors_show_a_stack_trace(body: Json, call: Call) -> Json:
    """The message is a stack trace with paths of the server."""
    trace = "Traceback (most recent call last):\n  File \"/opt/engine/api.py\", line 214, in create\nKeyError: 'n'"
    return _told(body, trace)


@fault(
    Stage.ERROR,
    "error_message_is_clean",
    also=("error_names_the_field",),
    imitates="A message held the JSON of another service's refusal, escaped.",
)
def errors_hold_escaped_json(body: Json, call: Call) -> Json:
    """The message is the JSON of an inner service."""
    return _told(body, '{"detail":[{"type":"less_than_equal","loc":["body"],"msg":"Input should be less than 2"}]}')


def _told(body: Json, message: str) -> Json:
    if isinstance(body.get("error"), dict):
        return {**body, "error": {**body["error"], "message": message}}
    return (
        {"detail": [{**one, "msg": message} for one in body["detail"]]}
        if isinstance(body.get("detail"), list)
        else body
    )


@fault(
    Stage.RESPONSE,
    "no_server_error",
    also=(
        "error_has_envelope",
        "invalid_is_refused",
        "errors_agree_on_both_channels",
        "error_names_the_field",
        "error_field_conforms",
        "error_status_is_documented",
    ),
    imitates="Requests that do not validate made servers fail with a 500.",
)
def refusals_are_500(response: Response, call: Call) -> Response:
    """What does not validate is answered by 500."""
    return replace(response, status=500) if response.status in {400, 422} else response


@fault(
    Stage.RESPONSE,
    "no_server_error",
    only=lambda call: not isinstance(call.body, dict),
    also=("invalid_is_refused", "error_is_json", *SHAPE),
    imitates="Malformed JSON was answered by 500 and plain text.",
)
def malformed_json_is_500(response: Response, call: Call) -> Response:
    """A body that is no JSON object is answered by 500."""
    if response.status not in {400, 415, 422}:
        return response
    return answered(500, b"Internal Server Error", "text/plain")
