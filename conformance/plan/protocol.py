"""Requests whose bodies, header fields or keys are unusual or wrong, whatever their parameters are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any, Final

from conformance.model import Credential, Level, RequestCase, Validity
from conformance.model.json_text import MISSING, dumps, readable
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PROMPT, TOKENS_LONG, PlanContext, part
from conformance.plan.factors import IDS, OTHER_IDS, RICH, SECOND_PROMPT, STREAM, allowed_members, sure_members
from conformance.plan.invalid_requests import GATE_SETTINGS

JSON: Final = "application/json"
DEEP: Final = 10_000
BATCH: Final[Mapping[str, Any]] = {"prompt": [PROMPT, SECOND_PROMPT], "n": 2}
# Every kind of wrong credential, by the row that demands its refusal.
CREDENTIALS: Final[Mapping[str, tuple[Credential, ...]]] = {
    "auth.no-key": (Credential.NONE, Credential.EMPTY),
    "auth.wrong-key": (Credential.WRONG, Credential.PROLONGED, Credential.CUT_SHORT, Credential.OTHER_CASE),
    "auth.other-scheme": (Credential.OTHER_SCHEME, Credential.NO_SCHEME),
    "auth.two-keys": (Credential.TWICE,),
}
FORMS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"prompt": list(IDS), "echo": True},
    {**BATCH, "prompt": [list(IDS), list(OTHER_IDS)], "best_of": 3},
)
# In `gate`, no key at all, and a wrong one that only a server refuses that compares whole keys.
MOST_TELLING: Final[Mapping[str, Credential]] = {
    "auth.no-key": Credential.NONE,
    "auth.wrong-key": Credential.PROLONGED,
    "auth.other-scheme": Credential.OTHER_SCHEME,
    "auth.two-keys": Credential.TWICE,
}
WEIGHED: Final = "text/html;q=0.1, text/event-stream;q=0.9, application/json"
Fields = tuple[tuple[str, str], ...]
DECLARED: Final[Fields] = (("content-type", JSON),)
CHUNKED: Final[Fields] = (*DECLARED, ("transfer-encoding", "chunked"))
# Header fields that leave the meaning of a request as it is, by row and by what is unusual about them.
FIELDS: Final[Mapping[str, Mapping[str, Fields]]] = {
    "protocol.media-type-spelling": {
        "": (("content-type", "application/json; charset=utf-8"),),
        "another letter case": (("content-type", "Application/JSON"),),
    },
    "protocol.accept": {
        "": (*DECLARED, ("accept", JSON)),
    },
    "protocol.accept-other": {"": (*DECLARED, ("accept", "text/event-stream"))},
    "protocol.unknown-field": {
        "": (*DECLARED, ("x-conformance-note", "first"), ("x-conformance-note", "second" * 300)),
    },
    "protocol.expect-continue": {"": (*DECLARED, ("expect", "100-continue"))},
}
LARGE: Final[Mapping[str, int]] = {"": 64 * 1024, "a mebibyte": 1024 * 1024}
"""Bytes of white space, each beyond a common limit of servers."""
TEXT_BEYOND_ASCII: Final = f"{PROMPT}, Gr\u00fc\u00dfe, \u6771\u4eac \N{ROCKET}"


def protocol(context: PlanContext) -> Iterator[CaseGroup]:
    """A case for each protocol row, and one for each kind of wrong credential where the run has a key."""
    watched = [part("alive", "protocol", "hostile")] if context.hostile and "alive" in context.kinds else []
    for row, case in probes(context):
        if row not in context.rows:
            continue
        kind = "accept" if case.validity is Validity.VALID else "refuse"
        key = f"{row} {case.note or 'base'}"
        # the control of a valid request is the same request as it is usually written, that of a wrong key the right one
        usual = case.body if kind == "accept" or case.credential is not Credential.KEY else context.base
        written = [part("spelling", key, role) for role in ("usual", "unusual")] if row in SPELLINGS else []
        control = context.case("base", usual, part(kind, key, "control"), *written[:1])
        probe = context.case(
            "protocol", case.content, part(kind, key, "probe"), *written[1:], *watched,
            validity=case.validity, breaks=() if kind == "accept" else (row,),
            method=case.method, headers=case.headers, credential=case.credential,
        )  # fmt: skip
        # late, because a target may crash on such a request
        late = Rank.OBSERVED if context.full else Rank.LAST_RESORT
        rank = Rank.RELEVANT if context.rows[row].level is Level.MUST else late
        # some controls are requests that `gate` sends among the rows anyway
        phase = "rows" if not context.full and usual != context.base else "learned"
        yield CaseGroup(phase, rank, (control, probe), kinds=(f"{context.rows[row].check} {key}",))


def _spellings(context: PlanContext) -> Iterator[tuple[str, RequestCase]]:
    """The same request in another form, by the row that demands its acceptance."""

    def good(row: str, content: bytes, note: str = "", headers: Fields = DECLARED) -> tuple[str, RequestCase]:
        return row, RequestCase("", content, "protocol", Validity.VALID, headers=headers, note=note)

    base = dumps(context.base).encode()
    texts = {"prompt": TEXT_BEYOND_ASCII, "echo": True} if context.full else {**RICH, "max_tokens": TOKENS_LONG}
    beyond_ascii = context.body(sure_members(context, texts))
    streaming = {name: value for name, value in allowed_members(context, STREAM.patch).items() if value is not MISSING}
    streamed = dumps({**context.base, **streaming}).encode()
    yield good("protocol.utf8", readable(beyond_ascii).encode("utf-8", "replace"))
    yield good("protocol.escapes", escaped(context.base).encode())
    spacious = json.dumps(context.base, indent="\t", separators=(" ,", " : "))
    yield good("protocol.white-space", f" \r\n{spacious}\n\t ".encode())
    yield good("protocol.chunked", base, headers=CHUNKED)
    for note, size in LARGE.items():
        if context.full or not note:
            yield good("protocol.large-body", b"{" + b" \t\r\n" * (size // 4) + base[1:], note)
    for row, notes in FIELDS.items():
        for note, fields in notes.items():
            yield good(row, base, note, fields)
    if context.full and streamed != base:
        yield good("protocol.chunked", streamed, "streamed", CHUNKED)
        yield good("protocol.accept", streamed, "streamed", (*DECLARED, ("accept", WEIGHED)))


SPELLINGS: Final = frozenset({"protocol.utf8", "protocol.escapes", "protocol.white-space", "protocol.chunked"})
"""Rows whose requests have a usual form, the reply to which is the same."""


def escaped(value: Any) -> str:
    """A value as JSON in which every character of every string is escaped, as RFC 8259 §7 allows."""
    if isinstance(value, str):
        return '"' + re.sub("(....)", r"\\u\1", value.encode("utf-16-be", "surrogatepass").hex()) + '"'
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{escaped(name)}:{escaped(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(escaped, value)) + "]"
    return dumps(value)


def probes(context: PlanContext) -> Iterator[tuple[str, RequestCase]]:
    """Each protocol row with a request that it is about."""
    yield from _spellings(context)
    base = dumps(context.base).encode()

    def bad(row: str, content: bytes, **fields: Any) -> tuple[str, RequestCase]:
        return row, RequestCase("", content, "protocol", Validity.INVALID, **fields)

    yield bad("protocol.malformed-json", base[:-1])
    yield bad("protocol.empty-body", b"")
    yield bad("protocol.array-body", b"[" + base + b"]")
    yield bad("protocol.wrong-content-type", base, headers=(("content-type", "text/plain"),))
    yield bad("protocol.no-content-type", base, headers=())
    # with the body of a completion, so that a server that ignores the method answers it
    yield bad("protocol.wrong-method", base, method="PUT")
    yield bad("protocol.invalid-utf8", base.replace(b'"One', b'"\xff\xfeOne', 1))
    yield bad("protocol.deep-nesting", _raw(context, "prompt", b"[" * DEEP + b"]" * DEEP))
    # a stream may begin on a path of its own, and so may a batch or several choices
    setting = allowed_members(context, {**STREAM.patch, **(BATCH if context.full else {})})
    streamed = dumps(context.body(setting)).encode()
    unknown = {"model": "no-such-model-7c1e"}
    yield bad("protocol.unknown-model", dumps({**context.base, **unknown}).encode())
    if context.full and streamed != base:
        yield bad("protocol.unknown-model", dumps(context.body(setting, unknown)).encode(), note="streamed")
    yield bad("protocol.not-a-number", _raw(context, "temperature", b"NaN"))
    yield bad("protocol.infinity", _raw(context, "temperature", b"Infinity"))
    yield bad("protocol.trailing-garbage", base + b"}")
    yield bad("protocol.scalar-body", b'"prompt"')
    yield bad("protocol.null-body", b"null")
    if context.has_key:
        spelled = Credential.LOWERCASE_SCHEME
        yield "auth.scheme-case", RequestCase("", base, "protocol", Validity.VALID, credential=spelled)
        if not context.full:
            yield from _unauthorized(context)
            return
        for row, credentials in CREDENTIALS.items():
            for turn, credential in enumerate(credentials):
                if streamed != base:
                    # a body of unknown length may be read before the key is
                    fields = CHUNKED if turn % 2 else DECLARED
                    note = f"{credential.value}, streamed{', in chunks' if turn % 2 else ''}"
                    yield bad(row, streamed, credential=credential, note=note, headers=fields)
                # each form of a request may be read by code of its own, which must not forget the key
                form = _forms(context)[turn % len(FORMS)]
                yield bad(row, form, credential=credential, note=credential.value if turn else "")


def _forms(context: PlanContext) -> list[bytes]:
    """The base request, and the same with each form of the prompt."""
    return [dumps(context.body(allowed_members(context, form))).encode() for form in FORMS]


def _unauthorized(context: PlanContext) -> Iterator[tuple[str, RequestCase]]:
    """In `gate`, one wrong credential a row, each in another setting: a server may read keys in some of them only.

    Every other one comes with a body of unknown length, which a server may read before the key.
    """
    settings = zip(cycle(GATE_SETTINGS[:2]), cycle((DECLARED, CHUNKED)))
    for (row, credential), (setting, fields) in zip(MOST_TELLING.items(), settings, strict=False):
        body = dumps(context.body(allowed_members(context, setting))).encode()
        yield (
            row,
            RequestCase(
                "",
                body,
                "protocol",
                Validity.INVALID,
                headers=fields,
                credential=credential,
                note=credential.value,
            ),
        )


def _raw(context: PlanContext, member: str, value: bytes) -> bytes:
    """The base request with the value of one member given as bytes that no encoder would write."""
    rest = dumps({name: other for name, other in context.base.items() if name != member}).encode()
    return rest[:-1] + b',"' + member.encode() + b'":' + value + b"}"


__all__ = ["escaped", "probes", "protocol"]
