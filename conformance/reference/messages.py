"""What goes into and comes out of the reference: a request, a response before it is sent, a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from conformance.model import Ending


@dataclass(frozen=True)
class Request:
    """A complete request as a server receives it."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The headers by their names in lower case."""
        return {name.lower(): value for name, value in self.headers}


@dataclass(frozen=True, slots=True)
class Portion:
    """Bytes that are sent together, `delay` seconds after those before them."""

    data: bytes
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Response:
    """A response in portions. `status` None: the connection closes before any head.

    `ending` COMPLETE ends the content properly, TRUNCATED drops the connection in the middle of it, TIMED_OUT sends
    nothing more and keeps the connection open.
    """

    status: int | None
    headers: tuple[tuple[str, str], ...] = ()
    portions: tuple[Portion, ...] = ()
    ending: Ending = Ending.COMPLETE

    @property
    def content(self) -> bytes:
        return b"".join(portion.data for portion in self.portions)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a request: a message for people, the parameter, and a code for programs."""

    message: str
    param: str | None = None
    kind: str = "invalid_value"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: the status, its problems, and further headers."""

    status: int
    problems: tuple[Problem, ...]
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def first(self) -> Problem:
        return self.problems[0]
