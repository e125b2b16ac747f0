"""Near ties: texts of one prompt that diverge where two tokens had almost equal probability.

Floating-point rounding decides there, which is no defect: no contract promises the same rounding whatever else runs
beside a request. Only log probabilities show that a divergence is a near tie.
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
    """A text as bytes, whether the limit cut it, and its tokens, log probabilities and alternatives, if returned."""

    text: bytes
    cut: bool
    tokens: tuple[tuple[str, float, Mapping[str, Any]], ...]


def near_tie(sides: Sequence[Sequence[Exchange]], index: int, context: CheckContext) -> str:
    """The two tokens with almost equal probability where greedy answers to one prompt diverge; empty if there are none.

    `index` is that of the choice on the first side; on a side with several prompts, the choice that answers the same
    prompt counts. Of more than two distinct answers, all must diverge at near ties.
    """
    replies = [x for side in sides for x in side]
    if not all(context.request(x).greedy for x in replies):
        return ""
    distinct: dict[bytes, Answer] = {}
    for answer in _answers(replies, index, context):
        if answer.text not in distinct or answer.tokens:
            distinct[answer.text] = answer
    tie = ""
    for first, second in pairwise(distinct[text] for text in sorted(distinct)):
        if first.cut and second.text.startswith(first.text):
            continue
        tie = _tie_at_divergence(first, second)
        if not tie:
            return ""
    return tie


def _answers(replies: Sequence[Exchange], index: int, context: CheckContext) -> Iterator[Answer]:
    """The answers to the prompt that the choice with this index of the first reply answers."""
    model = context.request(replies[0])
    row, candidate = divmod(index, model.n)
    prompt = model.prompts[row] if row < len(model.prompts) else None
    for x in replies:
        request = context.request(x)
        moved = prompt is not None and request.prompts != model.prompts and prompt in request.prompts
        position = request.prompts.index(prompt) if moved and prompt is not None else row
        choice = x.choices.get(position * request.n + min(candidate, request.n - 1))
        answer = _answer(request, choice, prompt, context) if choice else None
        if answer is not None:
            yield answer


def _answer(request: RequestView, choice: Choice, prompt: Any, context: CheckContext) -> Answer | None:
    """The answer without an echoed prompt; None where the prompt cannot be separated from it."""
    text, lists = choice.text, choice.logprobs or {}
    entries = zip(*(lists.get(name, []) for name in ("tokens", "token_logprobs", "top_logprobs")), strict=False)
    tokens = [(token, value, top if isinstance(top, Mapping) else {}) for token, value, top in entries]
    if request.echo:
        length = echoed_length(text, prompt) if isinstance(prompt, str) and prompt else None
        if length is None:
            return None
        prompt_bytes, text = len(text[:length].encode("utf-8", "replace")), text[length:]
        while tokens and prompt_bytes > 0:
            prompt_bytes -= len(token_bytes(str(tokens.pop(0)[0])))
    if not all(isinstance(token, str) and isinstance(value, (int, float)) for token, value, _ in tokens):
        tokens = []
    content = text.rstrip(REPLACEMENT).encode("utf-8", "replace")
    return Answer(text=content, cut=choice.finish_reason == context.length, tokens=tuple(tokens))


def _tie_at_divergence(first: Answer, second: Answer) -> str:
    """The two tokens where the answers diverge; empty where an answer that lists alternatives shows no near tie."""
    ties = [tie for tie in (_tie_with(first, second.text), _tie_with(second, first.text)) if tie is not None]
    return ties[0] if ties and all(ties) else ""


def _tie_with(answer: Answer, text: bytes) -> str | None:
    """The answer's token and the alternative that continues as `text` does; None where no alternatives are listed."""
    before = b""
    for token, value, top in answer.tokens:
        if text.startswith(before + token_bytes(token)):
            before += token_bytes(token)
            continue
        others = {name: score for name, score in top.items() if name != token and isinstance(score, (int, float))}
        near = [name for name, score in others.items() if abs(score - value) <= NEAR_TIE]
        alternative = next((name for name in near if _may_begin(text[len(before) :], name)), None)
        if alternative is not None:
            return f"{show(token)} at {value:.2f}, {show(alternative)} at {others[alternative]:.2f}"
        return "" if others else None
    return None


def _may_begin(rest: bytes, token: str) -> bool:
    """Whether the rest of a text may begin with this token; one without text ends it, or is part of a character."""
    if not rest:
        return is_special(token) or not token
    return rest.startswith(token_bytes(token)) if token else rest[0] >= 0x80
