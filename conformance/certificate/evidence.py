"""The recording compared with its plan: nothing was dropped, moved, added or taken from another run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from conformance.certificate.reasons import Rejection
from conformance.model import Ending
from conformance.model.json_text import is_number
from conformance.recording import Recording
from conformance.recording.plan_lock import PlanLock
from conformance.send.rate_limits import RETRIED
from conformance.send.sender import DEFAULT_TIMEOUTS

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
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Rejection("RUN_INCOMPLETE", f"no exchange is recorded for {missing[0]}{others}, which was planned")


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
    started, planned_at = float(header.get("started_at", 0.0)), datetime.fromisoformat(plan["planned_at"]).timestamp()
    if planned_at > started + CLOCK:
        yield Rejection("PLAN_LATE", f"the plan was made {planned_at - started:.0f} s after the run began")


def ordered(path: Path) -> Iterator[Rejection]:
    """Whether records are in the order in which a run writes them: starts before attempts, phase after phase."""
    order = _Order()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # `closed` reports a torn last line
            record: dict[str, Any] = json.loads(line)
            if json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n" != line:
                yield Rejection("BUNDLE_MALFORMED", f"line {number} is not in the form that a run writes")
                return
            for code, message in order.faults(record):
                yield Rejection(code, f"line {number}: {message}")


@dataclass
class _Order:
    """The state of the check: what the records so far allow the next one to be."""

    pending: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    final: set[str] = field(default_factory=set)
    began: float = 0.0
    latest: float = 0.0
    phase_began: float = 0.0

    def faults(self, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        match record["record"]:
            case "header":
                self.began = self.latest = self.phase_began = _seconds(record["started_at"])
            case "wave":
                yield from self._settled(f"the phase {record['name']} begins")
                self.phase_began = self.latest
            case "start":
                self.pending[record["case"]] += 1
            case "attempt":
                yield from self._attempt(record)
            case "footer":
                yield from self._settled("the recording ends")
                ended = _seconds(record["ended_at"])
                if self.latest > ended + CLOCK:
                    yield (
                        "TIMES_DISORDERED",
                        f"an attempt lasted {self.latest - ended:.1f} s longer than the run",
                    )
                if ended <= self.began:
                    yield "TIMES_DISORDERED", f"the run took {ended - self.began:g} s; expected more than none"

    def _attempt(self, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        case, began, elapsed = record["case"], _seconds(record["started_at"]), _seconds(record["elapsed"])
        self.pending[case] -= 1
        if self.pending[case] < 0:
            yield "RECORDS_DISORDERED", f"{case} has an outcome before it was sent"
        if began < self.phase_began - CLOCK:
            yield "TIMES_DISORDERED", f"{case} was sent {self.phase_began - began:.1f} s before its phase"
        arrivals = [_seconds(at) for at, _ in record["pieces"]]
        if arrivals != sorted(arrivals) or (arrivals and (arrivals[0] < 0 or arrivals[-1] > elapsed)):
            yield "TIMES_DISORDERED", f"pieces of the reply to {case} did not arrive in order within {elapsed:g} s"
        if elapsed < 0 or (record["status"] is not None and elapsed == 0):
            yield "TIMES_DISORDERED", f"the reply to {case} took {elapsed:g} s; expected more than none"
        self.latest = max(self.latest, began + elapsed)
        yield from self._superseded(record)

    def _superseded(self, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Only an attempt that a run retries is followed by another one, at most as often as a run retries."""
        case = record["case"]
        self.tried[case] += 1
        if case in self.final:
            yield "ATTEMPT_SUPERSEDED", f"{case} was sent again after its final attempt"
        if self.tried[case] > 1 + DEFAULT_TIMEOUTS.retries:
            yield (
                "ATTEMPT_SUPERSEDED",
                f"{case} was sent {self.tried[case]} times; expected {1 + DEFAULT_TIMEOUTS.retries} at most",
            )
        if record["final"] is True:
            self.final.add(case)
        elif not (record["status"] in RETRIED or _unreachable(record)):
            outcome = f"status {record['status']}" if record["status"] else f"no status ({record['ending']})"
            yield "ATTEMPT_SUPERSEDED", f"{case} was sent again after {outcome}, which a run does not retry"

    def _settled(self, when: str) -> Iterator[tuple[str, str]]:
        missing = sorted(case for case, count in self.pending.items() if count > 0)
        if missing:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            yield "ATTEMPT_MISSING", f"{when}, and {missing[0]}{others} was sent without an outcome"
        self.pending.clear()


def _unreachable(record: Mapping[str, Any]) -> bool:
    """Whether no response came because a connection failed, as far as a recording tells."""
    if record["status"] is not None or record["pieces"]:
        return False
    no_connection = record["ending"] == Ending.TIMED_OUT and record["error"].startswith("no connection ")
    return bool(no_connection or record["ending"] == Ending.TRUNCATED)


def _seconds(value: Any) -> float:
    """A time; ValueError for anything but a finite number."""
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"a time is {value!r:.40}; expected a number of seconds")
    return float(value)
