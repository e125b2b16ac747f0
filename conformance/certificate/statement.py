"""The statement: an in-toto test result about one bundle, with the members of this suite under one name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from conformance.certificate.examine import Examined
from conformance.certificate.keys import PublicKey
from conformance.certificate.levels import levels, overall
from conformance.recording.canonical_json import canonical
from conformance.report.tally import broken, scored

TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
CERTIFIED: Final = "completionsConformance"
FORMAT: Final = "conformance-certificate/1"
MOST_DAYS: Final = 366
WITHOUT_KEY: Final = "no key was given, so requests with a missing or wrong key were not sent"
TARGET: Final = ("name", "base_url", "path", "model", "kind")
"""What a certificate says of the target; how requests got there is in results.json."""
PASSED, WARNED, FAILED = "PASSED", "WARNED", "FAILED"


class StatementError(ValueError):
    """A signed payload that is not a certificate of this format."""


@dataclass(frozen=True, slots=True)
class CertificateTerms:
    """What the signer adds to the results."""

    assurance: str
    issuer: str
    key: PublicKey
    issued_at: datetime
    days: int
    product: Mapping[str, str] = field(default_factory=dict)

    @property
    def expires_on(self) -> date:
        """The last day on which the certificate is valid."""
        return self.issued_at.date() + timedelta(days=self.days)


def statement(examined: Examined, hashes: Mapping[str, str], terms: CertificateTerms) -> dict[str, Any]:
    """The statement about a bundle that was examined without faults."""
    issued = {
        "issued_at": terms.issued_at.astimezone(UTC).isoformat(timespec="seconds"),
        "expires_on": terms.expires_on.isoformat(),
        "assurance": terms.assurance,
        "issuer": terms.issuer,
        "keyid": terms.key.id,
        "public_key": str(terms.key),
        **({"product": dict(terms.product)} if terms.product else {}),
    }
    subject = [{"name": name, "digest": {"sha256": value}} for name, value in sorted(hashes.items())]
    predicate = derived(examined)
    certified = {**predicate[CERTIFIED], **issued}
    return {
        "_type": TYPE,
        "subject": subject,
        "predicateType": PREDICATE,
        "predicate": {**predicate, CERTIFIED: certified},
    }


def derived(examined: Examined) -> dict[str, Any]:
    """The part of the predicate that follows from the bundle alone, and is derived again by `verify`."""
    assert examined.lock is not None  # noqa: S101 - a bundle without faults has both
    assert examined.recording is not None  # noqa: S101
    plan, recording, results = examined.lock.document, examined.recording, examined.results
    rows = [row for row in results["requirements"] if scored(row)]
    areas = levels(rows, plan["claims"])
    failed = sorted(name for area in areas.values() for name in area["lacking"])
    warned = sorted(row["id"] for row in rows if broken(row) and row["id"] not in failed)
    return {
        "result": FAILED if failed else WARNED if warned else PASSED,
        "configuration": _configuration(plan),
        "passedTests": sorted(row["id"] for row in rows if row["outcome"] == "pass"),
        "warnedTests": warned,
        "failedTests": failed,
        CERTIFIED: {
            "format": FORMAT,
            "level": overall(areas),
            "areas": areas,
            "index": results["index"],
            "score": results["score"],
            "target": {name: results["target"][name] for name in TARGET if name in results["target"]},
            "claims": plan["claims"],
            "left_out": [] if plan["target"]["has_key"] else [WITHOUT_KEY],
            "contract": plan["contract"],
            "requirements": plan["requirements"],
            "not_applicable": sorted(row["id"] for row in rows if row["outcome"] == "not_applicable"),
            "not_scored": sorted(row["id"] for row in results["requirements"] if not scored(row)),
            "plan": {
                **{name: plan[name] for name in ("nonce", "nonce_origin", "planned_at", "seed", "profile")},
                "sha256": examined.lock.sha256,
                "requests_sha256": results["plan_sha256"],
            },
            "evidence": {
                "last": recording.footer["before"] if recording.footer else "",
                "records": recording.records,
                "started_at": results["started_at"],
                **results["totals"],
            },
            "suite": plan["suite"],
            "mutation_score": _mutation_score(results),
        },
    }


def _mutation_score(results: Mapping[str, Any]) -> dict[str, Any] | None:
    """The mutation score of this contract and profile, with the build that it was measured on."""
    score = results["mutation_score"]
    return {**score, "catalogue_sha256": score["build"]} if score else None


def _configuration(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The inputs of the run, as in-toto resource descriptors."""
    contract, folder = plan["contract"], f"specs/{plan['contract']['provider']}"
    files = (
        (f"{folder}/openapi.yaml", contract["openapi_sha256"]),
        (f"{folder}/contract.yaml", contract["contract_sha256"]),
        (f"{folder}/frozen/{plan['requirements']['date']}.yaml", plan["requirements"]["sha256"]),
    )
    suite = {
        "name": "completions-conformance",
        "uri": f"pkg:pypi/completions-conformance@{plan['suite']['version']}",
        "digest": {"sha256": plan["suite"]["sha256"]},
    }
    return [suite, *({"name": name, "digest": {"sha256": value}} for name, value in files)]


def parse(payload: bytes) -> dict[str, Any]:
    """The signed statement, validated; StatementError if it is not a certificate of this format."""
    try:
        document: dict[str, Any] = json.loads(payload, parse_constant=_no_number)
        invalid = best_match(_validator().iter_errors(document))
        if invalid is not None:
            raise StatementError(f"{invalid.json_path}: {invalid.message:.120}; expected a certificate of {FORMAT}")
        certified = document["predicate"][CERTIFIED]
        time_zone = datetime.fromisoformat(certified["issued_at"]).tzinfo
        date.fromisoformat(certified["expires_on"])
    except StatementError:
        raise
    except (ValueError, RecursionError) as error:
        raise StatementError(f"the statement cannot be read ({type(error).__name__}: {error})") from None
    if canonical(document) != payload:
        raise StatementError("the statement is not in the one form that `certify` writes, such as with a name twice")
    if time_zone is None:
        raise StatementError(f"issued_at is {certified['issued_at']}; expected a time zone")
    return document


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


@cache
def _validator() -> Draft202012Validator:
    text = files(__package__).joinpath("statement.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def signed_for(document: Mapping[str, Any]) -> dict[str, str]:
    """The signed hashes, by file."""
    return {subject["name"]: subject["digest"]["sha256"] for subject in document["subject"]}
