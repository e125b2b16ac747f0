"""Sampling parameters, judged over many replies: whether they act, and in the documented direction.

Every verdict here is wrong with a probability of at most `RISK`, by an exact test whose bound is in the message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import comb, exp, fsum
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import is_number
from conformance.judge.checks.logprobs_values import alternatives_by_position
from conformance.judge.comparison import commonest, members, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, logprobs, plain
from conformance.judge.tolerances import LOGPROB_NOISE, NEAR_ZERO_TEMPERATURE, RISK
from conformance.model import ENOUGH_REPLIES, Contract, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.parameter_traits import Role
from conformance.model.request_view import RequestView

AT_WORK: Final = 0.9  # at its narrow end a parameter leaves one text, which at least so many replies would share
REPEATED: Final = 6  # so often at the upper end no model is that sure of a word
MARGIN: Final = 1.0  # a penalty of 2 overcomes this with room to spare
_WORD: Final = re.compile(r"\w+|[^\w\s]")


def rank_sum(first: Sequence[float], second: Sequence[float]) -> float:
    """The chance that `second` ranks so high, or higher, if both come from one source; exact, ties included."""
    pool = sorted([*first, *second])
    places: dict[float, int] = {}
    for value in set(pool):
        below = pool.index(value)
        places[value] = 2 * below + pool.count(value) + 1  # twice the middle rank, to stay whole
    # For each number of ranks drawn, how many draws have which sum: the counts stand side by side in one whole number.
    whole = comb(len(pool), len(second))
    width = whole.bit_length()
    ways = [1] + [0 for _ in second]
    for value in pool:
        for size in range(len(second), 0, -1):
            ways[size] += ways[size - 1] << places[value] * width
    extreme, rest = 0, ways[len(second)] >> sum(places[value] for value in second) * width
    while rest:
        extreme += rest & ((1 << width) - 1)
        rest >>= width
    return extreme / whole


def at_most(successes: int, tries: int, chance: float) -> float:
    """The chance of so few successes, or fewer."""
    return fsum(comb(tries, k) * chance**k * (1 - chance) ** (tries - k) for k in range(successes + 1))


def narrowed(request: RequestView, contract: Contract) -> bool:
    """Whether the request leaves the sampler one token to choose from, or nearly so."""
    if request.integer("top_k") == 1 or request.number(contract.by_role(Role.PROBABILITY_FLOOR), 0) >= 0.99:
        return True
    return request.number("temperature", 1) <= NEAR_ZERO_TEMPERATURE or request.number("top_p", 1) <= 0.01


def _arms(group: Group, narrow: str) -> tuple[tuple[Exchange, ...], tuple[Exchange, ...]]:
    other = "high" if narrow == "low" else "low"
    return members(group, narrow), members(group, other)


def _speaks_of(group: Group, context: CheckContext) -> bool:
    return bool(group.key.split(" ")[0] == context.get("parameter", group.key.split(" ")[0]))


def _apart(replies: Iterable[Exchange]) -> bool:
    """Whether choices of one request were seen to differ, so that each may be taken for a draw of its own."""
    return any(len(set(texts(x).values())) > 1 for x in replies)


def _all(replies: Sequence[Exchange], *, apart: bool) -> list[str]:
    """The texts that were drawn: choices of a request that are all the same, perhaps copies, count as one draw."""
    found = [list(texts(x).values()) for x in replies]
    return [text for some in found for text in (some if apart or len(set(some)) > 1 else some[:1])]


@check(
    "effects",
    Scope.GROUP,
    group="arms",
    good=lambda: example(_group([" 4"] * 12, [f" {n}" for n in range(50, 62)])),
    bad=lambda: (
        example(_group([f" {n}" for n in range(12)], [f" {n}" for n in range(50, 62)]))
        + example(_group([f" {n}" for n in range(12)], [" 4"] * 12))
        + example(_group([" 4"] * 12, [" 4"] * 12))
    ),
)
def parameter_spreads_texts(group: Group, context: CheckContext) -> Findings:
    """A sampling parameter makes texts more alike at its narrow end, and more different at its wide end.

    Callers tune between repeatable and inventive with it; without effect, or reversed, tuning is superstition.

    Fix: apply the parameter to the distribution before the draw, in the documented direction.
    """
    if not _speaks_of(group, context):
        return
    problem = not_comparable(group, "low", "high")
    if problem:
        yield problem
        return
    arms = _arms(group, context.get("narrow", "low"))
    apart = _apart(chain(*arms))
    narrow, wide = (_all(arm, apart=apart) for arm in arms)
    if not any(narrow + wide):
        yield Inconclusive("every text is empty, so there is nothing to compare")
        return
    shared = Counter(narrow + wide)
    scores = [[float(shared[text]) for text in one] for one in (narrow, wide)]
    right, wrong = rank_sum(scores[1], scores[0]), rank_sum(scores[0], scores[1])
    if right <= RISK:
        yield Satisfied()
        return
    if wrong <= RISK:
        told = f"{len(set(narrow))} of {len(narrow)} texts differ at the narrow end, {len(set(wide))} at the wide end"
        expected = "expected fewer at the narrow end"
        yield Violation(f"{told} (chance {wrong:.0e}); {expected}", case=_most_varied(arms[0]).case.id)
        return
    firm = _all(arms[0], apart=False)  # what one computation shares may differ in the next, at the narrow end too
    few = at_most(commonest(firm)[1], len(firm), AT_WORK) if firm else 1.0
    if few <= RISK and all(narrowed(context.request(x), context.contract) for x in arms[0]):
        told = f"only {commonest(firm)[1]} of {len(firm)} texts agree at the narrow end"
        expected = "expected one text"
        yield Violation(f"{told} (chance {few:.0e} if 9 of 10 agree); {expected}", case=_most_varied(arms[0]).case.id)
        return
    same = _all_the_same(arms[1], context, apart=apart) if len(set(wide)) == 1 else 1.0
    if same <= RISK:
        told = f"all {len(wide)} texts at the wide end are {show(wide[0])}"
        expected = "expected different ones"
        yield Violation(
            f"{told} (chance {same:.0e} by their own log probabilities); {expected}", case=arms[1][0].case.id
        )
        return
    yield Inconclusive(f"{len(narrow)} and {len(wide)} replies do not tell (chance {right:.0e}; {RISK:.0e} would)")


def _most_varied(replies: Sequence[Exchange]) -> Exchange:
    return max(replies, key=lambda x: len(set(texts(x).values())))


def _all_the_same(replies: Sequence[Exchange], context: CheckContext, *, apart: bool) -> float:
    """A bound on the chance of equal texts: above temperature 1 the likeliest text is no likelier than at 1."""
    chance = 1.0
    for x in replies:
        request = context.request(x)
        lists = [found.logprobs or {} for found in x.choices.values()][: None if apart else 1]
        values = [value for one in lists for value in one.get("token_logprobs", []) if is_number(value)]
        whole = values and sum(len(one.get("tokens", [])) for one in lists) == len(values)
        if not whole or request.echo or request.number("temperature", 1) < 1 or max(values) > 0:
            return 1.0
        chance *= exp(max(fsum(values), -700.0))
    return chance


@check(
    "effects",
    Scope.GROUP,
    group="arms",
    good=lambda: example(_group([" so so so so so so"] * 12, [" so it is what was said"] * 12)),
    bad=lambda: (
        example(_group([" so it is what was said"] * 12, [" so so so so so so"] * 12))
        + example(_group([" so so so so so so"] * 3, [" so so so so so so"] * 3))
        + example(_overtaken_example(), parameter="presence_penalty")
    ),
)
def penalty_reduces_repetition(group: Group, context: CheckContext) -> Findings:
    """A penalty on repetition makes texts repeat themselves less.

    It is the cure for loops; without effect, or with its sign reversed, it feeds them.

    Fix: subtract the penalty from the logits of tokens that have come, before the draw.
    """
    if not _speaks_of(group, context):
        return
    problem = not_comparable(group, "low", "high")
    if problem:
        yield problem
        return
    arms = members(group, "low"), members(group, "high")
    apart = _apart(chain(*arms))
    low, high = (_all(arm, apart=apart) for arm in arms)
    scores = [[repetition(text) for text in one] for one in (low, high)]
    right, wrong = rank_sum(scores[1], scores[0]), rank_sum(scores[0], scores[1])
    settled = _settled(arms, context)
    if right <= RISK or (settled and scores[1][0] < scores[0][0]):
        yield Satisfied()
    elif wrong <= RISK:
        told = f"texts repeat {_share(scores[1])} of their words with the penalty, {_share(scores[0])} without"
        yield Violation(f"{told} (chance {wrong:.0e}); expected fewer with it", case=arms[1][0].case.id)
    elif settled and low[0] == high[0] and _is_without_effect(arms[0][0], arms[1][0], context):
        times = sum(len(x.choices) for arm in arms for x in arm)
        told = f"the text is {show(low[0])} at both ends of the penalty, each of {times} times"
        yield Violation(f"{told}; expected less repetition at the upper end", case=arms[1][0].case.id)
    else:
        yield Inconclusive(f"{len(low)} and {len(high)} replies do not tell (chance {right:.0e}; {RISK:.0e} would)")


def _settled(arms: Sequence[Sequence[Exchange]], context: CheckContext) -> bool:
    """Whether each arm has one text, as it must at temperature 0: choices need not be drawn apart for that."""
    greedy = all(context.request(x).greedy for arm in arms for x in arm)
    found = [[text for x in arm for text in texts(x).values()] for arm in arms]
    return greedy and all(len(some) >= ENOUGH_REPLIES and len(set(some)) == 1 for some in found)


def _is_without_effect(low: Exchange, high: Exchange, context: CheckContext) -> bool:
    """Whether a penalty at work would have changed this text, which is the same at both ends."""
    # Other penalties count once; a model that is sure of itself may repeat a word all the same.
    others = {"presence_penalty", "repetition_penalty"}
    counts_up = not others & {context.get("parameter"), *context.request(high).body}
    repeated = [found for found in high.choices.values() if _most_repeated(found.text) >= REPEATED]
    if counts_up and any(_in_reach(found.logprobs or {}) for found in repeated):
        return True
    lists = [x.choices[0].logprobs or {} for x in (low, high) if 0 in x.choices]
    if len(lists) < 2 or context.request(high).echo:
        return False
    values = [one.get("token_logprobs", []) for one in lists]
    # Values that differ between the ends were taken after the penalty, and say nothing of what it had to overcome.
    before = len(values[0]) == len(values[1]) and all(map(_near, *values))
    prompt = " ".join(one for one in context.request(high).prompts if isinstance(one, str))
    rewarded = any(
        context.request(low).number(name, 0) <= -MARGIN for name in ("presence_penalty", "frequency_penalty")
    )
    return before and (_overtaken(lists[1], prompt, again=True) or (rewarded and _overtaken(lists[0], "", again=False)))


def _in_reach(lists: Mapping[str, Any]) -> bool:
    """Whether a penalty that grows with each repetition reaches some alternative, as far as any are told."""
    tops = [list(top.values()) for top in lists.get("top_logprobs", []) if isinstance(top, Mapping)]
    told = [max(values) - value for values in tops if all(map(is_number, values)) for value in values]
    rivals = [gap for gap in told if gap]
    return not rivals or min(rivals) < MARGIN * REPEATED


def _near(one: Any, other: Any) -> bool:
    return is_number(one) and is_number(other) and abs(one - other) <= LOGPROB_NOISE


def _overtaken(lists: Mapping[str, list[Any]], prompt: str, *, again: bool) -> bool:
    """Whether a token came again although one that had not come yet was nearly as likely; or the other way round."""
    tokens, values = lists.get("tokens", []), lists.get("token_logprobs", [])
    for place, top in alternatives_by_position(lists):
        if place >= min(len(tokens), len(values)) or (tokens[place] in tokens[:place]) is not again:
            continue
        others = {token: value for token, value in top.items() if token != tokens[place] and is_number(value)}
        rivals = [value for token, value in others.items() if (token in tokens[:place]) is not again]
        if again:
            rivals = [value for token, value in others.items() if token not in tokens[:place] and token not in prompt]
        if any(value > values[place] - MARGIN for value in rivals):
            return True
    return False


def repetition(text: str) -> float:
    """The share of words that have come before in the text."""
    words = _WORD.findall(text)
    return 1 - len(set(words)) / len(words) if words else 0.0


def _most_repeated(text: str) -> int:
    return max(Counter(_WORD.findall(text)).values(), default=0)


def _share(scores: Sequence[float]) -> str:
    return f"{fsum(scores) / max(len(scores), 1):.0%}"


def _group(low: Sequence[str], high: Sequence[str]) -> Group:
    def replies(found: Sequence[str], temperature: float) -> list[Exchange]:
        lists = [logprobs([text, "."], [-1.0, -1.0]) for text in found]
        request = {"temperature": temperature, "logprobs": 1}
        return [plain(completion(choice(text, logprobs=one)), request) for text, one in zip(found, lists, strict=True)]

    return group("arms", "temperature", low=replies(low, 0), high=replies(high, 2 if len(high) > ENOUGH_REPLIES else 0))


def _overtaken_example() -> Group:
    """The same text at both ends, although another word was as likely as the one that came again."""
    tokens = [" so", " it", " so"]
    lists = {**logprobs(tokens), "top_logprobs": [{token: -0.25, " as": -0.5} for token in tokens]}
    reply = plain(completion(choice("".join(tokens), logprobs=lists)), {"temperature": 0, "presence_penalty": 2})
    return group("arms", "presence_penalty", low=[reply] * ENOUGH_REPLIES, high=[reply] * ENOUGH_REPLIES)
