"""Why a certificate is refused or does not hold: each reason with its own code, so that machines need not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REASONS: Final = {
    "ENVELOPE_MALFORMED": "certificate.json is not, byte for byte, an envelope as `certify` writes it",
    "SIGNATURE_INVALID": "no signature of the named key fits what is said",
    "KEY_UNTRUSTED": "none of the trusted keys has signed it",
    "ASSURANCE_EXCEEDED": "the key is not trusted for the level of assurance that is claimed",
    "STATEMENT_UNKNOWN": "the signed statement is no certificate of this format",
    "NOT_YET_VALID": "it says that it was issued in the future",
    "EXPIRED": "its last day is over",
    "EXPIRY_TOO_FAR": "it would hold for longer than a certificate may",
    "REVOKED": "it, its key or its nonce is on the list of what was taken back",
    "NONCE_REUSED": "another certificate has the same nonce: one plan, submitted twice",
    "PAGE_DIFFERS": "the page or badge beside the certificate says something else than the certificate",
    "FILE_MISSING": "a file that was signed for is not in the bundle",
    "FILE_CHANGED": "a file of the bundle is not the one that was signed for",
    "FILE_STRANGE": "the bundle holds a file that no run writes, or that was not signed for",
    "BUNDLE_MALFORMED": "a file of the bundle does not have the form that a run gives it",
    "CHAIN_BROKEN": "a record was changed, dropped, added or moved",
    "EVIDENCE_TORN": "the recording was never closed",
    "EVIDENCE_DIFFERS": "the recording is not the one that the certificate speaks of",
    "ATTEMPT_MISSING": "a request went out, and what came of it is not in the recording",
    "RECORDS_DISORDERED": "records do not stand in the order in which a run makes them",
    "TIMES_DISORDERED": "times do not follow the order of the run: records of another run are among them",
    "RUN_INCOMPLETE": "requests that were planned were not sent",
    "PLAN_MISSING": "the run was made without a plan that was fixed beforehand",
    "PLAN_CHANGED": "plan.lock does not have the hash that it gives itself",
    "PLAN_SWAPPED": "plan.lock is not the plan that the run was made with",
    "PLAN_LATE": "the plan was made after the run began",
    "PLAN_DEPARTED": "what was sent is not what the plan asks for, given the replies",
    "NONCE_DIFFERS": "the nonce is not the one that was given, or not the same everywhere",
    "SEED_CHOSEN": "the seed does not follow from the nonce, so it may have been tried out",
    "SET_DIFFERS": "the set of requirements is not the one that the plan names",
    "SUITE_DIFFERS": "another build of the suite than the plan's would sign",
    "REQUIREMENT_OPEN": "a required verdict is missing or was not settled",
    "SUITE_FAULT": "a check of the suite crashed",
    "WAIVED": "a failure is waived; a certificate knows no waivers",
    "VERDICT_DIFFERS": "a recorded verdict is not what the recorded bytes give",
    "RESULTS_DIFFER": "results.json says something else than the recorded bytes give",
    "STATEMENT_DIFFERS": "the certificate says something else than the recorded bytes give",
    "SECRET_FOUND": "a secret, or the canary planted for one, is in the files",
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """One thing that is wrong: its code, and what was observed, in one line."""

    code: str
    message: str

    def __post_init__(self) -> None:
        """A code that nobody documented must not get out."""
        if self.code not in REASONS:
            raise KeyError(self.code)

    def __str__(self) -> str:
        return f"{self.code}: {' '.join(self.message.split())}"
