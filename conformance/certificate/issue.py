"""A bundle → its certificate: refused with reasons, or the envelope, a page and a badge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.certificate import bundle, dsse, page
from conformance.certificate.examine import Examined, examine
from conformance.certificate.keys import Private
from conformance.certificate.reasons import Rejection
from conformance.certificate.statement import CertificateTerms, statement
from conformance.certificate.trust import SELF
from conformance.recording.build import build
from conformance.recording.canonical_json import canonical
from conformance.recording.plan_lock import PlanLock, seed_of

CERTIFICATE: Final = "certificate.json"
PROFILE: Final = "certify"


@dataclass(frozen=True)
class Issued:
    """A certificate with its page and badge, or the reasons why there is none."""

    faults: tuple[Rejection, ...]
    statement: dict[str, Any]
    files: dict[str, bytes]


def issue(
    folder: Path,
    key: Private,
    terms: CertificateTerms,
    *,
    nonce: str | None,
    specs: Sequence[Path],
    secrets: Sequence[str],
) -> Issued:
    """Certify a bundle. `nonce` is the one that the signer gave; `secrets` must not occur in the files."""
    examined = examine(folder, specs, secrets)
    faults = [*examined.faults, *_required(examined, terms, nonce)]
    if examined.needs:
        faults.append(Rejection("SUITE_DIFFERS", examined.needs))
    if faults:
        return Issued(tuple(faults), {}, {})
    signed = statement(examined, bundle.hashes(folder), terms)
    envelope = dsse.sign(canonical(signed), key)
    files = {CERTIFICATE: dsse.written(envelope), **page.drawn(signed, envelope.id)}
    return Issued((), signed, files)


def _required(examined: Examined, terms: CertificateTerms, nonce: str | None) -> Iterator[Rejection]:
    """What a certificate and its level of assurance require beyond a bundle without faults."""
    if examined.lock is None:
        return
    lock: PlanLock = examined.lock
    if lock.document["suite"] != build():
        made = lock.document["suite"]
        yield Rejection(
            "SUITE_DIFFERS", f"the plan was made by {made['version']} ({made['sha256']:.8}); install that version"
        )
    if lock.document["profile"] != PROFILE:
        yield Rejection("PLAN_DEPARTED", f"the plan has the profile {lock.document['profile']}; expected {PROFILE}")
    if not lock.document["hostile"]:
        yield Rejection("PLAN_DEPARTED", "the plan leaves out adversarial requests, which a certificate covers")
    if nonce is not None and nonce != lock.nonce:
        yield Rejection("NONCE_DIFFERS", f"the plan's nonce is {lock.nonce:.40}; expected {nonce:.40}")
    if terms.assurance == SELF:
        return
    if nonce is None:
        yield Rejection(
            "NONCE_DIFFERS", f"{terms.assurance} needs the nonce that the signer gave; give it with --nonce"
        )
    if lock.document["seed"] != seed_of(lock.nonce):
        yield Rejection(
            "SEED_CHOSEN",
            f"the seed is {lock.document['seed']}; expected {seed_of(lock.nonce)}, derived from the nonce",
        )
