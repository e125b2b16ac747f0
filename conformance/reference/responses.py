"""Texts → the documents of a reply: choices with their log probabilities, usage, the plain body, the chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from conformance.contract.validity import allows_null, branches
from conformance.model import Contract
from conformance.model.parameter_traits import Role
from conformance.reference.generation import Step, Written
from conformance.reference.generation_request import GenerationParameters, Prompt
from conformance.reference.options import ReferenceOptions
from conformance.reference.schema_instance import fill
from conformance.reference.tokenizer import label

KNOWN = frozenset({"id", "object", "created", "model", "choices", "usage"})
OPTIONAL = frozenset({"system_fingerprint"})
LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


@dataclass(frozen=True, slots=True)
class Text:
    """What became of one choice. `echoed` are the steps of its prompt, where they are to be shown."""

    index: int
    prompt: Prompt
    echoed: tuple[Step, ...]
    written: Written
    finish: str

    @property
    def start(self) -> int:
        """Where the first step stands, counted in characters from the beginning of the prompt."""
        return 0 if self.echoed else len(self.prompt.text)


@dataclass(frozen=True)
class Shape:
    """What the contract's response asks for beyond the common members, worked out once."""

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

    def tier(self, wanted: Any) -> Any:
        """The tier that serves a request: the one it asks for, or the one that is chosen where it leaves that open."""
        if wanted in self.tiers and not (wanted == "auto" and self.automatic_tiers):
            return wanted
        return next(iter(self.automatic_tiers), self.extras.get(self.reported))


def shape(contract: Contract) -> Shape:
    """Read the response schema."""
    whole = contract.response.get("properties", {})
    reported = contract.by_role(Role.REPORTED)
    choice = _narrow(_narrow(whole.get("choices", {})).get("items", {}))
    members, usage = choice.get("properties", {}), _narrow(whole.get("usage", {}))
    required = set(contract.response.get("required", ())) | (OPTIONAL & whole.keys())
    return Shape(
        object=str(fill({"default": "text_completion", **whole.get("object", {})}, "text_completion")),
        extras={name: fill(whole.get(name, {}), name) for name in sorted(required - KNOWN)},
        choice_extras={
            name: fill(members.get(name, {}), name)
            for name in choice.get("required", ())
            if name not in {"text", "index", "logprobs", "finish_reason"}
        },
        usage_extras={
            name: _zeros(one) for name, one in usage.get("properties", {}).items() if name.endswith("_details")
        },
        logprobs_are_known="logprobs" in members or "logprobs" in contract.parameters,
        logprobs_may_be_null="logprobs" not in members or allows_null(members["logprobs"]),
        logprobs_are_required="logprobs" in choice.get("required", ()),
        tiers=tuple(_narrow(whole.get(reported, {})).get("enum", ())),
        automatic_tiers=contract.semantics.automatic_tiers,
        reported=reported,
    )


def _narrow(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(iter(branches(schema)), schema)


def _zeros(schema: Mapping[str, Any]) -> dict[str, int]:
    return dict.fromkeys(_narrow(schema).get("properties", {}), 0)


@dataclass(frozen=True)
class Frame:
    """What all documents of one reply have in common."""

    identity: str
    created: int
    model: str
    shape: Shape
    settings: ReferenceOptions
    params: GenerationParameters

    def document(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        tier = {self.shape.reported: self.shape.tier(self.params.tier)}
        return {
            "id": self.identity,
            "object": self.shape.object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            **self.shape.extras,
            **(tier if self.shape.reported in self.shape.extras else {}),
            **more,
        }

    def choice(self, text: Text, shown: str, steps: Sequence[Step], offset: int, finish: str | None) -> dict[str, Any]:
        """One choice, or the part of it that a chunk carries; `offset` is where its first step stands."""
        choice = {
            "text": shown,
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
        """The four parallel lists."""
        offsets = []
        for step in steps:
            offsets.append(offset)
            offset += len(step.text)
        names = [self._name(step) for step in steps]
        return {
            "tokens": names,
            "token_logprobs": [self._first if step.logprob is None else step.logprob for step in steps],
            "top_logprobs": [self._top(step, name) for step, name in zip(steps, names, strict=True)],
            "text_offset": offsets,
        }

    @property
    def _first(self) -> float | None:
        return self.settings.first_logprob

    def _name(self, step: Step) -> str:
        return label(step.token) if self.settings.bytes_are_named and step.text == "" else step.text

    def _top(self, step: Step, name: str) -> dict[str, float] | None:
        if step.top is None:
            return None if self._first is None else {name: self._first}
        found = {name if one == step.text else one: value for one, value in step.top}
        if self.settings.one_more_alternative and len(found) > (self.params.logprobs or 0) + 1:
            found.pop(next(one for one in reversed(found) if one != name))
        return found


def usage(
    shape: Shape,
    texts_of: Sequence[Written],
    prompts: Sequence[Prompt],
    params: GenerationParameters,
    settings: ReferenceOptions,
    *,
    bos: bool,
) -> dict[str, Any]:
    """What the reply cost: each prompt once, and every candidate that was written for it."""
    asked = sum(max(len(prompt.tokens), 1) + (bos and prompt.given_as_tokens) for prompt in prompts)
    most = params.max_tokens or 0
    spoken = sum(
        min(one.spoken + 1, max(most, one.spoken)) if one.stopped and settings.counts_the_end else one.spoken
        for one in texts_of
    )
    return {
        "prompt_tokens": asked,
        "completion_tokens": spoken,
        "total_tokens": asked + spoken,
        **shape.usage_extras,
    }


def plain(frame: Frame, texts: Sequence[Text], usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """The reply as one document."""
    choices = [
        frame.choice(text, _shown(frame, text), (*text.echoed, *text.written.steps), _start(frame, text), text.finish)
        for text in texts
    ]
    return frame.document(choices, **({} if usage is None else {"usage": usage}))


def _shown(frame: Frame, text: Text) -> str:
    return (text.prompt.text if frame.params.echo else "") + text.written.text


def _start(frame: Frame, text: Text) -> int:
    return 0 if frame.settings.offsets_from_zero else text.start


def chunks(frame: Frame, texts: Sequence[Text]) -> list[dict[str, Any]]:
    """The reply as chunks without usage, the choices side by side unless one shall follow the other."""
    parts = [list(_parts(frame, text)) for text in texts]
    last = [part.pop() for part in parts] if frame.settings.finish_together else []
    if frame.settings.one_after_another:
        found = [part for one in parts for part in one]
    else:
        found = [part for turn in zip_longest(*parts) for part in turn if part is not None]
    return [*(frame.document([part]) for part in found), *([frame.document(last)] if last else [])]


def _parts(frame: Frame, text: Text) -> Iterator[dict[str, Any]]:
    """The parts of one choice in order. A character's tokens stay together: no part holds half a character."""
    settings, place = frame.settings, _start(frame, text)
    alone = settings.finish_alone or settings.finish_together or text.written.stopped
    if settings.opening_chunk:
        yield frame.choice(text, "", (), place, None)
    batches = [text.echoed or ()] if frame.params.echo else []
    batches += _batches(text.written.steps, settings.tokens_per_chunk)
    for number, batch in enumerate(batches):
        shown = text.prompt.text if frame.params.echo and number == 0 else "".join([step.text for step in batch])
        final = number == len(batches) - 1 and not alone
        yield frame.choice(text, shown, batch, place, text.finish if final else None)
        place += len(shown)
    if alone or not batches:
        yield frame.choice(text, "", (), place, text.finish)
    if settings.finish_twice and not settings.finish_together:
        yield frame.choice(text, "", (), place, text.finish)


def _batches(steps: Sequence[Step], size: int) -> list[tuple[Step, ...]]:
    found: list[tuple[Step, ...]] = []
    batch: list[Step] = []
    for step in steps:
        batch.append(step)
        if len(batch) >= size and step.text:
            found.append(tuple(batch))
            batch = []
    return [*found, tuple(batch)] if batch else found
