"""Texts → the documents of a reply: choices with log probabilities, usage, the plain document, the chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from conformance.contract.openapi import branches
from conformance.contract.validity import allows_null
from conformance.model import Contract
from conformance.model.parameter_traits import Role
from conformance.reference.generation import Generation, Step
from conformance.reference.generation_parameters import GenerationParameters, Prompt
from conformance.reference.options import ReferenceOptions
from conformance.reference.schema_instance import instance_of
from conformance.reference.tokenizer import label

COMMON = frozenset({"id", "object", "created", "model", "choices", "usage"})
OPTIONAL = frozenset({"system_fingerprint"})  # sent wherever it is documented, although not required
LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


@dataclass(frozen=True, slots=True)
class Text:
    """One choice. `echoed`: the steps of its prompt, empty where it is not echoed."""

    index: int
    prompt: Prompt
    echoed: tuple[Step, ...]
    generation: Generation
    finish: str

    @property
    def start(self) -> int:
        """The offset of the first step, in characters from the beginning of the prompt."""
        return 0 if self.echoed else len(self.prompt.text)


@dataclass(frozen=True)
class ResponseShape:
    """What the contract's response schema demands beyond the common members."""

    object: str
    extras: Mapping[str, Any]
    choice_extras: Mapping[str, Any]
    usage_extras: Mapping[str, Any]
    logprobs_are_known: bool
    logprobs_may_be_null: bool
    logprobs_are_required: bool
    tiers: tuple[str, ...]
    automatic_tiers: tuple[str, ...]
    reported: str  # the member that reports what was used; empty where there is none

    def tier(self, requested: Any) -> Any:
        """The tier that serves a request: the one that it names, or the default where it leaves that open."""
        if requested in self.tiers and not (requested == "auto" and self.automatic_tiers):
            return requested
        return next(iter(self.automatic_tiers), self.extras.get(self.reported))


def response_shape(contract: Contract) -> ResponseShape:
    """What a contract's response schema demands."""
    documents = contract.response.get("properties", {})
    reported = contract.by_role(Role.REPORTED)
    choice = _narrow(_narrow(documents.get("choices", {})).get("items", {}))
    members, usage = choice.get("properties", {}), _narrow(documents.get("usage", {}))
    required = set(contract.response.get("required", ())) | (OPTIONAL & documents.keys())
    return ResponseShape(
        object=str(instance_of({"default": "text_completion", **documents.get("object", {})}, "text_completion")),
        extras={name: instance_of(documents.get(name, {}), name) for name in sorted(required - COMMON)},
        choice_extras={
            name: instance_of(members.get(name, {}), name)
            for name in choice.get("required", ())
            if name not in {"text", "index", "logprobs", "finish_reason"}
        },
        usage_extras={
            name: _zeros(schema) for name, schema in usage.get("properties", {}).items() if name.endswith("_details")
        },
        logprobs_are_known="logprobs" in members or "logprobs" in contract.parameters,
        logprobs_may_be_null="logprobs" not in members or allows_null(members["logprobs"]),
        logprobs_are_required="logprobs" in choice.get("required", ()),
        tiers=tuple(_narrow(documents.get(reported, {})).get("enum", ())),
        automatic_tiers=contract.semantics.automatic_tiers,
        reported=reported,
    )


def _narrow(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(iter(branches(schema)), schema)


def _zeros(schema: Mapping[str, Any]) -> dict[str, int]:
    return dict.fromkeys(_narrow(schema).get("properties", {}), 0)


@dataclass(frozen=True)
class Reply:
    """What all documents of one reply have in common."""

    identity: str
    created: int
    model: str
    shape: ResponseShape
    settings: ReferenceOptions
    params: GenerationParameters

    def document(self, choices: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
        """A document with these choices and further members."""
        tier = {self.shape.reported: self.shape.tier(self.params.tier)}
        return {
            "id": self.identity,
            "object": self.shape.object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            **self.shape.extras,
            **(tier if self.shape.reported in self.shape.extras else {}),
            **members,
        }

    def choice(
        self, text: Text, visible_text: str, steps: Sequence[Step], offset: int, finish: str | None
    ) -> dict[str, Any]:
        """One choice, or the part of it that a chunk carries; `offset` is that of its first step."""
        choice = {
            "text": visible_text,
            "index": text.index,
            "logprobs": None if self.params.logprobs is None else self.logprobs(steps, offset),
            "finish_reason": finish,
            **self.shape.choice_extras,
        }
        if self.params.logprobs is None:
            absent = self.settings.unasked_logprobs == "absent" and not self.shape.logprobs_are_required
            if absent or not self.shape.logprobs_are_known:
                del choice["logprobs"]
            elif not self.shape.logprobs_may_be_null:
                choice["logprobs"] = {name: [] for name in LISTS}
        elif not steps and not self.settings.finish_has_empty_lists and self.shape.logprobs_may_be_null:
            choice["logprobs"] = None
        return choice

    def logprobs(self, steps: Sequence[Step], offset: int) -> dict[str, Any]:
        """The four parallel lists of log probabilities."""
        offsets = []
        for step in steps:
            offsets.append(offset)
            offset += len(step.text)
        names = [self._name(step) for step in steps]
        return {
            "tokens": names,
            "token_logprobs": [self._first_logprob if step.logprob is None else step.logprob for step in steps],
            "top_logprobs": [self._top(step, name) for step, name in zip(steps, names, strict=True)],
            "text_offset": offsets,
        }

    @property
    def _first_logprob(self) -> float | None:
        return self.settings.first_logprob

    def _name(self, step: Step) -> str:
        return label(step.token) if self.settings.bytes_are_named and step.text == "" else step.text

    def _top(self, step: Step, name: str) -> dict[str, float] | None:
        if step.top is None:
            return None if self._first_logprob is None else {name: self._first_logprob}
        top = {name if other == step.text else other: value for other, value in step.top}
        if self.settings.extra_alternative and len(top) > (self.params.logprobs or 0) + 1:
            top.pop(next(other for other in reversed(top) if other != name))
        return top


def usage(
    shape: ResponseShape,
    generations: Sequence[Generation],
    prompts: Sequence[Prompt],
    params: GenerationParameters,
    settings: ReferenceOptions,
    *,
    bos: bool,
) -> dict[str, Any]:
    """The tokens of the reply: each prompt once, and every candidate that was generated for it."""
    prompt_tokens = sum(max(len(prompt.tokens), 1) + (bos and prompt.given_as_tokens) for prompt in prompts)
    completion_tokens = sum(_token_count(generation, params, settings) for generation in generations)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        **shape.usage_extras,
    }


def _token_count(generation: Generation, params: GenerationParameters, settings: ReferenceOptions) -> int:
    """The tokens of a generation, with the one that ended it where that counts, but never more than max_tokens."""
    count = generation.token_count
    if generation.stopped and settings.counts_end_token:
        return min(count + 1, max(params.max_tokens or 0, count))
    return count


def plain(reply: Reply, texts: Sequence[Text], usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """The reply as one document."""
    choices = [
        reply.choice(
            text,
            _shown_text(reply, text),
            (*text.echoed, *text.generation.steps),
            _first_offset(reply, text),
            text.finish,
        )
        for text in texts
    ]
    return reply.document(choices, **({} if usage is None else {"usage": usage}))


def _shown_text(reply: Reply, text: Text) -> str:
    return (text.prompt.text if reply.params.echo else "") + text.generation.text


def _first_offset(reply: Reply, text: Text) -> int:
    return 0 if reply.settings.offsets_from_zero else text.start


def chunks(reply: Reply, texts: Sequence[Text]) -> list[dict[str, Any]]:
    """The reply as chunks without usage, the choices interleaved or one after the other."""
    parts = [list(_parts(reply, text)) for text in texts]
    last = [part.pop() for part in parts] if reply.settings.finish_together else []
    if reply.settings.choices_in_sequence:
        ordered = [part for of_choice in parts for part in of_choice]
    else:
        ordered = [part for turn in zip_longest(*parts) for part in turn if part is not None]
    return [*(reply.document([part]) for part in ordered), *([reply.document(last)] if last else [])]


def _parts(reply: Reply, text: Text) -> Iterator[dict[str, Any]]:
    """The parts of one choice in order. The tokens of a character stay together, so that no part ends within one."""
    settings, offset = reply.settings, _first_offset(reply, text)
    alone = settings.finish_alone or settings.finish_together or text.generation.stopped
    if settings.opening_chunk:
        yield reply.choice(text, "", (), offset, None)
    batches = [text.echoed or ()] if reply.params.echo else []
    batches += _batches(text.generation.steps, settings.tokens_per_chunk)
    for number, batch in enumerate(batches):
        visible_text = text.prompt.text if reply.params.echo and number == 0 else "".join([step.text for step in batch])
        final = number == len(batches) - 1 and not alone
        yield reply.choice(text, visible_text, batch, offset, text.finish if final else None)
        offset += len(visible_text)
    if alone or not batches:
        yield reply.choice(text, "", (), offset, text.finish)
    if settings.finish_twice and not settings.finish_together:
        yield reply.choice(text, "", (), offset, text.finish)


def _batches(steps: Sequence[Step], size: int) -> list[tuple[Step, ...]]:
    batches: list[tuple[Step, ...]] = []
    batch: list[Step] = []
    for step in steps:
        batch.append(step)
        if len(batch) >= size and step.text:
            batches.append(tuple(batch))
            batch = []
    return [*batches, tuple(batch)] if batch else batches
