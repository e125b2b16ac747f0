"""Cases, attempts and waves as JSON, and back, without any loss."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from conformance.model import Credential, Ending, Membership, Phase, RequestCase, Validity
from conformance.model.exchange import Attempt, Piece


def bytes_out(data: bytes) -> Any:
    """UTF-8 as text, anything else in base64."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def bytes_in(value: Any) -> bytes:
    """What `bytes_out` gave, as bytes."""
    return value.encode("utf-8") if isinstance(value, str) else b64decode(value["base64"], validate=True)


def attempt_out(attempt: Attempt) -> dict[str, Any]:
    """An attempt, in the order in which a person reads it."""
    return {
        "started_at": attempt.started_at,
        "status": attempt.status,
        "headers": attempt.headers,
        "pieces": [[piece.at, bytes_out(piece.data)] for piece in attempt.pieces],
        "ending": attempt.ending,
        "error": attempt.error,
        "elapsed": attempt.elapsed,
        "http_version": attempt.http_version,
    }


def attempt_in(record: Mapping[str, Any]) -> Attempt:
    """What `attempt_out` gave."""
    return Attempt(
        record["started_at"],
        record["status"],
        tuple((name, value) for name, value in record["headers"]),
        tuple(Piece(at, bytes_in(data)) for at, data in record["pieces"]),
        Ending(record["ending"]),
        record["error"],
        record["elapsed"],
        record["http_version"],
    )


def phase_in(record: Mapping[str, Any]) -> Phase:
    """A wave record."""
    return Phase(record["name"], tuple(map(case_in, record["cases"])), record["serial"], record["burst"])


_DEFAULTS: Final = {one.name: one.default for one in fields(RequestCase)}


def case_out(case: RequestCase) -> dict[str, Any]:
    """The members that differ from their defaults."""
    record = {name: value for name in _DEFAULTS if (value := getattr(case, name)) != _DEFAULTS[name]}
    record["content"] = bytes_out(case.content)
    if case.groups:
        record["groups"] = [[part.kind, part.key, part.role] for part in case.groups]
    return record


def case_in(record: Mapping[str, Any]) -> RequestCase:
    """What `case_out` gave; what it left out has its default."""
    read = dict(record)
    read["content"] = bytes_in(record["content"])
    read["groups"] = tuple(Membership(*part) for part in record.get("groups", ()))
    if "breaks" in record:
        read["breaks"] = tuple(record["breaks"])
    if "headers" in record:
        read["headers"] = tuple((name, value) for name, value in record["headers"])
    if "validity" in record:
        read["validity"] = Validity(record["validity"])
    if "credential" in record:
        read["credential"] = Credential(record["credential"])
    return RequestCase(**read)
