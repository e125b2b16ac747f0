"""Requests that are invalid whatever their parameters are: syntax, media type, method, key, model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.model import Credential, Level, RequestCase, Validity
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PROMPT, PlanContext, part
from conformance.plan.factors import SECOND_PROMPT, STREAM, allowed_members

JSON: Final = "application/json"
DEEP: Final = 10_000
BATCH: Final[Mapping[str, Any]] = {"prompt": [PROMPT, SECOND_PROMPT], "n": 2}
# Every kind of wrong credential, by the row that demands its refusal.
CREDENTIALS: Final[Mapping[str, tuple[Credential, ...]]] = {
    "auth.no-key": (Credential.NONE, Credential.EMPTY),
    "auth.wrong-key": (Credential.WRONG, Credential.PROLONGED, Credential.CUT_SHORT, Credential.OTHER_CASE),
}


def protocol(context: PlanContext) -> Iterator[CaseGroup]:
    """A case for each protocol row, and one for each kind of wrong credential where the run has a key."""
    watched = [part("alive", "protocol", "hostile")] if context.hostile and "alive" in context.kinds else []
    for row, case in probes(context):
        if row not in context.rows:
            continue
        kind = "accept" if case.validity is Validity.VALID else "refuse"
        key = f"{row} {case.note or 'base'}"
        control = context.case("base", context.base, part(kind, key, "control"))
        probe = context.case(
            "protocol", case.content, part(kind, key, "probe"), *watched,
            validity=case.validity, breaks=() if kind == "accept" else (row,),
            method=case.method, headers=case.headers, credential=case.credential,
        )  # fmt: skip
        # late, because a target may crash on such a request
        rank = Rank.RELEVANT if context.rows[row].level is Level.MUST else Rank.OBSERVED
        yield CaseGroup("learned", rank, (control, probe), kinds=(f"{context.rows[row].check} {key}",))


def probes(context: PlanContext) -> Iterator[tuple[str, RequestCase]]:
    """Each protocol row with a request that it is about."""
    base = dumps(context.base).encode()

    def bad(row: str, content: bytes, **more: Any) -> tuple[str, RequestCase]:
        return row, RequestCase("", content, "protocol", Validity.INVALID, **more)

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
        for row, credentials in CREDENTIALS.items():
            for turn, credential in enumerate(credentials):
                # `gate` takes the channels in turn, the one first that is most often left unprotected
                if streamed != base and (context.full or turn % 2 == 0):
                    yield bad(row, streamed, credential=credential, note=f"{credential.value}, streamed")
                if context.full or turn % 2 or streamed == base:
                    yield bad(row, base, credential=credential, note=credential.value if turn else "")


def _raw(context: PlanContext, member: str, value: bytes) -> bytes:
    """The base request with the value of one member given as bytes that no encoder would write."""
    rest = dumps({name: one for name, one in context.base.items() if name != member}).encode()
    return rest[:-1] + b',"' + member.encode() + b'":' + value + b"}"


__all__ = ["probes", "protocol"]
