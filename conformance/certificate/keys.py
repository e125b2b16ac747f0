"""Ed25519 keys: generated, stored, loaded, used. The only module that imports cryptography."""

from __future__ import annotations

import os
import stat
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from conformance.recording.canonical_json import digest

KIND: Final = "ed25519"
PRIVATE_MODE: Final = 0o600


class KeyFileError(ValueError):
    """A key cannot be created or used; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key."""

    raw: bytes

    @property
    def id(self) -> str:
        """The hash of the key, which identifies it in lists and envelopes."""
        return digest(self.raw)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def __str__(self) -> str:
        return f"{KIND} {b64encode(self.raw).decode('ascii')}"


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key; its repr does not show it."""

    _key: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> PublicKey:
        return PublicKey(self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


def generate(path: Path, name: str = "") -> PublicKey:
    """Write a new key, readable only by its owner, and its public key beside it; no file is ever replaced."""
    public_path = path.with_name(f"{path.name}.pub")
    if "up-to=" in name.lower():
        raise KeyFileError(f"the name {name!r:.60} contains 'up-to='; only a verifier says what a key may claim")
    for file_path in (path, public_path):
        if os.path.lexists(file_path):
            raise KeyFileError(f"{file_path} exists, and a key is never replaced; give another name")
    key = Ed25519PrivateKey.generate()
    public = PrivateKey(key).public
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), PRIVATE_MODE)
    try:
        os.fchmod(file, PRIVATE_MODE)  # whatever the umask
        os.write(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    finally:
        os.close(file)
    try:
        with public_path.open("x", encoding="ascii", errors="replace") as public_file:
            public_file.write(f"{public}{' ' + ' '.join(name.split()) if name.split() else ''}\n")
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    return public


def load(path: Path) -> PrivateKey:
    """A private key from its file, which only its owner may read."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        data = path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}; make a key with `conformance keygen`") from None
    if mode & 0o077:
        raise KeyFileError(f"{path} can be read by others (mode {mode:04o}); run `chmod 600` on it, or make a new key")
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyFileError(f"{path} is not a private key in PEM format; make one with `conformance keygen`") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{path} is not an Ed25519 key; make one with `conformance keygen`")
    return PrivateKey(key)


def parse_public(words: str) -> PublicKey:
    """A public key from `ed25519 BASE64`, as a statement names the key that signed it."""
    return public(*words.split(" ", 1)) if " " in words else public(words, "")


def public(kind: str, encoded: str) -> PublicKey:
    """A public key from its two words, `ed25519 BASE64`."""
    try:
        raw = b64decode(encoded, validate=True)
    except ValueError:
        raw = b""
    if kind != KIND or len(raw) != 32:
        raise KeyFileError(f"{kind} {encoded[:16]}… is not a public key; expected '{KIND} BASE64', as in a .pub file")
    return PublicKey(raw)
