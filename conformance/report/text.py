"""Target text made safe to read: control characters and invisible characters are spelled out."""

from __future__ import annotations

from typing import Final

_PICTURES: Final = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def visible(text: str, *, lines: bool = False) -> str:
    """The text with control characters as pictures, other invisible ones as `<U+202E>`; `lines` keeps newlines."""
    if text.isprintable():
        return text
    if lines:
        return "\n".join(map(visible, text.split("\n")))
    return "".join(char if char.isprintable() else _PICTURES.get(ord(char), f"<U+{ord(char):04X}>") for char in text)


def decoded(data: bytes) -> str:
    """Bytes as text for a reader: what is not UTF-8 shows as `\\xff`, control characters as pictures."""
    return visible(data.decode("utf-8", "backslashreplace"), lines=True)
