"""How texts are distributed over documents, chunks and events, and what comes with them."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import Contract
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Response
from conformance.reference.responses import LISTS, Text
from conformance.selftest.edits import Json, choices, logprobs, prompt_of, without_member
from conformance.selftest.legal_variant import legal_variant


@legal_variant(Stage.TEXTS)
def first_space_is_dropped(texts: list[Text], call: Call) -> list[Text]:
    """A text that is not echoed loses its leading space, and so does its first token."""
    return texts if call.params.echo else [_without_space(text) for text in texts]


def _without_space(text: Text) -> Text:
    steps = text.generation.steps
    if not steps or not steps[0].text.startswith(" "):
        return text
    first = replace(steps[0], text=steps[0].text[1:])
    return replace(text, generation=replace(text.generation, text=text.generation.text[1:], steps=(first, *steps[1:])))


@legal_variant(Stage.REPLY)
def chunks_speak_of_several_choices(documents: list[Json], call: Call) -> list[Json]:
    """A chunk holds parts of several choices."""
    merged: list[Json] = []
    for document in documents if call.streamed else ():
        last = merged[-1]["choices"] if merged else []
        indexes = {choice["index"] for choice in document["choices"]}
        if last and indexes and not document.get("usage") and not indexes & {choice["index"] for choice in last}:
            last += document["choices"]
        else:
            merged.append(document)
    return merged or documents


@legal_variant(Stage.REPLY)
def scores_come_with_the_end(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, all log probabilities of a choice come in its last chunk."""
    collected: dict[int, Json] = {}
    for choice in choices(documents) if call.streamed and call.params.logprobs is not None else ():
        lists = collected.setdefault(choice["index"], {name: [] for name in LISTS})
        for name in LISTS:
            lists[name] += (choice.get("logprobs") or {}).get(name, [])
        empty: Json | None = None if call.reference.shape.logprobs_may_be_null else {name: [] for name in LISTS}
        choice["logprobs"] = lists if choice["finish_reason"] else empty
    return documents


@legal_variant(Stage.REPLY)
def offsets_count_bytes(documents: list[Json], call: Call) -> list[Json]:
    """text_offset counts bytes, not characters."""
    ends: dict[int, int] = {}
    for choice in choices(documents):
        lists = choice.get("logprobs") or {"tokens": []}
        text = prompt_of(call, choice).text
        at = ends.get(choice["index"], 0 if call.params.echo else len(text.encode()))
        for number, token in enumerate(lists["tokens"]):
            lists["text_offset"][number] = at
            at += len(token.encode())
        ends[choice["index"]] = at
    return documents


@legal_variant(Stage.REPLY)
def unlikely_tokens_are_clamped(documents: list[Json], call: Call) -> list[Json]:
    """The log probability of an impossible alternative is -9999."""
    for lists in logprobs(documents):
        for token, top in zip(lists["tokens"], lists["top_logprobs"], strict=True):
            others = [name for name in top or () if name != token]
            if top and others:
                top[others[-1]] = -9999.0
    return documents


@legal_variant(Stage.REPLY)
def nothing_is_wrong_and_it_says_so(documents: list[Json], call: Call) -> list[Json]:
    """Successful replies have members for errors, all null."""
    return [{**document, "error": None, "detail": None, "code": None} for document in documents]


def _has_native_reasons(contract: Contract) -> bool:
    return "native_finish_reason" in str(contract.chunk)


@legal_variant(Stage.REPLY, fits=_has_native_reasons)
def engines_own_reason_comes_along(documents: list[Json], call: Call) -> list[Json]:
    """Choices also have the engine's own finish reason, null until the end of a stream."""
    for choice in choices(documents):
        choice["native_finish_reason"] = choice["finish_reason"] and "eos_token"
    return documents


def _usage_is_optional(contract: Contract) -> bool:
    return "usage" not in contract.response.get("required", ())


@legal_variant(Stage.REPLY, fits=_usage_is_optional)
def plain_replies_tell_no_usage(documents: list[Json], call: Call) -> list[Json]:
    """Plain replies have no usage, where it is optional."""
    return documents if call.streamed else without_member(documents, "usage")


@legal_variant(Stage.FRAMES)
def events_have_ids_and_times(frames: list[bytes], call: Call) -> list[bytes]:
    """Events have the fields `id` and `retry`."""
    return [b"id: %d\nretry: 3000\n" % number + frame for number, frame in enumerate(frames)]


@legal_variant(Stage.RESPONSE)
def plain_replies_are_kept_alive(response: Response, call: Call) -> Response:
    """A plain reply begins with white space, which keeps the connection open."""
    if call.streamed:
        return response
    first = replace(response.portions[0], data=b"\n  \n" + response.portions[0].data) if response.portions else None
    return replace(response, portions=(first, *response.portions[1:])) if first else response
