"""The statement: an in-toto test-result about one bundle, with what is ours under a name of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from conformance.certificate.examine import Examined
from conformance.certificate.keys import Public
from conformance.certificate.levels import levels, overall
from conformance.report.tally import broken, scored

TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
OURS: Final = "completionsConformance"
FORMAT: Final = "conformance-certificate/1"
MOST_DAYS: Final = 366
WITHOUT_KEY: Final = "no key was given, so what a missing or wrong one does was not asked"
PASSED, WARNED, FAILED = "PASSED", "WARNED", "FAILED"


class StatementError(ValueError):
    """A signed text that is no certificate of ours."""


@dataclass(frozen=True, slots=True)
class CertificateTerms:
    """What the signer adds to what was found."""

    assurance: str
    issuer: str
    key: Public
    issued_at: datetime
    days: int

    @property
    def expires_on(self) -> date:
        """The last day."""
        return self.issued_at.date() + timedelta(days=self.days)


def statement(found: Examined, hashes: Mapping[str, str], terms: CertificateTerms) -> dict[str, Any]:
    """The statement about a bundle that was examined and found whole."""
    issued = {
        "issued_at": terms.issued_at.astimezone(UTC).isoformat(timespec="seconds"),
        "expires_on": terms.expires_on.isoformat(),
        "assurance": terms.assurance,
        "issuer": terms.issuer,
        "keyid": terms.key.id,
        "public_key": str(terms.key),
    }
    subject = [{"name": name, "digest": {"sha256": value}} for name, value in sorted(hashes.items())]
    predicate = derived(found)
    ours = {**predicate[OURS], **issued}
    return {"_type": TYPE, "subject": subject, "predicateType": PREDICATE, "predicate": {**predicate, OURS: ours}}


def derived(found: Examined) -> dict[str, Any]:
    """The part of the predicate that follows from the bundle alone, and is made again when it is verified."""
    assert found.lock is not None  # noqa: S101 - what was examined without a fault has all of it
    assert found.recording is not None  # noqa: S101
    told, recording, results = found.lock.document, found.recording, found.results
    rows = [row for row in results["requirements"] if scored(row)]
    areas = levels(rows, told["claims"])
    failed = sorted(name for area in areas.values() for name in area["lacking"])
    warned = sorted(row["id"] for row in rows if broken(row) and row["id"] not in failed)
    return {
        "result": FAILED if failed else WARNED if warned else PASSED,
        "configuration": _configuration(told),
        "passedTests": sorted(row["id"] for row in rows if row["outcome"] == "pass"),
        "warnedTests": warned,
        "failedTests": failed,
        OURS: {
            "format": FORMAT,
            "level": overall(areas),
            "areas": areas,
            "index": results["index"],
            "score": results["score"],
            "target": results["target"],
            "claims": told["claims"],
            "left_out": [] if told["target"]["has_key"] else [WITHOUT_KEY],
            "contract": told["contract"],
            "requirements": told["requirements"],
            "not_applicable": sorted(row["id"] for row in rows if row["outcome"] == "not_applicable"),
            "not_scored": sorted(row["id"] for row in results["requirements"] if not scored(row)),
            "plan": {
                **{name: told[name] for name in ("nonce", "nonce_origin", "planned_at", "seed", "profile")},
                "sha256": found.lock.sha256,
                "requests_sha256": results["plan_sha256"],
            },
            "evidence": {
                "last": recording.footer["before"] if recording.footer else "",
                "records": recording.records,
                "started_at": results["started_at"],
                **results["totals"],
            },
            "suite": told["suite"],
            "mutation_score": _proof(results),
        },
    }


def _proof(results: Mapping[str, Any]) -> dict[str, Any] | None:
    """How many planted faults this suite finds under this contract, with the build that this was measured on."""
    score = results["mutation_score"]
    return {**score, "catalogue_sha256": score["build"]} if score else None


def _configuration(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the run was made with, as in-toto's resource descriptors."""
    contract, folder = told["contract"], f"specs/{told['contract']['provider']}"
    named = (
        (f"{folder}/openapi.yaml", contract["openapi_sha256"]),
        (f"{folder}/contract.yaml", contract["contract_sha256"]),
        (f"{folder}/frozen/{told['requirements']['date']}.yaml", told["requirements"]["sha256"]),
    )
    suite = {
        "name": "completions-conformance",
        "uri": f"pkg:pypi/completions-conformance@{told['suite']['version']}",
        "digest": {"sha256": told["suite"]["sha256"]},
    }
    return [suite, *({"name": name, "digest": {"sha256": value}} for name, value in named)]


def parse(payload: bytes) -> dict[str, Any]:
    """The statement that was signed; StatementError where it is none of ours, so that nobody else need look again."""
    try:
        told: Any = json.loads(payload)
        wrong = best_match(_validator().iter_errors(told))
        if wrong is not None:
            raise StatementError(f"{wrong.json_path}: {wrong.message:.120}; expected a certificate of {FORMAT}")
        ours = told["predicate"][OURS]
        aware = datetime.fromisoformat(ours["issued_at"]).tzinfo, date.fromisoformat(ours["expires_on"])
    except StatementError:
        raise
    except (ValueError, RecursionError) as error:
        raise StatementError(f"it cannot be read ({type(error).__name__}: {error})") from None
    if aware[0] is None:
        raise StatementError(f"it was issued at {ours['issued_at']}, nobody knows where; expected a time zone")
    found: dict[str, Any] = told
    return found


@cache
def _validator() -> Draft202012Validator:
    text = files(__package__).joinpath("statement.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def signed_for(told: Mapping[str, Any]) -> dict[str, str]:
    """The hashes that were signed for, by file."""
    return {one["name"]: one["digest"]["sha256"] for one in told["subject"]}


def nonce_of(payload: bytes) -> str:
    """The nonce that a certificate used up."""
    return str(parse(payload)["predicate"][OURS]["plan"]["nonce"])
