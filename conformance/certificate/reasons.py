"""Why a certificate is refused or not valid: each reason has a code for machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REASONS: Final = {
    "ENVELOPE_MALFORMED": "certificate.json is not, byte for byte, an envelope as `certify` writes it",
    "SIGNATURE_INVALID": "no signature of the named key is valid for the payload",
    "KEY_UNTRUSTED": "none of the trusted keys signed it",
    "ASSURANCE_EXCEEDED": "the key is not trusted for the claimed level of assurance",
    "STATEMENT_UNKNOWN": "the signed statement is not a certificate of this format",
    "NOT_YET_VALID": "its date of issue is in the future",
    "EXPIRED": "its last day has passed",
    "EXPIRY_TOO_FAR": "it is valid for longer than a certificate may be",
    "REVOKED": "it, its key or its nonce is on the revocation list",
    "NONCE_REUSED": "another certificate has the same nonce: one plan was submitted twice",
    "PAGE_DIFFERS": "the page or badge beside the certificate contradicts it",
    "FILE_MISSING": "a signed file is not in the bundle",
    "FILE_CHANGED": "a file of the bundle is not the one that was signed",
    "FILE_STRANGE": "the bundle contains a file that no run writes, or that was not signed",
    "BUNDLE_TOO_LARGE": "a file, or what replies hold once decompressed, is larger than any run records",
    "BUNDLE_MALFORMED": "a file of the bundle does not have the format that a run writes",
    "CHAIN_BROKEN": "a record was changed, dropped, added or moved",
    "EVIDENCE_TORN": "the recording was not completed",
    "EVIDENCE_DIFFERS": "the recording is not the one that was certified",
    "ATTEMPT_MISSING": "a request was sent, and its outcome is not in the recording",
    "ATTEMPT_SUPERSEDED": "a reply was followed by another attempt, although no retry may replace it",
    "RECORDS_DISORDERED": "records are not in the order in which a run writes them",
    "TIMES_DISORDERED": "times do not follow the order of the run: records of another run were inserted",
    "RUN_INCOMPLETE": "planned requests were not sent",
    "PLAN_MISSING": "the run was made without a locked plan",
    "PLAN_CHANGED": "plan.lock does not match the hash in it",
    "PLAN_SWAPPED": "plan.lock is not the plan that the run was made with",
    "DATES_DISORDERED": "the dates of run, replies and certificate contradict one another",
    "RUN_TOO_OLD": "the run was made too long before it was certified",
    "PLAN_LATE": "the plan was made after the run began",
    "PLAN_DEPARTED": "what was sent is not what the plan requires, given the replies",
    "NONCE_DIFFERS": "the nonce is not the one that was given, or not the same in all files",
    "SEED_CHOSEN": "the seed is not derived from the nonce, so it may have been selected",
    "SET_DIFFERS": "the requirement set is not the one that the plan names",
    "SUITE_DIFFERS": "this build of the suite is not the one that made the plan",
    "REQUIREMENT_OPEN": "a required verdict is missing or inconclusive",
    "SUITE_FAULT": "a check of the suite crashed",
    "WAIVED": "a failure is waived; certificates allow no waivers",
    "VERDICT_DIFFERS": "a recorded verdict does not follow from the recorded bytes",
    "RESULTS_DIFFER": "results.json does not follow from the recorded bytes",
    "STATEMENT_DIFFERS": "the certificate does not follow from the recorded bytes",
    "SECRET_FOUND": "a secret, or the canary in place of one, is in the files",
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """One problem: its code, and what was observed, in one line."""

    code: str
    message: str

    def __post_init__(self) -> None:
        """Every code must be documented."""
        if self.code not in REASONS:
            raise KeyError(self.code)

    def __str__(self) -> str:
        return f"{self.code}: {' '.join(self.message.split())}"
