"""The recording held against its plan: nothing dropped, moved, added or taken from another run."""

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
"""Seconds that a clock may be set back in a run."""


def closed(recording: Recording) -> Iterator[Rejection]:
    """Whether the run came to its end."""
    if recording.footer is None:
        torn = f"; {recording.torn}" if recording.torn else ""
        yield Rejection("EVIDENCE_TORN", f"the recording has no footer: the run was cut off{torn}; make the run again")
        return
    for reason in recording.footer.get("incomplete", ()):
        yield Rejection("RUN_INCOMPLETE", f"{reason}; make the run again with a fresh plan")
    answered = {x.case.id for x in recording.exchanges}
    missing = [case.id for case in recording.planned if case.id not in answered]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Rejection("RUN_INCOMPLETE", f"{missing[0]}{more} was planned, and no exchange of it is recorded")


def planned(recording: Recording, lock: PlanLock) -> Iterator[Rejection]:
    """Whether the run was made with this plan, after it."""
    header, told = recording.header, lock.document
    mark = header.get("plan")
    if not isinstance(mark, Mapping):
        yield Rejection("PLAN_MISSING", "the recording names no plan; run with --plan")
        return
    if mark.get("sha256") != lock.sha256:
        there = str(mark.get("sha256"))
        yield Rejection("PLAN_SWAPPED", f"the run was made with the plan {there:.12}…, plan.lock is {lock.sha256:.12}…")
    if mark.get("nonce") != lock.nonce:
        yield Rejection("NONCE_DIFFERS", f"the run's nonce is {mark.get('nonce')!r:.40}, the plan's {lock.nonce!r:.40}")
    target = {**header.get("target", {}), "sha256": header.get("contract", {}).get("sha256")}
    told_target = {**told["target"], "sha256": told["contract"]["sha256"]}
    names = ("name", "model", "sha256", *(["base_url"] if told["target"]["base_url"] else []))
    pairs: list[tuple[str, Any, Any]] = [(name, target.get(name), told_target[name]) for name in names]
    pairs += [(name, header.get(name), told[name]) for name in ("profile", "seed", "claims")]
    for name, there, fixed in pairs:
        if there != fixed:
            yield Rejection("PLAN_DEPARTED", f"{name} is {there!r:.60} in the recording and {fixed!r:.60} in the plan")
    begun, made = float(header.get("started_at", 0.0)), datetime.fromisoformat(told["planned_at"]).timestamp()
    if made > begun + CLOCK:
        yield Rejection("PLAN_LATE", f"the plan was made {made - begun:.0f} s after the run began")


def ordered(path: Path) -> Iterator[Rejection]:
    """Whether records stand as a run makes them: each request has its outcome, each wave ends before the next."""
    open_ends: Counter[str] = Counter()
    latest = wave_began = 0.0
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):  # a torn end is told elsewhere
        record: dict[str, Any] = json.loads(line)
        match record["record"]:
            case "header":
                latest = wave_began = float(record["started_at"])
            case "wave":
                yield from _settled(open_ends, number, f"the wave {record['name']!r} begins")
                wave_began = latest
            case "start":
                open_ends[record["case"]] += 1
            case "attempt":
                case, began = record["case"], float(record["started_at"])
                open_ends[case] -= 1
                if open_ends[case] < 0:
                    yield Rejection("RECORDS_DISORDERED", f"line {number}: {case} has an outcome before it went out")
                if began < wave_began - CLOCK:
                    late = wave_began - began
                    yield Rejection("TIMES_DISORDERED", f"line {number}: {case} went out {late:.1f} s before its wave")
                    return
                latest = max(latest, began)
            case "footer":
                yield from _settled(open_ends, number, "the recording ends")
                if latest > float(record["ended_at"]) + CLOCK:
                    late = latest - float(record["ended_at"])
                    yield Rejection("TIMES_DISORDERED", f"line {number}: a request went out {late:.1f} s after the end")


def _settled(open_ends: Counter[str], number: int, when: str) -> Iterator[Rejection]:
    missing = sorted(case for case, count in open_ends.items() if count > 0)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Rejection("ATTEMPT_MISSING", f"line {number}: {when}, and {missing[0]}{more} went out without an outcome")
    open_ends.clear()
