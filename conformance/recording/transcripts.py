"""Raw transcripts: `NAME.http` holds a request and the response to it, byte for byte, one after the other.

`NAME.sse` holds an event stream alone, and `NAME.json` beside it the body of the request that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from conformance.model import Contract, Ending
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.recording.foreign import Fields, exchange, speaks_to

_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_STATUS: Final = re.compile(rb"HTTP/(\d(?:\.\d)?) (\d{3})[^\r\n]*")


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
    if not speaks_to(contract, method, url):
        raise ValueError(f"{method} {url[:80]} is another operation than {contract.method} {contract.path}")
    body, rest = _split(request)
    found = _STATUS.match(rest)
    if found is None:
        raise ValueError(f"after the request comes {rest[:20]!r}; expected a status line such as HTTP/1.1 200 OK")
    response = _message(rest, "a response")
    content, ending, error = _content(response)
    pieces = (Piece(0.0, content),) if content else ()
    version = f"HTTP/{found.group(1).decode()}"
    attempt = Attempt(0.0, int(found.group(2)), response.fields, pieces, ending, error, 0.0, version)
    return exchange(contract, "http", number, method, request.fields, body, attempt)


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


def _content(response: Message) -> tuple[bytes, Ending, str]:
    """The response's content; chunks are joined, where the recorder left them."""
    if "chunked" in response.field("transfer-encoding").lower():
        joined = _joined(response.rest)
        if joined is not None:
            return joined
    declared = response.field("content-length")
    if declared.isdigit() and len(response.rest) < int(declared):
        error = f"{len(response.rest)} bytes of {declared}"
        return response.rest, Ending.TRUNCATED, error
    return (response.rest[: int(declared)] if declared.isdigit() else response.rest), Ending.COMPLETE, ""


def _joined(data: bytes) -> tuple[bytes, Ending, str] | None:
    """The content of chunks; None where it is not chunked, since many recorders undo that."""
    content = b""
    first = True
    while True:
        line, _, rest = data.partition(b"\r\n")
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            return None if first else (content, Ending.TRUNCATED, "a broken chunk")
        if size == 0:
            return content, Ending.COMPLETE, ""
        content += rest[:size]
        if len(rest) < size + 2:
            return content, Ending.TRUNCATED, "the last chunk is missing"
        data, first = rest[size + 2 :], False
