"""Converts cases, attempts and phases to JSON and back without loss."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from conformance.model import Credential, Ending, Membership, Phase, RequestCase, Validity
from conformance.model.exchange import Attempt, Piece, Unrecorded

_CONTROLS: Final = bytes(code for code in (*range(32), 127) if chr(code) not in "\b\t\n\f\r")


def bytes_out(data: bytes) -> Any:
    """A string for valid UTF-8 that JSON does not write much longer, otherwise an object with base64."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}
    controls = len(data) - len(data.translate(None, _CONTROLS))  # each is written as six characters
    return {"base64": b64encode(data).decode("ascii")} if controls > len(data) // 4 else text


def bytes_in(value: Any) -> bytes:
    """The inverse of `bytes_out`."""
    return value.encode("utf-8") if isinstance(value, str) else b64decode(value["base64"], validate=True)


def attempt_out(attempt: Attempt) -> dict[str, Any]:
    """An attempt as JSON, with its members in reading order."""
    return {
        "started_at": attempt.started_at,
        "status": attempt.status,
        "headers": attempt.headers,
        "pieces": [[piece.at, bytes_out(piece.data)] for piece in attempt.pieces],
        "ending": attempt.ending,
        "error": attempt.error,
        "elapsed": attempt.elapsed,
        "http_version": attempt.http_version,
        **({"unrecorded": sorted(attempt.unrecorded)} if attempt.unrecorded else {}),
    }


def attempt_in(record: Mapping[str, Any]) -> Attempt:
    """The inverse of `attempt_out`."""
    return Attempt(
        started_at=record["started_at"],
        status=record["status"],
        headers=tuple((name, value) for name, value in record["headers"]),
        pieces=tuple(Piece(at, bytes_in(data)) for at, data in record["pieces"]),
        ending=Ending(record["ending"]),
        error=record["error"],
        elapsed=record["elapsed"],
        http_version=record["http_version"],
        unrecorded=frozenset(map(Unrecorded, record.get("unrecorded", ()))),
    )


def phase_in(record: Mapping[str, Any]) -> Phase:
    """The phase of a `wave` record."""
    return Phase(record["name"], tuple(map(case_in, record["cases"])), record["serial"], record["burst"])


_DEFAULTS: Final = {field.name: field.default for field in fields(RequestCase)}


def case_out(case: RequestCase) -> dict[str, Any]:
    """A case as JSON; members with their default value are omitted."""
    record = {name: value for name in _DEFAULTS if (value := getattr(case, name)) != _DEFAULTS[name]}
    record["content"] = bytes_out(case.content)
    if case.groups:
        record["groups"] = [[group.kind, group.key, group.role] for group in case.groups]
    return record


def case_in(record: Mapping[str, Any]) -> RequestCase:
    """The inverse of `case_out`; omitted members get their default."""
    members = dict(record)
    members["content"] = bytes_in(record["content"])
    members["groups"] = tuple(Membership(*group) for group in record.get("groups", ()))
    if "breaks" in record:
        members["breaks"] = tuple(record["breaks"])
    if "headers" in record:
        members["headers"] = tuple((name, value) for name, value in record["headers"])
    if "validity" in record:
        members["validity"] = Validity(record["validity"])
    if "credential" in record:
        members["credential"] = Credential(record["credential"])
    return RequestCase(**members)
