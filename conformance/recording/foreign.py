"""Converts messages that other tools recorded to exchanges, as if the suite had sent the request itself."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from conformance.contract.validity import complaints, validity
from conformance.model import Contract, RequestCase, Validity
from conformance.model.exchange import Attempt, Exchange, Piece, Unrecorded
from conformance.model.json_text import MISSING, loads
from conformance.model.redaction import Redaction, is_secret, without_secrets
from conformance.recording.content import as_sent
from conformance.recording.recorded import Recorded

ORIGINS: Final = frozenset({"har", "cassette", "jsonl", "http", "sse"})
"""The origins of cases that this suite did not send."""
RECORDED: Final = "recorded"
"""The base URL where none was recorded."""

_CONNECTION_FIELDS: Final = frozenset(
    ["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive", "te", "upgrade"]
)
"""Header fields that describe the recorded connection and not the request case."""
_MODEL_IN_PATH: Final = re.compile(r"/(?:deployments|engines)/([^/]+)(?=/)")
"""Some routes name the model in the path, and not in the body."""


class OtherOperationError(ValueError):
    """The request is not for the operation of the contract."""


@dataclass(frozen=True, slots=True)
class RecordedEndpoint:
    """Where a request was sent: exchanges of one endpoint and one model are judged together.

    `headers` are the credentials that were recorded beside Authorization, by name; `has_key` is whether that was there.
    """

    base_url: str
    query: tuple[tuple[str, str | None], ...]
    model: str
    headers: tuple[str, ...] = ()
    has_key: bool = True


def exchange(contract: Contract, recorded: Recorded, origin: str, name: str) -> tuple[Exchange, RecordedEndpoint]:
    """The exchange and its endpoint; ValueError says why there is none.

    Secrets are removed from the header of the request and masked everywhere else.
    """
    base_url, path, model_in_path = _address(contract, recorded.method, recorded.url)
    if recorded.request is None:
        raise ValueError("the request's body was not recorded")
    content = recorded.request
    body = _parsed(content)
    attempt = _attempt(recorded)
    query = tuple(parse_qsl(urlsplit(recorded.url).query, keep_blank_values=True))
    secrets = [word for name, value in (*recorded.sent, *query) if is_secret(name, value) for word in _words(value)]
    redaction = Redaction(secrets)
    redacted = redaction.data(content)
    case = RequestCase(
        id=f"{origin}/{name}/{recorded.number}-{hashlib.sha256(redacted).hexdigest()[:8]}",
        content=redacted,
        origin=origin,
        validity=_validity(contract, body, model_in_path),
        note=_obstacle(contract, content, body, model_in_path),
        method=recorded.method.upper(),
        path=path,
        headers=tuple((name, value) for name, value in recorded.sent if _belongs_to_case(name, value)),
    )
    model = body.get("model") if isinstance(body, dict) else None
    secret_names = {name.lower() for name, value in recorded.sent if is_secret(name, value)}
    endpoint = RecordedEndpoint(
        base_url,
        without_secrets(query),
        model if isinstance(model, str) and model else model_in_path,
        tuple(sorted(secret_names - {"authorization", "proxy-authorization", "cookie"})),
        not secret_names or "authorization" in secret_names,
    )
    return Exchange(case, (redaction.attempt(attempt),)), endpoint


def _words(credential: str) -> list[str]:
    """The secret words of a credential: not the scheme before it, and of a cookie the values too."""
    words = re.split(r"[\s;]+", credential.strip())
    secret = words[1:] if len(words) > 1 and words[0].isalpha() else words
    return [*secret, *filter(None, (word.partition("=")[2] for word in secret))]


def _address(contract: Contract, method: str, url: str) -> tuple[str, str, str]:
    """The base URL, the path if it is not that of the contract, and the model that the path names.

    OtherOperationError where the request is not for the contract's operation, on whatever host and base path.
    """
    if not url:
        return RECORDED, "", ""
    parts = urlsplit(url)
    operation = contract.path.rstrip("/")
    path = parts.path.rstrip("/")
    same_path = path.endswith((operation, "/" + operation.rpartition("/")[2]))
    if not same_path or method.upper() != contract.method or path.endswith("/chat/completions"):
        expected = f"{contract.method} {contract.path}"
        raise OtherOperationError(f"{method} {url[:80]} is another operation; expected {expected}")
    host = parts.netloc.rpartition("@")[2]
    origin = f"{parts.scheme}://{host}" if host else RECORDED
    model = _MODEL_IN_PATH.search(path)
    prefix = path.removesuffix(operation) if path.endswith(operation) else ""
    rest = parts.path.removeprefix(prefix)
    return origin + prefix, "" if rest == contract.path else rest, unquote(model[1]) if model else ""


def _attempt(recorded: Recorded) -> Attempt:
    if recorded.missing:
        raise ValueError(recorded.missing)
    unrecorded = recorded.unrecorded | {Unrecorded.TIMES}
    common: dict[str, Any] = {"started_at": recorded.started_at, "elapsed": recorded.elapsed}
    common |= {"ending": recorded.ending, "error": recorded.error, "http_version": recorded.http_version}
    if recorded.status is None:
        return Attempt(status=None, unrecorded=unrecorded, **common)
    if recorded.body is None and 200 <= recorded.status < 300:
        raise ValueError("the response's content was not recorded; export with content")
    if recorded.headers is None:
        unrecorded |= {Unrecorded.HEADERS}
    headers = tuple((name, value) for name, value in recorded.headers or () if name[:1] != ":")
    headers, content = as_sent(headers, recorded.body or b"")
    headers = tuple((name, "x" * len(value) if is_secret("", value) else value) for name, value in headers)
    pieces = (Piece(recorded.elapsed, content),) if content else ()
    return Attempt(status=recorded.status, headers=headers, pieces=pieces, unrecorded=unrecorded, **common)


def _parsed(content: bytes) -> Any:
    try:
        return loads(content)
    except ValueError:
        return MISSING


def _completed(body: Any, model_in_path: str) -> Any:
    """The body with the model that the path names, which stands for the member."""
    return {"model": model_in_path, **body} if isinstance(body, dict) and model_in_path else body


def _obstacle(contract: Contract, content: bytes, body: Any, model_in_path: str) -> str:
    """Why a reply cannot be judged as a completion, because the request is unknown or invalid; empty where it can."""
    if not content:
        return "the body of the request was not recorded"
    if body is MISSING:
        return "the request is not JSON"
    completed = _completed(body, model_in_path)
    if validity(contract, completed) is not Validity.INVALID:
        return ""
    at, message = next(complaints(contract.request, completed), ("/", "its members do not go together"))
    return f"the request is invalid under the contract: {at}: {message[:120]}"


def unjudged(x: Exchange) -> str:
    """Why a successful reply was not judged as a completion; empty where it was, or where it is an error."""
    return x.case.note if x.successful and x.case.validity is Validity.INVALID and x.case.origin in ORIGINS else ""


def _belongs_to_case(field_name: str, value: str) -> bool:
    """Whether a header field is kept: no secret, no connection field, no HTTP/2 pseudo-header such as `:path`."""
    lowered = field_name.lower()
    return not (is_secret(field_name, value) or lowered in _CONNECTION_FIELDS or lowered.startswith(":"))


def _validity(contract: Contract, body: Any, model_in_path: str) -> Validity:
    """The validity of the body; unspecified at best where the path names the model, as no contract has such a path."""
    if body is MISSING:
        return Validity.INVALID
    state = validity(contract, _completed(body, model_in_path))
    missing_model = model_in_path and not (isinstance(body, dict) and "model" in body)
    return Validity.UNSPECIFIED if missing_model and state is Validity.VALID else state
