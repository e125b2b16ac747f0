"""Stream: what makes the chunks of one stream one completion."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.fixtures import choice, completion, example, stream, usage
from conformance.judge.token_text import repeats_itself
from conformance.model import Finding, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView


def _shared(x: Exchange, name: str) -> Finding | None:
    """Whether all chunks that say something of a choice, or of usage, agree on a member."""
    if not x.streamed:
        return None
    seen: dict[Any, str] = {}
    count = 0
    for document in x.documents:
        value = document.value.get(name) if isinstance(document.value, Mapping) else None
        if isinstance(value, (str, int, float)) and (document.choices or document.usage):
            count += 1
            seen.setdefault(value, document.at)
    if count < 2:
        return None
    if len(seen) == 1:
        return Satisfied(name)
    (first, _), (second, at) = list(seen.items())[:2]
    return Violation(
        f"{name} is {show(second)} after {show(first)} ({len(seen)} in all); expected one", f"{at} /{name}"
    )


TWO_IDS = (completion(choice(finish=None), id="cmpl-1"), completion(choice(), id="cmpl-2"))


@check(
    "stream",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(*TWO_IDS)),
)
def chunks_share_one_id(x: Exchange, context: CheckContext) -> Findings:
    """All chunks of a stream carry the same id.

    Clients join chunks by id; with a fresh id in each they see as many completions as tokens.

    Fix: draw the id once for each request, also where n > 1 or several prompts run side by side.
    """
    if (found := _shared(x, "id")) is not None:
        yield found


@check(
    "stream",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None), model="m"), completion(choice(), model="m-2"))),
)
def chunks_share_one_model(x: Exchange, context: CheckContext) -> Findings:
    """All chunks of a stream name the same model.

    Costs and evaluations are booked by the model's name; one that changes on the way books them twice.

    Fix: settle the name when the request is accepted and copy it into each chunk.
    """
    if (found := _shared(x, "model")) is not None:
        yield found


@check(
    "stream",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None), created=1), completion(choice(), created=2))),
)
def chunks_share_one_created(x: Exchange, context: CheckContext) -> Findings:
    """All chunks of a stream carry the same creation time.

    The time is that of the completion; clients that key a completion by id and time see several.

    Fix: take the time once for each request.
    """
    if (found := _shared(x, "created")) is not None:
        yield found


@check(
    "stream",
    Scope.STREAM,
    expected_when=None,
    good=lambda: example(stream(completion(choice(), usage=None), completion(usage=usage()))),
    bad=lambda: example(stream(completion(), completion(choice()))),
)
def chunk_has_choices(x: Exchange, context: CheckContext) -> Findings:
    """A chunk speaks of a choice, or reports usage.

    Clients index `choices[0]` in each chunk and raise an exception on one that has none.

    Fix: send no chunk before the first token; the usage chunk is the only one with an empty `choices`.
    """
    if not x.streamed or not x.documents:
        return
    empty = [
        document
        for document in x.documents
        if isinstance(document.value, Mapping)
        and not document.choices
        and not document.value.get("error")
        and not isinstance(document.usage, Mapping)
    ]
    for document in empty:
        choices = show(document.value.get("choices", "absent"), 60)
        yield Violation(f"choices is {choices} in a chunk without usage; expected a choice", document.at)
    if not empty:
        yield Satisfied()


def _enough(request: RequestView, context: CheckContext) -> bool:
    return request.max_tokens is None or request.max_tokens >= 4


def _grows(texts: list[str]) -> bool:
    """Whether each part begins with the one before it, and at least three are longer."""
    pairs = list(pairwise(texts))
    longer = sum(len(later) > len(earlier) for earlier, later in pairs)
    return longer >= 3 and all(later.startswith(earlier) for earlier, later in pairs) and not repeats_itself(texts[-1])


def _repeats(texts: list[str]) -> int:
    """How many parts after the third begin with all the text so far, which does not repeat itself."""
    whole, found = "", 0
    for place, text in enumerate(texts):
        if place >= 3 and len(whole) >= 8 and text.startswith(whole) and not repeats_itself(whole):
            found += 1
            whole = text
        else:
            whole += text
    return found


def _cumulative(choice: Choice) -> tuple[int, str]:
    """How many parts carry text, and the part that carries the text so far instead of what is new, if any."""
    texts = [part.text for part in choice.parts if part.text]
    if len(texts) >= 4 and (_grows(texts) or _repeats(texts) >= 2):
        return len(texts), texts[-1]
    return len(texts), ""


def _may_grow(choice: Choice) -> bool:
    """Whether the few parts of a choice leave it open that they grow; none can in a text that came in one."""
    texts = [part.text for part in choice.parts if part.text]
    return not texts or any(later.startswith(earlier) for earlier, later in pairwise(texts))


@check(
    "stream",
    Scope.STREAM,
    expected_when=_enough,
    good=lambda: (
        *example(stream(*(completion(choice(text, finish=None)) for text in (" a", " a", " b", " b")))),
        *example(stream(completion(choice(" one, two,", finish=None)), completion(choice(" three, four")))),
    ),
    bad=lambda: example(
        stream(*(completion(choice(text)) for text in (" one", " one two", " one two 3", " one two 3 4")))
    ),
)
def deltas_are_not_cumulative(x: Exchange, context: CheckContext) -> Findings:
    """A chunk carries the text that is new, not all the text so far.

    Clients append each chunk's text; with cumulative chunks they show every word many times over.

    Fix: remember how much was sent for each choice and send the rest only.
    """
    if not x.streamed:
        return
    for number, one in x.choices.items():
        parts, repeated = _cumulative(one)
        if repeated:
            seen = f"choice {number} sends {show(repeated, 80)}, which begins with the text sent before"
            yield Violation(f"{seen}; expected only what is new", one.parts[-1].at)
        elif parts >= 4 or (one.finish_reason and not _may_grow(one)):
            yield Satisfied(one.at)
