"""A bundle → its certificate: refused with reasons, or the envelope, a page for people and a badge."""

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
    """A certificate with what is drawn from it, or why there is none."""

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
    """Certify a bundle. `nonce` is the one that the signer gave, `secrets` must not be found in the files."""
    found = examine(folder, specs, secrets)
    faults = [*found.faults, *_demanded(found, terms, nonce)]
    if found.needs:
        faults.append(Rejection("SUITE_DIFFERS", found.needs))
    if faults:
        return Issued(tuple(faults), {}, {})
    told = statement(found, bundle.hashes(folder), terms)
    envelope = dsse.sign(canonical(told), key)
    files = {CERTIFICATE: dsse.written(envelope), **page.drawn(told, envelope.id)}
    return Issued((), told, files)


def _demanded(found: Examined, terms: CertificateTerms, nonce: str | None) -> Iterator[Rejection]:
    """What a level of assurance asks for beyond a bundle that is whole."""
    if found.lock is None:
        return
    lock: PlanLock = found.lock
    if lock.document["suite"] != build():
        made = lock.document["suite"]
        yield Rejection(
            "SUITE_DIFFERS", f"the plan was made by {made['version']} ({made['sha256']:.8}); install that one"
        )
    if lock.document["profile"] != PROFILE:
        yield Rejection("PLAN_DEPARTED", f"the plan has the profile {lock.document['profile']}; certified is {PROFILE}")
    if not lock.document["hostile"]:
        yield Rejection("PLAN_DEPARTED", "the plan leaves hostile requests out, and a certificate speaks of them")
    if nonce is not None and nonce != lock.nonce:
        yield Rejection("NONCE_DIFFERS", f"the plan's nonce is {lock.nonce!r:.40}, given was {nonce!r:.40}")
    if terms.assurance == SELF:
        return
    if nonce is None:
        yield Rejection(
            "NONCE_DIFFERS", f"{terms.assurance} needs the nonce that the signer gave; name it with --nonce"
        )
    if lock.document["seed"] != seed_of(lock.nonce):
        yield Rejection(
            "SEED_CHOSEN", f"the seed is {lock.document['seed']}; expected {seed_of(lock.nonce)}, of the nonce"
        )
