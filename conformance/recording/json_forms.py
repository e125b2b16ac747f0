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


def attempt_in(told: Mapping[str, Any]) -> Attempt:
    """What `attempt_out` gave."""
    return Attempt(
        told["started_at"],
        told["status"],
        tuple((name, value) for name, value in told["headers"]),
        tuple(Piece(at, bytes_in(data)) for at, data in told["pieces"]),
        Ending(told["ending"]),
        told["error"],
        told["elapsed"],
        told["http_version"],
    )


def phase_in(told: Mapping[str, Any]) -> Phase:
    """A wave record."""
    return Phase(told["name"], tuple(map(case_in, told["cases"])), told["serial"], told["burst"])


_DEFAULTS: Final = {one.name: one.default for one in fields(RequestCase)}


def case_out(case: RequestCase) -> dict[str, Any]:
    """The members that differ from their defaults."""
    told = {name: value for name in _DEFAULTS if (value := getattr(case, name)) != _DEFAULTS[name]}
    told["content"] = bytes_out(case.content)
    if case.groups:
        told["groups"] = [[part.kind, part.key, part.role] for part in case.groups]
    return told


def case_in(told: Mapping[str, Any]) -> RequestCase:
    """What `case_out` gave; what it left out has its default."""
    read = dict(told)
    read["content"] = bytes_in(told["content"])
    read["groups"] = tuple(Membership(*part) for part in told.get("groups", ()))
    if "breaks" in told:
        read["breaks"] = tuple(told["breaks"])
    if "headers" in told:
        read["headers"] = tuple((name, value) for name, value in told["headers"])
    if "validity" in told:
        read["validity"] = Validity(told["validity"])
    if "credential" in told:
        read["credential"] = Credential(told["credential"])
    return RequestCase(**read)
