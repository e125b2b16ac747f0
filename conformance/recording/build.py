"""Which code judged: its version, and a hash over its sources, since a version in development has many."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from conformance import __version__

PACKAGE: Final = Path(__file__).resolve().parents[1]
DATA: Final = frozenset({".toml", ".json", ".yaml"})
WITHOUT_DATA: Final = frozenset({"specs", "selftest"})
"""Contracts have a hash of their own, and are not in the package in a checkout; scores decide nothing."""


@cache
def build() -> dict[str, str]:
    """Version and hash of all code, and of the data beside it that decides what is sent or concluded."""
    digest = sha256()
    files = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*") if path.suffix in {".py", *DATA}}
    for name, path in sorted(files.items(), key=lambda item: item[0].as_posix()):
        if path.suffix in DATA and name.parts[0] in WITHOUT_DATA:
            continue
        content = path.read_bytes()
        digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return {"version": __version__, "sha256": digest.hexdigest()}
