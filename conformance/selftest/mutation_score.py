"""The stored mutation score: how many faults the suite finds, and on which build that was measured.

`nox -s faults` measures and stores it. A score is current while the sources that it depends on are unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypedDict

from conformance.contract import folders
from conformance.model.budget import planned_as

FILE: Final = Path(__file__).resolve().with_name("scores.json")
PACKAGE: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = (
    *("contract", "judge", "model", "plan", "reference", "run"),
    *("selftest/faults", "selftest/legal_variants"),
)
SUFFIXES: Final = frozenset({".py", ".json", ".yaml", ".toml"})


class MutationScore(TypedDict):
    """Faults killed, of all that apply; the build that it was measured on, and whether that is this one."""

    killed: int
    of: int
    build: str
    current: bool


def stored() -> dict[str, Any]:
    """All stored scores: of faults by provider and profile, and of wire mutations."""
    scores: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {"scores": {}, "wire": {}}
    return scores


@cache
def mutation_score(provider: str, profile: str) -> MutationScore | None:
    """The score under this contract in this profile; None where it was never measured."""
    score = stored()["scores"].get(provider, {}).get(planned_as(profile))
    if score is None:
        return None
    current = score["build"] == source_hash()
    return MutationScore(killed=score["killed"], of=score["of"], build=score["build"], current=current)


@cache
def source_hash() -> str:
    """A hash over all sources that a score depends on: code, its data, and the shipped contracts."""
    digest = sha256()
    for name, path in sorted(_sources()):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sources() -> Iterator[tuple[str, Path]]:
    """Each source under the name that it has in the repository, where the specs are not inside the package."""
    roots = {name: PACKAGE / name for name in SOURCES} | {"specs": folders()[-1]}
    for name, root in roots.items():
        for path in root.rglob("*"):
            if path.suffix in SUFFIXES:
                yield f"{name}/{path.relative_to(root).as_posix()}", path
