"""Sampling: texts that are drawn differ, where the model leaves room for chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.effects import is_informative
from conformance.judge.checks.logprobs import is_number
from conformance.judge.checks.logprobs_text import prompt_of
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import constant, members, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, logprobs, plain
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange, Group

DRAWS = 6  # so many draws that all agree are no chance where the model has any choice
HOT = 1.5  # from here on a model that is rather sure of a token draws others as well
SURE = -2.8  # a text whose log probability is above this comes six times by chance more often than once in a million
A_WORD_OR_TWO = 2  # is a whole answer that a model may be sure of


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

    Votes, rankings and retries draw several answers; one that always comes again makes them a single vote.

    Fix: seed the sampler anew for each request that names no seed, and let the seed that it names count.
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
    across = [[one[index] for one in drawn if index in one] for index in dict.fromkeys(i for one in drawn for i in one)]
    within = [list(one.values()) for one in drawn]
    pairs = [one for one in within if len(one) > 1]
    if not any(within):
        yield Inconclusive("the texts are empty, or one piece repeated, as they may be however they are drawn")
    elif max(map(len, across)) > 1 and all(map(constant, across)):
        yield _unvaried(across, "request after request", replies, context)
    elif pairs and all(constant(texts(x).values()) for x in replies):
        yield _unvaried(pairs, "in all choices of each request", [x for x in replies if len(x.choices) > 1], context)
    else:
        yield Satisfied()


def _drawn(x: Exchange, context: CheckContext) -> Mapping[int, str]:
    """The text of each choice behind its echoed prompt, as far as chance had a part in it."""
    request = context.request(x)
    found = {index: (generated_text(request, one), one.finish_reason) for index, one in x.choices.items()}
    return {
        index: text
        for index, (text, reason) in found.items()
        if text is not None and is_informative(text) and (reason == context.length or len(text.split()) > A_WORD_OR_TWO)
    }


def _unvaried(
    found: Sequence[Sequence[str]], where: str, replies: Sequence[Exchange], context: CheckContext
) -> Finding:
    told = f"the same text came {where}, {len(replies)} times, such as {show(found[0][0])}"
    if not _leaves_room(replies, context):
        return Inconclusive(f"{told}; a model that is sure of it would say nothing else")
    if len(replies) < DRAWS:
        return Inconclusive(f"{told}; {DRAWS} times would tell", repeat=True)
    return Violation(f"{told}; expected different ones")


def _leaves_room(replies: Sequence[Exchange], context: CheckContext) -> bool:
    """Whether chance had room in texts that are all alike.

    Their log probabilities tell. Without any, a text that is no piece of its prompt tells at a high temperature;
    otherwise those of several prompts do, for a model may well be sure how one goes on, such as numbers in a row.
    """
    request, drawn = context.request(replies[0]), _drawn(replies[0], context)
    scored = [score for x in replies for one in x.choices.values() if (score := _score(one)) is not None]
    if scored and not request.echo:
        return min(scored) < SURE
    prompts = {index: prompt_of(request, index) for index in drawn}
    free = {prompt for index, prompt in prompts.items() if drawn[index].strip() not in str(prompt)}
    return len(free) > (request.number("temperature", 1) < HOT)


def _score(one: Choice) -> float | None:
    """The log probability of a whole text, as far as it is told."""
    values = [value for value in (one.logprobs or {}).get("token_logprobs", ()) if is_number(value)]
    return sum(values) if values else None


def _varied(found: Sequence[str], scored: float | None = None, **more: Any) -> Group:
    """A text drawn again and again for one prompt or several, with its log probability where one is told."""
    request = {"temperature": 1.9, **more}
    prompts = request["prompt"] if isinstance(request.get("prompt"), list) else [""]
    replies = []
    for text in found:
        lists = None if scored is None else logprobs([text], [scored])
        bodies = [choice(text, index, logprobs=lists) for index, _ in enumerate(prompts)]
        replies.append(plain(completion(*bodies), request))
    return group("vary", draw=replies)
