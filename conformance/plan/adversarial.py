"""Adversarial requests, sent one after another, each batch followed by a plain request that must be answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from conformance.model import Membership, RequestCase, Validity
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import TOKENS_LONG, PlanContext, part, rename
from conformance.plan.factors import ABSENT
from conformance.plan.invalid_requests import oversized_counts

MEGABYTE: Final = 1_000_000
DEEP: Final = 100_000
BATCHES: Final = 99
BATCH: Final = 6  # adversarial requests before each plain one


def adversarial_requests(context: PlanContext) -> Iterator[CaseGroup]:
    """The adversarial phase. It is sent in order, so that each plain probe follows the requests that it checks on."""
    if not context.hostile or "alive" not in context.kinds:
        return
    bodies = list(adversarial_bodies(context))
    if not context.full:
        batch = _batch(context, "batch", [*bodies[:1], *_disconnects(context)], 0, trace="disconnect")
        yield replace(batch, rank=Rank.RELEVANT)
        yield replace(batch, cases=batch.cases[-1:], copies=batch.copies[-1:])  # where there is no room for more
        return
    for index in range(0, len(bodies), BATCH):
        yield _batch(context, f"batch {index // BATCH}", bodies[index : index + BATCH], index // BATCH)
    for disconnected in _disconnects(context):
        yield _batch(context, "disconnect", [disconnected], BATCHES, trace="disconnect")
    refused = RequestCase("", dumps(context.base).encode()[:-1], "hostile", Validity.INVALID, note="a refusal")
    yield _batch(context, "refusal", [refused], BATCHES + 2, trace="refusal")
    if oversized := [
        rename(case, case.id, (*case.groups, part("alive", "oversized counts", "hostile")))
        for case in oversized_counts(context)
    ]:
        controls = [
            part("refuse", group.key, "control") for case in oversized for group in case.groups if group.role == "probe"
        ]
        probe = context.case("alive", context.base, part("alive", "oversized counts", "probe"), *controls)
        yield CaseGroup("hostile", Rank.NORMAL, (*oversized, probe), (*(0 for _ in oversized), BATCHES + 4))


def _batch(context: PlanContext, key: str, cases: list[RequestCase], number: int, *, trace: str = "") -> CaseGroup:
    """Adversarial requests and a plain one after them; `trace`: what the last of them must not leave behind."""
    odd = [
        context.case("hostile", case.content, part("alive", key, "hostile"), *_overflowing(context, case),
                   validity=case.validity, hostile=True, headers=case.headers, note=case.note,
                   hang_up_after=case.hang_up_after)
        for case in cases
    ]  # fmt: skip
    keys = (key, "protocol") if number == 0 else (key,)
    after = [part("after", trace, "after")] if trace and context.greedy and "after" in context.kinds else []
    probe = context.case("alive", context.base, *(part("alive", alive_key, "probe") for alive_key in keys), *after)
    return CaseGroup("hostile", Rank.NORMAL, (*odd, probe), (*(0 for _ in odd), number + 1))


def _overflowing(context: PlanContext, case: RequestCase) -> Iterator[Membership]:
    """A prompt longer than any common context: if it is refused for its length, a context is enforced."""
    if len(case.content) >= MEGABYTE:
        for row in context.rows_on("overflow"):
            if row.params.get("behaviour") == "refuse":
                yield part("overflow", row.id, "long")


def _disconnects(context: PlanContext) -> Iterator[RequestCase]:
    """A client that closes the connection during a stream."""
    if context.has("stream", "max_tokens"):
        body = context.body({"stream": True, "stream_options": ABSENT, "max_tokens": TOKENS_LONG * 2})
        yield context.case("hostile", body, hang_up_after=1)


def adversarial_bodies(context: PlanContext) -> Iterator[RequestCase]:
    """Unusual and oversized bodies, each with a note that says what is unusual."""

    def raw(note: str, content: bytes, validity: Validity = Validity.UNSPECIFIED) -> RequestCase:
        return RequestCase("", content, "hostile", validity, note=note)

    def changed(note: str, **members: Any) -> RequestCase:
        body = context.body(members)
        content = dumps(body).encode()
        judged = context.validity(content, body)
        return raw(note, content, Validity.INVALID if judged is Validity.INVALID else Validity.UNSPECIFIED)

    base = dumps(context.base).encode()
    yield raw("nested deeper than a stack", _with(context, "prompt", b"[" * DEEP + b"]" * DEEP), Validity.INVALID)
    yield changed("NUL, surrogates and controls", prompt="a\x00b\ud800c\x1b[2J\r\ndata: [DONE]\r\n\r\n")
    yield raw("the same member twice", base[:-1] + b',"max_tokens":1,"max_tokens":2}')
    yield changed("an empty prompt", prompt="")
    yield changed("only white space", prompt=" \t\n\u00a0\u3000")
    yield raw("a number of ten thousand digits", _with(context, "seed", b"9" * 10_000), Validity.UNSPECIFIED)
    if context.has("stop"):
        yield changed("an empty stop sequence", stop="")
        yield changed("an empty stop sequence in a list", stop=["", "\n"])
    yield raw("a byte order mark", b"\xef\xbb\xbf" + base)
    yield changed("a prototype in the way", __proto__={"stream": True}, constructor={"prototype": {}})
    yield changed("ids that no vocabulary has", prompt=[2**31 - 1, 0, 7])
    yield changed("a negative id", prompt=[-1])
    yield raw("a huge exponent", _with(context, "temperature", b"1e400"), Validity.INVALID)
    yield raw("minus zero", _with(context, "temperature", b"-0.0"))
    if context.has("logit_bias"):
        yield changed("a bias on no token", logit_bias={"not a number": 1})
        yield changed("a bias on an id that no vocabulary has", logit_bias={"99999999": 1})
    yield changed("a prompt of one character many times", prompt="a" * 3000)
    if context.has("user"):
        yield changed("a long name", user="u" * 20_000)
    yield changed("a thousand unknown members", **{f"x_{index}": index for index in range(1000)})
    if context.allow_large:
        yield raw("a megabyte of prompt", _with(context, "prompt", b'"' + b"word " * (MEGABYTE // 5) + b'"'))


def _with(context: PlanContext, member: str, value: bytes) -> bytes:
    """The base request with the value of one member given as bytes."""
    rest = dumps({name: other for name, other in context.base.items() if name != member}).encode()
    return rest[:-1] + b',"' + member.encode() + b'":' + value + b"}"


__all__ = ["adversarial_bodies", "adversarial_requests"]
