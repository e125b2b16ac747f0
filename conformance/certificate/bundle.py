"""A bundle, the folder of one run with a plan lock: the files it may contain, and the hashes that are signed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from conformance.certificate.reasons import Rejection
from conformance.recording import drawn_failures
from conformance.recording.canonical_json import digest
from conformance.recording.plan_lock import NAME as LOCK
from conformance.report import index, outputs
from conformance.report.replay_commands import BODIES
from conformance.run.launch import RECORDING

NEEDED: Final = (RECORDING, LOCK, index.RESULTS)
"""The files that a certificate requires."""
MADE: Final = frozenset({*NEEDED, index.REPORT, *outputs.MADE, drawn_failures.NAME, "traffic.har"})
"""The files that `conformance run` and `conformance report` write, beside the long bodies that commands read."""
OWN: Final = "certificate"
"""The folder inside a bundle for its certificate, unless another is given."""


def contents(folder: Path) -> dict[str, Path]:
    """The files of a bundle by name, without the certificate's own folder."""
    return {
        inner.relative_to(folder).as_posix(): inner
        for path in sorted(folder.iterdir())
        if path.name != OWN
        for inner in (sorted(path.iterdir()) if _holds_bodies(path) else [path])
    }


def _holds_bodies(path: Path) -> bool:
    """Whether this is the folder of long request bodies that a report's commands read."""
    return path.name == BODIES and path.is_dir() and not path.is_symlink()


def _is_made(name: str) -> bool:
    """Whether a run writes a file of this name."""
    return name in MADE or (name.startswith(f"{BODIES}/") and name.endswith(".body"))


def strange(folder: Path) -> Iterator[Rejection]:
    """Files that no run writes. A second recording beside the first would make it unclear which one counts."""
    for name, path in contents(folder).items():
        if not _is_made(name) or path.is_symlink() or not path.is_file():
            kind = "a link" if path.is_symlink() else "a file" if path.is_file() else "a folder"
            yield Rejection("FILE_STRANGE", f"{name} is {kind} that no run writes; remove it from the bundle")
    for name in NEEDED:
        if not (folder / name).is_file():
            yield Rejection("FILE_MISSING", f"{name} is not in {folder}; expected all of {', '.join(NEEDED)}")


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {name: digest(path.read_bytes()) for name, path in contents(folder).items() if path.is_file()}


def compared(folder: Path, signed: Mapping[str, str]) -> Iterator[Rejection]:
    """Where the bundle differs from what was signed."""
    present = hashes(folder)
    for name in sorted(present.keys() | signed.keys()):
        actual, expected = present.get(name), signed.get(name)
        if actual is None:
            yield Rejection("FILE_MISSING", f"{name} was signed and is not in {folder}")
        elif expected is None:
            yield Rejection("FILE_STRANGE", f"{name} is in {folder} and was not signed")
        elif actual != expected:
            yield Rejection("FILE_CHANGED", f"{name} has the hash {actual[:12]}…; signed was {expected[:12]}…")
