"""Usage in streams: whether, where and how often a stream says what it cost."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.fixtures import choice, completion, example, stream, usage
from conformance.model import Observation, Satisfied, Violation
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING
from conformance.model.request_view import RequestView

ASKED = {"stream_options": {"include_usage": True}}
TEXT = completion(choice(" 4", finish=None), usage=None)
LAST = completion(choice(), usage=None)
REPORT = completion(usage=usage())


def asks_for_usage(request: RequestView, context: CheckContext) -> bool:
    """Due on streams that ask for usage."""
    return request.include_usage


def stream_usage_is_required(request: RequestView, context: CheckContext) -> bool:
    """Due on streams that ask for usage, and on all where the requirement says `unasked: true`."""
    return request.include_usage or (request.stream and context.get("unasked") is True)


def _does_not_ask_for_usage(request: RequestView, context: CheckContext) -> bool:
    return request.stream and not request.include_usage


def _has_required_usage(x: Exchange, context: CheckContext) -> bool:
    """Whether this stream owed usage and has it: where it must stand is judged then."""
    return x.streamed and bool(x.reports) and stream_usage_is_required(context.request(x), context)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(TEXT, LAST, REPORT, request=ASKED)),
    bad=lambda: (
        *example(stream(TEXT, LAST, request=ASKED)),
        *example(stream(completion(choice())), placement="last-chunk", unasked=True),
    ),
)
def usage_chunk_is_sent(x: Exchange, context: CheckContext) -> Findings:
    """A stream reports its usage where it was asked to, or where the document has every stream do so.

    Streams are billed and limited by this report; without it a client has to guess with a tokenizer of its own.

    Fix: honour `stream_options.include_usage` on this route as on chat, and send the totals before `[DONE]`.
    """
    if not x.streamed or not stream_usage_is_required(context.request(x), context) or x.error is not MISSING:
        return
    if x.reports:
        yield Satisfied(x.reports[-1].at)
    else:
        null = sum(document.usage is None for document in x.documents)
        seen = f"usage is null in {null} and absent in {len(x.documents) - null} of {len(x.documents)} chunks"
        yield Violation(f"{seen}; expected one chunk with a usage object", "stream")


@check(
    "usage",
    Scope.STREAM,
    expected_when=asks_for_usage,
    good=lambda: example(stream(completion(choice()), REPORT, request=ASKED)),
    bad=lambda: (
        *example(stream(completion(choice(), usage=usage()), request=ASKED)),
        *example(stream(LAST, {"id": "cmpl-1", "usage": usage()}, request=ASKED)),
    ),
)
def usage_chunk_has_no_choices(x: Exchange, context: CheckContext) -> Findings:
    """The chunk that reports usage has an empty choices list.

    Clients tell the accounting chunk from text by its empty choices; a choice beside usage is counted or shown twice.

    Fix: send usage in a chunk of its own, with `"choices": []`, after the last text and before `[DONE]`.
    """
    if not x.reports or not x.streamed or not context.request(x).include_usage:
        return
    last = x.reports[-1]  # running usage on other chunks is a promise of its own
    choices = last.value.get("choices", MISSING)
    yield expect(choices == [], f"choices is {show(choices)} beside usage", "[]", last.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(LAST, REPORT, request=ASKED)),
    bad=lambda: example(stream(REPORT, TEXT, LAST, request=ASKED)),
)
def usage_chunk_is_last(x: Exchange, context: CheckContext) -> Findings:
    """Usage is reported in the last chunk before `[DONE]`.

    A client that has its totals stops reading; text that comes later is lost, and was not counted.

    Fix: send usage when all choices are finished.
    """
    if not _has_required_usage(x, context):
        return
    last, end = x.reports[-1], x.documents[-1]
    if last.number == end.number:
        yield Satisfied(last.at)
    else:
        later = sum(document.number > last.number for document in x.documents)
        yield Violation(f"{later} chunks follow the one with usage; expected it to be the last", last.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(LAST, REPORT, request=ASKED)),
    bad=lambda: example(stream(completion(choice(finish=None), usage=usage()), LAST, REPORT, request=ASKED)),
)
def usage_is_reported_once(x: Exchange, context: CheckContext) -> Findings:
    """A stream reports usage once.

    Clients add up the usage that they see; running or repeated reports multiply the bill.

    Fix: send totals once at the end, and null in all other chunks.
    """
    if not x.streamed or not x.reports:
        return
    if len(x.reports) == 1:
        yield Satisfied(x.reports[0].at)
    else:
        seen = f"{len(x.reports)} of {len(x.documents)} chunks carry a usage object"
        yield Violation(f"{seen}; expected one", x.reports[0].at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=asks_for_usage,
    good=lambda: example(stream(TEXT, LAST, REPORT, request=ASKED)),
    bad=lambda: example(stream(completion(choice(finish=None)), LAST, REPORT, request=ASKED)),
)
def other_chunks_carry_null_usage(x: Exchange, context: CheckContext) -> Findings:
    """With usage asked for, each chunk but the one that reports it has `"usage": null`.

    Typed clients read the member in every chunk; where it is missing they raise, where it is an object they add it up.

    Fix: with `include_usage`, write `"usage": null` into each chunk that has no totals.
    """
    if not x.reports or not x.streamed or not context.request(x).include_usage:
        return
    reported, held = x.reports[-1].number, 0
    for document in x.documents:
        if document.number == reported or not isinstance(document.value, Mapping):
            continue
        if document.usage is None:
            held += 1
        else:
            yield Violation(f"usage is {show(document.usage, 80)}; expected null", document.at)
    if held:
        yield Satisfied(count=held)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(TEXT, completion(choice(), usage=usage())), unasked=True),
    bad=lambda: example(stream(completion(choice(), usage=usage()), TEXT), unasked=True),
)
def usage_is_in_last_chunk(x: Exchange, context: CheckContext) -> Findings:
    """The last chunk of a stream carries its usage.

    Clients look for the totals where they are documented, in the chunk before `[DONE]`, and find nothing elsewhere.

    Fix: put `usage` into the chunk that is sent last, be it the finishing one or one of its own.
    """
    if (
        not x.streamed
        or not x.documents
        or not stream_usage_is_required(context.request(x), context)
        or x.error is not MISSING
    ):
        return
    last = x.documents[-1]
    yield expect(isinstance(last.usage, Mapping), f"usage is {show(last.usage, 80)}", "the totals", last.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=None,
    good=lambda: example(stream(completion(choice(), usage=usage()))),
    bad=lambda: example(stream(completion(choice()), REPORT)),
)
def unasked_usage_takes_no_chunk(x: Exchange, context: CheckContext) -> Findings:
    """A stream that did not ask for usage has no chunk of usage alone.

    Clients that never set the option index `choices[0]` in every chunk and raise an exception on the empty list.

    Fix: send the chunk with empty choices only where `include_usage` is true.
    """
    if not x.streamed or not x.documents or stream_usage_is_required(context.request(x), context):
        return
    alone = next((one for one in x.reports if not one.choices), None)
    if alone is None:
        yield Satisfied()
    else:
        yield Violation("a chunk has usage and no choice, which was not asked for; expected none", alone.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=_does_not_ask_for_usage,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice(), usage=usage()))),
)
def usage_without_asking(x: Exchange, context: CheckContext) -> Findings:
    """What a stream says of usage where nobody asked.

    Documents are silent on it and servers differ: nothing, null, or the totals in one place or another.

    Fix: nothing to mend; clients should not rely on it.
    """
    if not x.streamed or not x.documents or context.request(x).include_usage:
        return
    if len(x.reports) > 1:
        told = "running, in several chunks"
    elif x.reports:
        told = "in the chunk of a choice" if x.reports[0].choices else "in a chunk of its own"
    else:
        told = "null" if any(document.usage is None for document in x.documents) else "absent"
    yield Observation("usage in a stream that did not ask for it", told)
