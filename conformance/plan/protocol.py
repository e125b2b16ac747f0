"""Requests that are invalid whatever their parameters are: syntax, media type, method, key, model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.model import Credential, Level, RequestCase, Validity
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PlanContext, part

JSON: Final = "application/json"
DEEP: Final = 10_000


def protocol(context: PlanContext) -> Iterator[CaseGroup]:
    """One case for each protocol row of the contract. Keys are tried only where the run has one."""
    for probe in _probes(context):
        row, kind = probe.note, "accept" if probe.validity is Validity.VALID else "refuse"
        if row not in context.rows:
            continue
        control = context.case("base", context.base, part(kind, f"{row} base", "control"))
        watched = [part("alive", "protocol", "hostile")] if context.hostile and "alive" in context.kinds else []
        probed = context.case(
            "protocol", probe.content, part(kind, f"{row} base", "probe"), *watched,
            validity=probe.validity, breaks=() if kind == "accept" else (row,),
            method=probe.method, headers=probe.headers, credential=probe.credential,
        )  # fmt: skip
        # late, because a target may crash on such a request
        rank = Rank.RELEVANT if context.rows[row].level is Level.MUST else Rank.OBSERVED
        yield CaseGroup("learned", rank, (control, probed))


def _probes(context: PlanContext) -> Iterator[RequestCase]:
    base = dumps(context.base).encode()

    def bad(name: str, content: bytes, **more: Any) -> RequestCase:
        return RequestCase("", content, "protocol", Validity.INVALID, note=name, **more)

    yield bad("protocol.malformed-json", base[:-1])
    yield bad("protocol.empty-body", b"")
    yield bad("protocol.array-body", b"[" + base + b"]")
    yield bad("protocol.wrong-content-type", base, headers=(("content-type", "text/plain"),))
    yield bad("protocol.no-content-type", base, headers=())
    # with the body of a completion, so that a server that ignores the method answers it
    yield bad("protocol.wrong-method", base, method="PUT")
    yield bad("protocol.invalid-utf8", base.replace(b'"One', b'"\xff\xfeOne', 1))
    yield bad("protocol.deep-nesting", _raw(context, "prompt", b"[" * DEEP + b"]" * DEEP))
    yield bad("protocol.unknown-model", dumps({**context.base, "model": "no-such-model-7c1e"}).encode())
    yield bad("protocol.not-a-number", _raw(context, "temperature", b"NaN"))
    yield bad("protocol.infinity", _raw(context, "temperature", b"Infinity"))
    yield bad("protocol.trailing-garbage", base + b"}")
    yield bad("protocol.scalar-body", b'"prompt"')
    yield bad("protocol.null-body", b"null")
    if context.has_key:
        yield bad("auth.no-key", base, credential=Credential.NONE)
        yield bad("auth.wrong-key", base, credential=Credential.WRONG)
        spelled = Credential.LOWERCASE_SCHEME
        yield RequestCase("", base, "protocol", Validity.VALID, credential=spelled, note="auth.scheme-case")


def _raw(context: PlanContext, member: str, value: bytes) -> bytes:
    """The base request with the value of one member given as bytes that no encoder would write."""
    rest = dumps({name: one for name, one in context.base.items() if name != member}).encode()
    return rest[:-1] + b',"' + member.encode() + b'":' + value + b"}"


__all__ = ["protocol"]
