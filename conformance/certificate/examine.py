"""A bundle examined on its own: files, chain, plan, verdicts, secrets. What `certify` demands and `verify` repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance import contract as contracts
from conformance.certificate import bundle, evidence, leaks
from conformance.certificate import rejudge as verdicts
from conformance.certificate.reasons import Rejection
from conformance.contract import requirement_sets as frozen
from conformance.judge.catalogue import load as load_checks
from conformance.model import Contract
from conformance.recording import Recording, RecordingError
from conformance.recording import plan_lock as locks
from conformance.recording import read as read_recording
from conformance.recording.build import build
from conformance.recording.plan_lock import LockError, PlanLock
from conformance.report.index import RESULTS
from conformance.run import replan
from conformance.run.launch import RECORDING


@dataclass(frozen=True)
class Examined:
    """What a bundle holds and what is wrong with it. `needs`: what this build of the suite cannot examine, and why."""

    faults: tuple[Rejection, ...]
    needs: str = ""
    lock: PlanLock | None = None
    recording: Recording | None = None
    contract: Contract | None = None
    results: Mapping[str, Any] = field(default_factory=dict)


def examine(folder: Path, specs: Sequence[Path] = (), secrets: Sequence[str] = ()) -> Examined:
    """Examine a bundle. What cannot be read ends the examination; everything else is told side by side."""
    faults: list[Rejection] = []
    try:
        return _examined(folder, specs, secrets, faults)
    except Exception as error:  # noqa: BLE001 - a stranger's bundle, whatever is in it, gets an answer and no traceback
        told = f"{type(error).__name__}: {error}; make the run again, or report this if nobody has edited it"
        return Examined((*faults, Rejection("BUNDLE_MALFORMED", told)))


def _examined(folder: Path, specs: Sequence[Path], secrets: Sequence[str], faults: list[Rejection]) -> Examined:
    faults += bundle.strange(folder)
    if any(one.code == "FILE_MISSING" for one in faults):
        return Examined(tuple(faults))
    lock, recording = _lock(folder, faults), _recording(folder, faults)
    if lock is None or recording is None:
        return Examined(tuple(faults), lock=lock, recording=recording)
    faults += evidence.closed(recording)
    if recording.footer is None:
        return Examined(tuple(faults), lock=lock, recording=recording)
    faults += evidence.planned(recording, lock)
    faults += evidence.ordered(folder / RECORDING)
    known = [*secrets, lock.canary]
    faults += leaks.leaks(bundle.contents(folder), recording.exchanges, known)
    told = verdicts.read(folder / RESULTS)
    if isinstance(told, Rejection):
        return Examined((*faults, told), lock=lock, recording=recording)
    faults += verdicts.waived(told)
    contract, then, needs = _terms(lock, specs, faults)
    if contract is None or then is None or any(one.code in {"PLAN_SWAPPED", "PLAN_MISSING"} for one in faults):
        return Examined(tuple(faults), needs, lock, recording)
    now = verdicts.derived(recording, contract)
    departures = [Rejection("PLAN_DEPARTED", message) for message in replan.departures(recording, lock, contract)]
    if departures and not replan.agrees(lock, contract):
        needs, departures = _needs(lock, "this installation plans otherwise"), []
    doubts = [*departures, *verdicts.compared(told, now)]
    if doubts and lock.document["suite"] != build():
        needs, doubts = _needs(lock, f"this build comes to something else: {doubts[0]}"), []
    return Examined((*faults, *doubts, *verdicts.complete(now, then)), needs, lock, recording, contract, now)


def _lock(folder: Path, faults: list[Rejection]) -> PlanLock | None:
    try:
        return locks.read(folder / locks.NAME)
    except LockError as error:
        faults.append(Rejection("PLAN_CHANGED", str(error)))
        return None


def _recording(folder: Path, faults: list[Rejection]) -> Recording | None:
    try:
        return read_recording(folder / RECORDING)
    except RecordingError as error:
        faults.append(Rejection("CHAIN_BROKEN", str(error)))
        return None


def _terms(
    lock: PlanLock, specs: Sequence[Path], faults: list[Rejection]
) -> tuple[Contract | None, frozen.RequirementSet | None, str]:
    """The contract and the set that the plan names, or what has to be installed to have them."""
    told, wanted = lock.document["contract"], lock.document["requirements"]
    try:
        contract = contracts.load(told["provider"], specs, load_checks())
        then = frozen.in_force(told["provider"], wanted["date"], specs)
    except contracts.ContractError as error:
        return None, None, _needs(lock, f"the contract is not here ({error})")
    if contract.sha256 != told["sha256"]:
        here, there = contract.sha256, str(told["sha256"])
        return None, None, _needs(lock, f"the contract here is {here:.12}…, that of the plan {there:.12}…")
    if locks.set_hash(then) != wanted["sha256"]:
        faults.append(Rejection("SET_DIFFERS", f"the set of {then.date} here is not the plan's of {wanted['date']}"))
        return None, None, ""
    return frozen.pinned(contract, then), then, ""


def _needs(lock: PlanLock, why: str) -> str:
    suite = lock.document["suite"]
    return f"{why}; to examine it, install completions-conformance {suite['version']} (build {suite['sha256'][:12]})"
