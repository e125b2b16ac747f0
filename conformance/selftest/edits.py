"""The usual edits of requests, texts, documents and responses, and the usual conditions, for faults and variants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from conformance.reference.alterations import Call
from conformance.reference.generation import Step, steps_of_prefix
from conformance.reference.generation_parameters import GenerationParameters, Prompt
from conformance.reference.messages import Portion, Refusal, Response
from conformance.reference.responses import Text

Json: TypeAlias = dict[str, Any]

# Conditions: on which calls an alteration shows.


def streaming(call: Call) -> bool:
    """Whether the request asks for a stream."""
    return call.streamed


def plain(call: Call) -> bool:
    """Whether the request asks for a plain reply."""
    return not call.streamed


def several(call: Call) -> bool:
    """Whether the reply has more than one choice."""
    return call.params.n * len(call.params.prompts) > 1


def several_prompts(call: Call) -> bool:
    """Whether the request has more than one prompt."""
    return len(call.params.prompts) > 1


def scored(call: Call) -> bool:
    """Whether the request asks for log probabilities."""
    return call.params.logprobs is not None


def echoing(call: Call) -> bool:
    """Whether the request asks for log probabilities of the prompt as well."""
    return call.params.echo and scored(call)


def stopping(call: Call) -> bool:
    """Whether the request has stop sequences."""
    return bool(call.params.stops)


def wants_usage(call: Call) -> bool:
    """Whether the request asks for a stream with usage."""
    return call.streamed and call.params.include_usage


# The request.


def sent(call: Call, name: str) -> Any:
    """A member of the request as sent, None where absent."""
    return call.body.get(name) if isinstance(call.body, dict) else None


def with_sampling(params: GenerationParameters, **changes: Any) -> GenerationParameters:
    """The parameters with other sampling."""
    return replace(params, sampling=replace(params.sampling, **changes))


def with_other_text(params: GenerationParameters) -> GenerationParameters:
    """Parameters for which the model generates another text."""
    return replace(params, suffix=params.suffix + "\n")


def without_problems_of(refusal: Refusal | None, param: str) -> Refusal | None:
    """The refusal without the problems of one parameter, None where there are no others."""
    if refusal is None:
        return None
    others = tuple(problem for problem in refusal.problems if problem.param != param)
    return replace(refusal, problems=others) if others else None


# Texts and documents.


def with_text(text: Text, new: str) -> Text:
    """The choice with another text: its tokens as far as both agree, and one more token for the rest."""
    old = text.generation.text
    common = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = [Step(0, new[common:], -0.5, ((new[common:], -0.5),))] if new[common:] else []
    steps = (*steps_of_prefix(text.generation.steps, common), *rest)
    return replace(text, generation=replace(text.generation, text=new, steps=steps))


def choices(documents: Sequence[Json]) -> Iterator[Json]:
    """Every choice of every document, to be changed in place."""
    for document in documents:
        yield from document.get("choices") or ()


def prompt_of(call: Call, choice: Json) -> Prompt:
    """The prompt that a choice continues."""
    prompt: Prompt = call.params.prompts[choice["index"] // call.params.n]
    return prompt


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


def with_counts(usage: Json, **counts: int) -> Json:
    """Usage with other counts of prompt or completion tokens, and their sum as the total."""
    changed = {**usage, **counts}
    return {**changed, "total_tokens": changed["prompt_tokens"] + changed["completion_tokens"]}


def without_member(documents: Sequence[Json], name: str) -> list[Json]:
    """The documents without one member."""
    return [{key: value for key, value in document.items() if key != name} for document in documents]


def with_member(documents: Sequence[Json], name: str, value: object) -> list[Json]:
    """The documents with another value of one member, where they have it."""
    return [{**document, name: value} if name in document else document for document in documents]


def length_reason(call: Call) -> str:
    """The contract's finish reason for a text that the token limit cut."""
    return call.reference.contract.semantics.length_reason


def stop_reason(call: Call) -> str:
    """The contract's finish reason for a text that ended by itself or at a stop sequence."""
    return call.reference.contract.semantics.stop_reason


def with_reason(documents: list[Json], new: object, old: str = "") -> list[Json]:
    """The documents with another finish reason, for all choices that have one or for those that have `old`."""
    for choice in choices(documents):
        if choice.get("finish_reason") and old in {"", choice["finish_reason"]}:
            choice["finish_reason"] = new
    return documents


# Responses.


def with_header(response: Response, name: str, value: str | None) -> Response:
    """The response with one header set, or removed."""
    others = tuple(header for header in response.headers if header[0].lower() != name)
    return replace(response, headers=others if value is None else (*others, (name, value)))


def with_content(response: Response, change: Callable[[bytes], bytes]) -> Response:
    """The response with the bytes of each portion changed."""
    return replace(response, portions=tuple(replace(part, data=change(part.data)) for part in response.portions))


def portions_of(response: Response) -> list[bytes]:
    """The bytes of each portion."""
    return [portion.data for portion in response.portions]


def with_portions(response: Response, contents: Sequence[bytes]) -> Response:
    """The response with other portions, none of them delayed."""
    return replace(response, portions=tuple(Portion(content) for content in contents))


def synthetic_response(status: int, body: Any, media_type: str = "application/json") -> Response:
    """A response that does not depend on the request; `body` is bytes, or JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, (("content-type", media_type),), (Portion(content),))


def server_error() -> Response:
    """A 500 with an error document."""
    error = {"message": "the engine failed", "type": "server_error", "param": "", "code": "internal_error"}
    return synthetic_response(500, {"error": error})


def successful(response: Response) -> bool:
    """Whether the status is 2xx."""
    return response.status is not None and 200 <= response.status < 300


def refusing(response: Response) -> bool:
    """Whether the status is 4xx."""
    return response.status is not None and 400 <= response.status < 500
