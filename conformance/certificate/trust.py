"""What a verifier decides beforehand: trusted keys and their assurance, revocations, certificates seen before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.certificate import dsse, keys
from conformance.certificate.keys import KeyFileError, Public

SELF, AUDITED, INDEPENDENT = "self-reported", "audited", "independent"
ASSURANCE: Final[Mapping[str, str]] = {
    SELF: "the provider of the target made and signed the run; it may be the best of several runs",
    AUDITED: "the signer gave the nonce, received the recording of a run made by others, and judged it again",
    INDEPENDENT: "the signer gave the nonce and made the run",
}
"""Levels of assurance, weakest first."""
_UP_TO: Final = "up-to="


@dataclass(frozen=True, slots=True)
class Trusted:
    """A trusted key, the highest assurance it may claim, and its owner."""

    key: Public
    most: str
    name: str


def trusted(path: Path) -> tuple[Trusted, ...]:
    """The keys of a file with one `ed25519 BASE64 [up-to=LEVEL] NAME` per line, such as concatenated .pub files.

    Without `up-to` a key may claim self-reported, the weakest level, only.
    """
    return tuple(_trusted(path, number, line) for number, line in _lines(path))


def _trusted(path: Path, number: int, line: str) -> Trusted:
    words = line.split()
    try:
        key = keys.public(words[0], words[1] if len(words) > 1 else "")
    except KeyFileError as error:
        raise KeyFileError(f"{path}: line {number}: {error}") from None
    most = next((word.removeprefix(_UP_TO) for word in words[2:] if word.startswith(_UP_TO)), SELF)
    if most not in ASSURANCE:
        raise KeyFileError(f"{path}: line {number}: {_UP_TO}{most}; expected one of {', '.join(ASSURANCE)}")
    return Trusted(key, most, " ".join(word for word in words[2:] if not word.startswith(_UP_TO)))


def exceeds(claimed: str, most: str) -> bool:
    """Whether a level of assurance is higher than a key may claim."""
    order = list(ASSURANCE)
    return claimed not in order or order.index(claimed) > order.index(most)


def revoked(path: Path) -> dict[str, str]:
    """What is revoked, with the reason: one id of a certificate or key, or a nonce, and a reason per line."""
    return {words[0]: " ".join(words[1:]) for _, line in _lines(path) if (words := line.split())}


def seen(path: Path) -> dict[str, set[str]]:
    """Certificate ids by nonce, from a folder of certificates or a file with one `NONCE ID` per line."""
    ids: dict[str, set[str]] = {}
    pairs = _in_folder(path) if path.is_dir() else (line.split()[:2] for _, line in _lines(path))
    for pair in pairs:
        if len(pair) != 2:
            raise KeyFileError(f"{path}: {pair[0]:.40} is alone on its line; expected a nonce and an id")
        ids.setdefault(pair[0], set()).add(pair[1])
    return ids


def _in_folder(folder: Path) -> Iterator[list[str]]:
    from conformance.certificate.statement import nonce_of

    for path in sorted(folder.rglob("certificate.json")):
        try:
            envelope = dsse.read(path.read_bytes())
            yield [nonce_of(envelope.payload), envelope.id]
        except ValueError:
            continue  # not a certificate, so it has used no nonce


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
