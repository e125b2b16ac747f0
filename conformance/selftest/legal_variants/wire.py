"""Bytes, headers and timing: line ends, comments, pieces, content codings, media types, delays."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

from conformance.model.sse import BOM
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Portion, Request, Response
from conformance.selftest.edits import (
    portions_of,
    streaming,
    successful,
    synthetic_response,
    with_header,
    with_portions,
)
from conformance.selftest.legal_variant import legal_variant


@legal_variant(Stage.FRAMES)
def lines_end_in_crlf(frames: list[bytes], call: Call) -> list[bytes]:
    """The lines of a stream end in CR LF."""
    return [frame.replace(b"\n", b"\r\n") for frame in frames]


@legal_variant(Stage.FRAMES)
def lines_end_in_cr(frames: list[bytes], call: Call) -> list[bytes]:
    """The lines of a stream end in CR alone."""
    return [frame.replace(b"\n", b"\r") for frame in frames]


@legal_variant(Stage.FRAMES)
def lines_end_in_all_ways(frames: list[bytes], call: Call) -> list[bytes]:
    """The lines of successive events end in LF, CR LF and CR."""
    ends = (b"\n", b"\r\n", b"\r")
    return [frame.replace(b"\n", ends[number % 3]) for number, frame in enumerate(frames)]


@legal_variant(Stage.FRAMES)
def stream_begins_with_a_bom(frames: list[bytes], call: Call) -> list[bytes]:
    """The stream begins with a byte order mark."""
    return [BOM + frames[0], *frames[1:]]


@legal_variant(Stage.FRAMES)
def comments_stand_between_events(frames: list[bytes], call: Call) -> list[bytes]:
    """Comments come between events, and before and after them."""
    return [b": PROCESSING\n\n", *[part for frame in frames for part in (frame, b":\n\n")]]


@legal_variant(Stage.FRAMES)
def comments_stand_inside_events(frames: list[bytes], call: Call) -> list[bytes]:
    """Each event has a comment line before its data."""
    return [b": token\n" + frame for frame in frames]


@legal_variant(Stage.FRAMES)
def data_has_no_space(frames: list[bytes], call: Call) -> list[bytes]:
    """`data:` is not followed by a space."""
    return [b"data:" + frame.removeprefix(b"data: ") for frame in frames]


@legal_variant(Stage.FRAMES)
def events_have_unknown_fields(frames: list[bytes], call: Call) -> list[bytes]:
    """Events have a field that the standard does not define, and that clients must ignore."""
    return [b"x-trace: %d\n" % number + frame for number, frame in enumerate(frames)]


@legal_variant(Stage.FRAMES)
def events_are_far_apart(frames: list[bytes], call: Call) -> list[bytes]:
    """Several blank lines separate events."""
    return [frame + b"\n\n" for frame in frames]


@legal_variant(Stage.RESPONSE)
def bytes_come_in_odd_pieces(response: Response, call: Call) -> Response:
    """The network splits the content anywhere, even within lines and characters."""
    content, pieces, size = response.content, [], 1
    while content:
        pieces.append(content[:size])
        content, size = content[size:], size % 61 + 7
    return with_portions(response, pieces)


@legal_variant(Stage.RESPONSE)
def stream_comes_in_one_piece(response: Response, call: Call) -> Response:
    """The complete content arrives at once."""
    return with_portions(response, [response.content])


@legal_variant(Stage.RESPONSE)
def events_come_in_pairs(response: Response, call: Call) -> Response:
    """Two events arrive at a time."""
    pieces = portions_of(response)
    return with_portions(response, [b"".join(pieces[start : start + 2]) for start in range(0, len(pieces), 2)])


@legal_variant(Stage.RESPONSE)
def first_byte_comes_late(response: Response, call: Call) -> Response:
    """A stream begins late, and comments keep the connection open until then."""
    if not successful(response) or not call.streamed:
        return response
    return replace(response, portions=(Portion(b": keep-alive\n\n", 0.03), Portion(b":\n\n", 0.03), *response.portions))


@legal_variant(Stage.RESPONSE)
def tokens_come_slowly(response: Response, call: Call) -> Response:
    """Each piece comes after a pause."""
    return replace(response, portions=tuple([replace(portion, delay=0.002) for portion in response.portions]))


@legal_variant(Stage.RESPONSE)
def content_is_compressed(response: Response, call: Call) -> Response:
    """The content is compressed with gzip, flushed after each piece, where the client accepts that."""
    if "gzip" not in call.request.fields.get("accept-encoding", "gzip"):
        return response
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    pieces = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in portions_of(response)]
    return with_header(with_portions(response, [*pieces, packer.flush()]), "content-encoding", "gzip")


@legal_variant(Stage.RESPONSE)
def connection_is_closed_each_time(response: Response, call: Call) -> Response:
    """The server closes the connection after each reply."""
    return with_header(response, "connection", "close")


@legal_variant(Stage.RESPONSE)
def header_names_are_capitalised(response: Response, call: Call) -> Response:
    """Header names are capitalised."""
    return replace(response, headers=tuple((name.title(), value) for name, value in response.headers))


@legal_variant(Stage.RESPONSE)
def media_types_are_spelled_out(response: Response, call: Call) -> Response:
    """Media types are capitalised, and declare their character set in quotes."""
    kind = "Text/Event-Stream" if streaming(call) and successful(response) else "Application/JSON"
    return with_header(response, "content-type", f'{kind}; Charset="UTF-8"')


@legal_variant(Stage.RESPONSE)
def media_types_stand_alone(response: Response, call: Call) -> Response:
    """Media types have no parameters."""
    given = dict(response.headers).get("content-type", "")
    return with_header(response, "content-type", given.partition(";")[0])


@legal_variant(Stage.RESPONSE)
def json_is_laid_out(response: Response, call: Call) -> Response:
    """Plain JSON is indented, escapes characters beyond ASCII, and ends in a line break."""
    if call.streamed and successful(response):
        return response
    return with_portions(response, [json.dumps(json.loads(response.content), indent=2).encode() + b"\n"])


@legal_variant(Stage.FRAMES)
def chunks_escape_their_characters(frames: list[bytes], call: Call) -> list[bytes]:
    """The JSON of chunks has spaces, and escapes characters beyond ASCII."""
    payloads = [json.dumps(json.loads(frame.removeprefix(b"data: "))).encode() for frame in frames[:-1]]
    return [*(b"data: " + payload + b"\n\n" for payload in payloads), frames[-1]]


@legal_variant(Stage.ARRIVAL)
def each_request_waits_once(request: Request, call: Call) -> Request | Response:
    """Each new request is answered by 429 with Retry-After the first time."""
    seen: dict[bytes, int] = call.notes.setdefault("each_request_waits_once", {})
    seen[request.body] = seen.get(request.body, 0) + 1
    if seen[request.body] > 1:
        return request
    error = {"message": "slow down", "type": "rate_limit_error", "param": "", "code": "rate_limit_exceeded"}
    return with_header(synthetic_response(429, {"error": error}), "retry-after", "0")
