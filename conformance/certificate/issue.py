"""A bundle → its certificate: refused with reasons, or the envelope, a page and a badge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.certificate import bundle, dsse, page
from conformance.certificate.demands import unmet
from conformance.certificate.examine import Examined, examine
from conformance.certificate.keys import PrivateKey
from conformance.certificate.reasons import Rejection
from conformance.certificate.statement import CertificateTerms, statement
from conformance.certificate.trust import SELF
from conformance.recording.canonical_json import canonical

CERTIFICATE: Final = "certificate.json"


@dataclass(frozen=True)
class Issued:
    """A certificate with its page and badge, or the reasons why there is none."""

    faults: tuple[Rejection, ...]
    statement: dict[str, Any]
    files: dict[str, bytes]


def issue(
    folder: Path,
    key: PrivateKey,
    terms: CertificateTerms,
    *,
    nonce: str | None,
    specs: Sequence[Path],
    secrets: Sequence[str],
) -> Issued:
    """Certify a bundle. `nonce` is the one that the signer gave; `secrets` must not occur in the files."""
    examined = examine(folder, specs, secrets)
    faults = [*examined.faults, *unmet(examined, terms.assurance, terms.issued_at), *_required(examined, terms, nonce)]
    if examined.needs:
        faults.append(Rejection("SUITE_DIFFERS", examined.needs))
    if faults:
        return Issued(tuple(faults), {}, {})
    signed = statement(examined, bundle.hashes(folder), terms)
    envelope = dsse.sign(canonical(signed), key)
    files = {CERTIFICATE: dsse.written(envelope), **page.drawn(signed, envelope.id)}
    return Issued((), signed, files)


def _required(examined: Examined, terms: CertificateTerms, nonce: str | None) -> Iterator[Rejection]:
    """What only the signer can know: the nonce that was given."""
    if examined.lock is None:
        return
    planned = examined.lock.nonce
    if nonce is not None and nonce != planned:
        yield Rejection("NONCE_DIFFERS", f"the plan's nonce is {planned:.40}; expected {nonce:.40}")
    if nonce is None and terms.assurance != SELF:
        yield Rejection(
            "NONCE_DIFFERS", f"{terms.assurance} needs the nonce that the signer gave; give it with --nonce"
        )
