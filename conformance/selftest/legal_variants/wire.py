"""Oddities of bytes: line ends, comments, pieces, codings, headers, timing."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

from conformance.model.sse import BOM
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Portion, Request, Response
from conformance.selftest.edits import answered, headed, in_pieces, pieces_of, streaming, successful
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
    """Each event ends its lines in another way."""
    ends = (b"\n", b"\r\n", b"\r")
    return [frame.replace(b"\n", ends[place % 3]) for place, frame in enumerate(frames)]


@legal_variant(Stage.FRAMES)
def stream_begins_with_a_bom(frames: list[bytes], call: Call) -> list[bytes]:
    """A byte order mark opens the stream."""
    return [BOM + frames[0], *frames[1:]]


@legal_variant(Stage.FRAMES)
def comments_stand_between_events(frames: list[bytes], call: Call) -> list[bytes]:
    """Comments come before, between and after events."""
    return [b": PROCESSING\n\n", *[part for frame in frames for part in (frame, b":\n\n")]]


@legal_variant(Stage.FRAMES)
def comments_stand_inside_events(frames: list[bytes], call: Call) -> list[bytes]:
    """An event holds a comment line beside its data."""
    return [b": token\n" + frame for frame in frames]


@legal_variant(Stage.FRAMES)
def data_has_no_space(frames: list[bytes], call: Call) -> list[bytes]:
    """`data:` is not followed by a space."""
    return [b"data:" + frame.removeprefix(b"data: ") for frame in frames]


@legal_variant(Stage.FRAMES)
def events_have_unknown_fields(frames: list[bytes], call: Call) -> list[bytes]:
    """Events have a field that no standard knows, and that a reader skips."""
    return [b"x-trace: %d\n" % place + frame for place, frame in enumerate(frames)]


@legal_variant(Stage.FRAMES)
def events_are_far_apart(frames: list[bytes], call: Call) -> list[bytes]:
    """More than one blank line stands between events."""
    return [frame + b"\n\n" for frame in frames]


@legal_variant(Stage.RESPONSE)
def bytes_come_in_odd_pieces(response: Response, call: Call) -> Response:
    """Pieces end anywhere, in the middle of lines and characters too."""
    content, pieces, size = response.content, [], 1
    while content:
        pieces.append(content[:size])
        content, size = content[size:], size % 61 + 7
    return in_pieces(response, pieces)


@legal_variant(Stage.RESPONSE)
def stream_comes_in_one_piece(response: Response, call: Call) -> Response:
    """All events arrive together."""
    return in_pieces(response, [response.content])


@legal_variant(Stage.RESPONSE)
def events_come_in_pairs(response: Response, call: Call) -> Response:
    """Two events share each piece."""
    pieces = pieces_of(response)
    return in_pieces(response, [b"".join(pieces[place : place + 2]) for place in range(0, len(pieces), 2)])


@legal_variant(Stage.RESPONSE)
def first_byte_comes_late(response: Response, call: Call) -> Response:
    """The first byte takes its time, and a comment keeps the connection alive meanwhile."""
    if not successful(response) or not call.streamed:
        return response
    return replace(response, portions=(Portion(b": keep-alive\n\n", 0.03), Portion(b":\n\n", 0.03), *response.portions))


@legal_variant(Stage.RESPONSE)
def tokens_come_slowly(response: Response, call: Call) -> Response:
    """There is a pause before each piece."""
    return replace(response, portions=tuple([replace(portion, delay=0.002) for portion in response.portions]))


@legal_variant(Stage.RESPONSE)
def content_is_compressed(response: Response, call: Call) -> Response:
    """The content comes gzipped, flushed after each piece, wherever the client takes that."""
    if "gzip" not in call.request.fields.get("accept-encoding", "gzip"):
        return response
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    pieces = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces_of(response)]
    return headed(in_pieces(response, [*pieces, packer.flush()]), "content-encoding", "gzip")


@legal_variant(Stage.RESPONSE)
def connection_is_closed_each_time(response: Response, call: Call) -> Response:
    """The server closes the connection after each reply."""
    return headed(response, "connection", "close")


@legal_variant(Stage.RESPONSE)
def header_names_are_capitalised(response: Response, call: Call) -> Response:
    """Header names are written in another case."""
    return replace(response, headers=tuple((name.title(), value) for name, value in response.headers))


@legal_variant(Stage.RESPONSE)
def media_types_are_spelled_out(response: Response, call: Call) -> Response:
    """Media types are capitalised and name their character set in quotes."""
    kind = "Text/Event-Stream" if streaming(call) and successful(response) else "Application/JSON"
    return headed(response, "content-type", f'{kind}; Charset="UTF-8"')


@legal_variant(Stage.RESPONSE)
def media_types_stand_alone(response: Response, call: Call) -> Response:
    """Media types have no parameters."""
    given = dict(response.headers).get("content-type", "")
    return headed(response, "content-type", given.partition(";")[0])


@legal_variant(Stage.RESPONSE)
def json_is_laid_out(response: Response, call: Call) -> Response:
    """Plain JSON is indented, escapes what is not ASCII, and ends in a line break."""
    if call.streamed and successful(response):
        return response
    return in_pieces(response, [json.dumps(json.loads(response.content), indent=2).encode() + b"\n"])


@legal_variant(Stage.FRAMES)
def chunks_escape_their_characters(frames: list[bytes], call: Call) -> list[bytes]:
    """The JSON of chunks has spaces, and escapes what is not ASCII."""
    told = [json.dumps(json.loads(frame.removeprefix(b"data: "))).encode() for frame in frames[:-1]]
    return [*(b"data: " + one + b"\n\n" for one in told), frames[-1]]


@legal_variant(Stage.ARRIVAL)
def each_request_waits_once(request: Request, call: Call) -> Request | Response:
    """Each new request is first answered by 429 and told to come again."""
    seen: dict[bytes, int] = call.notes.setdefault("each_request_waits_once", {})
    seen[request.body] = seen.get(request.body, 0) + 1
    if seen[request.body] > 1:
        return request
    told = {"message": "slow down", "type": "rate_limit_error", "param": "", "code": "rate_limit_exceeded"}
    return headed(answered(429, {"error": told}), "retry-after", "0")
