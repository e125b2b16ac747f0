"""Which checks cannot judge a response because the recording lacks what they look at.

A violation there would be one of the recorder. Recordings of this suite lack nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from conformance.judge.catalogue import Check
from conformance.model import Requirement
from conformance.model.exchange import Exchange, Unrecorded

_AREAS: Final[Mapping[str, Unrecorded]] = {
    "framing": Unrecorded.FRAMING,
    "headers": Unrecorded.HEADERS,
    "timing": Unrecorded.TIMES,
}
_CHECKS: Final[Mapping[str, frozenset[Unrecorded]]] = {
    "stream_declares_event_stream": frozenset({Unrecorded.HEADERS}),
    "plain_declares_json": frozenset({Unrecorded.HEADERS}),
    "stream_carries_no_error": frozenset(),
    "created_agrees_with_the_clock": frozenset({Unrecorded.HEADERS}),
    "error_is_json": frozenset({Unrecorded.HEADERS, Unrecorded.FRAMING}),
    "response_is_complete": frozenset({Unrecorded.FRAMING}),
    "error_has_envelope": frozenset({Unrecorded.NULLS}),
    "first_echo_logprob_is_null_or_number": frozenset({Unrecorded.NULLS}),
    "other_chunks_carry_null_usage": frozenset({Unrecorded.NULLS}),
}
"""What a check looks at, unless its area says it."""
_PRESENCE: Final = frozenset({"required", "not_null"})
"""The keywords of rows that judge whether a member is there, and whether it is null."""


def looks_at(requirement: Requirement, check: Check) -> frozenset[Unrecorded]:
    """What a response must show for this requirement to be judged, of what a recorder may lose."""
    if requirement.params.get("keyword") in _PRESENCE:
        return frozenset({Unrecorded.NULLS})
    area = _AREAS.get(check.area)
    return _CHECKS.get(check.name, frozenset({area}) if area else frozenset())


def is_unrecorded(requirement: Requirement, check: Check, x: Exchange) -> bool:
    """Whether the recording of a response lacks what the check looks at."""
    return bool(x.last.unrecorded) and not x.last.unrecorded.isdisjoint(looks_at(requirement, check))
