"""The envelope: DSSE 1.0.2 around an in-toto statement. Signed are type and payload together, never a re-reading.

DSSE lets an envelope be written in many ways. A certificate has one form, so that no byte of its file is without
meaning; anybody's DSSE tools read it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.certificate.keys import Private, Public
from conformance.recording.canonical_json import canonical, digest

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


class EnvelopeError(ValueError):
    """Bytes that are no envelope of ours."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload, and its signatures with the hint of whose they are."""

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    @property
    def id(self) -> str:
        """What a certificate is called in lists: the hash of what was signed."""
        return digest(self.payload)

    def signed_by(self, keys: Sequence[Public]) -> list[Public]:
        """The keys of these whose signature fits; the hints decide nothing."""
        said = pae(PAYLOAD_TYPE, self.payload)
        return [key for key in keys if any(key.verifies(signature, said) for _, signature in self.signatures)]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding: type and payload with their lengths, so that one cannot be taken for the other."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, key: Private) -> Envelope:
    """The payload in an envelope with one signature."""
    return Envelope(payload, ((key.public.id, key.sign(pae(PAYLOAD_TYPE, payload))),))


def written(envelope: Envelope) -> bytes:
    """The one form of an envelope."""
    signatures = [{"keyid": name, "sig": b64encode(data).decode("ascii")} for name, data in envelope.signatures]
    payload = b64encode(envelope.payload).decode("ascii")
    return canonical({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": signatures}) + b"\n"


def read(data: bytes) -> Envelope:
    """An envelope from its bytes; EnvelopeError for any other form than `written` gives."""
    try:
        told: Any = json.loads(data)
        signatures = tuple((str(one["keyid"]), b64decode(one["sig"], validate=True)) for one in told["signatures"])
        found = Envelope(b64decode(told["payload"], validate=True), signatures)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EnvelopeError(f"it is no DSSE envelope ({type(error).__name__}: {error})") from None
    if told.get("payloadType") != PAYLOAD_TYPE:
        raise EnvelopeError(f"payloadType is {told.get('payloadType')!r}; expected {PAYLOAD_TYPE!r}")
    if not signatures or written(found) != data:
        raise EnvelopeError("it is not written as `certify` writes it; it was changed")
    return found
