"""The envelope: DSSE 1.0.2 around an in-toto statement. The signature covers type and payload bytes as they are.

DSSE allows many serialisations of an envelope. A certificate has exactly one, so that no byte of its file can change
unnoticed; any DSSE tool can read it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.certificate.keys import PrivateKey, PublicKey
from conformance.recording.canonical_json import canonical, digest

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
MOST_BYTES: Final = 4 * 1024 * 1024  # a certificate of the largest contract has less than 200 kB


class EnvelopeError(ValueError):
    """Bytes that are not an envelope as `written` writes it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload and its signatures, each with the key id that it names."""

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    @property
    def id(self) -> str:
        """The id of the certificate: the hash of the signed payload."""
        return digest(self.payload)

    def signed_by(self, keys: Sequence[PublicKey]) -> list[PublicKey]:
        """Those of the keys that made a valid signature; the key ids in the envelope decide nothing."""
        message = pae(PAYLOAD_TYPE, self.payload)
        return [key for key in keys if any(key.verifies(signature, message) for _, signature in self.signatures)]


def content(path: Path) -> bytes:
    """The bytes of a certificate; EnvelopeError where the file is larger than any certificate."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise EnvelopeError(f"larger than {MOST_BYTES:,} bytes, so no certificate")
    return data


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: type and payload with their lengths, so that they cannot be confused."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, key: PrivateKey) -> Envelope:
    """An envelope of the payload with one signature."""
    return Envelope(payload, ((key.public.id, key.sign(pae(PAYLOAD_TYPE, payload))),))


def written(envelope: Envelope) -> bytes:
    """The envelope as bytes."""
    signatures = [{"keyid": name, "sig": b64encode(data).decode("ascii")} for name, data in envelope.signatures]
    payload = b64encode(envelope.payload).decode("ascii")
    return canonical({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": signatures}) + b"\n"


def read(data: bytes) -> Envelope:
    """An envelope from its bytes; EnvelopeError for any other form than `written` produces."""
    try:
        document: Any = json.loads(data)
        signatures = tuple(
            (str(entry["keyid"]), b64decode(entry["sig"], validate=True)) for entry in document["signatures"]
        )
        envelope = Envelope(b64decode(document["payload"], validate=True), signatures)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EnvelopeError(f"not a DSSE envelope ({type(error).__name__}: {error})") from None
    if document.get("payloadType") != PAYLOAD_TYPE:
        raise EnvelopeError(f"payloadType is {document.get('payloadType')!r}; expected {PAYLOAD_TYPE!r}")
    if len(signatures) != 1 or written(envelope) != data:
        raise EnvelopeError("not in the form that `certify` writes, with one signature; it was changed")
    return envelope
