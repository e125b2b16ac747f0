"""Oddities of how texts are put into documents and chunks, with what belongs to them."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import Contract
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Response
from conformance.reference.responses import LISTS, Text
from conformance.selftest.edits import Json, choices, logprobs
from conformance.selftest.legal_variant import legal_variant


@legal_variant(Stage.TEXTS)
def first_space_is_dropped(texts: list[Text], call: Call) -> list[Text]:
    """A text that stands alone has lost the space that it began with, as its first token has."""
    return texts if call.params.echo else [_without_space(text) for text in texts]


def _without_space(text: Text) -> Text:
    steps = text.written.steps
    if not steps or not steps[0].text.startswith(" "):
        return text
    first = replace(steps[0], text=steps[0].text[1:])
    return replace(text, written=replace(text.written, text=text.written.text[1:], steps=(first, *steps[1:])))


@legal_variant(Stage.REPLY)
def chunks_speak_of_several_choices(documents: list[Json], call: Call) -> list[Json]:
    """Parts of different choices share a chunk."""
    found: list[Json] = []
    for document in documents if call.streamed else ():
        last = found[-1]["choices"] if found else []
        own = {choice["index"] for choice in document["choices"]}
        if last and own and not document.get("usage") and not own & {choice["index"] for choice in last}:
            last += document["choices"]
        else:
            found.append(document)
    return found or documents


@legal_variant(Stage.REPLY)
def scores_come_with_the_end(documents: list[Json], call: Call) -> list[Json]:
    """In a stream, all log probabilities of a choice come with its last part."""
    whole: dict[int, Json] = {}
    for choice in choices(documents) if call.streamed and call.params.logprobs is not None else ():
        lists = whole.setdefault(choice["index"], {name: [] for name in LISTS})
        for name in LISTS:
            lists[name] += (choice.get("logprobs") or {}).get(name, [])
        empty: Json | None = None if call.reference.shape.logprobs_may_be_null else {name: [] for name in LISTS}
        choice["logprobs"] = lists if choice["finish_reason"] else empty
    return documents


@legal_variant(Stage.REPLY)
def offsets_count_bytes(documents: list[Json], call: Call) -> list[Json]:
    """text_offset counts bytes."""
    place: dict[int, int] = {}
    for choice in choices(documents):
        lists = choice.get("logprobs") or {"tokens": []}
        text = call.params.prompts[choice["index"] // call.params.n].text
        at = place.get(choice["index"], 0 if call.params.echo else len(text.encode()))
        for number, token in enumerate(lists["tokens"]):
            lists["text_offset"][number] = at
            at += len(token.encode())
        place[choice["index"]] = at
    return documents


@legal_variant(Stage.REPLY)
def unlikely_tokens_are_clamped(documents: list[Json], call: Call) -> list[Json]:
    """The log probability of what cannot come is -9999."""
    for lists in logprobs(documents):
        for token, top in zip(lists["tokens"], lists["top_logprobs"], strict=True):
            others = [name for name in top or () if name != token]
            if top and others:
                top[others[-1]] = -9999.0
    return documents


@legal_variant(Stage.REPLY)
def nothing_is_wrong_and_it_says_so(documents: list[Json], call: Call) -> list[Json]:
    """Replies have members for what went wrong, all null."""
    return [{**document, "error": None, "detail": None, "code": None} for document in documents]


def _names_the_engines_reason(contract: Contract) -> bool:
    return "native_finish_reason" in str(contract.chunk)


@legal_variant(Stage.REPLY, fits=_names_the_engines_reason)
def engines_own_reason_comes_along(documents: list[Json], call: Call) -> list[Json]:
    """The engine's own word for the end stands beside the common one, null until then in a stream."""
    for choice in choices(documents):
        choice["native_finish_reason"] = choice["finish_reason"] and "eos_token"
    return documents


def _usage_is_optional(contract: Contract) -> bool:
    return "usage" not in contract.response.get("required", ())


@legal_variant(Stage.REPLY, fits=_usage_is_optional)
def plain_replies_tell_no_usage(documents: list[Json], call: Call) -> list[Json]:
    """A plain reply has no usage, where it is optional."""
    if call.streamed:
        return documents
    return [{name: one for name, one in document.items() if name != "usage"} for document in documents]


@legal_variant(Stage.FRAMES)
def events_have_ids_and_times(frames: list[bytes], call: Call) -> list[bytes]:
    """Events have an id, and say when to come again."""
    return [b"id: %d\nretry: 3000\n" % place + frame for place, frame in enumerate(frames)]


@legal_variant(Stage.RESPONSE)
def plain_replies_are_kept_alive(response: Response, call: Call) -> Response:
    """White space comes before a plain reply, to keep the connection alive."""
    if call.streamed:
        return response
    first = replace(response.portions[0], data=b"\n  \n" + response.portions[0].data) if response.portions else None
    return replace(response, portions=(first, *response.portions[1:])) if first else response
