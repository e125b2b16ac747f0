"""What is sent: requests, whole before anything is sent, and the phases they are sent in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from conformance.model.json_text import MISSING, loads


class Validity(StrEnum):
    """Whether a request keeps to its contract, computed from the body that is sent."""

    VALID = "valid"
    INVALID = "invalid"
    UNSPECIFIED = "unspecified"


class Ending(StrEnum):
    """How a response ended. ABANDONED: the client closed the connection, as the case demands."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    TIMED_OUT = "timed_out"
    OVERSIZED = "oversized"
    ABANDONED = "abandoned"
    UNREAD = "unread"  # it ended as it should, but the run had no memory left to keep all of it


class Credential(StrEnum):
    """Which key a request carries; the transport fills it in, so that no case ever holds a secret."""

    KEY = "key"
    NONE = "none"
    WRONG = "wrong"
    CUT_SHORT = "cut-short"  # the right key without its last character
    PROLONGED = "prolonged"  # the right key with a character behind it
    OTHER_CASE = "other-case"  # the right key with lower and upper case letters exchanged
    EMPTY = "empty"  # the scheme alone
    OTHER_SCHEME = "other-scheme"  # the right key under the name of another scheme
    NO_SCHEME = "no-scheme"  # the right key without a scheme
    TWICE = "twice"  # two fields: a wrong key, then the right one
    LOWERCASE_SCHEME = "lowercase-scheme"

    @property
    def refused(self) -> bool:
        """Whether a target that checks keys must refuse it."""
        return self not in {Credential.KEY, Credential.LOWERCASE_SCHEME}

    def authorization(self, key: str, wrong: str) -> tuple[str, ...]:
        """The values of the Authorization fields, usually one. `wrong` is a key that was never issued."""
        match self:
            case Credential.NONE:
                return ()
            case Credential.EMPTY:
                return ("Bearer",)  # HTTP has no white space at the end of a field (RFC 9110 §5.5)
            case Credential.LOWERCASE_SCHEME:
                return (f"bearer {key}",) if key else ()
            case Credential.KEY:
                return (f"Bearer {key}",) if key else ()
            case Credential.OTHER_SCHEME:
                return (f"Basic {key or wrong}",)
            case Credential.NO_SCHEME:
                return (key or wrong,)
            case Credential.TWICE:
                return (f"Bearer {wrong}", f"Bearer {key or wrong}")
        altered = {
            Credential.CUT_SHORT: key[:-1],
            Credential.PROLONGED: f"{key}x" if key else "",
            Credential.OTHER_CASE: key.swapcase(),
        }.get(self, wrong)
        return (f"Bearer {wrong if altered in {'', key} else altered}",)


@dataclass(frozen=True, slots=True)
class Membership:
    """A case's part in a group of cases that are judged together: the kind of relation, which one, and the role."""

    kind: str
    key: str
    role: str


@dataclass(frozen=True)
class RequestCase:
    """One request to be sent, whole, before anything is sent.

    `content` is the body as bytes (it need not be JSON); `breaks` names the requirements that an INVALID case breaks;
    `hang_up_after` is the number of response pieces after which the client closes the connection;
    `repeats` names the case that this one sends again.
    """

    id: str
    content: bytes
    origin: str
    validity: Validity = Validity.VALID
    breaks: tuple[str, ...] = ()
    groups: tuple[Membership, ...] = ()
    method: str = "POST"
    path: str = ""
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    credential: Credential = Credential.KEY
    hang_up_after: int | None = None
    hostile: bool = False
    repeats: str = ""
    note: str = ""

    @cached_property
    def chunked(self) -> bool:
        """Whether the body is sent in chunks, without a declared length (RFC 9112 §7.1)."""
        return any(name.lower() == "transfer-encoding" for name, _ in self.headers)

    @cached_property
    def body(self) -> Any:
        """The body as JSON, or MISSING where it is none."""
        try:
            return loads(self.content)
        except ValueError:
            return MISSING


@dataclass(frozen=True, slots=True)
class Phase:
    """Cases that may be sent together: `serial` one after another, the first `burst` of them all at once."""

    name: str
    cases: tuple[RequestCase, ...]
    serial: bool = False
    burst: int = 0
