"""Routes, methods, keys, media types, JSON and models: what must be refused is accepted, or the other way round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.model.json_text import dumps, loads
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal, Request
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
