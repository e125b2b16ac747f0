"""A plan made beforehand: what a run will send, fixed with a nonce before anything is sent, and its own hash."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.model import Contract, Phase
from conformance.model.budget import Budget
from conformance.model.json_text import dumps
from conformance.recording.canonical_json import SEAL, canonical, digest, seal, sealed
from conformance.recording.json_forms import case_out, phase_in

if TYPE_CHECKING:
    from conformance.config.settings import Settings
    from conformance.contract.requirement_sets import RequirementSet
    from conformance.plan import Plan

FORMAT: Final = "conformance-plan/1"
NAME: Final = "plan.lock"
GIVEN, DRAWN = "given", "drawn"
ALONE: Final = "alone"  # what was refused in company, sent in smaller company
_NONCE: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")


class LockError(ValueError):
    """A plan that cannot be used: in one line, what is wrong and what to do."""


@dataclass(frozen=True)
class PlanLock:
    """A plan as it was fixed. `told` is the document; the rest are readings of it."""

    told: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        return str(self.told[SEAL])

    @property
    def nonce(self) -> str:
        return str(self.told["nonce"])

    @property
    def mark(self) -> dict[str, str]:
        """What the header of a recording says of the plan: evidence is bound to it from its first record on."""
        return {"sha256": self.sha256, "nonce": self.nonce}

    @property
    def canary(self) -> str:
        """The wrong key of this run, masked wherever a target repeats it: if it is found, masking has failed."""
        return canary(self.nonce)

    @property
    def budget(self) -> Budget:
        return Budget(**self.told["ceilings"])

    @cached_property
    def drawn(self) -> tuple[Mapping[str, Any], ...]:
        """The drawn bodies, which another version of a library would draw otherwise."""
        return tuple(json.loads(text) for text in self.told["drawn"])

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """What is sent to a target that takes every documented value."""
        return tuple(phase_in(one) for one in self.told["waves"])

    def write(self, path: Path) -> None:
        """Write the plan; one that is there already is never replaced, since a run may rest on it."""
        try:
            with path.open("xb") as file:
                file.write(canonical(self.told) + b"\n")
        except FileExistsError:
            raise LockError(f"{path} is there already and may be in use; give another name, or delete it") from None


def seed_of(nonce: str) -> int:
    """The seed that follows from a nonce: whoever runs cannot try seeds until one suits."""
    return int(digest(b"seed " + nonce.encode("ascii"))[:8], 16)


def canary(nonce: str) -> str:
    """The wrong key that goes with a nonce."""
    return f"sk-canary-{digest(b'canary ' + nonce.encode('ascii'))[:40]}"


def fresh(nonce: str | None) -> tuple[str, str]:
    """The nonce, and whether it was given or drawn here."""
    if nonce is None:
        return secrets.token_hex(16), DRAWN
    if not _NONCE.fullmatch(nonce):
        raise LockError(f"--nonce has {len(nonce)} characters; expected 16 to 128 letters, digits, '.', '_', '~', '-'")
    return nonce, GIVEN


def masked(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Extra headers or query parameters, with the values of secret ones left out."""
    from conformance.send.target import is_secret

    return [[name, "(secret)" if is_secret(name) else value] for name, value in pairs]


def make(
    chosen: Settings, contract: Contract, plan: Plan, then: RequirementSet, nonce: str, origin: str, *, has_key: bool
) -> PlanLock:
    """Fix a plan. `then` is the set of requirements that is to count."""
    from conformance.contract import home
    from conformance.plan import LEFT_OUT
    from conformance.plan.case_group import ORDER
    from conformance.recording.build import build
    from conformance.run.confirm import COPIES, MOST_CASES

    folder = home(contract.provider, chosen.specs)
    files = {f"{name}_sha256": digest((folder / f"{name}.yaml").read_bytes()) for name in ("openapi", "contract")}
    return PlanLock(
        sealed(
            {
                "format": FORMAT,
                "nonce": nonce,
                "nonce_origin": origin,
                "planned_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "suite": build(),
                "contract": {
                    "provider": contract.provider,
                    "revision": contract.revision,
                    "sha256": contract.sha256,
                    **files,
                },
                "requirements": {"date": then.date, "sha256": set_hash(then), "count": len(then.levels)},
                "profile": chosen.profile,
                "seed": chosen.seed,
                "target": {
                    "name": chosen.target,
                    "base_url": chosen.base_url,
                    "path": contract.path,
                    "model": plan.context.model,
                    "headers": masked(chosen.headers),
                    "query": masked(chosen.query),
                    "has_key": has_key,
                },
                "claims": list(chosen.claims),
                "hostile": chosen.hostile,
                "ceilings": asdict(chosen.budget),
                "repeats": {"copies": COPIES, "most": MOST_CASES},
                "adaptive": {"waves": sorted({*ORDER, ALONE, LEFT_OUT}), "most": len(plan.cases)},
                "drawn": [dumps(body) for body in plan.drawn],
                "waves": [phase_out(phase) for phase in plan.phases],
            }
        )
    )


def phase_out(phase: Phase) -> dict[str, Any]:
    """A wave as a recording tells it."""
    told: dict[str, Any] = {"name": phase.name, "serial": phase.serial, "burst": phase.burst}
    return {**told, "cases": [case_out(case) for case in phase.cases]}


def set_hash(then: RequirementSet) -> str:
    """The id of a set of requirements: the hash of its file."""
    return digest(str(then).encode("utf-8"))


def read(path: Path) -> PlanLock:
    """A plan from its file, its hash proved; a LockError for anything else."""
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise LockError(f"{path} cannot be read: {error.strerror}") from None


def parse(data: bytes, name: str = NAME) -> PlanLock:
    """A plan from its bytes."""
    try:
        told = json.loads(data)
        known = isinstance(told, dict) and told.get("format") == FORMAT
        own, now = (told.get(SEAL), seal(told)) if known else ("", "")
        whole = known and canonical(told) + b"\n" == data
    except (ValueError, RecursionError):
        raise LockError(f"{name} is no plan, or was changed; make one with `conformance plan --lock`") from None
    if not known:
        raise LockError(f"{name} is no {FORMAT}; make one with `conformance plan --lock`")
    if own != now:
        raise LockError(f"{name} gives its hash as {own!s:.12}…, its content has {now:.12}…; it was changed")
    if not whole:
        raise LockError(f"{name} is not written as `conformance plan --lock` writes it; it was changed")
    return PlanLock(told)
