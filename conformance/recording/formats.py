"""The formats that can be read, recognised by the content of a file and not by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from conformance.recording import har, interactions, transcripts
from conformance.recording.hash_chain import RecordingError
from conformance.recording.json_stream import JsonStream
from conformance.recording.recorded import Read, Source

HEAD: Final = 1 << 16
"""Bytes by which a format other than JSON is recognised."""
OWN: Final = "recording"
"""The format of this suite, which `reader` reads."""
_YAML: Final = re.compile(rb"^(?:---\s*$|(?:version|recorded_with):|(?:http_)?interactions:)", re.MULTILINE)
_EVENTS: Final = re.compile(rb"(?:data|event|id|retry):|:[ \n]")


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the origin of its cases, and its reader."""

    origin: str
    read: Read


HAR: Final = Format("har", har.read)
YAML_CASSETTE: Final = Format("cassette", interactions.read_yaml)
JSON_CASSETTE: Final = Format("cassette", interactions.read_json)
JSONL: Final = Format("jsonl", interactions.read_lines)
TRANSCRIPT: Final = Format("http", transcripts.read)
STREAM: Final = Format("sse", transcripts.read_stream)

_BY_MEMBER: Final[Mapping[str, Format | str]] = {
    "log": HAR,
    "record": OWN,
    **dict.fromkeys(interactions.LISTS, JSON_CASSETTE),
    **dict.fromkeys(("request", "response"), JSON_CASSETTE),
}
"""The formats of JSON files, by a member that they begin with."""
EXPECTED: Final = (
    "expected HAR, a cassette of vcrpy, Ruby VCR or go-vcr, JSONL of exchanges, a raw HTTP transcript, "
    "a stream beside its request, or a recording of this suite"
)


def format_of(source: Source) -> Format | str:
    """The format of a file, or OWN for a recording of this suite; RecordingError where it has none of them."""
    with source.open() as file:
        try:
            head = file.read(HEAD)
        except (OSError, EOFError) as error:
            raise RecordingError(f"{source.name}: cannot be decompressed: {error}") from None
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] in {b"{", b"["} or head[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        kind = _of_json(source, head)
    elif transcripts.FIRST_LINE.match(start):
        kind = TRANSCRIPT
    elif _EVENTS.match(start):
        kind = STREAM
    else:
        kind = YAML_CASSETTE if _YAML.search(head) and b"interactions:" in head else None
    if kind is None:
        raise RecordingError(f"{source.name}: unknown kind of recording; {EXPECTED}")
    return kind


def _of_json(source: Source, head: bytes) -> Format | str | None:
    with source.open() as file:
        stream = JsonStream(file)
        try:
            if stream.next_char() == "[":
                next(stream.items(), None)
            for name in stream.members():
                if name in _BY_MEMBER:
                    kind = _BY_MEMBER[name]
                    return JSONL if name in {"request", "response"} and _is_lines(head) else kind
                stream.value()
        except (ValueError, OSError, EOFError) as error:
            raise RecordingError(f"{source.name}: {error}; {EXPECTED}") from None
    return None


def _is_lines(head: bytes) -> bool:
    """Whether the first line is a whole object, or is longer than what was read: indented JSON has no such lines."""
    first = head.lstrip().partition(b"\n")[0].rstrip()
    return first.endswith(b"}") or len(first) >= HEAD - 1
