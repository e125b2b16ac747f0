"""Raw transcripts: `NAME.http` holds a request and the response to it, byte for byte, one after the other.

`NAME.sse` holds an event stream alone, and `NAME.json` beside it the body of the request that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import h11

from conformance.model import Contract, Ending
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.recording.foreign import Fields, exchange, is_for

_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_CHUNK: Final = re.compile(rb"[0-9A-Fa-f]+[ \t]*(?:;[^\n]*)?\r?\n")
_VERSION: Final = re.compile(rb"HTTP/\d(?:\.\d)?(?= \d{3})")


class Message(NamedTuple):
    """A start line, its header fields, and what follows them."""

    first: str
    fields: Fields
    rest: bytes

    def field(self, name: str) -> str:
        return next((value for one, value in self.fields if one.lower() == name), "")


def read(folder: Path, contract: Contract) -> Iterator[Exchange | str]:
    """The exchanges of all transcripts of a folder, by name; for one that cannot be judged, the reason instead."""
    files = sorted(path for path in folder.iterdir() if path.suffix in {".http", ".sse"})
    for number, path in enumerate(files):
        try:
            yield _whole(path, number, contract) if path.suffix == ".http" else _stream(path, number, contract)
        except (OSError, ValueError) as error:
            yield f"{path.name}: {error}"


def _whole(path: Path, number: int, contract: Contract) -> Exchange:
    data = path.read_bytes()
    request = _message(data, "a request")
    method, _, target = request.first.partition(" ")
    url = target.rpartition(" ")[0] or target
    if not is_for(contract, method, url):
        raise ValueError(f"{method} {url[:80]} is another operation than {contract.method} {contract.path}")
    body, rest = _split(request)
    return exchange(contract, "http", number, method, request.fields, body, _response(rest))


def _stream(path: Path, number: int, contract: Contract) -> Exchange:
    asked = path.with_suffix(".json")
    if not asked.exists():
        raise ValueError(f"there is no {asked.name} beside it; put the body of the request there")
    headers = (("content-type", "text/event-stream"),)
    attempt = Attempt(0.0, 200, headers, (Piece(0.0, path.read_bytes()),))
    return exchange(
        contract, "sse", number, contract.method, (("content-type", "application/json"),), asked.read_bytes(), attempt
    )


def _message(data: bytes, what: str) -> Message:
    end = _HEAD_END.search(data)
    if end is None:
        raise ValueError(f"{what} has no blank line after its headers; expected raw HTTP/1.1")
    first, *lines = data[: end.start()].decode("latin-1").splitlines()
    pairs = (line.partition(":") for line in lines)
    return Message(first, tuple((name.strip(), value.strip()) for name, _, value in pairs), data[end.end() :])


def _split(request: Message) -> tuple[bytes, bytes]:
    """The request's body and what follows it: by its length, else up to where a response begins."""
    declared = request.field("content-length")
    if declared.isdigit():
        length = int(declared)
        return request.rest[:length], request.rest[length:].lstrip(b"\r\n")
    start = re.search(rb"^HTTP/\d", request.rest, re.MULTILINE)
    cut = start.start() if start else len(request.rest)
    return request.rest[:cut].rstrip(b"\r\n"), request.rest[cut:]


def _response(data: bytes) -> Attempt:
    """The response at the beginning of `data`, its chunks joined; truncated where its framing promises more."""
    version = _VERSION.match(data)
    if version is None:
        raise ValueError(f"after the request comes {data[:20]!r}; expected a status line such as HTTP/1.1 200 OK")
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
    except h11.RemoteProtocolError as broken:
        if head is None:
            raise ValueError(f"the response is not HTTP/1.1: {broken}") from None
        body = _message(data, "the response").rest
        if content or not body or _CHUNK.match(body):
            ending, error = Ending.TRUNCATED, str(broken)
        else:  # the recorder joined the chunks and kept the header field
            content = body
    assert head is not None  # noqa: S101 - a message ends after its head
    fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())
    pieces = (Piece(0.0, content),) if content else ()
    return Attempt(0.0, head.status_code, fields, pieces, ending, error, 0.0, version.group().decode())
