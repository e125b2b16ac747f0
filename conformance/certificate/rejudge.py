"""Every verdict derived again from the recorded bytes alone, and whether every requirement has one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from conformance.certificate.reasons import Rejection
from conformance.contract.requirement_sets import RequirementSet
from conformance.judge import judge_all
from conformance.model import Contract
from conformance.recording import Recording
from conformance.report import results
from conformance.run import Endpoint, Run, totals
from conformance.run.reproducer import traffic

HEAD: Final = (
    "schema", "provider", "suite_version", "contract_revision", "contract_sha256", "requirement_set", "plan_sha256",
    "seed", "profile", "target", "claims", "started_at", "incomplete", "totals", "index", "score",
)  # fmt: skip
ROW: Final = (
    "level", "layer", "outcome", "reason", "check", "examined", "exchanges", "violations", "incomplete", "not_scored",
    "observations",
)  # fmt: skip


def derived(recording: Recording, contract: Contract) -> dict[str, Any]:
    """results.json as it follows from the recorded bytes, without waivers."""
    header, footer = recording.header, recording.footer or {}
    target = header["target"]
    exchanges = recording.exchanges
    judged = traffic(exchanges, recording.planned)
    run = Run(
        contract=contract,
        target=Endpoint.of(target),
        profile=header["profile"],
        seed=header["seed"],
        plan_sha256=str(footer.get("plan_sha256", "")),
        planned=recording.planned,
        exchanges=exchanges,
        verdicts=judge_all(contract, judged),
        totals=totals(exchanges),
        started_at=float(header["started_at"]),
        duration_s=0.0,
        incomplete=tuple(footer.get("incomplete", ())),
        claims=tuple(header["claims"]),
    )
    return results.document(run)


def compared(stored: Mapping[str, Any], derived: Mapping[str, Any]) -> Iterator[Rejection]:
    """Where results.json and the recorded bytes disagree."""
    stored_rows = {row["id"]: row for row in stored["requirements"]}
    derived_rows = {row["id"]: row for row in derived["requirements"]}
    for name in sorted(stored_rows.keys() | derived_rows.keys()):
        stored_row, derived_row = stored_rows.get(name), derived_rows.get(name)
        if stored_row is None or derived_row is None:
            only_in = "results.json" if stored_row else "the derived verdicts"
            yield Rejection("VERDICT_DIFFERS", f"{name} is only in {only_in}")
        elif stored_row["outcome"] != derived_row["outcome"]:
            verdict = f"{derived_row['outcome']} {derived_row['reason']}".strip()
            yield Rejection(
                "VERDICT_DIFFERS", f"{name} is {stored_row['outcome']}; the recorded bytes give {verdict:.160}"
            )
        else:
            yield from _differences(f"{name} ", stored_row, derived_row, ROW)
            if _evidence(stored_row) != _evidence(derived_row):
                yield Rejection("RESULTS_DIFFER", f"{name} has other evidence than the recorded bytes give")
    yield from _differences("", stored, derived, HEAD)


def _differences(
    prefix: str, stored: Mapping[str, Any], derived: Mapping[str, Any], names: Iterable[str]
) -> Iterator[Rejection]:
    for name in names:
        stored_value, derived_value = stored.get(name), derived.get(name)
        if stored_value != derived_value:
            message = f"{prefix}{name} is {_short(stored_value)}; the recorded bytes give {_short(derived_value)}"
            yield Rejection("RESULTS_DIFFER", message)


def _evidence(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(entry["case"], entry["at"], entry["message"]) for entry in row["evidence"]]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read(path: Path) -> dict[str, Any] | Rejection:
    """results.json, or why it cannot be used."""
    try:
        return results.checked(path)
    except ValueError as error:
        return Rejection("RESULTS_DIFFER", str(error))


def waived(stored: Mapping[str, Any]) -> Iterator[Rejection]:
    """Waived failures: a certificate says what was observed, not what somebody accepts."""
    rows = [row["id"] for row in stored["requirements"] if row["waiver"]]
    if rows or stored["waiver_faults"]:
        first = rows[0] if rows else stored["waiver_faults"][0]
        others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        yield Rejection("WAIVED", f"{first}{others} was judged with waivers; run again without --waivers")


def complete(derived: Mapping[str, Any], required: RequirementSet) -> Iterator[Rejection]:
    """Whether every requirement of the set has a conclusive verdict."""
    rows = {row["id"]: row for row in derived["requirements"]}
    for name, level in sorted(required.levels.items()):
        row = rows.get(name)
        if row is None:
            yield Rejection("REQUIREMENT_OPEN", f"{name} ({level}) is required and has no verdict")
        elif row["outcome"] == "error":
            yield Rejection("SUITE_FAULT", f"{name}: {row['reason']:.160}")
        elif row["incomplete"] or (row.get("blocked_by") and row["level"] == "MUST"):
            yield Rejection("REQUIREMENT_OPEN", f"{name} ({level}) is {row['outcome']}: {row['reason']:.160}")
