"""Identifies the code that judged: its version, and a hash of its sources, which change within a version."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from conformance import __version__

PACKAGE: Final = Path(__file__).resolve().parents[1]
DATA: Final = frozenset({".toml", ".json", ".yaml"})
WITHOUT_DATA: Final = frozenset({"specs", "selftest"})
"""Folders whose data is not hashed: contracts have their own hash, and mutation scores do not affect verdicts."""


@cache
def build() -> dict[str, str]:
    """The version, and the hash of all code and of the data files that affect requests or verdicts."""
    digest = sha256()
    files = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*") if path.suffix in {".py", *DATA}}
    for name, path in sorted(files.items(), key=lambda item: item[0].as_posix()):
        if path.suffix in DATA and name.parts[0] in WITHOUT_DATA:
            continue
        content = path.read_bytes()
        digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return {"version": __version__, "sha256": digest.hexdigest()}
