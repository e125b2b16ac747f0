"""Whether a certificate is valid: its signature, its dates, and whether its evidence supports it. Works offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from conformance.certificate import bundle, dsse, keys, page, trust
from conformance.certificate.dsse import Envelope, EnvelopeError
from conformance.certificate.examine import Examined, examine
from conformance.certificate.keys import KeyFileError
from conformance.certificate.reasons import Rejection
from conformance.certificate.statement import MOST_DAYS, OURS, StatementError, derived, parse, signed_for
from conformance.certificate.trust import Trusted
from conformance.recording.build import build
from conformance.recording.plan_lock import seed_of

PARTS: Final = ("result", "configuration", "passedTests", "warnedTests", "failedTests")


@dataclass(frozen=True, slots=True)
class VerifierKnowledge:
    """What the verifier knows: trusted keys (None: none were given), revocations, nonces that were used."""

    trusted: tuple[Trusted, ...] | None = None
    revoked: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Verified:
    """What is wrong, what was not examined, and the certificate if it can be read."""

    faults: tuple[Rejection, ...]
    unexamined: tuple[str, ...] = ()
    statement: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    signer: str = ""


def verify(
    path: Path, folder: Path | None, known: VerifierKnowledge, day: date, specs: Sequence[Path] = ()
) -> Verified:
    """Verify a certificate; with a bundle, derive every verdict again from its bytes."""
    try:
        envelope = dsse.read(path.read_bytes())
    except EnvelopeError as error:
        return Verified((Rejection("ENVELOPE_MALFORMED", f"{path}: {error}"),))
    try:
        document = parse(envelope.payload)
    except StatementError as error:
        return Verified((Rejection("STATEMENT_UNKNOWN", str(error)),), id=envelope.id)
    ours = document["predicate"][OURS]
    signer, faults = _signature(envelope, str(ours["public_key"]), known)
    faults += _validity(ours, envelope, known, day, signer)
    if not any(fault.code == "SIGNATURE_INVALID" for fault in faults):
        faults += _pages(path, document, envelope.id)
    unexamined = [] if known.trusted is not None else ["who signed it: give the keys you trust with --trust"]
    if any(fault.code == "SIGNATURE_INVALID" for fault in faults):
        folder, unexamined = None, [*unexamined, "the evidence: the statement about it is not signed"]
    elif folder is None:
        unexamined.append("the evidence: give the bundle with --bundle")
    if folder is not None:
        evidence_faults, needs = _evidence(folder, document, specs)
        faults += evidence_faults
        unexamined += [f"every verdict: {needs}"] if needs else []
    return Verified(tuple(faults), tuple(unexamined), document, envelope.id, signer.name if signer else "")


def _signature(envelope: Envelope, own: str, known: VerifierKnowledge) -> tuple[Trusted | None, list[Rejection]]:
    """The trusted key that signed. The certificate's `own` key proves integrity, but not who signed."""
    names = {name for name, _ in envelope.signatures}
    hints = ", ".join(f"{name:.16}…" for name in sorted(names))
    try:
        valid = bool(envelope.signed_by([keys.public(*own.split(" ", 1))]))
    except (KeyFileError, TypeError):
        valid = False
    if not valid:
        return None, [Rejection("SIGNATURE_INVALID", f"the signature of {hints} is not valid for the payload")]
    if known.trusted is None:
        return None, []
    signers = envelope.signed_by([trusted.key for trusted in known.trusted])
    if not signers:
        message = f"it is signed by {hints}, which is none of the {len(known.trusted)} trusted keys"
        return None, [Rejection("KEY_UNTRUSTED", message)]
    return next(trusted for trusted in known.trusted if trusted.key == signers[0]), []


def _validity(
    ours: Mapping[str, Any], envelope: Envelope, known: VerifierKnowledge, day: date, signer: Trusted | None
) -> Iterator[Rejection]:
    issued, last = datetime.fromisoformat(ours["issued_at"]).date(), date.fromisoformat(ours["expires_on"])
    if issued > day + timedelta(days=1):  # time zones: it may already be tomorrow at the issuer
        yield Rejection("NOT_YET_VALID", f"it was issued on {issued}; today is {day}")
    if day > last:
        yield Rejection("EXPIRED", f"its last day was {last}; today is {day}")
    if (last - issued).days > MOST_DAYS:
        yield Rejection("EXPIRY_TOO_FAR", f"it is valid from {issued} to {last}; expected at most {MOST_DAYS} days")
    nonce = str(ours["plan"]["nonce"])
    for name in (envelope.id, nonce, ours["keyid"], *(name for name, _ in envelope.signatures)):
        if name in known.revoked:
            yield Rejection("REVOKED", f"{name[:16]}… is revoked: {known.revoked[name] or 'no reason given'}")
            break
    others = known.seen.get(nonce, set()) - {envelope.id}
    if others:
        yield Rejection("NONCE_REUSED", f"the nonce {nonce:.40} was already used by the certificate {min(others):.16}…")
    if signer and trust.exceeds(ours["assurance"], signer.most):
        yield Rejection("ASSURANCE_EXCEEDED", f"it claims {ours['assurance']}; the key is trusted up to {signer.most}")
    if ours["assurance"] != trust.SELF and ours["plan"]["seed"] != seed_of(nonce):
        yield Rejection("SEED_CHOSEN", f"the seed is {ours['plan']['seed']}; expected {seed_of(nonce)}")
    if ours["keyid"] not in {name for name, _ in envelope.signatures}:
        yield Rejection("SIGNATURE_INVALID", f"the statement names the key {ours['keyid']:.16}…, the envelope does not")


def _pages(path: Path, document: Mapping[str, Any], certificate_id: str) -> Iterator[Rejection]:
    """Whether page and badge beside the certificate match it; only the same build draws the same bytes."""
    if document["predicate"][OURS]["suite"] != build():
        return
    for name, content in page.drawn(document, certificate_id).items():
        beside = path.with_name(name)
        if beside.is_file() and beside.read_bytes() != content:
            yield Rejection("PAGE_DIFFERS", f"{beside} does not match the certificate; `conformance certify` writes it")


def _evidence(folder: Path, document: Mapping[str, Any], specs: Sequence[Path]) -> tuple[list[Rejection], str]:
    faults = [*bundle.compared(folder, signed_for(document))]
    examined = examine(folder, specs)
    reported = {_identity(fault) for fault in faults}
    faults += [fault for fault in examined.faults if _identity(fault) not in reported]
    faults += _bound(examined, document)
    if examined.contract is not None and not examined.needs:
        now, signed = derived(examined), document["predicate"]
        changed = [name for name in PARTS if now[name] != signed.get(name)]
        changed += [name for name, value in now[OURS].items() if signed[OURS].get(name) != value]
        reported_as = {"evidence": "EVIDENCE_DIFFERS", "plan": "PLAN_SWAPPED"}
        codes = {fault.code for fault in faults}
        changed = [name for name in changed if reported_as.get(name) not in codes]
        faults += [
            Rejection("STATEMENT_DIFFERS", f"{name} does not follow from the recorded bytes") for name in changed
        ]
    return faults, examined.needs


def _identity(fault: Rejection) -> tuple[str, str]:
    """Code and file of a fault, so that it is reported once."""
    return fault.code, fault.message.partition(" ")[0] if fault.code.startswith("FILE_") else fault.message


def _bound(examined: Examined, document: Mapping[str, Any]) -> Iterator[Rejection]:
    """Whether plan and recording are the ones that the certificate names."""
    ours = document["predicate"][OURS]
    if examined.lock is not None and examined.lock.sha256 != ours["plan"]["sha256"]:
        there = str(ours["plan"]["sha256"])
        yield Rejection("PLAN_SWAPPED", f"plan.lock is {examined.lock.sha256:.12}…, certified was {there:.12}…")
    if examined.lock is not None and examined.lock.nonce != ours["plan"]["nonce"]:
        yield Rejection("NONCE_DIFFERS", f"the plan's nonce is {examined.lock.nonce:.40}; another one was certified")
    footer = examined.recording.footer if examined.recording is not None else None
    if footer is not None and footer["before"] != ours["evidence"]["last"]:
        here, there = str(footer["before"]), str(ours["evidence"]["last"])
        yield Rejection("EVIDENCE_DIFFERS", f"the chain ends in {here:.12}…, certified was {there:.12}…")
