"""Every verdict again, from the recorded bytes alone, and whether all that is required has one."""

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
    """results.json as the recorded bytes give it, without waivers."""
    header, footer = recording.header, recording.footer or {}
    target = header["target"]
    exchanges = recording.exchanges
    judged = traffic(exchanges, recording.planned)
    run = Run(
        contract=contract,
        target=Endpoint(target["name"], target["base_url"], target["model"]),
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


def compared(told: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Rejection]:
    """Where results.json and the recorded bytes disagree."""
    before = {row["id"]: row for row in told["requirements"]}
    after = {row["id"]: row for row in now["requirements"]}
    for id in sorted(before.keys() | after.keys()):  # noqa: A001
        one, other = before.get(id), after.get(id)
        if one is None or other is None:
            where = "results.json alone" if one else "the derived verdicts alone"
            yield Rejection("VERDICT_DIFFERS", f"{id} stands in {where}")
        elif one["outcome"] != other["outcome"]:
            now_is = f"{other['outcome']} {other['reason']}".strip()
            yield Rejection("VERDICT_DIFFERS", f"{id} is {one['outcome']}; the recorded bytes give {now_is:.160}")
        else:
            yield from _other(f"{id} ", one, other, ROW)
            if _places(one) != _places(other):
                yield Rejection("RESULTS_DIFFER", f"{id} has other evidence than the recorded bytes give")
    yield from _other("", told, now, HEAD)


def _other(where: str, one: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str]) -> Iterator[Rejection]:
    for name in names:
        here, there = one.get(name), other.get(name)
        if here != there:
            said = f"{where}{name} is {_short(here)}; the recorded bytes give {_short(there)}"
            yield Rejection("RESULTS_DIFFER", said)


def _places(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["case"], one["at"], one["message"]) for one in row["evidence"]]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read(path: Path) -> dict[str, Any] | Rejection:
    """results.json, or why it cannot be used."""
    try:
        return results.checked(path)
    except ValueError as error:
        return Rejection("RESULTS_DIFFER", str(error))


def waived(told: Mapping[str, Any]) -> Iterator[Rejection]:
    """Failures that were accepted: a certificate shows what is, not what somebody agreed to."""
    rows = [row["id"] for row in told["requirements"] if row["waiver"]]
    if rows or told["waiver_faults"]:
        named = rows[0] if rows else told["waiver_faults"][0]
        count = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        yield Rejection("WAIVED", f"{named}{count} was judged with waivers; make the run without --waivers")


def complete(now: Mapping[str, Any], then: RequirementSet) -> Iterator[Rejection]:
    """Whether each required requirement has a verdict that settles it."""
    rows = {row["id"]: row for row in now["requirements"]}
    for id, level in sorted(then.levels.items()):  # noqa: A001
        row = rows.get(id)
        if row is None:
            yield Rejection("REQUIREMENT_OPEN", f"{id} ({level}) is required and has no verdict")
        elif row["outcome"] == "error":
            yield Rejection("SUITE_FAULT", f"{id}: {row['reason']:.160}")
        elif row["incomplete"]:
            yield Rejection("REQUIREMENT_OPEN", f"{id} ({level}) is {row['outcome']}: {row['reason']:.160}")
