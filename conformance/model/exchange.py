"""One request and every byte that came back, with views that are computed once and never raise.

The wire is the evidence: pieces are kept as received, with their times. Everything else here is a reading of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import Any, Final

from conformance.model import Ending, RequestCase, sse
from conformance.model.json_text import MISSING, as_integer, is_number, loads

DONE: Final = "[DONE]"
EVENT_STREAM: Final = "text/event-stream"
DECODED_CAP: Final = 64 * 1024 * 1024
MOST_MEMBERS: Final = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes as one read gave them, `at` seconds after the request was sent."""

    at: float
    data: bytes


class Unrecorded(StrEnum):
    """What a recording of another tool does not show of a response. No check may judge it."""

    HEADERS = "headers"
    FRAMING = "framing"  # the body was parsed and written again: the bytes between its values are not the target's
    NULLS = "nulls"  # an SDK wrote the members: null stands for absent ones too
    TIMES = "times"  # when each part of the response arrived


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at an exchange. `status` is None where no response head came; `error` then says why."""

    started_at: float
    status: int | None
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[Piece, ...] = ()
    ending: Ending = Ending.COMPLETE
    error: str = ""
    elapsed: float = 0.0
    http_version: str = "HTTP/1.1"
    unrecorded: frozenset[Unrecorded] = frozenset()


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one choice that one document (the body, or one chunk) carries."""

    chunk: int
    at: str
    value: Mapping[str, Any]

    @property
    def text(self) -> str:
        text = self.value.get("text")
        return text if isinstance(text, str) else ""

    @property
    def finish_reason(self) -> str | None:
        reason = self.value.get("finish_reason")
        return reason if isinstance(reason, str) and reason else None

    @property
    def logprobs(self) -> Mapping[str, Any] | None:
        logprobs = self.value.get("logprobs")
        return logprobs if isinstance(logprobs, Mapping) else None


@dataclass(frozen=True)
class Choice:
    """All parts of one choice, in order of arrival."""

    index: int
    parts: tuple[Part, ...]

    @property
    def at(self) -> str:
        return f"choice {self.index}"

    @cached_property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    @cached_property
    def finish_reason(self) -> str | None:
        reasons = [part.finish_reason for part in self.parts if part.finish_reason]
        return reasons[-1] if reasons else None

    @property
    def may_reason(self) -> bool:
        """Whether it has a member for reasoning, even if null: some servers only count the tokens of reasoning."""
        return any(name in part.value for part in self.parts for name in ("reasoning", "reasoning_content"))

    @cached_property
    def reasoned(self) -> bool:
        """Whether it contains reasoning beside its text, whose tokens are counted but need not be shown."""
        reasoning = (part.value.get(name) for part in self.parts for name in ("reasoning", "reasoning_content"))
        return any(isinstance(text, str) and text for text in reasoning)

    @cached_property
    def logprobs(self) -> Mapping[str, list[Any]] | None:
        """The lists of all parts joined, by name; None where no part has any.

        A part that leaves out a list which others have counts as null for each of its tokens, so that all stay in step.
        """
        of_parts = [part.logprobs for part in self.parts if part.logprobs is not None]
        if not of_parts:
            return None
        names = dict.fromkeys(name for logprobs in of_parts for name in logprobs)
        present = {name for logprobs in of_parts for name, value in logprobs.items() if isinstance(value, list)}
        return {
            name: [item for logprobs in of_parts for item in _entries(logprobs, name)] if name in present else []
            for name in names
        }


def _entries(logprobs: Mapping[str, Any], name: str) -> list[Any]:
    value = logprobs.get(name)
    return value if isinstance(value, list) else [None] * len(_as_list(logprobs.get("tokens")))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class Document:
    """A JSON value that the response carries: the whole body, or the payload of one event."""

    number: int
    at: str
    value: Any
    offset: int = 0

    @cached_property
    def choices(self) -> list[Mapping[str, Any]]:
        choices = self.value.get("choices") if isinstance(self.value, Mapping) else None
        return [item for item in _as_list(choices) if isinstance(item, Mapping)]

    @cached_property
    def usage(self) -> Any:
        """The usage member as sent; MISSING where absent."""
        return self.value.get("usage", MISSING) if isinstance(self.value, Mapping) else MISSING

    @property
    def failed(self) -> bool:
        """Whether it reports an error."""
        return isinstance(self.value, Mapping) and bool(self.value.get("error"))


@cache
def split_path(path: str) -> tuple[str, str]:
    """A path as the path above it and its last step: `[]`, `*` or the name of a member."""
    if path.endswith("[]"):
        return path[:-2], "[]"
    above, _, step = path.rpartition(".")
    return above, step


def _children(parent: tuple[str, Any], step: str) -> Iterator[tuple[str, Any]]:
    """The values one step below a value: the items of a list, the members of a map, or one member."""
    at, value = parent
    if step == "[]" and isinstance(value, list):
        yield from ((f"{at}/{index}", item) for index, item in enumerate(value))
    elif step == "*" and isinstance(value, dict):
        yield from ((f"{at}/{name}", item) for name, item in value.items())
    elif isinstance(value, dict) and step in value:
        yield f"{at}/{step}", value[step]


@dataclass(frozen=True)
class Exchange:
    """A case with all attempts at it; the last attempt is the one that is judged."""

    case: RequestCase
    attempts: tuple[Attempt, ...]

    @cached_property
    def last(self) -> Attempt:
        return self.attempts[-1]

    @cached_property
    def status(self) -> int | None:
        return self.last.status

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        return self.last.headers

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self.last.pieces

    @cached_property
    def ending(self) -> Ending:
        return self.last.ending

    def header(self, name: str) -> str | None:
        """The field's value, lines of the same name joined by a comma as RFC 9110 has it; None where absent."""
        values = [value for key, value in self.headers if key.lower() == name]
        return ", ".join(values) if values else None

    @cached_property
    def successful(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @cached_property
    def refused(self) -> bool:
        """Whether the target refused the request for its content, not for load, key or route."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in {401, 403, 404, 408, 429}

    @cached_property
    def media_type(self) -> str:
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @cached_property
    def decoded(self) -> tuple[bytes, str]:
        """The content with its coding undone, and what went wrong with that (empty where nothing did)."""
        raw = b"".join(piece.data for piece in self.pieces)
        coding = (self.header("content-encoding") or "identity").strip().lower()
        if coding in {"identity", ""}:
            return raw, ""
        if coding not in {"gzip", "x-gzip", "deflate"}:
            return raw, f"content-encoding {coding!r} was never offered"
        content, rest, ended = b"", raw, not raw
        try:
            for _ in range(MOST_MEMBERS):  # gzip allows several members one after another
                if not rest:
                    return content, "" if ended else f"content-encoding {coding} ends too early"
                reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
                content += reader.decompress(rest, max(DECODED_CAP - len(content), 1))
                rest, ended = reader.unused_data, reader.eof
                if reader.unconsumed_tail:
                    return content, f"content is larger than {DECODED_CAP} bytes once decoded"
        except zlib.error as error:
            return content, f"content-encoding {coding} cannot be undone: {error}"
        return content, f"content-encoding {coding} has more than {MOST_MEMBERS} members"

    @property
    def content(self) -> bytes:
        return self.decoded[0]

    @cached_property
    def json(self) -> Any:
        """The body as one JSON text; MISSING where it is none."""
        try:
            return loads(self.content)
        except ValueError:
            return MISSING

    @cached_property
    def streamed(self) -> bool:
        """Whether the body is read as an event stream: it is declared as one, or it is not JSON and begins like one."""
        if self.media_type == EVENT_STREAM:
            return True
        begins = self.content.lstrip().removeprefix(sse.BOM)[:7]
        return self.json is MISSING and begins.startswith((b"data:", b"event:", b": ", b":\n", b"id:", b"retry:"))

    @cached_property
    def events(self) -> tuple[sse.Event, ...]:
        return tuple(sse.read([self.content])) if self.streamed else ()

    @cached_property
    def messages(self) -> tuple[sse.Event, ...]:
        """The events that have data, in order, an unterminated tail included."""
        return tuple(event for event in self.events if event.payload is not None)

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The JSON values of the response: one for each data event that is JSON, or the body."""
        if self.streamed:
            return tuple(self._chunks())
        return () if self.json is MISSING else (Document(0, "body", self.json),)

    @cached_property
    def done(self) -> tuple[int, ...]:
        """Which of the messages are `[DONE]`."""
        return tuple(
            number
            for number, event in enumerate(self.messages)
            if len(event.payload or b"") < 64 and (event.data or "").strip() == DONE
        )

    def _chunks(self) -> Iterator[Document]:
        done = frozenset(self.done)
        for number, event in enumerate(self.messages):
            if number in done:
                continue
            try:
                yield Document(number, f"event {number}", loads(event.payload or b""), event.start)
            except ValueError:
                continue

    @cached_property
    def choices(self) -> Mapping[int, Choice]:
        """Choices by index, plain and streamed alike; a choice without an integer index is left out."""
        parts: dict[int, list[Part]] = {}
        for document in self.documents:
            for position, value in enumerate(document.choices):
                index = as_integer(value.get("index"))
                if index is not None:
                    at = f"{document.at} /choices/{position}"
                    parts.setdefault(index, []).append(Part(document.number, at, value))
        return {index: Choice(index, tuple(parts[index])) for index in sorted(parts)}

    def values_at(self, path: str) -> tuple[tuple[str, Any], ...]:
        """All values at a path such as `choices[].logprobs.tokens[]`, in all documents, each with its JSON pointer.

        An error in the middle of a stream is left out: it is no malformed chunk, and has requirements of its own.
        """
        values = self._values.get(path)
        if values is None:
            above, step = split_path(path)
            values = tuple(child for parent in self.values_at(above) for child in _children(parent, step))
            self._values[path] = values
        return values

    @cached_property
    def _values(self) -> dict[str, tuple[tuple[str, Any], ...]]:
        """A cache for `values_at`: hundreds of requirements ask for the same few paths."""
        chunks = [
            document for document in self.documents if not (self.streamed and document.failed and not document.choices)
        ]
        return {"": tuple((document.at, document.value) for document in chunks)}

    @cached_property
    def reports(self) -> tuple[Document, ...]:
        """The documents that carry a usage object."""
        return tuple(document for document in self.documents if isinstance(document.usage, Mapping))

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """The last usage object of the response."""
        return self.reports[-1].usage if self.reports else None

    @cached_property
    def reasoned(self) -> bool:
        """Whether tokens were used for reasoning, as a choice or the usage says: counted, but not always shown."""
        details = (self.usage or {}).get("completion_tokens_details")
        tokens = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
        counted = is_number(tokens) and tokens > 0
        return counted or any(choice.reasoned for choice in self.choices.values())

    @cached_property
    def error(self) -> Any:
        """The body of a refusal, or the first in-band error of a stream; MISSING where there is none."""
        for document in self.documents:
            if document.failed:
                return document.value
        return self.json if self.status is not None and self.status >= 400 else MISSING

    @property
    def filtered(self) -> bool:
        """Whether a choice ended by content_filter, so that its text is compared with no other."""
        return any(part.finish_reason == "content_filter" for choice in self.choices.values() for part in choice.parts)

    def without_content(self) -> Exchange:
        """The same exchange without the bytes that came back and the fields of either header."""
        case = replace(self.case, headers=())
        return Exchange(case, (replace(self.last, headers=(), pieces=(), ending=Ending.UNREAD),))

    def forget_views(self) -> None:
        """Free what was computed from the bytes; it is computed again where it is asked for."""
        for holder, own_names in (
            (self, {"case", "attempts"}),
            (self.case, {field.name for field in fields(self.case)}),
        ):
            for name in vars(holder).keys() - own_names:
                del vars(holder)[name]

    def arrival(self, offset: int) -> float:
        """Seconds after the request at which the byte at `offset` of an uncoded body had arrived."""
        for piece in self.pieces:
            offset -= len(piece.data)
            if offset < 0:
                return piece.at
        return self.pieces[-1].at if self.pieces else 0.0


@dataclass(frozen=True)
class Group:
    """Exchanges that are judged together, by role; a role may have several, where a case was sent again."""

    kind: str
    key: str
    members: Mapping[str, tuple[Exchange, ...]]

    def all(self, role: str) -> tuple[Exchange, ...]:
        """All exchanges of a role."""
        return self.members.get(role, ())

    def first(self, role: str) -> Exchange | None:
        """The first exchange of a role; None where it has none."""
        exchanges = self.members.get(role, ())
        return exchanges[0] if exchanges else None
