"""Converts messages that other tools recorded to exchanges, as if the suite had sent the request itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from conformance.contract.validity import complaints, validity
from conformance.model import Contract, RequestCase, Validity
from conformance.model.exchange import Attempt, Exchange
from conformance.model.json_text import loads
from conformance.model.redaction import Redaction, is_secret

Fields = tuple[tuple[str, str], ...]
ORIGINS: Final = frozenset({"har", "http", "sse"})
"""The origins of cases that this suite did not send."""

_CONNECTION_FIELDS: Final = frozenset(
    ["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive", "te", "upgrade"]
)
"""Header fields that describe the recorded connection and not the request case."""


def require_operation(contract: Contract, method: str, url: str) -> None:
    """Raises ValueError where a request is not for the contract's operation, on whatever host and base path."""
    path = urlsplit(url).path.rstrip("/")
    operation = contract.path.rstrip("/")
    same_path = path.endswith((operation, "/" + operation.rpartition("/")[2]))
    if not same_path or method.upper() != contract.method or path.endswith("/chat/completions"):
        raise ValueError(f"{method} {url[:80]} is another operation; expected {contract.method} {contract.path}")


def redacted_exchange(
    contract: Contract,
    origin: str,
    number: int,
    method: str,
    headers: Iterable[tuple[str, str]],
    content: bytes,
    attempt: Attempt,
) -> Exchange:
    """An exchange of one attempt, with secrets removed from the request's header and masked everywhere else."""
    fields = tuple(headers)
    secrets = [word for name, value in fields if is_secret(name, value) for word in value.split()]
    redaction = Redaction(secrets)
    redacted = redaction.data(content)
    case = RequestCase(
        id=f"{origin}/{number}-{hashlib.sha256(redacted).hexdigest()[:8]}",
        content=redacted,
        origin=origin,
        validity=_validity(contract, redacted),
        note=_obstacle(contract, redacted),
        method=method.upper(),
        headers=tuple((name, value) for name, value in fields if _belongs_to_case(name, value)),
    )
    return Exchange(case, (redaction.attempt(attempt),))


def _obstacle(contract: Contract, content: bytes) -> str:
    """Why a reply cannot be judged as a completion: it is not known what a correct one would be. Empty where it can."""
    if not content:
        return "the body of the request was not recorded"
    try:
        body = loads(content)
    except ValueError:
        return "the request is not JSON"
    if validity(contract, body) is not Validity.INVALID:
        return ""
    place, message = next(complaints(contract.request, body), ("/", "its members do not go together"))
    return f"the request is invalid under the contract: {place}: {message[:120]}"


def unjudged(x: Exchange) -> str:
    """Why a successful reply was not judged as a completion; empty where it was, or where it is an error."""
    return x.case.note if x.successful and x.case.validity is Validity.INVALID and x.case.origin in ORIGINS else ""


def _belongs_to_case(field_name: str, value: str) -> bool:
    """Whether a header field is kept: no secret, no connection field, no HTTP/2 pseudo-header such as `:path`."""
    lowered = field_name.lower()
    return not (is_secret(field_name, value) or lowered in _CONNECTION_FIELDS or lowered.startswith(":"))


def _validity(contract: Contract, content: bytes) -> Validity:
    try:
        body = loads(content)
    except ValueError:
        return Validity.INVALID
    return validity(contract, body)


def object_member(value: Any, name: str) -> Mapping[str, Any]:
    """The member `name` if it is an object, otherwise an empty object."""
    member = value.get(name) if isinstance(value, Mapping) else None
    return member if isinstance(member, Mapping) else {}
