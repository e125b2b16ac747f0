"""Two texts of one prompt that part where two tokens were nearly as likely: rounding decides there, and no fault.

No contract promises the same rounding whatever else runs beside a request. Only log probabilities show such a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from conformance.judge.catalogue import CheckContext, show
from conformance.judge.token_text import REPLACEMENT, echoed_length, is_special, token_bytes
from conformance.judge.tolerances import NEAR_TIE
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView


@dataclass(frozen=True, slots=True)
class Answer:
    """A text as bytes, whether the limit cut it, and its tokens with log probability and alternatives, where told."""

    text: bytes
    cut: bool
    tokens: tuple[tuple[str, float, Mapping[str, Any]], ...]


def near_tie(sides: Sequence[Sequence[Exchange]], index: int, context: CheckContext) -> str:
    """What tokens were nearly as likely where the greedy answers to one prompt part; empty where none were.

    `index` is the choice of the first side; of a side with other prompts beside, the choice that answers the same
    counts. Answers that part in several ways have to part at near ties, all of them.
    """
    every = [x for side in sides for x in side]
    if not all(context.request(x).greedy for x in every):
        return ""
    distinct: dict[bytes, Answer] = {}
    for one in _answers(every, index, context):
        if one.text not in distinct or one.tokens:
            distinct[one.text] = one
    found = ""
    for one, other in pairwise(distinct[text] for text in sorted(distinct)):
        if one.cut and other.text.startswith(one.text):
            continue
        found = _parting(one, other)
        if not found:
            return ""
    return found


def _answers(every: Sequence[Exchange], index: int, context: CheckContext) -> Iterator[Answer]:
    model = context.request(every[0])
    row, rank = divmod(index, model.n)
    prompt = model.prompts[row] if row < len(model.prompts) else None
    for x in every:
        request = context.request(x)
        moved = prompt is not None and request.prompts != model.prompts and prompt in request.prompts
        place = request.prompts.index(prompt) if moved and prompt is not None else row
        found = x.choices.get(place * request.n + min(rank, request.n - 1))
        answer = _answer(request, found, prompt, context) if found else None
        if answer is not None:
            yield answer


def _answer(request: RequestView, found: Choice, prompt: Any, context: CheckContext) -> Answer | None:
    text, lists = found.text, found.logprobs or {}
    listed = zip(*(lists.get(name, []) for name in ("tokens", "token_logprobs", "top_logprobs")), strict=False)
    tokens = [(token, value, top if isinstance(top, Mapping) else {}) for token, value, top in listed]
    if request.echo:
        length = echoed_length(text, prompt) if isinstance(prompt, str) and prompt else None
        if length is None:
            return None
        left, text = len(text[:length].encode("utf-8", "replace")), text[length:]
        while tokens and left > 0:
            left -= len(token_bytes(str(tokens.pop(0)[0])))
    if not all(isinstance(token, str) and isinstance(value, (int, float)) for token, value, _ in tokens):
        tokens = []
    whole = text.rstrip(REPLACEMENT).encode("utf-8", "replace")
    return Answer(whole, found.finish_reason == context.length, tuple(tokens))


def _parting(one: Answer, other: Answer) -> str:
    """The two tokens at which the answers part: as the side with alternatives has it, or both where both have any."""
    told = [found for found in (_rival(one, other.text), _rival(other, one.text)) if found is not None]
    return told[0] if told and all(told) else ""


def _rival(answer: Answer, text: bytes) -> str | None:
    """The token that goes on as this text does, nearly as likely as the answer's own; None where none are told."""
    before = b""
    for token, value, top in answer.tokens:
        if text.startswith(before + token_bytes(token)):
            before += token_bytes(token)
            continue
        others = {name: score for name, score in top.items() if name != token and isinstance(score, (int, float))}
        near = [name for name, score in others.items() if abs(score - value) <= NEAR_TIE]
        name = next((name for name in near if _begins(text[len(before) :], name)), None)
        if name is not None:
            return f"{show(token)} at {value:.2f}, {show(name)} at {others[name]:.2f}"
        return "" if others else None
    return None


def _begins(rest: bytes, token: str) -> bool:
    """Whether the rest of a text may begin with this token; one that shows nothing ends it, or is part of one."""
    if not rest:
        return is_special(token) or not token
    return rest.startswith(token_bytes(token)) if token else rest[0] >= 0x80
