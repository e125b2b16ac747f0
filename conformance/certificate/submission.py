"""The reviewer's checklist on a folder that was submitted: one line each, nothing sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from conformance.certificate.issue import CERTIFICATE
from conformance.certificate.page import PAGE
from conformance.certificate.statement import OURS
from conformance.certificate.verify import Verified, VerifierKnowledge, verify
from conformance.config.settings import SettingsError
from conformance.config.toml_file import read as read_toml

SCHEMA: Final = "certificate/product.schema.json"
PRODUCT, README, BUNDLE = "product.toml", "README.md", "bundle"
OPTIONAL: Final = frozenset({PAGE, "badge.svg", "badge.json"})
MOST_BYTES: Final = 200 * 1024 * 1024
COMMANDS: Final = ("conformance plan", "conformance run")
_HEADING: Final = re.compile(r"^#+ .*reproduc", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One point of the list; `holds` is None where it cannot be told here."""

    about: str
    holds: bool | None
    said: str


def checked(folder: Path, known: VerifierKnowledge, day: date, specs: Sequence[Path] = ()) -> Iterator[Entry]:
    """Every point of the list."""
    yield from _files(folder)
    found = Verified(())
    if (folder / CERTIFICATE).is_file():
        evidence = folder / BUNDLE if (folder / BUNDLE).is_dir() else None
        found = verify(folder / CERTIFICATE, evidence, known, day, specs)
        yield from _certificate(found)
    yield from _product(folder, found)
    yield from _readme(folder, found)
    yield from _nonce(known, found)


def _files(folder: Path) -> Iterator[Entry]:
    there = {path.name for path in folder.iterdir() if not path.name.startswith(".git")}
    needed = {CERTIFICATE, BUNDLE, PRODUCT, README}
    for name in sorted(needed - there):
        yield Entry("files", False, f"{name} is missing; expected {', '.join(sorted(needed))}")
    for name in sorted(there - needed - OPTIONAL):
        yield Entry("files", False, f"{name} does not belong here; take it out")
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    for path in links[:1]:
        yield Entry("files", False, f"{path.relative_to(folder)} is a link; put the file itself there")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if size > MOST_BYTES:
        yield Entry("files", False, f"{size:,} bytes; expected {MOST_BYTES:,} at most")
    if needed <= there <= needed | OPTIONAL and not links and size <= MOST_BYTES:
        yield Entry("files", True, f"{len(there)} entries, {size:,} bytes")


def _certificate(found: Verified) -> Iterator[Entry]:
    for fault in found.faults:
        yield Entry("certificate", False, str(fault))
    for one in found.unexamined:
        yield Entry("certificate", None, f"not examined: {one}")
    if found.faults or not found.statement:
        return
    ours = found.statement["predicate"][OURS]
    if not found.unexamined:
        yield Entry("certificate", True, f"holds until {ours['expires_on']}, every verdict made again from the bytes")
    lacking = [name for name, one in ours["areas"].items() if one["lacking"]]
    told = f"{ours['level']}; {', '.join(lacking)} lack something" if lacking else f"{ours['level']}"
    yield Entry("level", True, told + (f"; claimed: {', '.join(ours['claims'])}" if ours["claims"] else ""))
    yield Entry("assurance", True, ours["assurance"])


def _product(folder: Path, found: Verified) -> Iterator[Entry]:
    if not (folder / PRODUCT).is_file():
        return
    try:
        product = read_toml(folder / PRODUCT, SCHEMA)
    except SettingsError as error:
        yield Entry("product", False, str(error))
        return
    faults = list(_unlike(product, found))
    yield from (Entry("product", False, one) for one in faults)
    if not faults:
        yield Entry("product", True, f"{product['vendor']} {product['name']} {product['version']}")


def _unlike(product: dict[str, Any], found: Verified) -> Iterator[str]:
    if not found.statement:
        return
    ours = found.statement["predicate"][OURS]
    certified = {
        "contract": ours["contract"]["provider"],
        "endpoint": ours["target"]["base_url"],
        "model": ours["target"]["model"],
    }
    for name, value in certified.items():
        if str(product[name]).rstrip("/") != str(value).rstrip("/"):
            yield f"{PRODUCT}: {name} is {product[name]!r}; certified was {value!r}"


def _readme(folder: Path, found: Verified) -> Iterator[Entry]:
    path = folder / README
    if not path.is_file():
        return
    text = path.read_text("utf-8", "replace")
    lacking = [] if _HEADING.search(text) else ["a heading such as '## How to reproduce'"]
    lacking += [f"the command `{one} …`" for one in COMMANDS if one not in text]
    if found.statement:
        claims = found.statement["predicate"][OURS]["claims"]
        lacking += [f"the claim '{one}'" for one in claims if one not in text]
    told = f"{README} lacks {', '.join(lacking)}" if lacking else "says how to reproduce it"
    yield Entry("readme", not lacking, told)


def _nonce(known: VerifierKnowledge, found: Verified) -> Iterator[Entry]:
    if not found.statement or any(one.code == "NONCE_REUSED" for one in found.faults):
        return
    if known.seen:
        yield Entry("nonce", True, "no other certificate that is known has used it")
    else:
        yield Entry("nonce", None, "whether it was used before: name the registry with --seen")
