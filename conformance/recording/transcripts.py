"""Reads raw transcripts: requests, each followed by its response, byte for byte as they were on the wire.

A file may hold several of them. Interim responses (100, or those of a proxy to CONNECT) are passed over, and so is the
framing of a body that the recorder has decoded. A `.sse` file is an event stream only; `NAME.json` beside it has the
body of its request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from conformance.model import Ending
from conformance.model.exchange import EVENT_STREAM, Unrecorded
from conformance.recording.content import is_coded
from conformance.recording.hash_chain import RecordingError
from conformance.recording.recorded import Fields, Item, LeftOut, Recorded, Source

FIRST_LINE: Final = re.compile(rb"[A-Z]{3,10} [^ \r\n]+ HTTP/\d|HTTP/\d(?:\.\d)? \d{3}")
"""A request line or a status line. Recorders write those of HTTP/2 in the syntax of HTTP/1.1."""
_NEXT: Final = re.compile(rb"^(?:" + FIRST_LINE.pattern + rb")", re.MULTILINE)
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]*)?\r?\n")
_LOCAL: Final = re.compile(r"(?:localhost|127\.|0\.0\.0\.0|\[::1\])")


class Message(NamedTuple):
    """A start line, the header fields, the body, and how the body ended."""

    first: str
    fields: Fields
    body: bytes
    ending: Ending = Ending.COMPLETE
    error: str = ""

    def field(self, name: str) -> str:
        return _field(self.fields, name)


def read(source: Source) -> Iterator[Item]:
    """The exchanges of a transcript; requests and responses that have no counterpart are left out with the reason."""
    with source.open() as file:
        data = file.read()
    request: Message | None = None
    response: Message | None = None
    number = 0
    for message in _messages(data, source.name):
        if message.first.startswith("HTTP/"):
            response = message  # one after another: those before the last are interim responses
            continue
        if request is not None or response is not None:
            yield _item(request, response, number)
            number += 1
        request, response = message, None
    yield _item(request, response, number)


def read_stream(source: Source) -> Iterator[Item]:
    """The stream of a `.sse` file, with the request beside it."""
    request = source.path.with_suffix(".json")
    if not request.exists():
        yield LeftOut("stream", f"{request.name} is missing; expected the body of the request there")
        return
    with source.open() as file:
        body = file.read()
    yield Recorded(
        number=0,
        unit="stream",
        method="POST",
        url="",
        sent=(("content-type", "application/json"),),
        request=request.read_bytes(),
        status=200,
        headers=(("content-type", EVENT_STREAM),),
        body=body,
        unrecorded=frozenset({Unrecorded.HEADERS}),
    )


def _messages(data: bytes, name: str) -> Iterator[Message]:
    at = len(data) - len(data.lstrip())
    while at < len(data):
        head_end = _HEAD_END.search(data, at)
        if not FIRST_LINE.match(data, at):
            raise RecordingError(f"{name}: byte {at}: {data[at : at + 20]!r}; expected a request line or a status line")
        if head_end is None:
            raise RecordingError(f"{name}: byte {at}: a message has no blank line after its header")
        first, *lines = data[at : head_end.start()].decode("latin-1").splitlines()
        pairs = (line.partition(":") for line in lines)
        fields = tuple((name.strip(), value.strip()) for name, _, value in pairs)
        message, at = _with_body(first, fields, data, head_end.end())
        yield message
        at += len(data[at:]) - len(data[at:].lstrip(b"\r\n"))


def _with_body(first: str, fields: Fields, data: bytes, start: int) -> tuple[Message, int]:
    """The message whose body begins at `start`, and where it ends."""
    length = _field(fields, "content-length")
    coding = _field(fields, "content-encoding")
    if "chunked" in _field(fields, "transfer-encoding").lower() and _CHUNK.match(data, start):
        return _dechunked(first, fields, data, start)
    begins = _NEXT.search(data, start)
    rest = begins.start() if begins else len(data)
    if length.isdigit() and not (coding and not is_coded(data[start:rest], coding)):
        end = start + int(length)
        if end > len(data):
            error = f"{len(data) - start:,} of the {int(length):,} bytes that Content-Length declares were received"
            return Message(first, fields, data[start:], Ending.TRUNCATED, error), len(data)
        return Message(first, fields, data[start:end]), end
    body = data[start:rest]
    is_last = begins is None and first.startswith("HTTP/")
    return Message(first, fields, body if is_last else body.rstrip(b"\r\n")), rest


def _dechunked(first: str, fields: Fields, data: bytes, start: int) -> tuple[Message, int]:
    body, at = bytearray(), start
    while header := _CHUNK.match(data, at):
        size, at = int(header[1], 16), header.end()
        if size == 0:
            return Message(first, fields, bytes(body)), at
        body += data[at : at + size]
        if at + size > len(data):
            break
        at += size
        at += len(data[at : at + 2]) - len(data[at : at + 2].lstrip(b"\r\n"))
    error = f"the chunked body breaks off after {len(body)} bytes"
    return Message(first, fields, bytes(body), Ending.TRUNCATED, error), len(data)


def _item(request: Message | None, response: Message | None, number: int) -> Item:
    position = f"exchange {number}"
    if request is None:
        return LeftOut(position, "the request was not recorded; expected it before the response")
    method, _, target = request.first.partition(" ")
    if method == "CONNECT":
        return LeftOut(position, "CONNECT opens a tunnel through a proxy; it is another operation")
    if response is None:
        return LeftOut(position, "no response follows the request; expected a status line such as HTTP/1.1 200 OK")
    version, _, status = response.first.partition(" ")
    return Recorded(
        number=number,
        unit="exchange",
        method=method,
        url=_url(target.rpartition(" ")[0] or target, request.field("host")),
        sent=request.fields,
        request=request.body,
        status=int(status[:3]),
        headers=response.fields or None,
        body=response.body,
        ending=response.ending,
        error=response.error,
        http_version=version,
    )


def _url(target: str, host: str) -> str:
    """The address, whose scheme no request line says: https, except on this machine."""
    if not host or "://" in target:
        return target
    return f"{'http' if _LOCAL.match(host) else 'https'}://{host}{target}"


def _field(fields: Fields, name: str) -> str:
    return next((value for field_name, value in fields if field_name.lower() == name), "")
