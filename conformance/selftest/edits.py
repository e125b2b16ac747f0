"""Short words that faults and oddities are written in: the usual ways to take hold of a reply, a wish, a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.reference.alterations import Call
from conformance.reference.generation import Step, kept
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.messages import Portion, Refusal, Response
from conformance.reference.responses import Text

Json = dict[str, Any]


def choices(documents: Sequence[Json]) -> Iterator[Json]:
    """Every choice of every document, to be changed in place."""
    for document in documents:
        yield from document.get("choices") or ()


def logprobs(documents: Sequence[Json]) -> Iterator[Json]:
    """Every log probabilities object, to be changed in place."""
    for choice in choices(documents):
        if choice.get("logprobs"):
            yield choice["logprobs"]


def usages(documents: Sequence[Json]) -> Iterator[Json]:
    """Every usage object, to be changed in place."""
    for document in documents:
        if document.get("usage"):
            yield document["usage"]


def sampled(params: GenerationParameters, **changes: Any) -> GenerationParameters:
    """The wish with other sampling."""
    return replace(params, sampling=replace(params.sampling, **changes))


def rewritten(text: Text, new: str) -> Text:
    """The text with other words: its tokens as far as they agree, and one more for the rest."""
    old = text.written.text
    shared = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = [Step(0, new[shared:], -0.5, ((new[shared:], -0.5),))] if new[shared:] else []
    steps = (*kept(text.written.steps, shared), *rest)
    return replace(text, written=replace(text.written, text=new, steps=steps))


def asked(call: Call, name: str) -> Any:
    """A member of the request as sent, None where absent."""
    return call.body.get(name) if isinstance(call.body, dict) else None


def over(refusal: Refusal | None, param: str) -> Refusal | None:
    """The refusal with complaints about one parameter overlooked."""
    if refusal is None:
        return None
    left = tuple(problem for problem in refusal.problems if problem.param != param)
    return replace(refusal, problems=left) if left else None


def headed(response: Response, name: str, value: str | None) -> Response:
    """The response with one header set, or taken away."""
    kept = tuple(item for item in response.headers if item[0].lower() != name)
    return replace(response, headers=kept if value is None else (*kept, (name, value)))


def reworded(response: Response, change: Callable[[bytes], bytes]) -> Response:
    """The response with each portion's bytes changed."""
    return replace(response, portions=tuple(replace(one, data=change(one.data)) for one in response.portions))


def answered(status: int, body: Any, media_type: str = "application/json") -> Response:
    """A response made out of thin air; `body` is bytes, or JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, (("content-type", media_type),), (Portion(content),))


def pieces_of(response: Response) -> list[bytes]:
    """The bytes of each portion."""
    return [portion.data for portion in response.portions]


def in_pieces(response: Response, pieces: Sequence[bytes]) -> Response:
    """The response with other portions, none of them delayed."""
    return replace(response, portions=tuple(Portion(piece) for piece in pieces))


def successful(response: Response) -> bool:
    """Whether the reference was about to answer."""
    return response.status is not None and 200 <= response.status < 300


def streaming(call: Call) -> bool:
    """Only where a stream is asked for."""
    return call.streamed


def plain(call: Call) -> bool:
    """Only where one document is asked for."""
    return not call.streamed


def several(call: Call) -> bool:
    """Only where more than one choice is asked for."""
    return call.params.n * len(call.params.prompts) > 1
