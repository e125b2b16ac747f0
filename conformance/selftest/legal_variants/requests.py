"""How requests are read: more leniently than usual, or in another way where standards allow several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.model import Contract, Level
from conformance.model.sse import BOM
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.messages import Request, Response
from conformance.selftest.edits import synthetic_response, with_sampling
from conformance.selftest.legal_variant import legal_variant


def _may_guess_the_media_type(contract: Contract) -> bool:
    rows = (row for row in contract.requirements if row.id == "protocol.wrong-content-type")
    return all(row.level is Level.MAY for row in rows)


@legal_variant(Stage.ARRIVAL, fits=_may_guess_the_media_type)
def media_type_is_not_asked_for(request: Request, call: Call) -> Request:
    """A body is read as JSON whatever its content type."""
    others = tuple(header for header in request.headers if header[0].lower() != "content-type")
    return replace(request, headers=(*others, ("content-type", "application/json")))


@legal_variant(Stage.ARRIVAL)
def stray_bytes_are_replaced(request: Request, call: Call) -> Request:
    """Bytes that are not UTF-8 are read as U+FFFD."""
    return replace(request, body=request.body.decode("utf-8", "replace").encode())


@legal_variant(Stage.ARRIVAL)
def mark_in_front_is_overlooked(request: Request, call: Call) -> Request:
    """A byte order mark before a body is ignored."""
    return replace(request, body=request.body.removeprefix(BOM))


@legal_variant(Stage.ARRIVAL)
def first_of_two_members_counts(request: Request, call: Call) -> Request:
    """Of two members with the same name, the first counts."""
    try:
        first, last = json.loads(request.body, object_pairs_hook=_first), json.loads(request.body)
    except (ValueError, RecursionError):
        return request
    return request if first == last else replace(request, body=json.dumps(first).encode())


def _first(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


@legal_variant(Stage.ARRIVAL)
def large_bodies_stop_at_the_gateway(request: Request, call: Call) -> Request | Response:
    """A gateway answers requests above its size limit by 413 and an HTML page."""
    page = b"<html><head><title>413 Request Entity Too Large</title></head></html>"
    return synthetic_response(413, page, "text/html") if len(request.body) > 100_000 else request


def _declined(status: int) -> Response:
    return synthetic_response(status, b"<html><head><title>Declined</title></head></html>", "text/html")


@legal_variant(Stage.ARRIVAL)
def bodies_need_a_length(request: Request, call: Call) -> Request | Response:
    """A gateway answers bodies in chunks by 411 and an HTML page."""
    return _declined(411) if "transfer-encoding" in request.fields else request


@legal_variant(Stage.ARRIVAL)
def accept_is_heeded(request: Request, call: Call) -> Request | Response:
    """A client that accepts only another media type than that of its reply gets 406."""
    media_type = "text/event-stream" if b'"stream":true' in request.body else "application/json"
    accepted = request.fields.get("accept", "*/*")
    return request if media_type in accepted or "*/*" in accepted else _declined(406)


@legal_variant(Stage.ARRIVAL)
def expectations_cannot_be_met(request: Request, call: Call) -> Request | Response:
    """A gateway answers a request with an expectation by 417."""
    return _declined(417) if "expect" in request.fields else request


@legal_variant(Stage.ARRIVAL)
def last_of_two_fields_counts(request: Request, call: Call) -> Request:
    """Of two header fields with the same name, the last counts."""
    return replace(request, headers=tuple(request.fields.items()))


@legal_variant(Stage.ARRIVAL)
def gateway_is_busy_at_first(request: Request, call: Call) -> Request | Response:
    """A gateway answers each new request by 503 the first time."""
    seen: dict[bytes, int] = call.notes.setdefault("gateway_is_busy_at_first", {})
    seen[request.body] = seen.get(request.body, 0) + 1
    return request if seen[request.body] > 1 else synthetic_response(503, b"<html>busy</html>", "text/html")


@legal_variant(Stage.ARRIVAL)
def other_methods_do_something_else(request: Request, call: Call) -> Request | Response:
    """Other methods of the same path are answered by 200, because they are other, undocumented operations."""
    return (
        request
        if request.method == call.reference.contract.method
        else synthetic_response(200, {"object": "list", "data": []})
    )


@legal_variant(Stage.PARAMETERS)
def model_says_one_thing(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The model almost always continues with the same word."""
    return with_sampling(params, bias={**params.sampling.bias, 0: params.sampling.bias.get(0, 0.0) + 30.0})
