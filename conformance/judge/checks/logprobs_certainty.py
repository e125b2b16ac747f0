"""Log probabilities that say of each token that no other could have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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

# What changes a distribution after its values may have been read, so that they need not fit the choice.
RAW = (Bends.CONTEXT, Bends.LOGITS, Bends.GRAMMAR)
CLEAR = 8  # this many tokens that are all certain are no chance
ROOM = 1024  # tokens that a text may have where no limit is named
OPEN = -2.0  # an alternative above this leaves room for chance, however coarsely values are rounded


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
    """The log probabilities of a longer text are not all exactly 0 where the model had a choice.

    Zero means certain; a constant that stands for "not computed" makes every text look perfect.

    Fix: read the values before any filter leaves a single token, and return null where there are none.
    """
    request = context.request(x)
    if request.logprobs is None or bends(context.contract, request, *RAW):
        return
    texts = {found.index: found.text for found, _ in choices_with_logprobs(x)}
    for found, lists in choices_with_logprobs(x):
        values = [value for value in lists.get("token_logprobs", []) if is_number(value)]
        if len(values) < CLEAR:
            continue
        siblings = {text for place, text in texts.items() if place // request.n == found.index // request.n}
        chosen = _had_a_choice(request, context, lists, several=len(siblings) > 1)
        told = f"all {len(values)} log probabilities are 0"
        if any(values):
            yield Satisfied(found.at)
        elif chosen:
            yield Violation(f"{told}; expected values below 0, for {chosen}", found.at)
        else:
            yield Observation("log probabilities", f"{told}, as where a model is certain of each token", found.at)


def _had_a_choice(request: RequestView, context: CheckContext, lists: Mapping[str, list[Any]], *, several: bool) -> str:
    """What shows that another token could have come than the one that did; empty where nothing does.

    A distribution without entropy has only zeros, and temperature 0 may be applied before values are read.
    """
    if several and NEAR_ZERO_TEMPERATURE < request.number("temperature", 1) <= 1:
        return "another choice of the same prompt has another text"
    if alters_distribution(request, context):
        return ""  # a filter that leaves one token makes it certain
    if request.echo and len(lists["token_logprobs"]) - (request.max_tokens or ROOM) >= CLEAR // 2:
        return "no model foretells each token of a prompt"
    for place, top in alternatives_by_position(lists):
        token = lists["tokens"][place] if place < len(lists.get("tokens", [])) else None
        if not isinstance(token, str) or token not in top or not is_plain(token):
            continue  # under another spelling it may be among them
        rival = next((name for name, value in top.items() if name != token and is_number(value) and value > OPEN), None)
        if rival is not None:
            return f"{show(rival)} could have come as well, at {top[rival]}"
    return ""


def _certain(values: Sequence[float], other: float | None = None, **request: Any) -> Exchange:
    """A text of as many tokens as there are values, each with one rival of this log probability."""
    tokens = [f" {number}" for number in range(len(values))]
    lists = logprobs(tokens, values)
    if other is not None:
        lists["top_logprobs"] = [{**top, "~": other} for top in lists["top_logprobs"]]
    return plain(completion(choice("".join(tokens), logprobs=lists)), {**SCORED, **request})


def _drawn_twice(last: str) -> Exchange:
    """Two choices of certain tokens, which are the same or differ in their last."""
    texts = [[" 1", " 2", " 3", " 4", " 5", " 6", " 7", end] for end in (" 7", last)]
    found = [
        choice("".join(tokens), index, logprobs=logprobs(tokens, [0.0] * CLEAR)) for index, tokens in enumerate(texts)
    ]
    return plain(completion(*found), {**SCORED, "n": 2})
