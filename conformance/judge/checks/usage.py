"""Usage in streams: whether, where and how often a stream reports it. `usage_counts` judges the numbers."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, plural, show
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
    """Expected on streams with `include_usage`."""
    return request.include_usage


def stream_usage_is_required(request: RequestView, context: CheckContext) -> bool:
    """Expected on streams with `include_usage`, and on all streams where the requirement says `unasked: true`."""
    return request.include_usage or (request.stream and context.get("unasked") is True)


def _does_not_ask_for_usage(request: RequestView, context: CheckContext) -> bool:
    """Expected on streams without `include_usage`."""
    return request.stream and not request.include_usage


def _has_required_usage(x: Exchange, context: CheckContext) -> bool:
    """Whether usage was required of this stream and is there, so that its place can be judged."""
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
    """A stream reports usage if the request asks for it, or if the document says that every stream does.

    Streams are billed and limited by this report; without it a client has to estimate with its own tokenizer.

    Fix: honour `stream_options.include_usage` on this route as on chat completions; send the totals before `[DONE]`.
    """
    if not x.streamed or not stream_usage_is_required(context.request(x), context) or x.error is not MISSING:
        return
    if x.reports:
        yield Satisfied(x.reports[-1].at)
    else:
        null = sum(document.usage is None for document in x.documents)
        counts = f"null in {null}, absent in {len(x.documents) - null}"
        observed = f"no usage object in {plural(len(x.documents), 'chunk')} ({counts})"
        yield Violation(f"{observed}; expected one chunk with a usage object", "stream")


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

    Clients recognise this chunk by its empty choices; a choice beside usage is counted or shown twice.

    Fix: send usage in a chunk of its own, with `"choices": []`, after the last text and before `[DONE]`.
    """
    if not x.reports or not x.streamed or not context.request(x).include_usage:
        return
    last = x.reports[-1]  # earlier reports are judged by `usage_is_reported_once`
    choices = last.value.get("choices", MISSING)
    yield expect(choices == [], f"choices is {show(choices)} in the chunk with usage", "[]", last.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(LAST, REPORT, request=ASKED)),
    bad=lambda: example(stream(REPORT, TEXT, LAST, request=ASKED)),
)
def usage_chunk_is_last(x: Exchange, context: CheckContext) -> Findings:
    """Usage is reported in the last chunk before `[DONE]`.

    A client that has the totals stops reading; later text is lost, and was not counted.

    Fix: send usage when all choices are finished.
    """
    if not _has_required_usage(x, context):
        return
    report = x.reports[-1]
    later = sum(document.number > report.number for document in x.documents)
    yield expect(later == 0, f"{later} chunks follow the one with usage", "none", report.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(LAST, REPORT, request=ASKED)),
    bad=lambda: example(stream(completion(choice(finish=None), usage=usage()), LAST, REPORT, request=ASKED)),
)
def usage_is_reported_once(x: Exchange, context: CheckContext) -> Findings:
    """A stream reports usage once.

    Clients add up the usage objects that they read; cumulative or repeated reports multiply the bill.

    Fix: send totals once at the end, and null in all other chunks.
    """
    if not x.streamed or not x.reports:
        return
    observed = f"{len(x.reports)} of {len(x.documents)} chunks have a usage object"
    yield expect(len(x.reports) == 1, observed, "one", x.reports[0].at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=asks_for_usage,
    good=lambda: example(stream(TEXT, LAST, REPORT, request=ASKED)),
    bad=lambda: example(stream(completion(choice(finish=None)), LAST, REPORT, request=ASKED)),
)
def other_chunks_carry_null_usage(x: Exchange, context: CheckContext) -> Findings:
    """With `include_usage`, each chunk but the one that reports usage has `"usage": null`.

    Typed clients read the member in every chunk; if it is missing they raise, if it is an object they add it up.

    Fix: with `include_usage`, write `"usage": null` into each chunk without totals.
    """
    if not x.reports or not x.streamed or not context.request(x).include_usage:
        return
    report, satisfied = x.reports[-1].number, 0
    for document in x.documents:
        if document.number == report or not isinstance(document.value, Mapping):
            continue
        if document.usage is None:
            satisfied += 1
        else:
            yield Violation(f"usage is {show(document.usage, 80)}; expected null", document.at)
    if satisfied:
        yield Satisfied(count=satisfied)


@check(
    "usage",
    Scope.STREAM,
    expected_when=stream_usage_is_required,
    good=lambda: example(stream(TEXT, completion(choice(), usage=usage())), unasked=True),
    bad=lambda: example(stream(completion(choice(), usage=usage()), TEXT), unasked=True),
)
def usage_is_in_last_chunk(x: Exchange, context: CheckContext) -> Findings:
    """The last chunk of a stream reports usage.

    Clients read the totals where they are documented, in the chunk before `[DONE]`.

    Fix: put `usage` into the chunk that is sent last, with or without a choice beside it.
    """
    required = stream_usage_is_required(context.request(x), context)
    if not required or not x.streamed or not x.documents or x.error is not MISSING:
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
    """A stream without `include_usage` has no chunk with usage and no choice.

    Clients that do not set the option read `choices[0]` of every chunk and raise an exception on an empty list.

    Fix: send the chunk with empty choices only if `include_usage` is true.
    """
    if not x.streamed or not x.documents or stream_usage_is_required(context.request(x), context):
        return
    without_choice = next((report for report in x.reports if not report.choices), None)
    if without_choice is None:
        yield Satisfied()
    else:
        yield Violation("a chunk has usage and no choice; expected none without include_usage", without_choice.at)


@check(
    "usage",
    Scope.STREAM,
    expected_when=_does_not_ask_for_usage,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice(), usage=usage()))),
)
def usage_without_asking(x: Exchange, context: CheckContext) -> Findings:
    """Where a stream without `include_usage` reports usage.

    The documents do not say, and servers differ: no member, null, or the totals in one place or another.

    Fix: nothing to fix; clients should not rely on it.
    """
    if not x.streamed or not x.documents or context.request(x).include_usage:
        return
    if len(x.reports) > 1:
        position = "in several chunks"
    elif x.reports:
        position = "in a chunk with a choice" if x.reports[0].choices else "in a chunk without choices"
    else:
        position = "null" if any(document.usage is None for document in x.documents) else "absent"
    yield Observation("usage in a stream without include_usage", position)
