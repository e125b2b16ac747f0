"""The reviewer's checklist for a submitted folder: one line for each point, without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from conformance.certificate.bundle import OWN
from conformance.certificate.issue import CERTIFICATE
from conformance.certificate.page import PAGE
from conformance.certificate.statement import CERTIFIED
from conformance.certificate.verify import Verified, VerifierKnowledge, verify
from conformance.config.settings import SettingsError
from conformance.config.toml_file import read as read_toml

SCHEMA: Final = "certificate/product.schema.json"
PRODUCT, README, BUNDLE = "product.toml", "README.md", "bundle"
OPTIONAL: Final = frozenset({PAGE, "badge.svg", "badge.json"})
TOO_LARGE: Final = "too large:"
MOST_BYTES: Final = 200 * 1024 * 1024
COMMANDS: Final = ("conformance plan", "conformance run")
_HEADING: Final = re.compile(r"^#+ .*reproduc", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One point of the checklist; `holds` is None where it cannot be decided here."""

    about: str
    holds: bool | None
    statement: str


def checked(folder: Path, known: VerifierKnowledge, day: date, specs: Sequence[Path] = ()) -> Iterator[Entry]:
    """All points of the checklist."""
    faults = list(_files(folder))
    yield from faults
    if any(fault.statement.startswith(TOO_LARGE) for fault in faults):
        return  # nothing of it is read
    verified = Verified(())
    if (folder / CERTIFICATE).is_file():
        evidence = folder / BUNDLE if (folder / BUNDLE).is_dir() else None
        verified = verify(folder / CERTIFICATE, evidence, known, day, specs)
        yield from _certificate(verified)
    yield from _product(folder, verified)
    yield from _readme(folder, verified)
    yield from _nonce(known, verified)


def _files(folder: Path) -> Iterator[Entry]:
    present = {path.name for path in folder.iterdir()}
    needed = {CERTIFICATE, BUNDLE, PRODUCT, README}
    for name in sorted(needed - present):
        yield Entry("files", False, f"{name} is missing; expected {', '.join(sorted(needed))}")
    for name in sorted(present - needed - OPTIONAL):
        yield Entry("files", False, f"{name} does not belong in a submission; remove it")
    if (folder / BUNDLE / OWN).exists():
        yield Entry("files", False, f"{BUNDLE}/{OWN} is not covered by the signature; remove it")
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    for path in links[:1]:
        yield Entry("files", False, f"{path.relative_to(folder)} is a symbolic link; replace it with the file")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if size > MOST_BYTES:
        yield Entry("files", False, f"{TOO_LARGE} {size:,} bytes; expected {MOST_BYTES:,} at most")
    complete = needed <= present <= needed | OPTIONAL and not (folder / BUNDLE / OWN).exists()
    if complete and not links and size <= MOST_BYTES:
        yield Entry("files", True, f"{len(present)} entries, {size:,} bytes")


def _certificate(verified: Verified) -> Iterator[Entry]:
    for fault in verified.faults:
        yield Entry("certificate", False, str(fault))
    for part in verified.unexamined:
        yield Entry("certificate", None, f"not examined: {part}")
    if verified.faults or not verified.statement:
        return
    certified = verified.statement["predicate"][CERTIFIED]
    if not verified.unexamined:
        yield Entry("certificate", True, f"valid until {certified['expires_on']}; every verdict follows from the bytes")
    lacking = [name for name, area in certified["areas"].items() if area["lacking"]]
    level = certified["level"] + (f"; something is lacking in {', '.join(lacking)}" if lacking else "")
    yield Entry("level", True, level + (f"; claimed: {', '.join(certified['claims'])}" if certified["claims"] else ""))
    yield Entry("assurance", True, certified["assurance"])


def _product(folder: Path, verified: Verified) -> Iterator[Entry]:
    if not (folder / PRODUCT).is_file():
        return
    try:
        product = read_toml(folder / PRODUCT, SCHEMA)
    except SettingsError as error:
        yield Entry("product", False, str(error))
        return
    faults = list(_differences(product, verified))
    yield from (Entry("product", False, fault) for fault in faults)
    if not faults:
        yield Entry("product", True, f"{product['vendor']} {product['name']} {product['version']}")


def _differences(product: dict[str, Any], verified: Verified) -> Iterator[str]:
    """Where product.toml contradicts the certificate."""
    if not verified.statement:
        return
    certified = verified.statement["predicate"][CERTIFIED]
    signed = certified.get("product")
    if signed is None:
        yield f"the certificate names no product; sign one with `certify --product {PRODUCT}`"
    elif signed != product:
        names = sorted(name for name in signed.keys() | product.keys() if signed.get(name) != product.get(name))
        yield f"{PRODUCT}: {names[0]} is {product.get(names[0])!r}; certified was {signed.get(names[0])!r}"
    endpoint = {
        "contract": certified["contract"]["provider"],
        "endpoint": certified["target"]["base_url"],
        "model": certified["target"]["model"],
    }
    for name, value in endpoint.items():
        if str(product[name]).rstrip("/") != str(value).rstrip("/"):
            yield f"{PRODUCT}: {name} is {product[name]!r}; certified was {value!r}"


def _readme(folder: Path, verified: Verified) -> Iterator[Entry]:
    path = folder / README
    if not path.is_file():
        return
    text = path.read_text("utf-8", "replace")
    missing = [] if _HEADING.search(text) else ["a heading such as '## How to reproduce'"]
    missing += [f"the command `{command} …`" for command in COMMANDS if command not in text]
    if verified.statement:
        claims = verified.statement["predicate"][CERTIFIED]["claims"]
        missing += [f"the claim '{claim}'" for claim in claims if claim not in text]
    message = f"{README} lacks {', '.join(missing)}" if missing else "says how to reproduce the run"
    yield Entry("readme", not missing, message)


def _nonce(known: VerifierKnowledge, verified: Verified) -> Iterator[Entry]:
    if not verified.statement or any(fault.code == "NONCE_REUSED" for fault in verified.faults):
        return
    if known.seen:
        yield Entry("nonce", True, "no other known certificate has it")
    else:
        yield Entry("nonce", None, "not known whether it was used before; give the registry with --seen")
