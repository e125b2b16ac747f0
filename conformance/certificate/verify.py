"""Whether a certificate holds: who signed, until when, and whether the evidence gives what it says. Offline."""

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
    """What the reader knows: trusted keys (None: nobody was named), what was taken back, which nonces were used."""

    trusted: tuple[Trusted, ...] | None = None
    revoked: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Verified:
    """What is wrong, what was not examined, and the certificate as far as it can be read."""

    faults: tuple[Rejection, ...]
    unexamined: tuple[str, ...] = ()
    statement: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    signer: str = ""


def verify(
    path: Path, folder: Path | None, known: VerifierKnowledge, day: date, specs: Sequence[Path] = ()
) -> Verified:
    """Verify a certificate; with a bundle, make every verdict again from its bytes."""
    try:
        envelope = dsse.read(path.read_bytes())
    except EnvelopeError as error:
        return Verified((Rejection("ENVELOPE_MALFORMED", f"{path}: {error}"),))
    try:
        told = parse(envelope.payload)
    except StatementError as error:
        return Verified((Rejection("STATEMENT_UNKNOWN", str(error)),), id=envelope.id)
    ours = told["predicate"][OURS]
    signer, faults = _signature(envelope, str(ours["public_key"]), known)
    faults += _validity(ours, envelope, known, day, signer)
    if not any(one.code == "SIGNATURE_INVALID" for one in faults):
        faults += _pages(path, told, envelope.id)
    unexamined = [] if known.trusted is not None else ["whose key signed it: name those you trust with --trust"]
    if any(one.code == "SIGNATURE_INVALID" for one in faults):
        folder, unexamined = None, [*unexamined, "the evidence: what is said of it was not signed"]
    elif folder is None:
        unexamined.append("the evidence: name the bundle with --bundle")
    if folder is not None:
        more, needs = _evidence(folder, told, specs)
        faults += more
        unexamined += [f"every verdict: {needs}"] if needs else []
    return Verified(tuple(faults), tuple(unexamined), told, envelope.id, signer.name if signer else "")


def _signature(envelope: Envelope, own: str, known: VerifierKnowledge) -> tuple[Trusted | None, list[Rejection]]:
    """Whose signature it is. Its `own` key shows that nothing was changed since, and nothing of who signed."""
    names = {name for name, _ in envelope.signatures}
    hints = ", ".join(f"{name:.16}…" for name in sorted(names))
    try:
        fits = bool(envelope.signed_by([keys.public(*own.split(" ", 1))]))
    except (KeyFileError, TypeError):
        fits = False
    if not fits:
        return None, [Rejection("SIGNATURE_INVALID", f"the signature of {hints} is not one of what is said")]
    if known.trusted is None:
        return None, []
    signed = envelope.signed_by([one.key for one in known.trusted])
    if not signed:
        told = f"it is signed by {hints}, none of the {len(known.trusted)} trusted keys"
        return None, [Rejection("KEY_UNTRUSTED", told)]
    return next(one for one in known.trusted if one.key == signed[0]), []


def _validity(
    ours: Mapping[str, Any], envelope: Envelope, known: VerifierKnowledge, day: date, signer: Trusted | None
) -> Iterator[Rejection]:
    issued, last = datetime.fromisoformat(ours["issued_at"]).date(), date.fromisoformat(ours["expires_on"])
    if issued > day + timedelta(days=1):  # somewhere it is tomorrow already
        yield Rejection("NOT_YET_VALID", f"it was issued on {issued}; today is {day}")
    if day > last:
        yield Rejection("EXPIRED", f"its last day was {last}; today is {day}")
    if (last - issued).days > MOST_DAYS:
        yield Rejection("EXPIRY_TOO_FAR", f"it would hold from {issued} to {last}; at most are {MOST_DAYS} days")
    nonce = str(ours["plan"]["nonce"])
    for name in (envelope.id, nonce, ours["keyid"], *(name for name, _ in envelope.signatures)):
        if name in known.revoked:
            yield Rejection("REVOKED", f"{name[:16]}… is on the list: {known.revoked[name] or 'without a reason'}")
            break
    others = known.seen.get(nonce, set()) - {envelope.id}
    if others:
        yield Rejection("NONCE_REUSED", f"the nonce {nonce:.40} was used by the certificate {min(others):.16}… already")
    if signer and trust.exceeds(ours["assurance"], signer.most):
        yield Rejection("ASSURANCE_EXCEEDED", f"it says {ours['assurance']}; the key is trusted up to {signer.most}")
    if ours["assurance"] != trust.SELF and ours["plan"]["seed"] != seed_of(nonce):
        yield Rejection("SEED_CHOSEN", f"the seed is {ours['plan']['seed']}; expected {seed_of(nonce)}, of the nonce")
    if ours["keyid"] not in {name for name, _ in envelope.signatures}:
        yield Rejection("SIGNATURE_INVALID", f"the statement names the key {ours['keyid']:.16}…, the envelope does not")


def _pages(path: Path, told: Mapping[str, Any], id: str) -> Iterator[Rejection]:  # noqa: A002
    """Whether what people read beside the certificate is what it says; another build draws otherwise."""
    if told["predicate"][OURS]["suite"] != build():
        return
    for name, content in page.drawn(told, id).items():
        beside = path.with_name(name)
        if beside.is_file() and beside.read_bytes() != content:
            yield Rejection(
                "PAGE_DIFFERS", f"{beside} is not what the certificate gives; `conformance certify` draws it"
            )


def _evidence(folder: Path, told: Mapping[str, Any], specs: Sequence[Path]) -> tuple[list[Rejection], str]:
    faults = [*bundle.compared(folder, signed_for(told))]
    found = examine(folder, specs)
    named = {_place(one) for one in faults}
    faults += [one for one in found.faults if _place(one) not in named]
    faults += _bound(found, told)
    complete = found.contract is not None and not found.needs
    if complete:
        now, said = derived(found), told["predicate"]
        changed = [name for name in PARTS if now[name] != said.get(name)]
        changed += [name for name, value in now[OURS].items() if said[OURS].get(name) != value]
        told_already = {"evidence": "EVIDENCE_DIFFERS", "plan": "PLAN_SWAPPED"}
        known = {one.code for one in faults}
        changed = [name for name in changed if told_already.get(name) not in known]
        faults += [Rejection("STATEMENT_DIFFERS", f"{name} is not what the recorded bytes give") for name in changed]
    return faults, found.needs


def _place(fault: Rejection) -> tuple[str, str]:
    """Code and file of a fault, by which it is told once only."""
    return fault.code, fault.message.partition(" ")[0] if fault.code.startswith("FILE_") else fault.message


def _bound(found: Examined, told: Mapping[str, Any]) -> Iterator[Rejection]:
    """Whether plan and recording are the ones that the certificate names."""
    ours = told["predicate"][OURS]
    if found.lock is not None and found.lock.sha256 != ours["plan"]["sha256"]:
        there = str(ours["plan"]["sha256"])
        yield Rejection(
            "PLAN_SWAPPED", f"plan.lock is {found.lock.sha256:.12}…, the certificate speaks of {there:.12}…"
        )
    if found.lock is not None and found.lock.nonce != ours["plan"]["nonce"]:
        yield Rejection("NONCE_DIFFERS", f"the plan's nonce is {found.lock.nonce!r:.40}, another one was certified")
    footer = found.recording.footer if found.recording is not None else None
    if footer is not None and footer["before"] != ours["evidence"]["last"]:
        here, there = str(footer["before"]), str(ours["evidence"]["last"])
        yield Rejection("EVIDENCE_DIFFERS", f"the chain ends in {here:.12}…, the certificate speaks of {there:.12}…")
