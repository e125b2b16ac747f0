"""Framing: media types, JSON texts, events, and the `[DONE]` that ends a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, excerpt, show
from conformance.judge.fixtures import choice, completion, example, plain, response, stream
from conformance.model import Satisfied, Violation
from conformance.model.exchange import DONE, EVENT_STREAM, Exchange
from conformance.model.json_text import MISSING, loads
from conformance.model.sse import Event

NO_SPACE: Final = re.compile(rb"(?:^|[\r\n])data:[^ \r\n][^\r\n]{0,40}")
WITHOUT_EFFECT: Final = frozenset({"event", "id", "retry"})  # fields that dispatch no event without data


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), media_type="Text/Event-Stream; charset=utf-8")),
    bad=lambda: example(stream(completion(choice()), media_type="application/json")),
)
def stream_declares_event_stream(x: Exchange, context: CheckContext) -> Findings:
    """A streamed reply is declared as `text/event-stream`.

    Clients choose their parser by the media type: with another one browsers refuse the stream and SDKs wait for JSON.

    Fix: send `Content-Type: text/event-stream` on each 200 to a request with `"stream": true`.
    """
    if x.media_type == EVENT_STREAM:
        yield Satisfied("content-type")
    else:
        yield Violation(f"content-type is {show(x.header('content-type'))}; expected {EVENT_STREAM}", "content-type")


@check(
    "framing",
    Scope.PLAIN,
    good=lambda: example(plain(completion(choice()), media_type="application/json; charset=utf-8")),
    bad=lambda: example(plain(completion(choice()), media_type="text/event-stream")),
)
def plain_declares_json(x: Exchange, context: CheckContext) -> Findings:
    """A reply to a request without streaming is declared as `application/json`.

    SDKs parse the body as JSON only with this media type; with any other they return the bare text to the caller.

    Fix: send `Content-Type: application/json`, also when the request has no `stream` member at all.
    """
    if x.media_type == "application/json":
        yield Satisfied("content-type")
    else:
        yield Violation(f"content-type is {show(x.header('content-type'))}; expected application/json", "content-type")


@check(
    "framing",
    Scope.PLAIN,
    good=lambda: example(plain(completion(choice()))),
    bad=lambda: (
        *example(response(b'{"id": "cmpl-1", "choices": []}\ndata: [DONE]\n\n')),
        *example(response(b'{"choices": [], "logprob": NaN}')),
    ),
)
def plain_is_one_json_text(x: Exchange, context: CheckContext) -> Findings:
    """The body of a plain reply is one JSON object as RFC 8259 defines it, and nothing else.

    A second value, a BOM, NaN or Infinity make strict parsers refuse the whole reply, which was paid for.

    Fix: serialise once, with a writer that refuses NaN and Infinity, and append nothing to it.
    """
    if isinstance(x.json, Mapping):
        yield Satisfied("body")
    else:
        yield Violation(f"the body {_why_not_an_object(x)}; expected one JSON object", "body")


def _why_not_an_object(x: Exchange) -> str:
    if x.decoded[1]:
        return f"cannot be read: {x.decoded[1]}"
    if not x.content:
        return "is empty"
    if x.json is not MISSING:
        return f"is {show(x.json, 60)}"
    try:
        loads(x.content)
    except ValueError as error:
        return f"begins with {show(x.content[:40])} and is no JSON text ({error})"
    return "is no JSON text"


@check(
    "framing",
    Scope.SUCCESS,
    good=lambda: example(response('{"choices": [{"text": "é", "index": 0}]}'.encode())),
    bad=lambda: example(response('{"choices": [{"text": "é", "index": 0}]}'.encode("latin-1"))),
)
def body_is_utf8(x: Exchange, context: CheckContext) -> Findings:
    """The body is valid UTF-8.

    The standards of JSON and of event streams require UTF-8; one wrong byte loses the text around it.

    Fix: hold back the bytes of an incomplete character until the next token completes it.
    """
    try:
        x.content.decode("utf-8")
    except UnicodeDecodeError as error:
        observed = show(x.content[max(error.start - 8, 0) : error.start + 8])
        yield Violation(f"byte {error.start} is not UTF-8, in {observed}; expected UTF-8", f"byte {error.start}")
    else:
        if x.content:
            yield Satisfied("body")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(b'{"choices": []}\n', b'{"choices": []}\n', done=False)),
)
def stream_has_events(x: Exchange, context: CheckContext) -> Findings:
    """A stream has at least one `data` event besides `[DONE]`.

    Event stream parsers read only lines that begin with a field name; from bare JSON lines they get no text at all.

    Fix: write each chunk as `data: `, the JSON on one line, and two line ends.
    """
    if len(x.messages) > len(x.done):
        yield Satisfied()
    else:
        beginning = f", beginning with {show(x.content[:40])}" if x.content else ""
        yield Violation(f"no data event in {len(x.content)} bytes{beginning}; expected one for each chunk")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(b": ping\n\n", completion(choice()))),
    bad=lambda: (
        *example(stream(b"data: : PROCESSING\n\n", completion(choice()))),
        *example(stream(b'data: data: {"choices": []}\n\n')),
    ),
)
def stream_payloads_are_json(x: Exchange, context: CheckContext) -> Findings:
    """The payload of each event is one JSON object, or `[DONE]`.

    Clients parse each payload as it arrives; the first that is no JSON ends the stream with an exception.

    Fix: send one complete JSON object in each event; send keep-alives as comments (`: …`), never as data.
    """
    if not x.streamed:
        return
    objects = {document.number for document in x.documents if isinstance(document.value, Mapping)}
    for number, event in enumerate(x.messages):
        # Clients discard an event that no blank line ends, before they parse it.
        if number not in objects and number not in x.done and event.terminated:
            yield Violation(f"data is {show(event.data)}; expected one JSON object or [DONE]", f"event {number}")
    if objects:
        yield Satisfied(count=len(objects))


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice()), done=False)),
)
def done_is_sent(x: Exchange, context: CheckContext) -> Findings:
    """A stream ends with `data: [DONE]`.

    Without it a client cannot tell a complete stream from a lost connection, and many wait for more.

    Fix: write `data: [DONE]` and a blank line after the last chunk, on each path that ends a stream.
    """
    if x.done:
        yield Satisfied(f"event {x.done[0]}")
    elif x.streamed:
        last = f"with {excerpt(x.messages[-1].data or '', 80)}" if x.messages else "without an event"
        yield Violation(f"the stream ends {last}; expected data: [DONE]", f"event {max(len(x.messages) - 1, 0)}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice()), b"data: [DONE]\n\n")),
)
def done_is_sent_once(x: Exchange, context: CheckContext) -> Findings:
    """`[DONE]` is sent once.

    A client stops reading at the first; the second stays on a reused connection, or a naive client parses it as JSON.

    Fix: end the stream in one place; a proxy that adds `[DONE]` must remove that of its upstream.
    """
    if len(x.done) == 1:
        yield Satisfied(f"event {x.done[0]}")
    elif x.done:
        yield Violation(f"[DONE] is sent {len(x.done)} times; expected once", f"event {x.done[1]}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), b"data: [DONE]\n\n", b": bye\n\nretry: 10\n\n", done=False)),
    bad=lambda: example(stream(completion(choice()), b"data: [DONE]\n\n", completion(choice()), done=False)),
)
def nothing_follows_done(x: Exchange, context: CheckContext) -> Findings:
    """No event follows `[DONE]`.

    Clients stop reading there: text, usage or an error that is sent later is lost.

    Fix: send the usage chunk and everything else before `[DONE]`, then close the response.
    """
    if not x.done:
        return
    first = x.messages[x.done[0]].end
    later = [event for event in x.events[-20:] if event.start >= first and _has_content(event)]
    for event in later:
        yield Violation(f"{show(event.raw, 80)} follows [DONE]; expected the end of the stream", f"byte {event.start}")
    if not later:
        yield Satisfied(f"event {x.done[0]}")


def _has_content(event: Event) -> bool:
    """Whether clients would lose content: not with what the standard makes them ignore, or a second `[DONE]`."""
    return (event.data or "").strip() != DONE and any(
        not line.blank and not line.comment and line.field not in WITHOUT_EFFECT for line in event.lines
    )


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), b"data: [DONE]\n", done=False)),
    bad=lambda: example(stream(completion(choice()), b'data: {"choices": []}', done=False)),
)
def last_event_is_terminated(x: Exchange, context: CheckContext) -> Findings:
    """No chunk is cut off by the end of the stream.

    The standard makes clients discard an event that no blank line ends: its text or usage is lost without an error.

    Fix: end each event, the last chunk included, with an empty line, and flush before closing.
    """
    if not x.events:
        return
    last = x.events[-1]
    if last.terminated or last.payload is None or len(x.messages) - 1 in x.done:
        yield Satisfied()
    else:
        yield Violation(f"the stream ends with {show(last.raw[-80:])}; expected an empty line", f"byte {last.start}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice()), b"data: [DONE]\n", done=False)),
)
def done_is_terminated(x: Exchange, context: CheckContext) -> Findings:
    """An empty line follows `data: [DONE]`.

    Parsers that follow the standard ignore a `[DONE]` that no empty line ends.

    Fix: end `data: [DONE]` with two line ends, as every other event.
    """
    if not x.done:
        return
    if x.messages[x.done[0]].terminated:
        yield Satisfied(f"event {x.done[0]}")
    else:
        observed = show(x.messages[x.done[0]].raw)
        yield Violation(f"the stream ends with {observed}; expected an empty line after [DONE]", f"event {x.done[0]}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(b'data:{"choices": []}\n\n')),
)
def data_field_has_a_space(x: Exchange, context: CheckContext) -> Findings:
    """A space follows `data:`.

    The standard makes the space optional, but clients that look for the six characters `data: ` find no event without.

    Fix: write `data: ` with its space.
    """
    if not x.messages:
        return
    if match := NO_SPACE.search(x.content):
        observed = f"a line begins with {show(match[0].strip())}"
        yield Violation(f"{observed}; expected a space after data:", f"byte {match.start()}")
    else:
        yield Satisfied()


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(b": ping\n\n", completion(choice()))),
    bad=lambda: example(stream(b'event: completion\ndata: {"choices": []}\n\n')),
)
def events_are_data_only(x: Exchange, context: CheckContext) -> Findings:
    """Events have no name of their own.

    A standard event source does not dispatch a named event to `message` listeners, so its chunk is lost.

    Fix: leave out `event:` lines. `id:` and `retry:` lines are harmless and not judged.
    """
    with_name = next((event for event in x.messages if event.name != "message"), None)
    if with_name is not None:
        yield Violation(f"an event has the name {show(with_name.name)}; expected none", f"byte {with_name.start}")
    elif x.messages:
        yield Satisfied()


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(b'data: {"id": "cmpl-1",\ndata: "choices": []}\n\n')),
)
def data_is_one_line(x: Exchange, context: CheckContext) -> Findings:
    """Each event has its JSON on one `data` line.

    The standard joins several data lines; many clients read line by line and parse each line separately.

    Fix: write JSON without line ends, in a single `data` line.
    """
    split = [
        number
        for number, event in enumerate(x.messages)
        if len(event.lines) > 2 and sum(line.field == "data" for line in event.lines) > 1
    ]
    for number in split:
        yield Violation(f"{show(x.messages[number].raw, 80)} has several data lines; expected one", f"event {number}")
    if len(x.messages) > len(split):
        yield Satisfied(count=len(x.messages) - len(split))


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None)), {"error": {"message": "out of memory", "code": 500}})),
)
def stream_carries_no_error(x: Exchange, context: CheckContext) -> Findings:
    """A stream that began with HTTP 200 on a valid request contains no error.

    The status was a success: many clients show the partial text as the complete answer, or fail on the error chunk.

    Fix: check the request before the first byte and answer 4xx; where generation fails later, find out why.
    """
    if not x.streamed or not x.messages:
        return
    failed = [
        document
        for document in x.documents
        if isinstance(document.value, Mapping)
        and (document.value.get("error") or (not document.choices and x.messages[document.number].name == "error"))
    ]
    for document in failed:
        yield Violation(f"an event is {show(document.value)}; expected the completion to continue", document.at)
    if not failed:
        yield Satisfied()
