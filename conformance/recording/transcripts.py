"""Reads raw transcripts: `NAME.http` contains a request followed by its response, byte for byte.

`NAME.sse` contains an event stream only; `NAME.json` in the same folder contains the body of its request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import h11

from conformance.model import Contract, Ending
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.recording.foreign import Fields, redacted_exchange, require_operation

_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_CHUNK: Final = re.compile(rb"[0-9A-Fa-f]+[ \t]*(?:;[^\n]*)?\r?\n")
_VERSION: Final = re.compile(rb"HTTP/\d(?:\.\d)?(?= \d{3})")


class Message(NamedTuple):
    """A start line, the header fields, and all bytes after them."""

    first: str
    fields: Fields
    rest: bytes

    def field(self, name: str) -> str:
        return next((value for field_name, value in self.fields if field_name.lower() == name), "")


def read(folder: Path, contract: Contract) -> Iterator[Exchange | str]:
    """The exchange of each transcript in a folder, by name, or the reason why it cannot be judged."""
    files = sorted(path for path in folder.iterdir() if path.suffix in {".http", ".sse"})
    for number, path in enumerate(files):
        try:
            yield (
                _http_exchange(path, number, contract)
                if path.suffix == ".http"
                else _sse_exchange(path, number, contract)
            )
        except (OSError, ValueError) as error:
            yield f"{path.name}: {error}"


def _http_exchange(path: Path, number: int, contract: Contract) -> Exchange:
    data = path.read_bytes()
    request = _message(data, "the request")
    method, _, target = request.first.partition(" ")
    url = target.rpartition(" ")[0] or target
    require_operation(contract, method, url)
    body, rest = _split_body(request)
    return redacted_exchange(contract, "http", number, method, request.fields, body, _response(rest))


def _sse_exchange(path: Path, number: int, contract: Contract) -> Exchange:
    request_path = path.with_suffix(".json")
    if not request_path.exists():
        raise ValueError(f"{request_path.name} is missing; expected the body of the request there")
    headers = (("content-type", "text/event-stream"),)
    attempt = Attempt(0.0, 200, headers, (Piece(0.0, path.read_bytes()),))
    return redacted_exchange(
        contract,
        "sse",
        number,
        contract.method,
        (("content-type", "application/json"),),
        request_path.read_bytes(),
        attempt,
    )


def _message(data: bytes, name: str) -> Message:
    end = _HEAD_END.search(data)
    if end is None:
        raise ValueError(f"{name} has no blank line after its header; expected raw HTTP/1.1")
    first, *lines = data[: end.start()].decode("latin-1").splitlines()
    pairs = (line.partition(":") for line in lines)
    return Message(first, tuple((name.strip(), value.strip()) for name, _, value in pairs), data[end.end() :])


def _split_body(request: Message) -> tuple[bytes, bytes]:
    """The request body and the bytes after it: split by Content-Length, otherwise where a response begins."""
    declared = request.field("content-length")
    if declared.isdigit():
        length = int(declared)
        return request.rest[:length], request.rest[length:].lstrip(b"\r\n")
    start = re.search(rb"^HTTP/\d", request.rest, re.MULTILINE)
    cut = start.start() if start else len(request.rest)
    return request.rest[:cut].rstrip(b"\r\n"), request.rest[cut:]


def _response(data: bytes) -> Attempt:
    """The response at the start of `data`, with chunks joined; truncated where its framing announces more bytes."""
    version = _VERSION.match(data)
    if version is None:
        raise ValueError(f"the request is followed by {data[:20]!r}; expected a status line such as HTTP/1.1 200 OK")
    reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=len(data) + 1)
    reader.send(h11.Request(method="POST", target="/", headers=[("host", "recorded")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(b"HTTP/1.1" + data[version.end() :])  # recorders write HTTP/2 in the syntax of HTTP/1.1
    head: h11.Response | None = None
    content, ending, error = b"", Ending.COMPLETE, ""
    try:
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                content += event.data
            elif event is h11.NEED_DATA:
                reader.receive_data(b"")
    except h11.RemoteProtocolError as protocol_error:
        if head is None:
            raise ValueError(f"the response is not HTTP/1.1: {protocol_error}") from None
        body = _message(data, "the response").rest
        if content or not body or _CHUNK.match(body):
            ending, error = Ending.TRUNCATED, str(protocol_error)
        else:  # the recorder joined the chunks but kept Transfer-Encoding
            content = body
    assert head is not None  # noqa: S101 - a message ends after its head
    fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())
    pieces = (Piece(0.0, content),) if content else ()
    return Attempt(0.0, head.status_code, fields, pieces, ending, error, 0.0, version.group().decode())
