"""A bundle, the folder of one run with a plan lock: the files it may contain, and the hashes that are signed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import Final

from conformance.certificate.reasons import Rejection
from conformance.recording import drawn_failures
from conformance.recording.json_forms import bytes_in
from conformance.recording.plan_lock import NAME as LOCK
from conformance.report import index, outputs
from conformance.report.replay_commands import BODIES
from conformance.run.launch import RECORDING
from conformance.send.response_reader import TOTAL, Inflation, header_weight, weight

NEEDED: Final = (RECORDING, LOCK, index.RESULTS)
"""The files that a certificate requires."""
MADE: Final = frozenset({*NEEDED, index.REPORT, *outputs.MADE, drawn_failures.NAME, "traffic.har"})
"""The files that `conformance run` and `conformance report` write, beside the long bodies that commands read."""
MOST_RECORDED: Final = 512 * 1024 * 1024
MOST_DERIVED: Final = 64 * 1024 * 1024
MOST_LINE: Final = 32 * 1024 * 1024  # a reply of 16 MiB in base64 is shorter
MOST_WEIGHT: Final = TOTAL + 64 * 1024 * 1024  # a run keeps less, but for what each reply may have at least
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


def unexpected_files(folder: Path) -> Iterator[Rejection]:
    """Files that no run writes. A second recording beside the first would make it unclear which one counts."""
    for name, path in contents(folder).items():
        if not _is_made(name) or path.is_symlink() or not path.is_file():
            kind = "a link" if path.is_symlink() else "a file" if path.is_file() else "a folder"
            yield Rejection("FILE_STRANGE", f"{name} is {kind} that no run writes; remove it from the bundle")
    for name in NEEDED:
        if not (folder / name).is_file():
            yield Rejection("FILE_MISSING", f"{name} is not in {folder}; expected all of {', '.join(NEEDED)}")


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file, read piece by piece."""
    return {name: _hash(path) for name, path in contents(folder).items() if path.is_file()}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def oversized_files(folder: Path) -> Iterator[Rejection]:
    """Files larger than any run records: a verifier need not have the memory to read them."""
    for name, path in contents(folder).items():
        limit = MOST_RECORDED if name == RECORDING else MOST_DERIVED
        if path.is_file() and (size := path.stat().st_size) > limit:
            yield Rejection("BUNDLE_TOO_LARGE", f"{name} has {size:,} bytes; expected {limit:,} at most")
            return
    heavy = 0
    with (folder / RECORDING).open("rb") as file:
        while line := file.readline(MOST_LINE + 1):
            if len(line) > MOST_LINE:
                yield Rejection("BUNDLE_TOO_LARGE", f"a record of {RECORDING} has more than {MOST_LINE:,} bytes")
                return
            heavy += _weight(line) if line.startswith(b'{"record":"attempt"') else 0
            if heavy > MOST_WEIGHT:
                size_kept = f"{heavy // 2**20:,} MiB; expected {MOST_WEIGHT // 2**20} at most"
                yield Rejection("BUNDLE_TOO_LARGE", f"the replies of {RECORDING} would take about {size_kept}")
                return


def _weight(line: bytes) -> int:
    """The approximate memory that judging a recorded attempt takes."""
    try:
        record = json.loads(line)
        headers, pieces = record["headers"], [bytes_in(data) for _, data in record["pieces"]]
        packed = any(name.lower() == "content-encoding" for name, _ in headers)
        inflation = Inflation() if packed else None
        inside = sum(inflation.feed(data, MOST_WEIGHT)[1] for data in pieces) if inflation else 0
        return header_weight(headers) + sum(map(weight, pieces)) + inside
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return len(line)  # whatever it is, reading it rejects it


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
