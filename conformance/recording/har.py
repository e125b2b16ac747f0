"""Reads and writes HAR 1.2, the format of browsers, mitmproxy and Playwright.

HAR stores content decoded and without arrival times. Files that the suite writes also keep the case and the pieces, in
members that begin with `_` as the format allows, so that reading them back loses nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from conformance import __version__
from conformance.model import Ending, RequestCase
from conformance.model.exchange import Attempt, Exchange
from conformance.recording.hash_chain import RecordingError
from conformance.recording.json_forms import attempt_in, attempt_out, case_in, case_out
from conformance.recording.json_stream import JsonStream
from conformance.recording.recorded import (
    GZIP_MAGIC,
    Item,
    LeftOut,
    Recorded,
    Source,
    fields_of,
    member,
    seconds,
    whole_number,
)


def read(source: Source) -> Iterator[Item]:
    """What each entry recorded, entry by entry, so that a file of any size can be read."""
    with source.open() as file:
        stream, number = JsonStream(file), 0
        try:
            for _ in _entries_of(stream):
                yield _item(stream.value(), number)
                number += 1
        except (ValueError, OSError, EOFError) as error:
            raise RecordingError(f"{source.name}: after entry {number}: {error}") from None


def _entries_of(stream: JsonStream) -> Iterator[int]:
    """Positions the stream at each of `log.entries`; what follows them is not read."""
    for name in stream.members():
        if name != "log":
            stream.value()
            continue
        for inner in stream.members():
            if inner != "entries":
                stream.value()
                continue
            if stream.next_char() != "[":
                raise ValueError("log.entries is not a list; expected a list (HAR 1.2)")
            yield from stream.items()
            return
        raise ValueError("log has no entries; expected the member log.entries (HAR 1.2)")


def _item(entry: Any, number: int) -> Item:
    try:
        stored = member(entry, "_conformance")
        if stored:
            return Exchange(case_in(stored["case"]), tuple(attempt_in(attempt) for attempt in stored["attempts"]))
        if member(entry, "_retried"):
            raise ValueError("an attempt that was retried; a later entry has the whole exchange")
        if not isinstance(entry, Mapping):
            raise ValueError("it is not an object")
        return _recorded(entry, number)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return LeftOut(f"entry {number}", str(error))


def _recorded(entry: Mapping[str, Any], number: int) -> Recorded:
    request, response = member(entry, "request"), member(entry, "response")
    post, content = member(request, "postData"), member(response, "content")
    sent = _text(post)
    body, missing = _content(content)
    headers = fields_of(response.get("headers")) or None
    if headers is None and content.get("mimeType"):
        headers = (("content-type", str(content["mimeType"])),)
    status = whole_number(response.get("status"))
    return Recorded(
        number=number,
        unit="entry",
        method=str(request.get("method", "")),
        url=str(request.get("url", "")),
        sent=fields_of(request.get("headers")),
        request=sent or None,
        status=status or None,
        headers=headers,
        body=body or None,  # an empty body looks like one that was not recorded
        started_at=_time(entry),
        elapsed=seconds(entry.get("time")),
        ending=Ending.COMPLETE if status else Ending.TRUNCATED,
        error="" if status else str(response.get("_error") or "no response"),
        missing=missing,
    )


def _content(content: Mapping[str, Any]) -> tuple[bytes, str]:
    """The recorded content, and how much of it is missing.

    Polly.js stores the chunks of compressed content as a JSON array of base64 or hexadecimal strings.
    """
    data = _text(content)
    chunks = _chunks(data)
    if chunks is not None and (content.get("encoding") == "base64" or chunks.startswith(GZIP_MAGIC)):
        return chunks, ""
    size = whole_number(content.get("size"))
    if data and max(len(data), len(str(content.get("text")))) < size:
        return data, f"the response's content was cut to {len(data):,} of {size:,} bytes"
    return data, ""


def _chunks(data: bytes) -> bytes | None:
    """The bytes in Polly's array of chunks; None where it is none."""
    if data[:2] != b'["':
        return None
    try:
        chunks = json.loads(data)
        for decode in (bytes.fromhex, lambda text: base64.b64decode(text, validate=True)):
            with suppress(ValueError):
                return b"".join(map(decode, chunks))
    except (ValueError, TypeError, RecursionError):
        pass
    return None


def _text(holder: Mapping[str, Any]) -> bytes:
    """The text of a body as bytes; none where it is missing, null or not text."""
    text = holder.get("text")
    if not isinstance(text, str):
        return b""
    if holder.get("encoding") == "base64" and text[:1] != "[":
        return base64.b64decode(text)
    return text.encode("utf-8", "surrogatepass")


def _time(entry: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("startedDateTime", ""))).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def write(path: Path, url: str, exchanges: Iterable[Exchange]) -> None:
    """Write exchanges as HAR; `url` is the address of the requests, including the operation's path."""
    path.write_text(json.dumps(document(url, exchanges), indent=1), "utf-8")


def document(url: str, exchanges: Iterable[Exchange]) -> dict[str, Any]:
    """Exchanges as a HAR document, one entry per attempt; the entry of the last attempt stores the whole exchange."""
    entries = [entry for exchange in exchanges for entry in _entries(url, exchange)]
    creator = {"name": "completions-conformance", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "pages": [], "entries": entries}}


def _entries(url: str, exchange: Exchange) -> Iterator[dict[str, Any]]:
    case = exchange.case
    for attempt in exchange.attempts[:-1]:
        yield {**_entry(url, case, attempt), "_retried": {"case": case.id}}
    stored = {"case": case_out(case), "attempts": [attempt_out(attempt) for attempt in exchange.attempts]}
    yield {**_entry(url, case, exchange.last), "_conformance": stored}


def _entry(url: str, case: RequestCase, attempt: Attempt) -> dict[str, Any]:
    started = datetime.fromtimestamp(attempt.started_at, UTC).isoformat(timespec="milliseconds")
    waited = attempt.pieces[0].at if attempt.pieces else attempt.elapsed
    timings: dict[str, float] = {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0}
    timings |= {"wait": round(waited * 1000, 3), "receive": round(max(attempt.elapsed - waited, 0) * 1000, 3)}
    return {
        "startedDateTime": started,
        "time": timings["wait"] + timings["receive"],
        "request": _request(url, case, attempt.http_version),
        "response": _response(case, attempt),
        "cache": {},
        "timings": timings,
    }


def _request(url: str, case: RequestCase, version: str) -> dict[str, Any]:
    mime = next((value for name, value in dict(case.headers).items() if name.lower() == "content-type"), "")
    text = case.content.decode("utf-8", "replace")
    entry = {
        "method": case.method,
        "url": url,
        "httpVersion": version,
        "cookies": [],
        "headers": _pairs(case.headers),
        "queryString": _pairs(parse_qsl(urlsplit(url).query, keep_blank_values=True)),
        "headersSize": -1,
        "bodySize": len(case.content),
    }
    return {**entry, "postData": {"mimeType": mime, "params": [], "text": text}} if case.content else entry


def _response(case: RequestCase, attempt: Attempt) -> dict[str, Any]:
    exchange = Exchange(case, (replace(attempt, ending=Ending.COMPLETE),))
    data = exchange.content
    content: dict[str, Any] = {"size": len(data), "mimeType": exchange.header("content-type") or ""}
    try:
        content["text"] = data.decode("utf-8")
    except UnicodeDecodeError:
        content |= {"text": base64.b64encode(data).decode("ascii"), "encoding": "base64"}
    entry: dict[str, Any] = {
        "status": attempt.status or 0,
        "statusText": _phrase(attempt.status),
        "httpVersion": attempt.http_version,
        "cookies": [],
        "headers": _pairs(attempt.headers),
        "content": content,
        "redirectURL": exchange.header("location") or "",
        "headersSize": -1,
        "bodySize": sum(len(piece.data) for piece in attempt.pieces),
    }
    return {**entry, "_error": attempt.error} if attempt.error else entry


def _phrase(status: int | None) -> str:
    try:
        return HTTPStatus(status or 0).phrase
    except ValueError:
        return ""


def _pairs(fields: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in fields]
