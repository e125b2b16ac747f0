"""The plan lock: a file that fixes the requests of a run, with a nonce and its own hash, before anything is sent."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from conformance.contract.requirement_sets import RequirementSet
from conformance.model import Phase
from conformance.model.budget import Budget
from conformance.recording.canonical_json import SEAL, canonical, digest, seal, sealed
from conformance.recording.json_forms import case_out, phase_in

FORMAT: Final = "conformance-plan/1"
NAME: Final = "plan.lock"
MEMBERS: Final = frozenset(
    {
        "format", "nonce", "nonce_origin", "planned_at", "suite", "contract", "requirements", "profile", "seed",
        "target", "claims", "hostile", "ceilings", "repeats", "adaptive", "drawn", "waves", SEAL,
    }
)  # fmt: skip
GIVEN, DRAWN = "given", "drawn"
NONCE: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")


class LockError(ValueError):
    """A plan that cannot be used; the message is one line: what is wrong and what to do."""


@dataclass(frozen=True)
class PlanLock:
    """A plan lock; `document` is the content of the file."""

    document: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        return str(self.document[SEAL])

    @property
    def nonce(self) -> str:
        return str(self.document["nonce"])

    @property
    def mark(self) -> dict[str, str]:
        """Identifies the plan in the header of a recording, which binds every later record to this plan."""
        return {"sha256": self.sha256, "nonce": self.nonce}

    @property
    def canary(self) -> str:
        """The wrong key of this run. It is redacted like a secret; a file that contains it was not redacted."""
        return canary(self.nonce)

    @property
    def budget(self) -> Budget:
        return Budget(**self.document["ceilings"])

    @cached_property
    def drawn(self) -> tuple[Mapping[str, Any], ...]:
        """The randomly drawn bodies, stored because another version of a library may draw different ones."""
        return tuple(json.loads(text) for text in self.document["drawn"])

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases for a target that accepts every documented value."""
        return tuple(phase_in(phase) for phase in self.document["waves"])

    def write(self, path: Path) -> None:
        """Write the file. Raises LockError if it exists, since a run may depend on it."""
        try:
            with path.open("xb") as file:
                file.write(canonical(self.document) + b"\n")
        except FileExistsError:
            raise LockError(f"{path} exists and may be in use; give another name, or delete it") from None


def lock(contents: Mapping[str, Any]) -> PlanLock:
    """A plan lock with these contents, its format and its hash."""
    return PlanLock(sealed({"format": FORMAT, **contents}))


def seed_of(nonce: str) -> int:
    """The seed derived from a nonce, so that nobody can try seeds until a favourable one appears."""
    return int(digest(b"seed " + nonce.encode("ascii"))[:8], 16)


def canary(nonce: str) -> str:
    """The wrong key derived from a nonce."""
    return f"sk-canary-{digest(b'canary ' + nonce.encode('ascii'))[:40]}"


def nonce_and_origin(nonce: str | None) -> tuple[str, str]:
    """The nonce to use, and whether it was given or drawn at random."""
    if nonce is None:
        return secrets.token_hex(16), DRAWN
    if not NONCE.fullmatch(nonce):
        raise LockError(f"--nonce has {len(nonce)} characters; expected 16 to 128 letters, digits, '.', '_', '~', '-'")
    return nonce, GIVEN


def phase_out(phase: Phase) -> dict[str, Any]:
    """A phase as JSON, in the form of a `wave` record."""
    members = {"name": phase.name, "serial": phase.serial, "burst": phase.burst}
    return {**members, "cases": [case_out(case) for case in phase.cases]}


def requirements_out(requirements: RequirementSet) -> dict[str, Any]:
    """A requirement set as a plan names it."""
    return {"date": requirements.date, "sha256": set_hash(requirements), "count": len(requirements.levels)}


def set_hash(requirements: RequirementSet) -> str:
    """The hash that identifies a requirement set: the hash of its file."""
    return digest(str(requirements).encode("utf-8"))


def read(path: Path) -> PlanLock:
    """A plan lock from its file, with its hash verified; LockError if it cannot be used."""
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise LockError(f"{path} cannot be read: {error.strerror}") from None


def parse(data: bytes, name: str = NAME) -> PlanLock:
    """A plan lock from its bytes, with its hash verified; LockError if it cannot be used."""
    try:
        document = json.loads(data)
        known = isinstance(document, dict) and document.get("format") == FORMAT
        stated, actual = (document.get(SEAL), seal(document)) if known else ("", "")
        is_canonical = known and canonical(document) + b"\n" == data
    except (ValueError, RecursionError):
        raise LockError(f"{name} is not a plan, or was changed; make one with `conformance plan --lock`") from None
    if not known:
        raise LockError(f"{name} is not a {FORMAT} file; make one with `conformance plan --lock`")
    if stated != actual:
        raise LockError(f"{name} states the hash {stated!s:.12}…, its content has {actual:.12}…; it was changed")
    if not is_canonical:
        raise LockError(f"{name} is not formatted as `conformance plan --lock` writes it; it was changed")
    return PlanLock(document)
