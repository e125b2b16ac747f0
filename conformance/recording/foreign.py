"""Messages that somebody else recorded → Exchange, as if the suite had sent the request itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from conformance.contract.validity import validity
from conformance.model import Contract, RequestCase, Validity
from conformance.model.exchange import Attempt, Exchange
from conformance.model.json_text import loads
from conformance.model.redaction import Redaction, is_secret

Fields = tuple[tuple[str, str], ...]

_OF_THE_CONNECTION: Final = frozenset(
    ["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive", "te", "upgrade"]
)


def is_for(contract: Contract, method: str, url: str) -> bool:
    """Whether a request is one for the contract's operation, wherever it is served."""
    path = urlsplit(url).path.rstrip("/")
    operation = contract.path.rstrip("/")
    ours = path.endswith((operation, "/" + operation.rpartition("/")[2]))
    return ours and method.upper() == contract.method and not path.endswith("/chat/completions")


def exchange(
    contract: Contract,
    origin: str,
    number: int,
    method: str,
    headers: Iterable[tuple[str, str]],
    content: bytes,
    attempt: Attempt,
) -> Exchange:
    """An exchange of one attempt, secrets left out of the request and masked in the response."""
    sent = tuple(headers)
    secrets = [word for name, value in sent if is_secret(name) for word in value.split()]
    redaction = Redaction(secrets)
    clean = redaction.data(content)
    name = f"{origin}/{number}-{hashlib.sha256(clean).hexdigest()[:8]}"
    kept = tuple((one, value) for one, value in sent if _is_of_the_message(one))
    case = RequestCase(name, clean, origin, _validity(contract, clean), method=method.upper(), headers=kept)
    return Exchange(case, (redaction.attempt(attempt),))


def _is_of_the_message(name: str) -> bool:
    lowered = name.lower()
    return not (is_secret(name) or lowered in _OF_THE_CONNECTION or lowered.startswith(":"))


def _validity(contract: Contract, content: bytes) -> Validity:
    try:
        body = loads(content)
    except ValueError:
        return Validity.INVALID
    return validity(contract, body)


def members(value: Any, name: str) -> Mapping[str, Any]:
    """A member that ought to be an object; an empty one where it is none."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}
