"""Reads and writes HAR 1.2, the format of browsers, mitmproxy and Playwright.

HAR stores content decoded and without arrival times. Files that the suite writes also keep the case and the pieces, in
members that begin with `_` as the format allows, so that reading them back loses nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from conformance import __version__
from conformance.model import Contract, Ending, RequestCase
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.recording.foreign import Fields, object_member, redacted_exchange, require_operation
from conformance.recording.hash_chain import RecordingError
from conformance.recording.json_forms import attempt_in, attempt_out, case_in, case_out

_CODING: Final = "content-encoding"


def read(path: Path, contract: Contract) -> Iterator[Exchange | str]:
    """The exchange of each entry, or the reason why an entry cannot be judged."""
    try:
        log = json.loads(path.read_bytes())
        entries = log["log"]["entries"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordingError(
            f"{path}: not a HAR file ({type(error).__name__}: {error}); expected the member log.entries"
        ) from None
    if not isinstance(entries, list):
        raise RecordingError(f"{path}: log.entries is {type(entries).__name__}; expected a list (HAR 1.2)")
    for number, entry in enumerate(entries):
        try:
            yield _exchange(entry, number, contract)
        except (ValueError, TypeError, KeyError) as error:
            yield f"{path.name} entry {number}: {error}"


def _exchange(entry: Any, number: int, contract: Contract) -> Exchange | str:
    stored = object_member(entry, "_conformance")
    if stored:
        return Exchange(case_in(stored["case"]), tuple(attempt_in(attempt) for attempt in stored["attempts"]))
    if object_member(entry, "_retried"):
        raise ValueError("an attempt that was retried; a later entry has the whole exchange")
    request, response = object_member(entry, "request"), object_member(entry, "response")
    method, url = str(request.get("method", "")), str(request.get("url", ""))
    require_operation(contract, method, url)
    post = object_member(request, "postData")
    if not post.get("text") and (request.get("bodySize") or 0):
        raise ValueError("the request's body was not recorded; export with content")
    body = str(post.get("text") or "").encode("utf-8", "surrogatepass")
    return redacted_exchange(contract, "har", number, method, _fields(request), body, _attempt(entry, response))


def _attempt(entry: Mapping[str, Any], response: Mapping[str, Any]) -> Attempt:
    content = object_member(response, "content")
    text = content.get("text") or ""
    if not text and 200 <= int(response.get("status") or 0) < 300:
        raise ValueError("the response's content was not recorded; export with content")
    data = base64.b64decode(text) if content.get("encoding") == "base64" else text.encode("utf-8", "surrogatepass")
    if max(len(data), len(text)) < int(content.get("size") or 0):
        raise ValueError(f"the response's content was cut to {len(data):,} of {content['size']:,} bytes")
    elapsed = max(float(entry.get("time") or 0.0), 0.0) / 1000
    status = int(response.get("status") or 0)
    # the content is recorded decoded, so it must not be decoded again
    headers = tuple((name, value) for name, value in _fields(response) if name.lower() != _CODING and name[:1] != ":")
    if not status:
        return Attempt(
            _time(entry), None, (), (), Ending.TRUNCATED, str(response.get("_error", "no response")), elapsed
        )
    pieces = (Piece(elapsed, data),) if data else ()
    return Attempt(_time(entry), status, headers, pieces, Ending.COMPLETE, "", elapsed)


def _fields(message: Mapping[str, Any]) -> Fields:
    listed = message.get("headers", [])
    return tuple((str(field["name"]), str(field["value"])) for field in listed if isinstance(field, Mapping))


def _time(entry: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("startedDateTime", ""))).timestamp()
    except ValueError:
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
