"""The reference provider without I/O: a request goes in, a response comes out, and a contract says what is right."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import cached_property
from random import Random
from typing import Any, Final

from conformance.contract.validity import error_entry
from conformance.model import ContextOverflow, Contract, UsagePlacement
from conformance.model.json_text import readable
from conformance.reference import request_validation as gate
from conformance.reference import responses as reply
from conformance.reference.alterations import Alteration, Call, Memory, Stage
from conformance.reference.generation import Order, Step, Written, score, written
from conformance.reference.generation_request import GenerationParameters, Prompt, read
from conformance.reference.language_model import LanguageModel
from conformance.reference.messages import Portion, Problem, Refusal, Request, Response
from conformance.reference.options import ReferenceOptions
from conformance.reference.schema_instance import ENVELOPE, complaint, fill

MOST_CANDIDATES: Final = 4096
UNLIMITED: Final = 256
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Reference:
    """A provider that keeps to a contract, or departs from it exactly where its `changes` say.

    `key` None: everybody may ask. `models` are the names it serves. `entropy` decides what unseeded sampling draws:
    the same requests in the same order get the same answers, and no two unseeded draws are alike.
    """

    contract: Contract
    key: str | None = None
    model: LanguageModel = field(default_factory=LanguageModel)
    changes: tuple[Alteration, ...] = ()
    models: tuple[str, ...] = ("reference",)
    settings: ReferenceOptions = field(default_factory=ReferenceOptions)
    entropy: int = 0
    now: Callable[[], float] = time.time
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def alterations(self) -> Mapping[Stage, tuple[Alteration, ...]]:
        """The changes by the stage that they apply to."""
        return {stage: tuple(one for one in self.changes if one.stage is stage) for stage in Stage}

    @cached_property
    def shape(self) -> reply.Shape:
        return reply.shape(self.contract)

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each alteration changed something."""
        return self.memory.fired


def respond(provider: Reference, request: Request) -> Response:
    """The provider's whole answer to one request."""
    provider.memory.calls += 1
    call = Call(provider, request, provider.memory.calls)
    arrived = call.bend(Stage.ARRIVAL, request)
    if isinstance(arrived, Response):
        return arrived
    call.request = arrived
    return _bent(call, _answer(call))


def _bent(call: Call, response: Response) -> Response:
    found: Response = call.bend(Stage.RESPONSE, response)
    return found


def _answer(call: Call) -> Response:
    provider, contract = call.reference, call.reference.contract
    refusal = gate.entrance(contract, provider.key, call.request)
    if refusal is None:
        call.body, refusal = gate.parse(call.request)
        if refusal is None:
            call.body = call.bend(Stage.BODY, call.body)
            refusal = gate.keeps(contract, call.body, lenient=provider.settings.lenient)
            if refusal is not None and provider.settings.invalid_status and refusal.status in {400, 422}:
                refusal = _restated(contract, refusal, provider.settings.invalid_status)
    call.params = read(contract, call.body, provider.model, provider.models)
    call.params = call.bend(Stage.WISH, call.params)
    refusal = call.bend(Stage.REFUSAL, refusal or _beyond(call))
    return _refuse(call, refusal) if refusal is not None else _complete(call)


def _restated(contract: Contract, refusal: Refusal, status: int) -> Refusal:
    """The same refusal under the other status, where the contract documents neither."""
    return refusal if {"400", "422"} & contract.errors.keys() else replace(refusal, status=status)


def _beyond(call: Call) -> Refusal | None:
    """What a valid request can still ask in vain: a model that is not served, more tokens than the context holds."""
    params, provider = call.params, call.reference
    if params.model not in provider.models:
        # Where errors are documented and none is a 404, an unknown model is one more bad request.
        status = 400 if "400" in provider.contract.errors and "404" not in provider.contract.errors else 404
        return Refusal(status, (Problem(f"the model {params.model!r} does not exist", "model", "model_not_found"),))
    if len(params.prompts) * params.best_of > MOST_CANDIDATES:
        return Refusal(400, (Problem(f"more than {MOST_CANDIDATES} candidates are asked for", "n", "too_many"),))
    longest = max(len(prompt.tokens) for prompt in params.prompts)
    room = provider.model.context - longest
    wanted = params.max_tokens or 0
    if room < 0 or (wanted > room and not _truncates(call)):
        told = (
            f"the context holds {provider.model.context} tokens; {longest} in the prompt and {wanted} to write are more"
        )
        param = "prompt" if room < 0 else "max_tokens"
        return Refusal(gate.invalid_status(provider.contract), (Problem(told, param, "context_length_exceeded"),))
    return None


def _truncates(call: Call) -> bool:
    """Whether a limit beyond the context is lowered to it: as the request says, or as the contract promises."""
    behaviour = call.params.overflow or call.reference.contract.semantics.context_overflow
    return behaviour == ContextOverflow.TRUNCATE


def _refuse(call: Call, refusal: Refusal) -> Response:
    contract = call.reference.contract
    schema = contract.errors.get(error_entry(contract, refusal.status), ENVELOPE)
    document = call.bend(Stage.ERROR, complaint(schema, refusal))
    headers = (("content-type", "application/json"), *refusal.headers, *_common(call))
    return Response(refusal.status, headers, (Portion(_json(document)),))


def _common(call: Call) -> tuple[tuple[str, str], ...]:
    date = formatdate(call.reference.now(), usegmt=True)
    return (("date", date), ("x-request-id", f"req-{call.number:012x}"))


def _json(value: Any) -> bytes:
    return readable(value).encode("utf-8", "backslashreplace")


def _complete(call: Call) -> Response:
    provider, params, contract = call.reference, call.params, call.reference.contract
    candidates = list(_candidates(call))
    texts = call.bend(Stage.TEXTS, list(_texts(call, candidates)))
    every = [one for some in candidates for one in some]
    bos = provider.model.tokenizer.bos
    usage = call.bend(
        Stage.USAGE, reply.usage(provider.shape, every, params.prompts, params, provider.settings, bos=bos)
    )
    call.usage = usage
    frame = reply.Frame(
        identity=f"cmpl-{provider.entropy:04x}{call.number:012x}",
        created=int(provider.now()),
        model=provider.settings.alias or params.model,
        shape=provider.shape,
        settings=provider.settings,
        params=params,
    )
    if not params.stream:
        (document,) = call.bend(Stage.REPLY, [reply.plain(frame, texts, usage)])
        return Response(200, (("content-type", "application/json"), *_common(call)), (Portion(_json(document)),))
    chunks = call.bend(Stage.REPLY, _with_usage(call, frame, reply.chunks(frame, texts), usage))
    done = [DONE] if contract.semantics.sends_done else []
    frames = call.bend(Stage.FRAMES, [*(b"data: " + _json(chunk) + b"\n\n" for chunk in chunks), *done])
    headers = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"), *_common(call))
    return Response(200, headers, tuple([Portion(frame) for frame in frames]))


def _with_usage(
    call: Call, frame: reply.Frame, chunks: list[dict[str, Any]], usage: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The chunks with usage where the contract puts it; in a chunk of its own, where it says nothing."""
    semantics, asked = call.reference.contract.semantics, call.params.include_usage
    if usage is None or not (asked or semantics.usage_unasked):
        return chunks
    if semantics.usage_placement is UsagePlacement.LAST_CHUNK:
        return [*chunks[:-1], {**chunks[-1], "usage": usage}] if chunks else chunks
    if asked:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
    return [*chunks, frame.document([], usage=usage)]


def _texts(call: Call, found: Sequence[Sequence[Written]]) -> Iterator[reply.Text]:
    params, semantics = call.params, call.reference.contract.semantics
    for place, (prompt, candidates) in enumerate(zip(params.prompts, found, strict=True)):
        echoed = _echoed(call, prompt)
        best = sorted(candidates, key=lambda one: -one.likelihood) if params.best_of > params.n else candidates
        for number, one in enumerate(best[: params.n]):
            finish = semantics.stop_reason if one.stopped else semantics.length_reason
            yield reply.Text(place * params.n + number, prompt, echoed, one, finish)


def _echoed(call: Call, prompt: Prompt) -> tuple[Step, ...]:
    if not call.params.echo:
        return ()
    wanted = call.params.logprobs
    more = call.reference.settings.one_more_alternative
    return score(call.reference.model, prompt.tokens, None if wanted is None else wanted + more)


def _candidates(call: Call) -> Iterator[list[Written]]:
    """All that is written, prompt by prompt; what is greedy is written once, for it would come out the same."""
    provider, params = call.reference, call.params
    greedy = params.sampling.temperature == 0 or params.sampling.top_k == 1
    for prompt in params.prompts:
        order = _order(call, prompt)
        if greedy and provider.settings.greedy_varies and order.script is None:
            order = replace(order, rounding=Random(f"rounding {provider.entropy} {call.number}"))  # noqa: S311
        if greedy or order.script is not None:
            yield [written(provider.model, order, 0)] * params.best_of
            continue
        yield [written(provider.model, order, _dice(call, place)) for place in range(params.best_of)]


def _dice(call: Call, place: int) -> str:
    told = (
        f"seed {call.params.seed}" if call.params.seed is not None else f"call {call.reference.entropy} {call.number}"
    )
    return f"{told} {place}"


def _order(call: Call, prompt: Prompt) -> Order:
    provider, params = call.reference, call.params
    room = max(provider.model.context - len(prompt.tokens), 0)
    unlimited = params.max_tokens is None
    return Order(
        prompt=prompt.tokens,
        limit=min(room, UNLIMITED if params.max_tokens is None else params.max_tokens),
        sampling=params.sampling,
        roped=unlimited,
        stops=params.stops,
        keep_stop=params.keep_stop,
        suffix=params.suffix,
        script=_script(provider, params),
        alternatives=None if params.logprobs is None else params.logprobs + provider.settings.one_more_alternative,
    )


def _script(provider: Reference, params: GenerationParameters) -> tuple[int, ...] | None:
    """The tokens that a JSON format dictates; None where the text is free."""
    output = params.output or {}
    told = output.get("json_schema")
    schema = output.get("schema") or (told.get("schema") if isinstance(told, Mapping) else None)
    if output.get("type") not in ("json_object", "json_schema"):
        return None
    value = fill(schema) if isinstance(schema, Mapping) else {"value": 1}
    return replace(provider.model.tokenizer, bos=False).encode(json.dumps(value, ensure_ascii=False))
