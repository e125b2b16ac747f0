"""Requests made from what the target has said: stop sequences cut from its text, tokens that it forms, its context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.model import Membership, RequestCase, Validity
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup
from conformance.plan.context import PAIR, TOKENS_LONG, PlanContext, part
from conformance.plan.factors import ABSENT, TEXTS, UNICODE, UNLIKELY_STOP, rich, streaming

Patch = Mapping[str, Any]
# What stands for replies that are still to come, so that what follows from them is paid for.
ASSUMED: Final = ", five, six, seven, eight,"
ASSUMED_ID: Final = 11
TABLE: Final = 256  # ids whose spelling is looked up; frequent tokens have small ids in most vocabularies
NEAREST_CONTEXT: Final = 8192  # filling a larger one would cost more than it shows


def prerequisites(context: PlanContext) -> Iterator[CaseGroup]:
    """What has to be asked first so that there is something to learn from."""
    if "cut" in context.kinds and context.greedy and context.has("stop", "max_tokens"):
        for rank, setting in _cut_settings(context):
            groups = [part("cut", f"{name} {setting[0]}", "without") for name in ("inside", "earliest")]
            groups += [part("never", f"stop nearly {setting[0]}", "without")] if context.full else []
            cuts = [case for bundle in _cuts(context, *setting, 1, ASSUMED) for case in bundle.cases]
            if any(one.kind == "accept" for case in cuts for one in case.groups):
                groups += _taken(context, setting[0], "control")
            first = context.case("relation", _long(context, setting[1]), *groups)
            phase = "rows" if rich(context) else "values"  # what combines values waits until each was tried
            yield CaseGroup(phase, rank, (first,), then=CaseGroup("learned", rank, tuple(cuts)))
    if "ban" in context.kinds and context.greedy and context.has("logit_bias", "logprobs", "echo"):
        free = context.case("relation", _free(context), part("ban", "natural", "without"))
        then = CaseGroup("learned", 3, _ban(context, ASSUMED_ID))
        yield CaseGroup("values", 3, (free, context.case("relation", _table(context))), then=then)


def follow_ups(context: PlanContext) -> Iterator[CaseGroup]:
    """What follows from the replies."""
    if "cut" in context.kinds and context.greedy and context.has("stop", "max_tokens"):
        for _, (name, patch) in _cut_settings(context):
            text = context.known.text(dumps(_long(context, patch)).encode())
            yield from _cuts(context, name, patch, 1, text)
    if "ban" in context.kinds and context.greedy and context.has("logit_bias", "logprobs", "echo"):
        free, table = (context.known.reply(dumps(one).encode()) for one in (_free(context), _table(context)))
        found = _natural(free, table)
        if found is not None:
            yield CaseGroup("learned", 1, _ban(context, found))
        elif context.full:
            yield from _pairs(context)
    if context.full:
        yield from _filled(context)


def _cut_settings(context: PlanContext) -> Iterator[tuple[int, tuple[str, Patch]]]:
    yield 2, ("plain", rich(context))
    if not context.full:
        return
    for name, patch in (
        ("choices", {"n": 2}),
        ("batch", {**TEXTS.patch}),
        ("logprobs", {"logprobs": 1}),
        ("echoed", {"echo": True}),
        ("unicode", {"prompt": UNICODE}),
    ):
        body = context.body(patch)
        if context.has(*patch) and not context.barred(body) and context.validity_of(body) is not Validity.INVALID:
            yield 3, (name, patch)


def _long(context: PlanContext, patch: Patch) -> dict[str, Any]:
    return context.body(patch, {"max_tokens": TOKENS_LONG})


def _cuts(context: PlanContext, name: str, patch: Patch, rank: int, text: str) -> Iterator[CaseGroup]:
    """The text cut inside and at the earliest of several sequences, plain and streamed in turn."""
    body = _long(context, patch)
    if body.get("echo") and text.startswith(str(body["prompt"])):
        text = text[len(str(body["prompt"])) :]
    found = pieces(text)
    if not found:
        return
    early, late = found
    if name == "unicode":
        before = text[: text.index(late)]
        early = next((char for char in before[2:] if not char.isascii() and not char.isspace()), early)
    streamed = streaming(context) if context.has("stream") else {}
    ways: tuple[tuple[str, tuple[Any, ...], Patch], ...] = (
        ("inside", (early, [early]), {}),
        ("earliest", ([nearly(text), late, early], [late, early]), streamed),
    )
    if context.full:
        # what might become a stop sequence is held back, and must come with all that belongs to it when it does not
        near = context.body(
            patch, {"max_tokens": TOKENS_LONG, **context.fitting("stop", [nearly(text)], nearly(text))}, streamed
        )
        if not context.barred(near) and context.validity_of(near) is not Validity.INVALID:
            parted = context.case("relation", near, part("never", f"stop nearly {name}", "with"))
            yield CaseGroup("learned", rank + 1, (parted,))
    for label, forms, way in ways:
        bodies = (context.body(patch, {"max_tokens": TOKENS_LONG, "stop": stop}, way) for stop in forms)
        allowed = (
            one for one in bodies if not context.barred(one) and context.validity_of(one) is not Validity.INVALID
        )
        if cut := next(allowed, None):
            sure = not way and context.validity_of(cut) is Validity.VALID
            taken = _taken(context, name, "probe") if sure else []
            yield CaseGroup(
                "learned", rank, (context.case("cut", cut, part("cut", f"{label} {name}", "with"), *taken),)
            )


def _taken(context: PlanContext, name: str, role: str) -> list[Membership]:
    """The part of a text and of its cut in showing that a stop sequence is taken, which no request tries alone."""
    row = "request.stop.accepts"
    return [part("accept", f"{row} cut {name}", role)] if row in context.rows else []


def nearly(text: str) -> str:
    """A stop sequence whose beginning stands in the text, over a token or more, and whose end does not."""
    return text[1:5] + UNLIKELY_STOP[0]


def pieces(text: str) -> tuple[str, str] | None:
    """Two stop sequences from a text, the second one later: each spans a word's beginning, so two tokens or more."""
    if len(text) < 6:
        return None
    gaps = [place for place, char in enumerate(text) if char.isspace() and 0 < place < len(text) - 1]
    middle = len(text) * 2 // 5
    first = min(gaps, key=lambda gap: abs(gap - middle), default=middle)
    last = max([gap for gap in gaps if gap > first + 2], default=len(text) - 2)
    early, late = text[max(first - 1, 0) : first + 2], text[last - 1 : last + 2]
    return (early, late) if early.strip() and late.strip() and early != late else None


def _free(context: PlanContext) -> dict[str, Any]:
    return context.body({"logprobs": 1, "max_tokens": TOKENS_LONG})


def _table(context: PlanContext) -> dict[str, Any]:
    """The first ids of the vocabulary, echoed with log probabilities: the reply spells each of them."""
    return context.body({"prompt": list(range(TABLE)), "echo": True, "logprobs": 1, "max_tokens": 1})


def _ban(context: PlanContext, token: int) -> tuple[RequestCase, ...]:
    """A token that comes by itself is forced, to see what it looks like, and banned, to see it gone.

    Which id a token of the text has is read from the table of spellings; without one, nothing is claimed.
    """
    forced = context.body({"logprobs": 1, "logit_bias": {str(token): 100}})
    banned = {**_free(context), "logit_bias": {str(token): -100}}
    streamed = {"stream": True} if context.full and context.has("stream") else {}
    return (
        context.case("relation", forced, part("ban", "natural", "forced"), part("force", f"{token} learned", "with")),
        context.case("relation", banned, part("ban", "natural", "with")),
        *([context.case("relation", {**banned, **streamed}, part("ban", "natural", "with"))] if streamed else []),
    )


def _pairs(context: PlanContext) -> Iterator[CaseGroup]:
    """Two tokens are forced, then one of them banned: the other is left. For tokens whose ids no table tells."""
    for banned, other in (PAIR, PAIR[::-1]):
        both, one = (context.body({"logit_bias": {banned: bias, other: 100}}) for bias in (100, -100))
        sides = zip(("forced", "with"), (both, one), strict=True)
        cases = tuple(context.case("relation", body, part("ban", f"{banned} pair", role)) for role, body in sides)
        yield CaseGroup("learned", 3, cases)


def _natural(free: Exchange | None, table: Exchange | None) -> int | None:
    """The id of a token of the free text, by its spelling in the table."""
    told = _tokens(free) if free else []
    spelled = _tokens(table)[-TABLE - 1 : -1] if table else []  # the last one was generated, a BOS may lead
    if len(spelled) < TABLE:
        return None
    text = free.choices[0].text if free and 0 in free.choices else ""
    # a token that is a part of a character is spelled as bytes, and shows nothing when it is forced
    whole = (token for token in told if token.strip() and token in text)
    return next((spelled.index(token) for token in whole if spelled.count(token) == 1), None)


def _tokens(x: Exchange) -> list[str]:
    lists = x.choices[0].logprobs if 0 in x.choices else None
    return [token for token in (lists or {}).get("tokens", []) if isinstance(token, str)]


def _filled(context: PlanContext) -> Iterator[CaseGroup]:
    """A prompt that leaves room for just so many tokens, then for too few, where a refusal told the context."""
    size = context.known.context()
    row = context.contract.binding("context_overflow")
    if row is None or row.params.get("behaviour") != "refuse" or size is None:
        return
    if not 64 <= size <= NEAREST_CONTEXT:
        return
    ids = [40 + place % 48 for place in range(size - 8)]
    for name, room in (("control", 8), ("probe", 16)):
        body = context.body({"prompt": ids, "max_tokens": room, "stream": ABSENT})
        validity = Validity.UNSPECIFIED
        yield CaseGroup(
            "learned", 5, (context.case("edge", body, part("overflow", f"{row.id} filled", name), validity=validity),)
        )


__all__ = ["follow_ups", "nearly", "pieces", "prerequisites"]
