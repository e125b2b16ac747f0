"""Text ⇄ token ids: a few hundred word pieces, a token for each byte, and numbered words for every other id.

Characters beyond ASCII have no piece of their own: they are spelled in bytes, as real tokenizers do it. So a character
may take several tokens, and a stream must hold it back until it is complete.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_WORDS: Final = """
the of and to in is was for on as with by at from that it he she they we you his her their our which this these those
one two three four five six seven eight nine ten first last next old new small large long short high low red green blue
white black time year day night morning evening winter summer spring river mountain sea island forest field garden city
village house door window table chair book page letter word line name story song music voice sound light shadow fire
water stone sand snow rain wind cloud star moon sun earth road bridge ship boat train wheel engine clock bell key lamp
bread salt honey apple pear tree leaf root seed flower bird horse dog cat fish bee child woman man king queen friend
teacher doctor sailor farmer baker painter writer hand eye heart head came went saw found gave took made kept left began
ended opened closed turned moved stood sat ran walked called asked answered said told knew thought felt heard read wrote
drew built grew fell rose shone slept woke quickly slowly softly often never always again once then now here there where
when while before after under over between behind across near far away together alone every some many few all no not
only even still also but or so if because until since more most less very almost about into out up down
"""
_PIECES: Final = tuple(
    [" " + word for word in _WORDS.split()]
    + ["The", "And", "Once", "Then", "When", "In", "It", "So", "\n\n", "  ", "...", "://", "()."]
    + ['{"', '": "', '": ', '", "', '"}', "answer", "value", "name", "text", "type"]
    + [f" {number}" for number in range(100)]
)
_WORD: Final = re.compile(
    r"""[ ]?[A-Za-z]+ | [ ][0-9]{1,2}(?![0-9]) | \n\n | \.\.\. | \{" | ":[ ]"? | ",[ ]" | "\} | .""",
    re.DOTALL | re.VERBOSE,
)

FIRST_BYTE: Final = len(_PIECES)
EOS: Final = 50256
BOS: Final = 50257
SIZE: Final = 50258
PIECES: Final = range(FIRST_BYTE)
_IDS: Final = {piece: token for token, piece in enumerate(_PIECES)}

# The characters beyond ASCII that the model may write, of two, three and four bytes.
SPELLED: Final = tuple(char.encode() for char in "éß海山😀🌲🚀")


def byte_token(byte: int) -> int:
    """The token that stands for one byte."""
    return FIRST_BYTE + byte


def surface(token: int) -> bytes:
    """The bytes that a token adds to the text. Every id has some, so that any prompt or bias has a meaning."""
    if 0 <= token < FIRST_BYTE:
        return _PIECES[token].encode()
    if FIRST_BYTE <= token < FIRST_BYTE + 256:
        return bytes([token - FIRST_BYTE])
    if token in {EOS, BOS}:
        return b""
    return f" w{token}".encode()


@lru_cache(maxsize=1024)
def label(token: int) -> str:
    """The name of a token among the alternatives, unique for each token, unlike the text that it adds."""
    if token == EOS:
        return "<|endoftext|>"
    raw = surface(token)
    return raw.decode() if raw.isascii() else "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How text is cut into tokens. `bytewise`: one token per byte. `bos`: a start token begins each text prompt."""

    bytewise: bool = False
    bos: bool = False

    def encode(self, text: str) -> tuple[int, ...]:
        """The token ids of a text; lone surrogates become U+FFFD."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        tokens = _bytes(clean) if self.bytewise else _words(clean)
        return (BOS, *tokens) if self.bos else tokens


def _bytes(text: str) -> tuple[int, ...]:
    return tuple(FIRST_BYTE + byte for byte in text.encode())


def _words(text: str) -> tuple[int, ...]:
    return _cut_long(text) if len(text) > 4096 else _cut_once(text)


def _cut(text: str) -> tuple[int, ...]:
    tokens: list[int] = []
    for word in _WORD.findall(text):
        token = _IDS.get(word)
        if token is None:
            tokens += [FIRST_BYTE + byte for byte in word.encode()]
        else:
            tokens.append(token)
    return tuple(tokens)


_cut_once: Final = lru_cache(maxsize=512)(_cut)
_cut_long: Final = lru_cache(maxsize=16)(_cut)


class Spelling:
    """Bytes of tokens → text, character by character: a token adds nothing while its character is incomplete."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The text that the next token completes."""
        return self._decoder.decode(surface(token))

    @property
    def pending(self) -> bytes:
        """The bytes of a character that is not yet complete."""
        return self._decoder.getstate()[0]


def spell(tokens: Sequence[int]) -> tuple[str, ...]:
    """The text that each token adds. A character that stays incomplete adds nothing."""
    spelling = Spelling()
    return tuple([spelling.add(token) for token in tokens])
