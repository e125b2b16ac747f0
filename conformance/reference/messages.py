"""What goes in and out of the reference: a request, a response that is not yet on any wire, a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from conformance.model import Ending


@dataclass(frozen=True)
class Request:
    """A request as a server sees it, its body whole. Header names are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @cached_property
    def fields(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self.headers}


@dataclass(frozen=True, slots=True)
class Portion:
    """Bytes that go out together, `delay` seconds after those before them."""

    data: bytes
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Response:
    """A response in portions. `status` None: the connection closes before any head.

    `ending` COMPLETE closes the content properly, TRUNCATED drops the connection in the middle of it, TIMED_OUT leaves
    the client waiting.
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
    """One thing that is wrong with a request: the parameter, in words, and a slug for machines."""

    message: str
    param: str | None = None
    kind: str = "invalid_value"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is turned down: the status, what is wrong, and headers that go with it."""

    status: int
    problems: tuple[Problem, ...]
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def first(self) -> Problem:
        return self.problems[0]
