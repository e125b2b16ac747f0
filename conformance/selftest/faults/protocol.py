"""HTTP and the key: what should be turned away at the door is let in, or the other way round."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import Contract, Level
from conformance.model.json_text import dumps, loads
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal, Request, Response
from conformance.selftest.edits import headed, streaming, successful
from conformance.selftest.fault import fault

CHECK = "invalid_is_refused"


def _with(request: Request, name: str, value: str) -> Request:
    kept = tuple(item for item in request.headers if item[0].lower() != name)
    return replace(request, headers=(*kept, (name, value)))


@fault(Stage.ARRIVAL, CHECK, imitates="An alias of the route was open to everybody.")
def no_key_is_needed(request: Request, call: Call) -> Request:
    """A request without a key is let in."""
    if "authorization" in request.fields or call.reference.key is None:
        return request
    return _with(request, "authorization", f"Bearer {call.reference.key}")


@fault(Stage.ARRIVAL, CHECK, imitates="Whatever was sent as a key was accepted.")
def any_key_will_do(request: Request, call: Call) -> Request:
    """A request with an unknown key is let in."""
    if "authorization" not in request.fields or call.reference.key is None:
        return request
    return _with(request, "authorization", f"Bearer {call.reference.key}")


@fault(Stage.REFUSAL, CHECK, imitates="An unknown key was answered by 404.")
def unknown_key_is_404(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Without a good key, the route does not exist."""
    wrong = refusal is not None and refusal.first.kind == "invalid_api_key"
    return replace(refusal, status=404) if wrong and refusal is not None else refusal


@fault(Stage.REFUSAL, "valid_is_accepted")
def scheme_is_compared_exactly(refusal: Refusal | None, call: Call) -> Refusal | None:
    """`bearer` in lower case is turned away."""
    if refusal is None and call.request.fields.get("authorization", "").startswith("bearer"):
        return Refusal(401, (Problem("the authorization must begin with Bearer", None, "invalid_api_key"),))
    return refusal


def _names_its_media_type(contract: Contract) -> bool:
    """Only where the document itself requires the header; elsewhere a server may look for itself."""
    rows = (row for row in contract.requirements if row.id == "protocol.wrong-content-type")
    return any(row.level is not Level.MAY for row in rows)


@fault(Stage.ARRIVAL, CHECK, fits=_names_its_media_type)
def any_media_type_will_do(request: Request, call: Call) -> Request:
    """A body of any media type is read as JSON."""
    return _with(request, "content-type", "application/json")


@fault(Stage.ARRIVAL, CHECK)
def any_method_will_do(request: Request, call: Call) -> Request:
    """Every method is answered like the documented one."""
    return replace(request, method=call.reference.contract.method)


@fault(Stage.ARRIVAL, CHECK)
def broken_json_is_mended(request: Request, call: Call) -> Request:
    """JSON that breaks off is completed, and what cannot be mended counts as an empty prompt."""
    if call.request.method != call.reference.contract.method or _is_json(request.body):
        return request
    mended = next((request.body + end for end in (b"}", b'"}', b"]}") if _is_json(request.body + end)), None)
    return replace(request, body=mended or _nothing(call))


def _is_json(body: bytes) -> bool:
    try:
        loads(body)
    except ValueError:
        return False
    return True


def _nothing(call: Call) -> bytes:
    """A request for a continuation of nothing."""
    return dumps({"model": call.reference.models[0], "prompt": ""}).encode()


@fault(Stage.ARRIVAL, CHECK)
def body_is_read_from_a_list(request: Request, call: Call) -> Request:
    """A body that is a list counts as its first member, or as an empty prompt."""
    return replace(request, body=_nothing(call)) if request.body.lstrip()[:1] == b"[" else request


@fault(Stage.REFUSAL, CHECK, imitates="A model that does not exist was answered by another one.", needs=("model",))
def unknown_model_is_answered(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A model that does not exist is answered by the one that does."""
    return None if refusal is not None and refusal.first.kind == "model_not_found" else refusal


@fault(Stage.REFUSAL, CHECK, imitates="An unknown model was answered by 503, and clients retried.", needs=("model",))
def unknown_model_is_503(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A model that does not exist is answered by 503."""
    unknown = refusal is not None and refusal.first.kind == "model_not_found"
    return replace(refusal, status=503) if unknown and refusal is not None else refusal


@fault(Stage.RESPONSE, "charset_is_utf8", variants=("plain", "streamed"))
def charset_is_latin_1(response: Response, call: Call) -> Response:
    """The content type names another character set."""
    given = dict(response.headers).get("content-type", "").partition(";")[0]
    return headed(response, "content-type", f"{given}; charset=ISO-8859-1") if successful(response) else response


@fault(Stage.RESPONSE, "stream_is_not_cacheable", only=streaming)
def streams_may_be_cached(response: Response, call: Call) -> Response:
    """Caches are invited to keep a stream for an hour."""
    return headed(response, "cache-control", "public, max-age=3600") if successful(response) else response
