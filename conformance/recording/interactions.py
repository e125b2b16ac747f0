"""Reads recordings that are lists of interactions: cassettes of vcrpy, Ruby VCR and go-vcr, and our own JSONL.

All of them have the members `request` and `response`; names and forms of what is in these differ:

- vcrpy: `uri`; the body is text, bytes or an object with `string`; the status is an object with `code`.
- Ruby VCR: `uri`; the body is an object with `string` or `base64_string`.
- go-vcr: `url`; the body is text; the status is `code` beside a text.
- JSONL: `url`; the body is text or a JSON value, or there are `events`; `recorded_by` says who recorded it.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from conformance.model.exchange import Unrecorded
from conformance.recording import yaml_stream
from conformance.recording.hash_chain import RecordingError
from conformance.recording.json_stream import JsonStream
from conformance.recording.recorded import Fields, Item, LeftOut, Recorded, Source, fields_of, member
from conformance.recording.recorded import whole_number as number_of

LISTS: Final = frozenset({"interactions", "http_interactions"})
SDK, WIRE = "sdk", "wire"
_WRITTEN_AGAIN: Final = frozenset({Unrecorded.FRAMING})
_BY_AN_SDK: Final = frozenset({Unrecorded.FRAMING, Unrecorded.NULLS})


def read_yaml(source: Source) -> Iterator[Item]:
    """The interactions of a YAML cassette."""
    with source.open() as file:
        try:
            for number, (line, value) in enumerate(yaml_stream.items(file, LISTS)):
                yield _item(value, number, "interaction", f"interaction {number}, line {line}")
        except (ValueError, OSError, EOFError) as error:
            raise RecordingError(f"{source.name}: {error}") from None


def read_json(source: Source) -> Iterator[Item]:
    """The interactions of a JSON cassette, or of a file with one interaction after another."""
    with source.open() as file:
        stream, number = JsonStream(file), 0
        try:
            while stream.next_char():
                for value in _values(stream):
                    yield _item(value, number, "interaction", f"interaction {number}")
                    number += 1
        except (ValueError, OSError, EOFError) as error:
            raise RecordingError(f"{source.name}: after interaction {number}: {error}") from None


def _values(stream: JsonStream) -> Iterator[Any]:
    """The interactions of the next JSON text: those of its list, the items of an array, or the object itself."""
    if stream.next_char() == "[":
        for _ in stream.items():
            yield stream.value()
        return
    members: dict[str, Any] = {}
    for name in stream.members():
        if name in LISTS and stream.next_char() == "[":
            for _ in stream.items():
                yield stream.value()
        else:
            members[name] = stream.value()
    if "request" in members or "response" in members:
        yield members


def read_lines(source: Source) -> Iterator[Item]:
    """The interaction of each line of a JSONL file; a line that cannot be read does not affect the others."""
    with source.open() as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield LeftOut(f"line {number}", f"not JSON: {error or 'nested too deeply'}")
                continue
            yield _item(value, number, "line", f"line {number}")


def _item(value: Any, number: int, unit: str, position: str) -> Item:
    try:
        return recorded(value, number, unit)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return LeftOut(position, str(error))


def recorded(value: Any, number: int, unit: str) -> Recorded:
    """One interaction in any of the forms."""
    if not isinstance(value, Mapping) or not isinstance(value.get("request"), Mapping):
        raise ValueError("it has no member request; expected an interaction with request and response")
    request, response = member(value, "request"), member(value, "response")
    url = request.get("uri") or request.get("url")
    if not url:
        raise ValueError("the request has no address; expected url or uri")
    sent, _ = _content(request.get("body"))
    body, parsed = _response_body(response)
    by_sdk = _recorded_by(value, parsed=parsed) == SDK
    headers = fields_of(response["headers"]) if response.get("headers") else None
    unrecorded = _BY_AN_SDK if by_sdk else _WRITTEN_AGAIN if parsed else frozenset()
    if by_sdk and body:
        body = _without_nulls(body)
    status = _status(response)
    return Recorded(
        number=number,
        unit=unit,
        method=str(request.get("method") or "POST").upper(),
        url=str(url),
        sent=fields_of(request.get("headers")),
        request=sent,
        status=status or (200 if by_sdk and body else None),
        headers=headers,
        body=body,
        started_at=_date(headers),
        missing="" if status or (by_sdk and body) else "the response was not recorded",
        unrecorded=unrecorded,
    )


def _recorded_by(value: Mapping[str, Any], *, parsed: bool) -> str:
    stated = value.get("recorded_by", SDK if parsed and "recorded_by" not in value and _is_jsonl(value) else WIRE)
    if stated not in {SDK, WIRE}:
        raise ValueError(f"recorded_by is {json.dumps(stated)}; expected {SDK!r} or {WIRE!r}")
    return str(stated)


def _is_jsonl(value: Mapping[str, Any]) -> bool:
    """Whether the form is that of our JSONL and not of a cassette, in which a parsed body came from the wire."""
    return isinstance(member(value, "response").get("status"), (int, type(None)))


def _status(response: Mapping[str, Any]) -> int:
    status = response.get("status")
    if isinstance(status, Mapping):
        return number_of(status.get("code"))
    return number_of(response.get("code") or response.get("status_code")) or number_of(str(status or 0).split(" ")[0])


def _response_body(response: Mapping[str, Any]) -> tuple[bytes | None, bool]:
    events = response.get("events")
    if isinstance(events, list):
        payloads = [event if isinstance(event, str) else json.dumps(event) for event in events]
        return "".join(f"data: {payload}\n\n" for payload in payloads).encode("utf-8", "surrogatepass"), True
    body = response.get("body")
    return _content(response.get("content") if body is None else body)


def _content(value: Any) -> tuple[bytes | None, bool]:
    """The bytes of a body, and whether they were parsed and are written again here; None where it is absent."""
    if isinstance(value, Mapping) and value.keys() <= {"string", "base64_string", "encoding"}:
        packed = value.get("base64_string")
        return _content(base64.b64decode(packed) if isinstance(packed, (str, bytes)) else value.get("string"))
    if value is None or isinstance(value, bytes):
        return value, False
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass"), False
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"), True


def _without_nulls(body: bytes) -> bytes:
    """A body, or the payload of each event, without members that are null: an SDK has these for absent ones too."""
    try:
        return json.dumps(_stripped(json.loads(body)), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        pass
    lines = []
    for line in io.BytesIO(body):
        payload = line.removeprefix(b"data:").strip()
        try:
            text = json.dumps(_stripped(json.loads(payload)), ensure_ascii=False)
            line = b"data: " + text.encode("utf-8", "surrogatepass") + b"\n"
        except (ValueError, RecursionError):
            pass
        lines.append(line)
    return b"".join(lines)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stripped(item) for name, item in value.items() if item is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _date(headers: Fields | None) -> float:
    """The time of the response, from its Date field; 0 where there is none."""
    try:
        return parsedate_to_datetime({name.lower(): value for name, value in headers or ()}["date"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0
