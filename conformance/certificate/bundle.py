"""The folder of one run under a plan: what may be in it, and the hashes that are signed for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from conformance.certificate.reasons import Rejection
from conformance.recording.canonical_json import digest
from conformance.recording.plan_lock import NAME as LOCK
from conformance.report import index, outputs
from conformance.run.launch import RECORDING

NEEDED: Final = (RECORDING, LOCK, index.RESULTS)
"""What a certificate rests on."""
MADE: Final = frozenset({*NEEDED, index.REPORT, *outputs.MADE, "traffic.har"})
"""What a run, and a rebuilding of its report, leaves behind."""
OWN: Final = "certificate"
"""The folder inside of a bundle where its certificate stands unless another is named."""


def contents(folder: Path) -> dict[str, Path]:
    """The files of a bundle by name, the certificate's own folder left out."""
    return {path.name: path for path in sorted(folder.iterdir()) if path.name != OWN}


def strange(folder: Path) -> Iterator[Rejection]:
    """What no run writes. A second recording beside the first would leave it open which one counts."""
    for name, path in contents(folder).items():
        if name not in MADE or path.is_symlink() or not path.is_file():
            kind = "a link" if path.is_symlink() else "a file" if path.is_file() else "a folder"
            yield Rejection("FILE_STRANGE", f"{name} is {kind} that no run writes; take it out of the bundle")
    for name in NEEDED:
        if not (folder / name).is_file():
            yield Rejection("FILE_MISSING", f"{name} is not in {folder}; expected all of {', '.join(NEEDED)}")


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {name: digest(path.read_bytes()) for name, path in contents(folder).items() if path.is_file()}


def compared(folder: Path, signed: Mapping[str, str]) -> Iterator[Rejection]:
    """Where the bundle departs from what was signed for."""
    found = hashes(folder)
    for name in sorted(found.keys() | signed.keys()):
        here, there = found.get(name), signed.get(name)
        if here is None:
            yield Rejection("FILE_MISSING", f"{name} was signed for and is not in {folder}")
        elif there is None:
            yield Rejection("FILE_STRANGE", f"{name} is in {folder} and was not signed for")
        elif here != there:
            yield Rejection("FILE_CHANGED", f"{name} has the hash {here[:12]}…, signed for is {there[:12]}…")
