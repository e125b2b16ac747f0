"""Sampling: texts that are drawn at random differ, where the model is not certain of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.effects import is_informative
from conformance.judge.checks.logprobs import is_number
from conformance.judge.checks.logprobs_text import first_generated, prompt_of
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import constant, members, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, logprobs, plain
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange, Group
from conformance.model.request_view import RequestView

DRAWS = 6
"""How many equal draws are needed for a violation; see CERTAIN."""
CERTAIN = -2.8
"""A text with a higher log probability may be equal in all draws. Five further draws equal the first with the
probability exp(5 * -2.8) = 8e-7, which is at most RISK; the exact bound is log(RISK) / (DRAWS - 1) = -2.763."""
HIGH_TEMPERATURE = 1.5
"""From here on one prompt is enough where no log probabilities are returned. A choice: a token of probability 0.95
beside one other has 0.88 at this temperature, so that five repeats of six such tokens have a probability of 2 %."""
SHORT_ANSWER = 2
"""An answer of at most this many words that ends by itself is not compared. A choice: models are certain of those."""


@check(
    "effects",
    Scope.GROUP,
    group="vary",
    good=lambda: (
        example(_varied([" 4", " 5"]))
        + example(_varied([" 4"] * DRAWS, temperature=1))
        + example(_varied([" 2, 3"] * DRAWS))
        + example(_varied([" 4"] * DRAWS, scored=-0.01))
    ),
    bad=lambda: (
        example(_varied([" 4"] * DRAWS))
        + example(_varied([" 4"] * DRAWS, scored=-3.0, temperature=1))
        + example(_varied([" 4"] * DRAWS, temperature=1, prompt=["1, 2, 3,", "a"]))
    ),
)
def sampling_varies(group: Group, context: CheckContext) -> Findings:
    """At a high temperature, without a common seed, texts differ.

    Votes, rankings and retries draw several answers; if all are the same, they are a single vote.

    Fix: use a new random seed for each request that has no seed, and the seed of each request that has one.
    """
    problem = not_comparable(group, "draw")
    if problem:
        yield problem
        return
    replies = members(group, "draw")
    seeds = [context.request(x).get("seed") for x in replies]
    if len(replies) > 1 and seeds[0] is not None and all(seed == seeds[0] for seed in seeds):
        yield Inconclusive("all draws have the same seed")
        return
    drawn = [_drawn(x, context) for x in replies]
    indices = dict.fromkeys(index for by_index in drawn for index in by_index)
    across = [[by_index[index] for by_index in drawn if index in by_index] for index in indices]
    within = [list(by_index.values()) for by_index in drawn]
    several = [choices for choices in within if len(choices) > 1]
    if not any(within):
        yield Inconclusive("the texts are empty or one piece repeated, as they may be however they are drawn")
    elif max(map(len, across)) > 1 and all(map(constant, across)):
        yield _finding_on_equal_texts(across, "in each request", replies, context)
    elif several and all(constant(texts(x).values()) for x in replies):
        requests = [x for x in replies if len(x.choices) > 1]
        yield _finding_on_equal_texts(several, "in all choices of each request", requests, context)
    else:
        yield Satisfied()


def _drawn(x: Exchange, context: CheckContext) -> Mapping[int, str]:
    """The text of each choice without its echoed prompt, where another text was possible."""
    request = context.request(x)
    generated = {index: (generated_text(request, item), item.finish_reason) for index, item in x.choices.items()}
    return {
        index: text
        for index, (text, reason) in generated.items()
        if text is not None and is_informative(text) and (reason == context.length or len(text.split()) > SHORT_ANSWER)
    }


def _finding_on_equal_texts(
    equal: Sequence[Sequence[str]], in_words: str, replies: Sequence[Exchange], context: CheckContext
) -> Finding:
    observed = f"the text is the same {in_words}, {len(replies)} times, such as {show(equal[0][0])}"
    if not _is_improbable(replies, context):
        return Inconclusive(f"{observed}; a model that is certain of it generates no other")
    if len(replies) < DRAWS:
        return Inconclusive(f"{observed}; {DRAWS} times are needed", repeat=True)
    return Violation(f"{observed}; expected different ones")


def _is_improbable(replies: Sequence[Exchange], context: CheckContext) -> bool:
    """Whether it is improbable that these texts are all equal by chance.

    Their log probabilities decide. Without any, a text that is not part of its prompt is enough at a high temperature;
    below, texts of several prompts are needed, because a model may be certain of one, such as of numbers in sequence.
    """
    request, drawn = context.request(replies[0]), _drawn(replies[0], context)
    logprobs_of_texts = [
        total for x in replies for item in x.choices.values() if (total := _logprob(item, request)) is not None
    ]
    if logprobs_of_texts:
        return min(logprobs_of_texts) < CERTAIN
    prompts = {index: prompt_of(request, index) for index in drawn}
    not_copied = {prompt for index, prompt in prompts.items() if drawn[index].strip() not in str(prompt)}
    return len(not_copied) > (request.number("temperature", 1) < HIGH_TEMPERATURE)


def _logprob(answer: Choice, request: RequestView) -> float | None:
    """The log probability of a generated text: the sum over its tokens; None where there are no values."""
    lists = answer.logprobs or {}
    start = first_generated(request, answer, lists.get("tokens", ()))
    values = [value for value in lists.get("token_logprobs", ())[start:] if is_number(value)]
    return sum(values) if values else None


def _varied(drawn: Sequence[str], scored: float | None = None, **members: Any) -> Group:
    """Texts drawn for one prompt or several, each with the log probability `scored`, if given."""
    request = {"temperature": 1.9, **members}
    prompts = request["prompt"] if isinstance(request.get("prompt"), list) else [""]
    replies = []
    for text in drawn:
        lists = None if scored is None else logprobs([text], [scored])
        bodies = [choice(text, index, logprobs=lists) for index, _ in enumerate(prompts)]
        replies.append(plain(completion(*bodies), request))
    return group("vary", draw=replies)
