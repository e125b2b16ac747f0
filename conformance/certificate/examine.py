"""A bundle examined: files, hash chain, plan, verdicts, secrets. `certify` requires it and `verify` repeats it."""

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
from conformance.recording.canonical_json import digest
from conformance.recording.plan_lock import LockError, PlanLock
from conformance.report.index import RESULTS
from conformance.run import replan
from conformance.run.launch import RECORDING


@dataclass(frozen=True)
class Examined:
    """The content of a bundle and its faults. `needs`: what this build of the suite cannot examine, and why."""

    faults: tuple[Rejection, ...]
    needs: str = ""
    lock: PlanLock | None = None
    recording: Recording | None = None
    contract: Contract | None = None
    results: Mapping[str, Any] = field(default_factory=dict)

    @property
    def malformed(self) -> bool:
        """Whether a file could not be read, so that nothing can be said of its content."""
        return any(fault.code == "BUNDLE_MALFORMED" for fault in self.faults)


def examine(folder: Path, specs: Sequence[Path] = (), secrets: Sequence[str] = ()) -> Examined:
    """Examine a bundle. An unreadable file ends the examination; all other problems are collected."""
    faults: list[Rejection] = []
    try:
        return _examined(folder, specs, secrets, faults)
    except Exception as error:  # noqa: BLE001 - an untrusted bundle gets an answer, never a traceback
        message = f"{type(error).__name__}: {error}; run again, or report this if the bundle was not edited"
        return Examined((*faults, Rejection("BUNDLE_MALFORMED", message)))


def _examined(folder: Path, specs: Sequence[Path], secrets: Sequence[str], faults: list[Rejection]) -> Examined:
    faults += bundle.unexpected_files(folder)
    if any(fault.code == "FILE_MISSING" for fault in faults):
        return Examined(tuple(faults))
    faults += bundle.oversized_files(folder)
    if any(fault.code == "BUNDLE_TOO_LARGE" for fault in faults):
        return Examined(tuple(faults))
    lock, recording = _lock(folder, faults), _recording(folder, faults)
    if lock is None or recording is None:
        return Examined(tuple(faults), lock=lock, recording=recording)
    faults += evidence.closed(recording)
    if recording.footer is None:
        return Examined(tuple(faults), lock=lock, recording=recording)
    faults += evidence.planned(recording, lock)
    faults += evidence.ordered(folder / RECORDING)
    faults += leaks.leaks(bundle.contents(folder), recording.exchanges, [*secrets, lock.canary])
    stored = verdicts.read(folder / RESULTS)
    if isinstance(stored, Rejection):
        return Examined((*faults, stored), lock=lock, recording=recording)
    faults += verdicts.waived(stored)
    contract, required, needs = _terms(lock, specs, faults)
    if contract is None or required is None or any(fault.code in {"PLAN_SWAPPED", "PLAN_MISSING"} for fault in faults):
        return Examined(tuple(faults), needs, lock, recording)
    derived = verdicts.derived(recording, contract)
    messages = [*replan.misstatements(lock, contract, required), *replan.departures(recording, lock, contract)]
    doubts = [
        *(Rejection("PLAN_DEPARTED", message) for message in messages),
        *verdicts.compared(stored, derived),
        *verdicts.complete(derived, required),
    ]
    if lock.document["suite"] != build():  # only the signer knows what the other build concluded
        why = f"this build gives another result: {doubts[0]}" if doubts else "this build comes to the same result"
        needs, doubts = _needs(lock, f"another build made the plan; {why}"), []
    elif why := replan.draw_mismatch(lock, contract) or _documents(lock, contract, specs):
        needs = _needs(lock, why)
    return Examined((*faults, *doubts), needs, lock, recording, contract, derived)


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
    """The contract and requirement set that the plan names, or what must be installed to have them."""
    planned, planned_set = lock.document["contract"], lock.document["requirements"]
    try:
        contract = contracts.load(planned["provider"], specs, load_checks())
        required = frozen.in_force(planned["provider"], planned_set["date"], specs)
    except contracts.ContractError as error:
        return None, None, _needs(lock, f"the contract cannot be loaded ({error})")
    if contract.sha256 != planned["sha256"]:
        installed, locked = contract.sha256, str(planned["sha256"])
        return None, None, _needs(lock, f"the installed contract is {installed:.12}…, that of the plan {locked:.12}…")
    if locks.set_hash(required) != planned_set["sha256"]:
        faults.append(
            Rejection("SET_DIFFERS", f"the installed set of {required.date} is not the plan's of {planned_set['date']}")
        )
        return None, None, ""
    return frozen.pinned(contract, required), required, ""


def _documents(lock: PlanLock, contract: Contract, specs: Sequence[Path]) -> str:
    """Which file of the contract has other bytes than the plan says; a comment does not change the contract's hash."""
    folder = contracts.home(contract.provider, specs)
    for name, member in (("openapi.yaml", "openapi_sha256"), ("contract.yaml", "contract_sha256")):
        installed, locked = digest((folder / name).read_bytes()), str(lock.document["contract"][member])
        if installed != locked:
            return f"the installed {name} is {installed:.12}…, that of the plan {locked:.12}…"
    return ""


def _needs(lock: PlanLock, why: str) -> str:
    suite = lock.document["suite"]
    return f"{why}; to examine it, install completions-conformance {suite['version']} (build {suite['sha256'][:12]})"
