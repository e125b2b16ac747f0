"""The reference without I/O: a request goes in, the response that the contract asks for comes out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import cached_property
from random import Random
from typing import Any, Final

from conformance.contract.openapi import error_entry
from conformance.model import ContextOverflow, Contract, UsagePlacement
from conformance.model.json_text import readable
from conformance.reference.alterations import Alteration, Call, Memory, Stage
from conformance.reference.generation import Generation, GenerationTask, Step, generate, score
from conformance.reference.generation_parameters import GenerationParameters, Prompt, read
from conformance.reference.language_model import LanguageModel
from conformance.reference.messages import Portion, Problem, Refusal, Request, Response
from conformance.reference.options import ReferenceOptions
from conformance.reference.request_validation import check_body, check_transport, invalid_status, parse
from conformance.reference.responses import Reply, ResponseShape, Text, chunks, plain, response_shape, usage
from conformance.reference.schema_instance import ENVELOPE, error_document, instance_of

MOST_CANDIDATES: Final = 4096  # candidates of one request: it refuses more, which would take long to generate
DEFAULT_LENGTH: Final = 256  # tokens, at most, of a text without max_tokens
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Reference:
    """A provider that keeps a contract, and departs from it exactly as its alterations say.

    `key`: None accepts requests without a key. `models`: the names that it serves. `entropy` decides what requests
    without a seed sample: the same requests in the same order get the same replies, no two of them alike.
    """

    contract: Contract
    key: str | None = None
    model: LanguageModel = field(default_factory=LanguageModel)
    alterations: tuple[Alteration, ...] = ()
    models: tuple[str, ...] = ("reference",)
    settings: ReferenceOptions = field(default_factory=ReferenceOptions)
    entropy: int = 0
    now: Callable[[], float] = time.time
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def alterations_by_stage(self) -> Mapping[Stage, tuple[Alteration, ...]]:
        """The alterations of each stage, in their order."""
        return {stage: tuple(change for change in self.alterations if change.stage is stage) for stage in Stage}

    @cached_property
    def shape(self) -> ResponseShape:
        """What the contract's response schema demands."""
        return response_shape(self.contract)

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each alteration changed something, by name."""
        return self.memory.fired


def respond(provider: Reference, request: Request) -> Response:
    """The provider's complete response to a request."""
    provider.memory.calls += 1
    call = Call(provider, request, provider.memory.calls)
    arrived = call.apply(Stage.ARRIVAL, request)
    if isinstance(arrived, Response):
        return arrived
    call.request = arrived
    response: Response = call.apply(Stage.RESPONSE, _respond(call))
    return response


def _respond(call: Call) -> Response:
    provider, contract = call.reference, call.reference.contract
    refusal = check_transport(contract, provider.key, call.request)
    if refusal is None:
        call.body, refusal = parse(call.request)
        if refusal is None:
            call.body = call.apply(Stage.BODY, call.body)
            refusal = check_body(contract, call.body, lenient=provider.settings.lenient)
            if refusal is not None and provider.settings.invalid_status and refusal.status in {400, 422}:
                refusal = _with_undocumented_status(contract, refusal, provider.settings.invalid_status)
    call.params = read(contract, call.body, provider.model, provider.models)
    call.params = call.apply(Stage.PARAMETERS, call.params)
    refusal = call.apply(Stage.REFUSAL, refusal or _check_capacity(call))
    return _refuse(call, refusal) if refusal is not None else _complete(call)


# Refusals.


def _with_undocumented_status(contract: Contract, refusal: Refusal, status: int) -> Refusal:
    """The refusal with this status, where the contract documents neither 400 nor 422."""
    return refusal if {"400", "422"} & contract.errors.keys() else replace(refusal, status=status)


def _check_capacity(call: Call) -> Refusal | None:
    """Refuse a valid request for a model that is not served, or for more than the model can hold."""
    params, provider = call.params, call.reference
    if params.model not in provider.models:
        # Where errors are documented and none is a 404, an unknown model is an invalid request like others.
        status = 400 if "400" in provider.contract.errors and "404" not in provider.contract.errors else 404
        return Refusal(status, (Problem(f"the model {params.model!r} does not exist", "model", "model_not_found"),))
    if len(params.prompts) * params.best_of > MOST_CANDIDATES:
        return Refusal(400, (Problem(f"more than {MOST_CANDIDATES} candidates are asked for", "n", "too_many"),))
    longest = max(len(prompt.tokens) for prompt in params.prompts)
    available = provider.model.context - longest
    requested = params.max_tokens or 0
    if available < 0 or (requested > available and not _truncates(call)):
        capacity = f"the context holds {provider.model.context} tokens"
        message = f"{capacity}; {longest} in the prompt and {requested} to write are more"
        param = "prompt" if available < 0 else "max_tokens"
        return Refusal(invalid_status(provider.contract), (Problem(message, param, "context_length_exceeded"),))
    return None


def _truncates(call: Call) -> bool:
    """Whether max_tokens beyond the context is lowered to it: as the request says, or as the contract promises."""
    behaviour = call.params.overflow or call.reference.contract.semantics.context_overflow
    return behaviour == ContextOverflow.TRUNCATE


def _refuse(call: Call, refusal: Refusal) -> Response:
    call.reference.memory.last_refused = call.number
    contract = call.reference.contract
    schema = contract.errors.get(error_entry(contract, refusal.status), ENVELOPE)
    document = call.apply(Stage.ERROR, error_document(schema, refusal))
    headers = (("content-type", "application/json"), *refusal.headers, *_common_headers(call))
    return Response(refusal.status, headers, (Portion(_json(document)),))


# Replies.


def _common_headers(call: Call) -> tuple[tuple[str, str], ...]:
    date = formatdate(call.reference.now(), usegmt=True)
    return (("date", date), ("x-request-id", f"req-{call.number:012x}"))


def _json(value: Any) -> bytes:
    return readable(value).encode("utf-8", "backslashreplace")


def _complete(call: Call) -> Response:
    provider, params = call.reference, call.params
    candidates = list(_candidates(call))
    texts = call.apply(Stage.TEXTS, list(_texts(call, candidates)))
    every = [generation for generations in candidates for generation in generations]
    bos = provider.model.tokenizer.bos
    counts = usage(provider.shape, every, params.prompts, params, provider.settings, bos=bos)
    call.usage = call.apply(Stage.USAGE, counts)
    reply = Reply(
        identity=f"cmpl-{provider.entropy:04x}{call.number:012x}",
        created=int(provider.now()),
        model=provider.settings.alias or params.model,
        shape=provider.shape,
        settings=provider.settings,
        params=params,
    )
    if not params.stream:
        (document,) = call.apply(Stage.REPLY, [plain(reply, texts, call.usage)])
        return Response(
            200, (("content-type", "application/json"), *_common_headers(call)), (Portion(_json(document)),)
        )
    documents = call.apply(Stage.REPLY, _with_usage(call, reply, chunks(reply, texts), call.usage))
    done = [DONE] if provider.contract.semantics.sends_done else []
    frames = call.apply(Stage.FRAMES, [*(b"data: " + _json(chunk) + b"\n\n" for chunk in documents), *done])
    content_type = ("content-type", "text/event-stream; charset=utf-8")
    headers = (content_type, ("cache-control", "no-cache"), *_common_headers(call))
    return Response(200, headers, tuple([Portion(frame) for frame in frames]))


def _with_usage(
    call: Call, reply: Reply, documents: list[dict[str, Any]], counts: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The chunks with usage where the contract puts it, or in a chunk of its own where the contract does not say."""
    semantics, requested = call.reference.contract.semantics, call.params.include_usage
    if counts is None or not (requested or semantics.usage_unasked):
        return documents
    if semantics.usage_placement is UsagePlacement.LAST_CHUNK:
        return [*documents[:-1], {**documents[-1], "usage": counts}] if documents else documents
    if requested:
        documents = [{**chunk, "usage": None} for chunk in documents]
    return [*documents, reply.document([], usage=counts)]


# Texts.


def texts_of(call: Call) -> list[Text]:
    """The choices of a call."""
    return list(_texts(call, list(_candidates(call))))


def _texts(call: Call, candidates: Sequence[Sequence[Generation]]) -> Iterator[Text]:
    """The choices: for each prompt its n candidates, or the n likeliest of best_of."""
    params, semantics = call.params, call.reference.contract.semantics
    for number, (prompt, generations) in enumerate(zip(params.prompts, candidates, strict=True)):
        echoed = _echoed(call, prompt)
        if params.best_of > params.n:
            generations = sorted(generations, key=lambda generation: -generation.mean_logprob)
        for rank, generation in enumerate(generations[: params.n]):
            finish = semantics.stop_reason if generation.stopped else semantics.length_reason
            yield Text(number * params.n + rank, prompt, echoed, generation, finish)


def _echoed(call: Call, prompt: Prompt) -> tuple[Step, ...]:
    return score(call.reference.model, prompt.tokens, _alternatives(call)) if call.params.echo else ()


def _alternatives(call: Call) -> int | None:
    """How many alternatives each step lists; None where no log probabilities are requested."""
    logprobs = call.params.logprobs
    return None if logprobs is None else logprobs + call.reference.settings.extra_alternative


def _candidates(call: Call) -> Iterator[list[Generation]]:
    """All generations, prompt by prompt; a greedy one is computed once, because each would be the same."""
    provider, params = call.reference, call.params
    greedy = params.sampling.temperature == 0 or params.sampling.top_k == 1
    for prompt in params.prompts:
        task = _task(call, prompt)
        if greedy and provider.settings.greedy_is_nondeterministic and task.script is None:
            task = replace(task, rounding=Random(f"rounding {provider.entropy} {call.number}"))  # noqa: S311
        if greedy or task.script is not None:
            yield [generate(provider.model, task, 0)] * params.best_of
            continue
        yield [generate(provider.model, task, _rng_seed(call, number)) for number in range(params.best_of)]


def _rng_seed(call: Call, candidate: int) -> str:
    """What seeds the random numbers of a candidate: the request's seed, or the number of the call."""
    seed = call.params.seed
    return f"call {call.reference.entropy} {call.number} {candidate}" if seed is None else f"seed {seed} {candidate}"


def _task(call: Call, prompt: Prompt) -> GenerationTask:
    provider, params = call.reference, call.params
    room = max(provider.model.context - len(prompt.tokens), 0)
    return GenerationTask(
        prompt=prompt.tokens,
        limit=min(room, DEFAULT_LENGTH if params.max_tokens is None else params.max_tokens),
        sampling=params.sampling,
        soft_limited=params.max_tokens is None,
        stops=params.stops,
        keep_stop=params.keep_stop,
        suffix=params.suffix,
        script=_script(provider, params),
        alternatives=_alternatives(call),
    )


def _script(provider: Reference, params: GenerationParameters) -> tuple[int, ...] | None:
    """The tokens that a JSON format prescribes; None where the text is free."""
    output = params.output or {}
    if output.get("type") not in ("json_object", "json_schema"):
        return None
    wrapper = output.get("json_schema")
    schema = output.get("schema") or (wrapper.get("schema") if isinstance(wrapper, Mapping) else None)
    value = instance_of(schema) if isinstance(schema, Mapping) else {"value": 1}
    return replace(provider.model.tokenizer, bos=False).encode(json.dumps(value, ensure_ascii=False))
