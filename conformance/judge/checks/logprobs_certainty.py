"""Log probabilities that are all 0, as if no other token had been possible anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance.contract.parameters import bends
from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import SCORED, choices_with_logprobs, is_number
from conformance.judge.checks.logprobs_values import alternatives_by_position, alters_distribution
from conformance.judge.fixtures import choice, completion, example, logprobs, plain
from conformance.judge.token_text import is_plain
from conformance.judge.tolerances import NEAR_ZERO_TEMPERATURE
from conformance.model import Observation, Satisfied, Violation
from conformance.model.exchange import Exchange
from conformance.model.parameter_traits import Bends
from conformance.model.request_view import RequestView

CHANGED_AFTERWARDS: Final = (Bends.CONTEXT, Bends.LOGITS, Bends.GRAMMAR)
"""Where a distribution is changed after its values may have been read, so that they need not fit the drawn token."""
ENOUGH_TOKENS: Final = 8
"""A choice: shorter texts can be certain, such as the rest of a word."""
DEFAULT_LIMIT: Final = 1024
"""Tokens that a text is assumed to have at most where no limit is known. A choice."""
LIKELY: Final = -2.0
"""A choice: an alternative above this has a probability over 13 %, which rounding cannot explain."""


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: (
        example(_certain([-0.5, -0.1] * 5))
        + example(_certain([0.0] * 10, other=-9999.0, temperature=0))
        + example(_certain([0.0] * 10, other=-48.0))
        + example(_drawn_twice(" 7"))
    ),
    bad=lambda: (
        example(_certain([0.0] * 10, other=-1.0))
        + example(_certain([0.0] * 10, other=-1.0, temperature=0))
        + example(_certain([0.0] * 10, echo=True, max_tokens=2))
        + example(_drawn_twice(" 8"))
    ),
)
def logprobs_are_not_all_zero(x: Exchange, context: CheckContext) -> Findings:
    """The log probabilities of a longer text are not all exactly 0 if the model had alternatives.

    Zero means certainty; as a placeholder for values that were not computed it makes every text look perfect.

    Fix: take the values before any filter leaves a single token, and return null where there are none.
    """
    request = context.request(x)
    if request.logprobs is None or bends(context.contract, request, *CHANGED_AFTERWARDS):
        return
    texts = {answer.index: answer.text for answer, _ in choices_with_logprobs(x)}
    for answer, lists in choices_with_logprobs(x):
        values = [value for value in lists.get("token_logprobs", []) if is_number(value)]
        if len(values) < ENOUGH_TOKENS:
            continue
        siblings = {text for index, text in texts.items() if index // request.n == answer.index // request.n}
        uncertainty = _uncertainty(request, context, lists, several=len(siblings) > 1)
        observed = f"all {len(values)} log probabilities are 0"
        if any(values):
            yield Satisfied(answer.at)
        elif uncertainty:
            yield Violation(f"{observed}; expected values below 0, because {uncertainty}", answer.at)
        else:
            yield Observation("log probabilities", f"{observed}, as if the model were certain of each token", answer.at)


def _uncertainty(request: RequestView, context: CheckContext, lists: Mapping[str, list[Any]], *, several: bool) -> str:
    """Why some token of the text cannot have been certain; empty where nothing shows that.

    A distribution without entropy has only zeros, and temperature 0 may be applied before the values are taken.
    """
    if several and NEAR_ZERO_TEMPERATURE < request.number("temperature", 1) <= 1:
        return "another choice of the same prompt has another text"
    if alters_distribution(request, context):
        return ""  # a filter that leaves one token makes it certain
    if request.echo and len(lists["token_logprobs"]) - (request.max_tokens or DEFAULT_LIMIT) >= ENOUGH_TOKENS // 2:
        return "no model predicts every token of a prompt"
    for index, top in alternatives_by_position(lists):
        token = lists["tokens"][index] if index < len(lists.get("tokens", [])) else None
        if not isinstance(token, str) or token not in top or not is_plain(token):
            continue  # it may be listed under another spelling
        others = {name: value for name, value in top.items() if name != token and is_number(value)}
        likely = next((name for name, value in others.items() if value > LIKELY), None)
        if likely is not None:
            return f"{show(likely)} was possible too, with a log probability of {others[likely]}"
    return ""


def _certain(values: Sequence[float], other: float | None = None, **request: Any) -> Exchange:
    """A text with one token for each value, and `other` as the log probability of one alternative at each."""
    tokens = [f" {number}" for number in range(len(values))]
    lists = logprobs(tokens, values)
    if other is not None:
        lists["top_logprobs"] = [{**top, "~": other} for top in lists["top_logprobs"]]
    return plain(completion(choice("".join(tokens), logprobs=lists)), {**SCORED, **request})


def _drawn_twice(last: str) -> Exchange:
    """Two choices with certain tokens, of which the last may differ."""
    texts = [[" 1", " 2", " 3", " 4", " 5", " 6", " 7", end] for end in (" 7", last)]
    zeros = [0.0] * ENOUGH_TOKENS
    answers = [choice("".join(tokens), index, logprobs=logprobs(tokens, zeros)) for index, tokens in enumerate(texts)]
    return plain(completion(*answers), {**SCORED, "n": 2})
