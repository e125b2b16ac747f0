"""Oddities of how requests are read: more leniently than most, or in another way where standards leave one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.model import Contract, Level
from conformance.model.sse import BOM
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.messages import Request, Response
from conformance.selftest.edits import answered, sampled
from conformance.selftest.legal_variant import legal_variant


def _may_look_for_itself(contract: Contract) -> bool:
    rows = (row for row in contract.requirements if row.id == "protocol.wrong-content-type")
    return all(row.level is Level.MAY for row in rows)


@legal_variant(Stage.ARRIVAL, fits=_may_look_for_itself)
def media_type_is_not_asked_for(request: Request, call: Call) -> Request:
    """A body is read as JSON whatever it is called."""
    kept = tuple(item for item in request.headers if item[0].lower() != "content-type")
    return replace(request, headers=(*kept, ("content-type", "application/json")))


@legal_variant(Stage.ARRIVAL)
def stray_bytes_are_replaced(request: Request, call: Call) -> Request:
    """Bytes that are no UTF-8 count as replacement characters."""
    return replace(request, body=request.body.decode("utf-8", "replace").encode())


@legal_variant(Stage.ARRIVAL)
def mark_in_front_is_overlooked(request: Request, call: Call) -> Request:
    """A byte order mark before a body is overlooked."""
    return replace(request, body=request.body.removeprefix(BOM))


@legal_variant(Stage.ARRIVAL)
def first_of_two_members_counts(request: Request, call: Call) -> Request:
    """Of two members of one name, the first counts."""
    try:
        first, last = json.loads(request.body, object_pairs_hook=_first), json.loads(request.body)
    except (ValueError, RecursionError):
        return request
    return request if first == last else replace(request, body=json.dumps(first).encode())


def _first(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


@legal_variant(Stage.ARRIVAL)
def large_bodies_stop_at_the_gateway(request: Request, call: Call) -> Request | Response:
    """What is larger than the gateway allows gets its own page."""
    page = b"<html><head><title>413 Request Entity Too Large</title></head></html>"
    return answered(413, page, "text/html") if len(request.body) > 100_000 else request


@legal_variant(Stage.ARRIVAL)
def gateway_is_busy_at_first(request: Request, call: Call) -> Request | Response:
    """Each new request first meets a gateway that is busy."""
    seen: dict[bytes, int] = call.notes.setdefault("gateway_is_busy_at_first", {})
    seen[request.body] = seen.get(request.body, 0) + 1
    return request if seen[request.body] > 1 else answered(503, b"<html>busy</html>", "text/html")


@legal_variant(Stage.ARRIVAL)
def other_methods_do_something_else(request: Request, call: Call) -> Request | Response:
    """GET lists what is kept, which the document does not speak of."""
    return (
        request if request.method == call.reference.contract.method else answered(200, {"object": "list", "data": []})
    )


@legal_variant(Stage.WISH)
def model_says_one_thing(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The model is quite sure that one word follows whatever came before."""
    return sampled(params, bias={**params.sampling.bias, 0: params.sampling.bias.get(0, 0.0) + 30.0})
