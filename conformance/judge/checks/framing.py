"""Framing: what carries a completion: media types, JSON texts, events, and the `[DONE]` that ends a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.fixtures import choice, completion, example, plain, response, stream
from conformance.model import Satisfied, Violation
from conformance.model.exchange import DONE, EVENT_STREAM, Exchange
from conformance.model.json_text import MISSING, loads
from conformance.model.sse import Event

NO_SPACE: Final = re.compile(rb"(?:^|[\r\n])data:[^ \r\n][^\r\n]{0,40}")
SILENT: Final = frozenset({"event", "id", "retry"})  # fields that dispatch nothing without data


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), media_type="Text/Event-Stream; charset=utf-8")),
    bad=lambda: example(stream(completion(choice()), media_type="application/json")),
)
def stream_declares_event_stream(x: Exchange, context: CheckContext) -> Findings:
    """A streamed reply is declared as `text/event-stream`.

    Clients choose their reader by the media type: with another one a browser refuses the stream and SDKs wait for JSON.

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
    """A reply that was not to be streamed is declared as `application/json`.

    SDKs hand the body to the JSON parser only under this media type, and give the caller bare text under any other.

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
    """The body of a plain reply is one JSON object, as RFC 8259 has it, and nothing else.

    A second value, a BOM, NaN or Infinity make strict parsers refuse the whole reply, which was paid for.

    Fix: serialise once, with a writer that refuses NaN and Infinity, and append nothing to it.
    """
    if isinstance(x.json, Mapping):
        yield Satisfied("body")
    else:
        yield Violation(f"the body {_unlike_json(x)}; expected one JSON object", "body")


def _unlike_json(x: Exchange) -> str:
    if x.decoded[1]:
        return f"cannot be read: {x.decoded[1]}"
    if not x.content:
        return "is empty"
    if x.json is not MISSING:
        return f"is {show(x.json, 60)}"
    try:
        loads(x.content)
    except ValueError as error:
        return f"begins {show(x.content[:40])} and is no JSON text: {show(str(error))}"
    return "is no JSON text"


@check(
    "framing",
    Scope.SUCCESS,
    good=lambda: example(response('{"choices": [{"text": "é", "index": 0}]}'.encode())),
    bad=lambda: example(response('{"choices": [{"text": "é", "index": 0}]}'.encode("latin-1"))),
)
def body_is_utf8(x: Exchange, context: CheckContext) -> Findings:
    """The body is valid UTF-8.

    JSON between systems and event streams are UTF-8 by their standards; one stray byte loses the text around it.

    Fix: hold back the bytes of an unfinished character until the next token completes it.
    """
    try:
        x.content.decode("utf-8")
    except UnicodeDecodeError as error:
        seen = show(x.content[max(error.start - 8, 0) : error.start + 8])
        yield Violation(f"byte {error.start} is no UTF-8, in {seen}; expected UTF-8", f"byte {error.start}")
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

    A reader of event streams sees only lines that begin with a field name; bare JSON lines give it no text at all.

    Fix: write each chunk as `data: `, the JSON on one line, and two line ends.
    """
    if len(x.messages) > len(x.done):
        yield Satisfied()
    else:
        begins = f"of which the first are {show(x.content[:40])}" if x.content else "in all"
        yield Violation(f"no data event in {len(x.content)} bytes, {begins}; expected one for each chunk")


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

    Clients parse each payload as it comes; the first that is no JSON ends the stream with an exception.

    Fix: give each event one whole JSON object; send keep-alives as comments (`: …`), never as data.
    """
    if not x.streamed:
        return
    objects = {document.number for document in x.documents if isinstance(document.value, Mapping)}
    for number, event in enumerate(x.messages):
        # A tail that no blank line ended is dropped by clients before they parse it.
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
    """A stream is ended by `data: [DONE]`.

    Without it a client cannot tell a finished stream from one whose connection was lost, and many wait for more.

    Fix: write `data: [DONE]` and a blank line after the last chunk, on each path that ends a stream.
    """
    if x.done:
        yield Satisfied(f"event {x.done[0]}")
    elif x.streamed:
        last = show(x.messages[-1].data, 80) if x.messages else "nothing"
        yield Violation(f"the stream ends with {last}; expected data: [DONE]", f"event {max(len(x.messages) - 1, 0)}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice()), b"data: [DONE]\n\n")),
)
def done_is_sent_once(x: Exchange, context: CheckContext) -> Findings:
    """`[DONE]` is sent once.

    A client stops reading at the first; the second is left on a reused connection or parsed as JSON by naive readers.

    Fix: let one place end the stream; a proxy that adds `[DONE]` must drop the one from upstream.
    """
    if len(x.done) == 1:
        yield Satisfied(f"event {x.done[0]}")
    elif x.done:
        yield Violation(f"[DONE] comes {len(x.done)} times; expected once", f"event {x.done[1]}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), b"data: [DONE]\n\n", b": bye\n\nretry: 10\n\n", done=False)),
    bad=lambda: example(stream(completion(choice()), b"data: [DONE]\n\n", completion(choice()), done=False)),
)
def nothing_follows_done(x: Exchange, context: CheckContext) -> Findings:
    """No event follows `[DONE]`.

    Clients stop reading there: text, usage or an error that comes later is lost.

    Fix: send the usage chunk and everything else before `[DONE]`, then close the response.
    """
    if not x.done:
        return
    first = x.messages[x.done[0]].end
    later = [event for event in x.events[-20:] if event.start >= first and _says_something(event)]
    for event in later:
        yield Violation(f"{show(event.raw, 80)} follows [DONE]; expected the end of the stream", f"byte {event.start}")
    if not later:
        yield Satisfied(f"event {x.done[0]}")


def _says_something(event: Event) -> bool:
    """Whether clients would miss something: not of an event that the standard has them drop, nor of `[DONE]` again."""
    return (event.data or "").strip() != DONE and any(
        not line.blank and not line.comment and line.field not in SILENT for line in event.lines
    )


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), b"data: [DONE]\n", done=False)),
    bad=lambda: example(stream(completion(choice()), b'data: {"choices": []}', done=False)),
)
def last_event_is_terminated(x: Exchange, context: CheckContext) -> Findings:
    """No chunk is cut off by the end of the stream.

    The standard has clients discard an event that no blank line ended: its text or usage is lost without an error.

    Fix: end each event with an empty line, the last chunk too, and flush before closing.
    """
    if not x.events:
        return
    last = x.events[-1]
    if last.terminated or last.payload is None or len(x.messages) - 1 in x.done:
        yield Satisfied()
    else:
        yield Violation(f"the stream ends in {show(last.raw[-80:])}; expected an empty line", f"byte {last.start}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(completion(choice()), b"data: [DONE]\n", done=False)),
)
def done_is_terminated(x: Exchange, context: CheckContext) -> Findings:
    """An empty line follows `data: [DONE]`.

    Readers that keep to the standard never see a `[DONE]` that only the end of the stream closes.

    Fix: end `data: [DONE]` with two line ends, as every other event.
    """
    if not x.done:
        return
    if x.messages[x.done[0]].terminated:
        yield Satisfied(f"event {x.done[0]}")
    else:
        seen = show(x.messages[x.done[0]].raw)
        yield Violation(f"the stream ends with {seen}; expected an empty line after [DONE]", f"event {x.done[0]}")


@check(
    "framing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()))),
    bad=lambda: example(stream(b'data:{"choices": []}\n\n')),
)
def data_field_has_a_space(x: Exchange, context: CheckContext) -> Findings:
    """A space follows `data:`.

    The standard allows to leave it out, but clients that look for the six characters `data: ` then see no event.

    Fix: write `data: ` with its space.
    """
    if not x.messages:
        return
    if found := NO_SPACE.search(x.content):
        yield Violation(
            f"a line begins {show(found[0].strip())}; expected a space after data:", f"byte {found.start()}"
        )
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

    A standard event source gives a named event to no `message` listener, so that its chunk is lost.

    Fix: leave out `event:` lines. An `id:` or `retry:` line does no harm, and is not held against anybody.
    """
    named = next((event for event in x.messages if event.name != "message"), None)
    if named is not None:
        yield Violation(f"an event is called {show(named.name)}; expected no name", f"byte {named.start}")
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

    The standard joins several data lines; many clients read line by line and parse each for itself.

    Fix: write JSON without line ends inside, in a single `data` line.
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
    """A stream that began with HTTP 200 on a valid request runs to its end without an error inside.

    The status already said success: many clients show the partial text as the whole answer, or fail on the odd chunk.

    Fix: check the request before the first byte and answer 4xx; when generation fails later, see why it does.
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
        yield Violation(f"an event is {show(document.value)}; expected the completion to go on", document.at)
    if not failed:
        yield Satisfied()
