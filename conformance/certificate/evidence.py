"""The recording compared with its plan: nothing was dropped, moved, added or taken from another run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from conformance.certificate.reasons import Rejection
from conformance.recording import Recording
from conformance.recording.plan_lock import PlanLock

CLOCK: Final = 2.0
"""Seconds by which a clock may be set back during a run, as time synchronisation does."""


def closed(recording: Recording) -> Iterator[Rejection]:
    """Whether the run was completed."""
    if recording.footer is None:
        torn = f"; {recording.torn}" if recording.torn else ""
        yield Rejection("EVIDENCE_TORN", f"the recording has no footer: the run was interrupted{torn}; run again")
        return
    for reason in recording.footer.get("incomplete", ()):
        yield Rejection("RUN_INCOMPLETE", f"{reason}; run again with a new plan")
    answered = {exchange.case.id for exchange in recording.exchanges}
    missing = [case.id for case in recording.planned if case.id not in answered]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Rejection("RUN_INCOMPLETE", f"no exchange is recorded for {missing[0]}{more}, which was planned")


def planned(recording: Recording, lock: PlanLock) -> Iterator[Rejection]:
    """Whether the run was made with this plan, and after it."""
    header, plan = recording.header, lock.document
    mark = header.get("plan")
    if not isinstance(mark, Mapping):
        yield Rejection("PLAN_MISSING", "the recording names no plan; run again with --plan")
        return
    if mark.get("sha256") != lock.sha256:
        recorded = str(mark.get("sha256"))
        message = f"the run was made with the plan {recorded:.12}…; plan.lock is {lock.sha256:.12}…"
        yield Rejection("PLAN_SWAPPED", message)
    if mark.get("nonce") != lock.nonce:
        yield Rejection(
            "NONCE_DIFFERS", f"the nonce of the run is {mark.get('nonce')!s:.40}; that of the plan is {lock.nonce:.40}"
        )
    target = {**header.get("target", {}), "sha256": header.get("contract", {}).get("sha256")}
    planned_target = {**plan["target"], "sha256": plan["contract"]["sha256"]}
    names = ("name", "model", "sha256", *(["base_url"] if plan["target"]["base_url"] else []))
    pairs: list[tuple[str, Any, Any]] = [(name, target.get(name), planned_target[name]) for name in names]
    pairs += [(name, header.get(name), plan[name]) for name in ("profile", "seed", "claims")]
    for name, recorded, fixed in pairs:
        if recorded != fixed:
            values = f"{json.dumps(recorded):.60} in the recording and {json.dumps(fixed):.60} in the plan"
            yield Rejection("PLAN_DEPARTED", f"{name} is {values}")
    started, made = float(header.get("started_at", 0.0)), datetime.fromisoformat(plan["planned_at"]).timestamp()
    if made > started + CLOCK:
        yield Rejection("PLAN_LATE", f"the plan was made {made - started:.0f} s after the run began")


def ordered(path: Path) -> Iterator[Rejection]:
    """Whether records are in the order in which a run writes them: starts before attempts, phase after phase."""
    pending: Counter[str] = Counter()
    latest = phase_began = 0.0
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):  # `closed` reports an incomplete last line
        record: dict[str, Any] = json.loads(line)
        match record["record"]:
            case "header":
                latest = phase_began = float(record["started_at"])
            case "wave":
                yield from _settled(pending, number, f"the phase {record['name']} begins")
                phase_began = latest
            case "start":
                pending[record["case"]] += 1
            case "attempt":
                case, began = record["case"], float(record["started_at"])
                pending[case] -= 1
                if pending[case] < 0:
                    yield Rejection("RECORDS_DISORDERED", f"line {number}: {case} has an outcome before it was sent")
                if began < phase_began - CLOCK:
                    late = phase_began - began
                    yield Rejection("TIMES_DISORDERED", f"line {number}: {case} was sent {late:.1f} s before its phase")
                    return
                latest = max(latest, began)
            case "footer":
                yield from _settled(pending, number, "the recording ends")
                if latest > float(record["ended_at"]) + CLOCK:
                    late = latest - float(record["ended_at"])
                    yield Rejection("TIMES_DISORDERED", f"line {number}: a request was sent {late:.1f} s after the end")


def _settled(pending: Counter[str], number: int, when: str) -> Iterator[Rejection]:
    missing = sorted(case for case, count in pending.items() if count > 0)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Rejection("ATTEMPT_MISSING", f"line {number}: {when}, and {missing[0]}{more} was sent without an outcome")
    pending.clear()
