"""What a verifier decides beforehand: trusted keys and their assurance, revocations, certificates seen before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.certificate import dsse, keys
from conformance.certificate.keys import KeyFileError, PublicKey
from conformance.recording.plan_lock import NONCE

SELF, AUDITED, INDEPENDENT = "self-reported", "audited", "independent"
ASSURANCE: Final[Mapping[str, str]] = {
    SELF: "the provider of the target made and signed the run; it may be the best of several runs",
    AUDITED: "the signer gave the nonce, received the recording of a run made by others, and judged it again",
    INDEPENDENT: "the signer gave the nonce and made the run",
}
"""Levels of assurance, weakest first."""
UP_TO: Final = "up-to="
_ID: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Trusted:
    """A trusted key, the highest assurance it may claim, and its owner."""

    key: PublicKey
    most: str
    name: str


def trusted(path: Path) -> tuple[Trusted, ...]:
    """The keys of a file with one `ed25519 BASE64 [up-to=LEVEL] NAME` per line.

    Only the third word decides what a key may claim; without it that is self-reported, the weakest level. `up-to=` in a
    name is refused: the name comes from the owner of the key, who must not choose the level.
    """
    return tuple(_trusted(path, number, line) for number, line in _lines(path))


def _trusted(path: Path, number: int, line: str) -> Trusted:
    words = line.split()
    try:
        key = keys.public(words[0], words[1] if len(words) > 1 else "")
    except KeyFileError as error:
        raise KeyFileError(f"{path}: line {number}: {error}") from None
    name_words = words[2:]
    ceiling = name_words.pop(0).removeprefix(UP_TO) if name_words and name_words[0].startswith(UP_TO) else SELF
    if ceiling not in ASSURANCE:
        raise KeyFileError(f"{path}: line {number}: {UP_TO}{ceiling}; expected one of {', '.join(ASSURANCE)}")
    if UP_TO in " ".join(name_words).lower():
        raise KeyFileError(f"{path}: line {number}: {UP_TO} is in the name; expected it as the third word only")
    return Trusted(key, ceiling, " ".join(name_words))


def exceeds(claimed: str, ceiling: str) -> bool:
    """Whether a level of assurance is higher than a key may claim."""
    order = list(ASSURANCE)
    return claimed not in order or order.index(claimed) > order.index(ceiling)


def revoked(path: Path) -> dict[str, str]:
    """What is revoked, with the reason: one id of a certificate or key, a key, or a nonce, and a reason per line."""
    return dict(_revoked(path, number, line.split()) for number, line in _lines(path))


def _revoked(path: Path, number: int, words: Sequence[str]) -> tuple[str, str]:
    """What a line revokes, and the reason. A line that is not understood is an error, never skipped."""
    if words[0].lower() == keys.KIND:
        try:
            return keys.public(words[0].lower(), "".join(words[1:2])).id, " ".join(words[2:])
        except KeyFileError as error:
            raise KeyFileError(f"{path}: line {number}: {error}") from None
    if _ID.fullmatch(words[0].lower()):
        return words[0].lower(), " ".join(words[1:])
    if not NONCE.fullmatch(words[0]):
        raise KeyFileError(f"{path}: line {number}: {words[0]!r:.80} is no id, key or nonce; correct the line")
    return words[0], " ".join(words[1:])


def seen(path: Path, trusted: Sequence[Trusted] | None = None) -> dict[str, set[str]]:
    """Certificate ids by nonce, from a folder of certificates or a file with one `NONCE ID` per line.

    Of a folder, only signed certificates count, and where trusted keys are given, only theirs: anybody can write a file
    that names the nonce of somebody else.
    """
    ids: dict[str, set[str]] = {}
    pairs = _in_folder(path, trusted) if path.is_dir() else (line.split()[:2] for _, line in _lines(path))
    for pair in pairs:
        if len(pair) != 2:
            raise KeyFileError(f"{path}: {pair[0]:.40} is alone on its line; expected a nonce and an id")
        ids.setdefault(pair[0], set()).add(pair[1])
    return ids


def _in_folder(folder: Path, trusted: Sequence[Trusted] | None) -> Iterator[list[str]]:
    from conformance.certificate.statement import CERTIFIED, parse

    for path in sorted(folder.rglob("certificate.json")):
        try:
            envelope = dsse.read(dsse.content(path))
            certified = parse(envelope.payload)["predicate"][CERTIFIED]
            stated_key = keys.parse_public(certified["public_key"])
            accepted = [stated_key] if trusted is None else [entry.key for entry in trusted]
        except ValueError:
            continue  # not a certificate, so it has used no nonce
        if envelope.signed_by(accepted):
            yield [certified["plan"]["nonce"], envelope.id]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
