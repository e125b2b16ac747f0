"""Which code judged: its version, and a hash over it, since a version in development has many."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from conformance import __version__

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def build() -> dict[str, str]:
    """Version and hash of all code, and of the data beside it that decides anything."""
    told = sha256()
    files = (path for suffix in ("py", "toml") for path in PACKAGE.rglob(f"*.{suffix}"))
    for path in sorted(files, key=lambda path: path.relative_to(PACKAGE).as_posix()):
        content = path.read_bytes()
        told.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return {"version": __version__, "sha256": told.hexdigest()}
