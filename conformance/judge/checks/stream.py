"""Stream: the chunks of a stream belong to one completion, and each adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.fixtures import choice, completion, example, stream, usage
from conformance.judge.token_text import repeats_itself
from conformance.model import Finding, Observation, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView


def _same_in_all_chunks(x: Exchange, name: str) -> Finding | None:
    """Whether all chunks with choices or usage have the same value of a member; None with fewer than two chunks."""
    if not x.streamed:
        return None
    positions: dict[Any, str] = {}
    count = 0
    for document in x.documents:
        value = document.value.get(name) if isinstance(document.value, Mapping) else None
        if isinstance(value, (str, int, float)) and (document.choices or document.usage):
            count += 1
            positions.setdefault(value, document.at)
    if count < 2:
        return None
    if len(positions) == 1:
        return Satisfied(name)
    (first, _), (second, at) = list(positions.items())[:2]
    observed = f"{name} is {show(second)} after {show(first)} ({len(positions)} values in all)"
    return Violation(f"{observed}; expected one value", f"{at} /{name}")


TWO_IDS = (completion(choice(finish=None), id="cmpl-1"), completion(choice(), id="cmpl-2"))


@check(
    "stream",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(*TWO_IDS)),
)
def chunks_share_one_id(x: Exchange, context: CheckContext) -> Findings:
    """All chunks of a stream have the same id.

    Clients join chunks by id; with a new id in each chunk they see as many completions as tokens.

    Fix: generate the id once for each request, also for n > 1 and several prompts.
    """
    if (finding := _same_in_all_chunks(x, "id")) is not None:
        yield finding


@check(
    "stream",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None), model="m"), completion(choice(), model="m-2"))),
)
def chunks_share_one_model(x: Exchange, context: CheckContext) -> Findings:
    """All chunks of a stream have the same model.

    Clients book costs and evaluations under the model's name; if it changes within a stream they book them twice.

    Fix: determine the name when the request is accepted, and copy it into each chunk.
    """
    if (finding := _same_in_all_chunks(x, "model")) is not None:
        yield finding


@check(
    "stream",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None), created=1), completion(choice(), created=2))),
)
def chunks_share_one_created(x: Exchange, context: CheckContext) -> Findings:
    """All chunks of a stream have the same creation time.

    It is the time of the completion; clients that identify a completion by id and time see several.

    Fix: take the time once for each request.
    """
    if (finding := _same_in_all_chunks(x, "created")) is not None:
        yield finding


@check(
    "stream",
    Scope.STREAM,
    expected_when=None,
    good=lambda: example(stream(completion(choice(), usage=None), completion(usage=usage()))),
    bad=lambda: example(stream(completion(choice(finish=None)), completion(), completion(choice()))),
)
def chunk_has_choices(x: Exchange, context: CheckContext) -> Findings:
    """A chunk has a choice, or reports usage; one that opens the stream may have neither.

    Clients read `choices[0]` of each chunk of a text and raise an exception if there is none.

    Fix: send no chunk without choices between tokens; only the chunk with usage may have empty `choices`.
    """
    if not x.streamed or not x.documents:
        return
    opened = False
    empty = []
    for document in x.documents:
        opened = opened or bool(document.choices)
        if (
            isinstance(document.value, Mapping)
            and not document.choices
            and not document.value.get("error")
            and not isinstance(document.usage, Mapping)
        ):
            empty.append((document, opened))
    for document, is_later in empty:
        observed = f"choices is {show(document.value.get('choices', 'absent'), 60)} in a chunk without usage"
        if is_later:
            yield Violation(f"{observed}; expected a choice", document.at)
        else:
            yield Observation("chunks without choices that open a stream", observed, document.at)
    if not any(is_later for _, is_later in empty):
        yield Satisfied()


ENOUGH_PARTS: Final = 4
"""Parts with text that show whether they are cumulative. A choice: the pattern must occur at least three times."""
ENOUGH_TEXT: Final = 8  # characters, a choice: shorter texts recur by chance


def _has_enough_parts(request: RequestView, context: CheckContext) -> bool:
    """Expected where the limit leaves room for enough tokens."""
    return request.max_tokens is None or request.max_tokens >= ENOUGH_PARTS


def _is_cumulative(texts: list[str]) -> bool:
    """Whether each part begins with the one before it, and at least three are longer."""
    pairs = list(pairwise(texts))
    longer = sum(len(later) > len(earlier) for earlier, later in pairs)
    return longer >= 3 and all(later.startswith(earlier) for earlier, later in pairs) and not repeats_itself(texts[-1])


def _repetitions(texts: list[str]) -> int:
    """How many parts after the third begin with all the text so far, unless that text repeats itself."""
    so_far, repetitions = "", 0
    for index, text in enumerate(texts):
        if index >= 3 and len(so_far) >= ENOUGH_TEXT and text.startswith(so_far) and not repeats_itself(so_far):
            repetitions += 1
            so_far = text
        else:
            so_far += text
    return repetitions


def _cumulative(choice: Choice) -> tuple[int, str]:
    """How many parts have text, and the last part if it has all the text so far instead of the new text."""
    texts = [part.text for part in choice.parts if part.text]
    if len(texts) >= ENOUGH_PARTS and (_is_cumulative(texts) or _repetitions(texts) >= 2):
        return len(texts), texts[-1]
    return len(texts), ""


def _may_be_cumulative(choice: Choice) -> bool:
    """Whether a choice with few parts may be cumulative; one whose text came in a single part cannot."""
    texts = [part.text for part in choice.parts if part.text]
    return not texts or any(later.startswith(earlier) for earlier, later in pairwise(texts))


@check(
    "stream",
    Scope.STREAM,
    expected_when=_has_enough_parts,
    good=lambda: (
        *example(stream(*(completion(choice(text, finish=None)) for text in (" a", " a", " b", " b")))),
        *example(stream(completion(choice(" one, two,", finish=None)), completion(choice(" three, four")))),
    ),
    bad=lambda: example(
        stream(*(completion(choice(text)) for text in (" one", " one two", " one two 3", " one two 3 4")))
    ),
)
def deltas_are_not_cumulative(x: Exchange, context: CheckContext) -> Findings:
    """A chunk has only the new text, not all the text so far.

    Clients append the text of each chunk; with cumulative chunks they show every word many times.

    Fix: remember how much was sent for each choice, and send only the rest.
    """
    if not x.streamed:
        return
    for index, answer in x.choices.items():
        parts, repeated = _cumulative(answer)
        if repeated:
            observed = f"choice {index} sends {show(repeated, 80)}, which begins with the text sent before"
            yield Violation(f"{observed}; expected only the new text", answer.parts[-1].at)
        elif parts >= ENOUGH_PARTS or (answer.finish_reason and not _may_be_cumulative(answer)):
            yield Satisfied(answer.at)
