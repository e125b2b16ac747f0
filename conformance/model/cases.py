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
    UNREAD = "unread"  # it ended as it should, but too much had come before in this run to keep all of it


class Credential(StrEnum):
    """Which key a request carries; the transport fills it in, so that no case ever holds a secret."""

    KEY = "key"
    NONE = "none"
    WRONG = "wrong"
    LOWERCASE_SCHEME = "lowercase-scheme"


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
