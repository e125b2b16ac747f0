"""Routes, methods, keys, media types, JSON and models: what must be refused is accepted, or the other way round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from conformance.model.json_text import dumps, loads
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.messages import Problem, Refusal, Request, Response
from conformance.selftest.edits import server_error, synthetic_response, with_other_text
from conformance.selftest.fault import fault

CHECK = "invalid_is_refused"


def _with_header(request: Request, name: str, value: str) -> Request:
    others = tuple(header for header in request.headers if header[0].lower() != name)
    return replace(request, headers=(*others, (name, value)))


def _with_status(refusal: Refusal | None, kind: str, status: int) -> Refusal | None:
    """The refusal with another status, if it is of this kind."""
    return replace(refusal, status=status) if refusal is not None and refusal.first.kind == kind else refusal


# Keys.


@fault(Stage.ARRIVAL, CHECK, imitates="An alias of the route was open to everybody.")
def no_key_is_needed(request: Request, call: Call) -> Request:
    """A request without a key is accepted."""
    if "authorization" in request.fields or call.reference.key is None:
        return request
    return _with_header(request, "authorization", f"Bearer {call.reference.key}")


@fault(Stage.ARRIVAL, CHECK, imitates="Whatever was sent as a key was accepted.")
def any_key_will_do(request: Request, call: Call) -> Request:
    """A request with an unknown key is accepted."""
    if "authorization" not in request.fields or call.reference.key is None:
        return request
    return _with_header(request, "authorization", f"Bearer {call.reference.key}")


def _accept_key(request: Request, call: Call, accepted: Callable[[str, str], bool]) -> Request:
    """The request with the right key, where `accepted` says so of the key that was sent and the right one."""
    key, sent = call.reference.key, request.fields.get("authorization", "").partition(" ")[2]
    if key is None or sent == key or not accepted(sent, key):
        return request
    return _with_header(request, "authorization", f"Bearer {key}")


def _asks_for_stream(call: Call) -> bool:
    return b'"stream":true' in call.request.body


@fault(Stage.ARRIVAL, CHECK, only=_asks_for_stream)
def no_key_is_needed_for_streams(request: Request, call: Call) -> Request:
    """A stream is sent to a client without a key."""
    return _accept_key(request, call, lambda sent, _: not sent)


@fault(Stage.ARRIVAL, CHECK, only=_asks_for_stream)
def any_key_will_do_for_streams(request: Request, call: Call) -> Request:
    """A stream is sent to a client with an unknown key."""
    return _accept_key(request, call, lambda sent, _: bool(sent))


@fault(Stage.ARRIVAL, CHECK, only=lambda call: "transfer-encoding" in call.request.fields)
def no_key_is_needed_for_chunked_bodies(request: Request, call: Call) -> Request:
    """A request whose body comes in chunks is answered without a valid key."""
    return _accept_key(request, call, lambda _sent, _key: True)


@fault(Stage.ARRIVAL, CHECK)
def key_is_compared_by_its_beginning(request: Request, call: Call) -> Request:
    """A key that begins with the right one is accepted."""
    return _accept_key(request, call, lambda sent, key: sent.startswith(key))


@fault(Stage.ARRIVAL, CHECK)
def part_of_the_key_will_do(request: Request, call: Call) -> Request:
    """The first characters of the right key are accepted as a key."""
    return _accept_key(request, call, lambda sent, key: len(sent) > 1 and key.startswith(sent))


@fault(Stage.ARRIVAL, CHECK)
def case_of_the_key_is_ignored(request: Request, call: Call) -> Request:
    """A key with other upper and lower case letters is accepted."""
    return _accept_key(request, call, lambda sent, key: sent.lower() == key.lower())


@fault(Stage.ARRIVAL, CHECK)
def empty_key_is_accepted(request: Request, call: Call) -> Request:
    """`Bearer` without a key is accepted."""
    bare = request.fields.get("authorization", "").strip() == "Bearer"
    return _accept_key(request, call, lambda _sent, _key: bare)


@fault(Stage.REFUSAL, CHECK, imitates="An unknown key was answered by 404.")
def unknown_key_is_404(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A request without a valid key is answered by 404."""
    return _with_status(refusal, "invalid_api_key", 404)


@fault(Stage.REFUSAL, "valid_is_accepted")
def scheme_is_compared_exactly(refusal: Refusal | None, call: Call) -> Refusal | None:
    """The authorization scheme `bearer` in lower case is refused."""
    if refusal is None and call.request.fields.get("authorization", "").startswith("bearer"):
        return Refusal(401, (Problem("the authorization must begin with Bearer", None, "invalid_api_key"),))
    return refusal


@fault(Stage.ARRIVAL, CHECK)
def any_scheme_will_do(request: Request, call: Call) -> Request:
    """The right key is accepted under the name of any scheme."""
    scheme, _, sent = request.fields.get("authorization", "").partition(" ")
    if call.reference.key is None or sent != call.reference.key or scheme.lower() == "bearer":
        return request
    return _with_header(request, "authorization", f"Bearer {sent}")


@fault(Stage.ARRIVAL, CHECK, imitates="A gateway compared the last word of the header with the key.")
def no_scheme_is_needed(request: Request, call: Call) -> Request:
    """The key alone is accepted, without a scheme."""
    sent = request.fields.get("authorization", "")
    bare = call.reference.key is not None and sent == call.reference.key
    return _with_header(request, "authorization", f"Bearer {sent}") if bare else request


@fault(Stage.ARRIVAL, "no_server_error")
def two_keys_are_a_server_error(request: Request, call: Call) -> Request | Response:
    """A request with two Authorization fields is answered by 500."""
    names = [name.lower() for name, _ in request.headers]
    return server_error() if names.count("authorization") > 1 else request


# The same request in another form.

FORM: Final = "valid_is_accepted"


def _refused(status: int, message: str) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return synthetic_response(status, {"error": error})


@fault(Stage.ARRIVAL, FORM, imitates="A server on Python's http.server read as many bytes as Content-Length said.")
def body_in_chunks_is_not_read(request: Request, call: Call) -> Request:
    """A body in chunks is taken for an empty one."""
    return replace(request, body=b"") if "transfer-encoding" in request.fields else request


@fault(Stage.ARRIVAL, FORM, only=_asks_for_stream)
def body_in_chunks_is_not_read_for_streams(request: Request, call: Call) -> Request:
    """A request for a stream whose body comes in chunks is taken for an empty one."""
    return replace(request, body=b"") if "transfer-encoding" in request.fields else request


def _cut_at(size: int) -> None:
    def cut(request: Request, call: Call) -> Request:
        return replace(request, body=request.body[:size])

    cut.__name__ = f"bodies_are_cut_at_{size}_bytes"
    cut.__doc__ = f"Of a larger body, {size} bytes are read."
    fault(Stage.ARRIVAL, FORM, also=("robustness",))(cut)


for _size in (2**16, 2**20):
    _cut_at(_size)


@fault(Stage.ARRIVAL, FORM)
def white_space_is_not_skipped(request: Request, call: Call) -> Request | Response:
    """A body with line breaks between its tokens is refused."""
    valid = b"\n" in request.body and _is_json(request.body)
    return _refused(400, "the body is not JSON: unexpected character") if valid else request


@fault(Stage.ARRIVAL, FORM)
def names_are_not_unescaped(request: Request, call: Call) -> Request | Response:
    """Members with an escape in their names are not found."""
    return _refused(400, "model is required") if b'"\\u006d' in request.body else request


@fault(Stage.PARAMETERS, "spelling_changes_nothing")
def escapes_in_texts_remain(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A prompt with escapes of letters is continued as if they were its text."""
    return with_other_text(params) if b'"\\u004f' in call.request.body else params


def _beyond_ascii(call: Call) -> bool:
    return not call.request.body.isascii() and _is_json(call.request.body)


@fault(Stage.ARRIVAL, FORM, only=_beyond_ascii, imitates="A server without a UTF-8 locale read bodies as ASCII.")
def body_is_read_as_ascii(request: Request, call: Call) -> Request | Response:
    """A body in UTF-8 with other characters than ASCII is refused."""
    return _refused(400, "the body cannot be decoded")


@fault(Stage.ARRIVAL, "spelling_changes_nothing", only=_beyond_ascii, also=("echo", "usage", "relations"))
def body_is_read_as_latin_1(request: Request, call: Call) -> Request:
    """A body in UTF-8 is read as ISO 8859-1."""
    return replace(request, body=request.body.decode("latin-1").encode())


def _refuse_field(name: str, accepted: Callable[[str], bool], status: int, says: str, function: str) -> None:
    def refuse(request: Request, call: Call) -> Request | Response:
        value = request.fields.get(name, "")
        return _refused(status, f"{name} {value[:40]} is not supported") if value and not accepted(value) else request

    refuse.__name__, refuse.__doc__ = function, says
    fault(Stage.ARRIVAL, FORM)(refuse)


_JSON: Final = "application/json"
_refuse_field(
    "content-type",
    lambda value: not value.lower().startswith(f"{_JSON};"),
    415,
    "A media type with a parameter is refused.",
    "media_type_parameters_are_not_understood",
)
_refuse_field(
    "content-type",
    lambda value: not value.lower().startswith(_JSON) or value.startswith(_JSON),
    415,
    "A media type with capital letters is refused.",
    "media_type_is_compared_exactly",
)
_refuse_field("accept", lambda value: value in {"*/*", _JSON}, 406, "Other values of Accept are refused.",
              "accept_is_compared_exactly")  # fmt: skip
_refuse_field("accept", lambda value: value != "text/event-stream", 400, "Accept: text/event-stream is refused.",
              "accept_of_streams_is_an_error")  # fmt: skip
_refuse_field("x-conformance-note", lambda _: False, 400, "Unknown header fields are refused.",
              "unknown_fields_are_refused")  # fmt: skip
_refuse_field("x-conformance-note", lambda value: len(value) < 1000, 400, "Long header fields are refused.",
              "long_fields_are_refused")  # fmt: skip
_refuse_field("expect", lambda _: False, 400, "An expectation is refused by 400.", "expectations_are_refused")


# Methods, media types and JSON.


@fault(Stage.ARRIVAL, CHECK)
def any_method_will_do(request: Request, call: Call) -> Request:
    """Every method is answered like the documented one."""
    return replace(request, method=call.reference.contract.method)


@fault(Stage.ARRIVAL, CHECK)
def broken_json_is_mended(request: Request, call: Call) -> Request:
    """Truncated JSON is completed, and other malformed JSON is treated as an empty prompt."""
    if call.request.method != call.reference.contract.method or _is_json(request.body):
        return request
    completed = next((request.body + end for end in (b"}", b'"}', b"]}") if _is_json(request.body + end)), None)
    return replace(request, body=completed or _empty_prompt(call))


def _is_json(body: bytes) -> bool:
    try:
        loads(body)
    except ValueError:
        return False
    return True


def _empty_prompt(call: Call) -> bytes:
    return dumps({"model": call.reference.models[0], "prompt": ""}).encode()


@fault(Stage.ARRIVAL, CHECK)
def body_is_read_from_a_list(request: Request, call: Call) -> Request:
    """A body that is a list is treated as an empty prompt."""
    return replace(request, body=_empty_prompt(call)) if request.body.lstrip()[:1] == b"[" else request


# Models.


@fault(Stage.REFUSAL, CHECK, imitates="A model that does not exist was answered by another one.", needs=("model",))
def unknown_model_is_answered(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A request for a model that does not exist is answered by another model."""
    return None if refusal is not None and refusal.first.kind == "model_not_found" else refusal


@fault(Stage.REFUSAL, CHECK, imitates="An unknown model was answered by 503, and clients retried.", needs=("model",))
def unknown_model_is_503(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A request for a model that does not exist is answered by 503."""
    return _with_status(refusal, "model_not_found", 503)
