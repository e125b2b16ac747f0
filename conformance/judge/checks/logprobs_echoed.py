"""Log probabilities of an echoed text, beside those that the same text had when it was generated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import is_number
from conformance.judge.checks.logprobs_text import prompt_of
from conformance.judge.comparison import attribute_to, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, group, logprobs, plain
from conformance.judge.token_text import spells
from conformance.judge.tolerances import CLAMPED, LOGPROB_RELATIVE, LOGPROB_RESCORED, LOGPROB_ROUNDING
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Group

UNMATCHED = "the echo has no token with a log probability to compare with that of its generation"


@check(
    "logprobs",
    Scope.GROUP,
    group="scored",
    good=lambda: example(_scored([-0.1, -0.5])) + example(_scored([-0.9, -0.5])),
    bad=lambda: example(_scored([-10.8, -0.5])) + example(_scored([-0.1, -3.0])),
)
def echo_scores_as_generated(group: Group, context: CheckContext) -> Findings:
    """A text that is echoed as part of a prompt has the log probabilities that it had when it was generated.

    Benchmarks rank given answers by their echo; scores of another position, or without context, rank them at random.

    Fix: score each token of the prompt after all tokens before it, and store the value at the token that it is for.
    """
    problem = not_comparable(group, "generated", "echoed")
    if problem:
        yield problem
        return
    for x in members(group, "echoed"):
        findings: list[Finding] = []
        for answer in x.choices.values():
            prompt = prompt_of(context.request(x), answer.index)
            for reply in members(group, "generated"):
                for text in reply.choices.values():
                    before = prompt_of(context.request(reply), text.index)
                    if isinstance(before, str) and prompt == before + text.text:
                        findings += _compared(before, text, answer)
        wrong = next((finding for finding in findings if isinstance(finding, Violation)), None)
        yield attribute_to(wrong or next(iter(findings), Inconclusive(UNMATCHED)), x.case.id)


def _compared(prompt: str, text: Choice, answer: Choice) -> Iterator[Finding]:
    """The finding on the tokens of a text up to the first one that the echo has otherwise; none where there are none.

    Joined with its prompt, a text may have other tokens. A value of 0 may be that after a temperature of 0.
    """
    generated, echoed = _scores(text), _scores(answer)
    start = _start(prompt, [token for token, _ in echoed], generated[0][0]) if generated else None
    if start is None:
        return
    pairs = takewhile(lambda pair: pair[0][0] == pair[1][0], zip(generated, echoed[start:], strict=False))
    values = [(token, value, other) for (token, value), (_, other) in pairs if _is_known(value) and _is_known(other)]
    far = [
        (token, value, other)
        for token, value, other in values
        if abs(value - other) > LOGPROB_RESCORED + LOGPROB_RELATIVE * abs(value)
    ]
    if far:
        token, value, other = far[0]
        observed = f"{show(token)} has the log probability {other:.4g} where it is echoed"
        share = f"{len(far)} of {len(values)} tokens differ"
        yield Violation(f"{observed} ({share}); expected {value:.4g}, as where it was generated", answer.at)
    elif values:
        yield Satisfied(answer.at)


def _scores(answer: Choice) -> list[tuple[Any, Any]]:
    lists = answer.logprobs or {}
    return list(zip(lists.get("tokens", []), lists.get("token_logprobs", []), strict=False))


def _start(prompt: str, tokens: Sequence[Any], first: Any) -> int | None:
    """Where the text begins in an echo: at its first token, behind those that spell the prompt."""
    if not all(isinstance(token, str) for token in tokens):
        return None
    positions = (index for index, token in enumerate(tokens) if index and token == first)
    return next((index for index in positions if spells(tokens[:index], prompt)), None)


def _is_known(value: Any) -> bool:
    return is_number(value) and CLAMPED < value < -LOGPROB_ROUNDING


def _scored(values: Sequence[float]) -> Group:
    """A text of two tokens, and its echo behind the prompt with these log probabilities."""
    request = {"prompt": "1, 2,", "temperature": 0, "logprobs": 1}
    text = choice(" 3,", logprobs=logprobs([" 3", ","], [-0.1, -0.5]))
    lists = logprobs(["1", ",", " 2", ",", " 3", ","], [None, -1.0, -2.0, -1.0, *values])
    return group(
        "scored",
        generated=plain(completion(text), request),
        echoed=plain(
            completion(choice("1, 2, 3,", logprobs=lists)),
            {**request, "prompt": "1, 2, 3,", "echo": True, "max_tokens": 0},
        ),
    )
