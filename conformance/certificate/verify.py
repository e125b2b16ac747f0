"""Whether a certificate is valid: its signature, its dates, and whether its evidence supports it. Works offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from conformance.certificate import bundle, dsse, keys, page, trust
from conformance.certificate.demands import unmet
from conformance.certificate.dsse import Envelope, EnvelopeError
from conformance.certificate.examine import Examined, examine
from conformance.certificate.keys import KeyFileError
from conformance.certificate.reasons import Rejection
from conformance.certificate.statement import CERTIFIED, MOST_DAYS, StatementError, derived, parse, signed_for
from conformance.certificate.trust import Trusted
from conformance.recording.build import build

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
    signer: Trusted | None = None
    examined: bool = False  # every number in the statement was derived again from the bundle


def verify(
    path: Path, folder: Path | None, known: VerifierKnowledge, day: date, specs: Sequence[Path] = ()
) -> Verified:
    """Verify a certificate; with a bundle, derive every verdict again from its bytes."""
    try:
        envelope = dsse.read(dsse.content(path))
    except EnvelopeError as error:
        return Verified((Rejection("ENVELOPE_MALFORMED", f"{path}: {error}"),))
    try:
        document = parse(envelope.payload)
    except StatementError as error:
        return Verified((Rejection("STATEMENT_UNKNOWN", str(error)),), id=envelope.id)
    certified = document["predicate"][CERTIFIED]
    signer, faults = _signature(envelope, certified, known)
    faults += _validity(certified, envelope, known, day, signer)
    unexamined = [] if known.trusted is not None else ["who signed it: give the keys you trust with --trust"]
    forged = any(fault.code == "SIGNATURE_INVALID" for fault in faults)
    drawn = {name: content for name in page.MADE if (content := path.with_name(name)).is_file()}
    if certified["suite"] != build():
        unexamined += [f"{name}: another build made it, if the certificate is right" for name in drawn]
    elif not forged:
        faults += _pages(drawn, document, envelope.id)
    if forged:
        folder, unexamined = None, [*unexamined, "the evidence: the statement about it is not signed"]
    elif folder is None:
        unexamined.append("the evidence: give the bundle with --bundle")
    needs = ""
    if folder is not None:
        evidence_faults, needs = _evidence(folder, document, specs)
        faults += evidence_faults
        unexamined += [f"every verdict: {needs}"] if needs else []
    derived_again = folder is not None and not faults and not needs
    return Verified(tuple(faults), tuple(unexamined), document, envelope.id, signer, derived_again)


def _signature(
    envelope: Envelope, certified: Mapping[str, Any], known: VerifierKnowledge
) -> tuple[Trusted | None, list[Rejection]]:
    """The trusted key that signed. The key in the certificate proves integrity, but not who signed."""
    hint = envelope.signatures[0][0]
    try:
        stated_key = keys.parse_public(certified["public_key"])
    except KeyFileError as error:
        return None, [Rejection("SIGNATURE_INVALID", str(error))]
    if not envelope.signed_by([stated_key]):
        return None, [Rejection("SIGNATURE_INVALID", f"the signature of {hint:.16}… is not valid for the payload")]
    faults = [
        Rejection(
            "SIGNATURE_INVALID", f"{source} names the key {name:.16}…; the key that signed is {stated_key.id:.16}…"
        )
        for source, name in (("the statement", str(certified["keyid"])), ("the envelope", hint))
        if name != stated_key.id
    ]
    if known.trusted is None:
        return None, faults
    signer = next((trusted for trusted in known.trusted if trusted.key == stated_key), None)
    if signer is None:
        message = f"it is signed by {stated_key.id:.16}…, which is none of the {len(known.trusted)} trusted keys"
        faults.append(Rejection("KEY_UNTRUSTED", message))
    return signer, faults


def _validity(
    certified: Mapping[str, Any], envelope: Envelope, known: VerifierKnowledge, day: date, signer: Trusted | None
) -> Iterator[Rejection]:
    issued, last = datetime.fromisoformat(certified["issued_at"]).date(), date.fromisoformat(certified["expires_on"])
    if issued > day + timedelta(days=1):  # time zones: it may already be tomorrow at the issuer
        yield Rejection("NOT_YET_VALID", f"it was issued on {issued}; today is {day}")
    if day > last:
        yield Rejection("EXPIRED", f"its last day was {last}; today is {day}")
    if (last - issued).days > MOST_DAYS:
        yield Rejection("EXPIRY_TOO_FAR", f"it is valid from {issued} to {last}; expected at most {MOST_DAYS} days")
    nonce = str(certified["plan"]["nonce"])
    for name in (envelope.id, nonce, *_key_ids(certified, envelope)):
        reason = known.revoked.get(name, known.revoked.get(name.lower()))
        if reason is not None:
            yield Rejection("REVOKED", f"{name[:16]}… is revoked: {reason or 'no reason given'}")
            break
    others = known.seen.get(nonce, set()) - {envelope.id}
    if others:
        yield Rejection("NONCE_REUSED", f"the nonce {nonce:.40} was already used by the certificate {min(others):.16}…")
    if signer and trust.exceeds(certified["assurance"], signer.most):
        yield Rejection(
            "ASSURANCE_EXCEEDED", f"it claims {certified['assurance']}; the key is trusted up to {signer.most}"
        )


def _key_ids(certified: Mapping[str, Any], envelope: Envelope) -> Iterator[str]:
    """The id that follows from the key itself, and those that are only stated."""
    with suppress(KeyFileError):
        yield keys.parse_public(certified["public_key"]).id
    yield certified["keyid"]
    yield from (name for name, _ in envelope.signatures)


def _pages(made_files: Mapping[str, Path], document: Mapping[str, Any], certificate_id: str) -> Iterator[Rejection]:
    """Whether page and badge beside the certificate match it; only the same build draws the same bytes."""
    drawn = page.drawn(document, certificate_id)
    for name, path in made_files.items():
        if path.stat().st_size != len(drawn[name]) or path.read_bytes() != drawn[name]:
            yield Rejection("PAGE_DIFFERS", f"{path} does not match the certificate; `conformance certify` writes it")


def _evidence(folder: Path, document: Mapping[str, Any], specs: Sequence[Path]) -> tuple[list[Rejection], str]:
    """The faults of a bundle, and what of it cannot be examined here. Files that were not signed are not read."""
    faults = [*bundle.compared(folder, signed_for(document))]
    if faults:
        return faults, "files of the bundle are not those that were signed"
    examined = examine(folder, specs)
    certified = document["predicate"][CERTIFIED]
    faults = [*examined.faults, *_bound(examined, document)]
    faults += unmet(examined, certified["assurance"], datetime.fromisoformat(certified["issued_at"]))
    if examined.contract is not None and not examined.needs:
        now, signed = derived(examined), document["predicate"]
        changed = [name for name in PARTS if now[name] != signed.get(name)]
        changed += [name for name, value in now[CERTIFIED].items() if signed[CERTIFIED].get(name) != value]
        reported_as = {"evidence": "EVIDENCE_DIFFERS", "plan": "PLAN_SWAPPED"}
        codes = {fault.code for fault in faults}
        changed = [name for name in changed if reported_as.get(name) not in codes]
        faults += [
            Rejection("STATEMENT_DIFFERS", f"{name} does not follow from the recorded bytes") for name in changed
        ]
    return faults, examined.needs


def _bound(examined: Examined, document: Mapping[str, Any]) -> Iterator[Rejection]:
    """Whether plan and recording are the ones that the certificate names, whichever build made them."""
    certified = document["predicate"][CERTIFIED]
    for name in ("suite", "contract", "requirements", "claims"):
        if examined.lock is not None and examined.lock.document.get(name) != certified[name]:
            yield Rejection("STATEMENT_DIFFERS", f"{name} of the certificate is not that of plan.lock")
    if examined.lock is not None and examined.lock.sha256 != certified["plan"]["sha256"]:
        certified_plan = str(certified["plan"]["sha256"])
        yield Rejection(
            "PLAN_SWAPPED", f"plan.lock is {examined.lock.sha256:.12}…, certified was {certified_plan:.12}…"
        )
    if examined.lock is not None and examined.lock.nonce != certified["plan"]["nonce"]:
        yield Rejection("NONCE_DIFFERS", f"the plan's nonce is {examined.lock.nonce:.40}; another one was certified")
    footer = examined.recording.footer if examined.recording is not None else None
    if footer is not None and footer["before"] != certified["evidence"]["last"]:
        recorded_end, certified_end = str(footer["before"]), str(certified["evidence"]["last"])
        yield Rejection(
            "EVIDENCE_DIFFERS", f"the chain ends in {recorded_end:.12}…, certified was {certified_end:.12}…"
        )
