"""Sampling parameters, judged over many replies: whether they have an effect, in the documented direction.

Each violation here is false with a probability of at most `RISK`; it comes from an exact test, whose p-value is in
the message, or from texts at temperature 0, where nothing is left to chance.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

AGREEMENT: Final = 0.9
"""The share of replies that have one text where sampling is narrowed to one token, at least. A choice: it allows for
near ties in one reply of ten."""
PENALTY_MARGIN: Final = 1.0
"""A penalty of 2, the largest that is sent, subtracts 2 from a logit: an alternative that is less than 1 below the
token must win, with twice NEAR_TIE to spare."""
REPETITIONS: Final = 6
"""A frequency penalty of 2 has subtracted 10 from the logit of a token before its sixth occurrence, so that a model
gives it less than e⁻¹⁰ of the odds that it had. Alternatives up to 6 below the token must have won long before."""
ENOUGH_WORDS: Final = 5
"""A shorter text has no room to repeat itself, so it says nothing of a penalty. A choice."""
MOST_DRAWS: Final = 48
"""Texts of each arm that are compared at most: twice as many as a run asks for. The time that an exact test takes grows
with the fifth power of their number, and a defective target may send hundreds of choices."""
_WORD: Final = re.compile(r"\w+|[^\w\s]")


def rank_sum_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The exact one-sided p-value of the Wilcoxon-Mann-Whitney rank-sum test, for `second` being larger.

    Wilcoxon, Biometrics Bulletin 1 (1945); Mann and Whitney, Ann. Math. Statist. 18 (1947). Ties have mid-ranks, and
    the null distribution is that of all splits of these very values, so that the test is exact with ties as well.
    """
    pool = sorted([*first, *second])
    # Twice the mid-rank of each value, to stay with whole numbers.
    ranks = {value: 2 * pool.index(value) + pool.count(value) + 1 for value in set(pool)}
    # sums[size]: how many subsets of that size have which rank sum. The counts are digits of one number, so that a
    # shift adds a rank to all sums at once.
    subsets = comb(len(pool), len(second))
    width = subsets.bit_length()
    sums = [1] + [0 for _ in second]
    for value in pool:
        for size in range(len(second), 0, -1):
            sums[size] += sums[size - 1] << ranks[value] * width
    extreme, digits = 0, sums[len(second)] >> sum(ranks[value] for value in second) * width
    while digits:
        extreme += digits & ((1 << width) - 1)
        digits >>= width
    return extreme / subsets


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """The exact lower tail of the binomial distribution: P(X <= successes)."""
    return fsum(comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(successes + 1))


def is_narrowed(request: RequestView, contract: Contract) -> bool:
    """Whether the request narrows sampling to one token, near ties aside. 0.99 and 0.01 are choices near the ends."""
    if request.integer("top_k") == 1 or request.number(contract.by_role(Role.PROBABILITY_FLOOR), 0) >= 0.99:
        return True
    return request.number("temperature", 1) <= NEAR_ZERO_TEMPERATURE or request.number("top_p", 1) <= 0.01


DECIDED: Final = 3.0
"""Nats, divided by the temperature, between the two likeliest tokens: beyond, the second is drawn once in 20 times."""


def _leave_several_tokens(replies: Sequence[Exchange], context: CheckContext) -> bool:
    """Whether the alternatives that replies list show that narrowed sampling still has several tokens to draw from.

    A nearly flat distribution stays one at a low temperature, and its nucleus of 1 % holds many tokens.
    """
    undecided = []
    for x in replies:
        request = context.request(x)
        temperature, top_p = request.number("temperature", 1), request.number("top_p", 1)
        for answer in x.choices.values():
            first = next(iter((answer.logprobs or {}).get("top_logprobs", ())), None)
            values = sorted(filter(is_number, first.values()), reverse=True) if isinstance(first, Mapping) else []
            if len(values) > 1:
                fills_nucleus = top_p < 1 and exp(min(values[0], 0)) >= top_p
                undecided.append(not (fills_nucleus or values[0] - values[1] >= DECIDED * temperature))
    return sum(undecided) * 2 > len(undecided)


def _arms(group: Group, narrow: str) -> tuple[tuple[Exchange, ...], tuple[Exchange, ...]]:
    other = "high" if narrow == "low" else "low"
    return members(group, narrow), members(group, other)


def _is_about_parameter(group: Group, context: CheckContext) -> bool:
    return bool(group.key.split(" ")[0] == context.get("parameter", group.key.split(" ")[0]))


def _are_independent(replies: Iterable[Exchange]) -> bool:
    """Whether choices of one request differ somewhere, so that each choice counts as a draw of its own."""
    return any(len(set(texts(x).values())) > 1 for x in replies)


def _draws(replies: Sequence[Exchange], *, independent: bool) -> list[str]:
    """The texts that were drawn; choices of a request that are all equal, perhaps copies, count as one draw."""
    by_reply = [list(texts(x).values()) for x in replies]
    draws = [text for drawn in by_reply for text in (drawn if independent or len(set(drawn)) > 1 else drawn[:1])]
    return draws[:MOST_DRAWS]


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

    Callers choose between repeatable and varied texts with it; without effect, or reversed, it misleads them.

    Fix: apply the parameter to the distribution before the draw, in the documented direction.
    """
    if not _is_about_parameter(group, context):
        return
    problem = not_comparable(group, "low", "high")
    if problem:
        yield problem
        return
    arms = _arms(group, context.get("narrow", "low"))
    independent = _are_independent(chain(*arms))
    narrow, wide = (_draws(arm, independent=independent) for arm in arms)
    if not any(narrow + wide):
        yield Inconclusive("every text is empty, so there is nothing to compare")
        return
    # The score of a text is how often it was drawn in both arms together, so that under the null hypothesis every split
    # of the scores is equally probable.
    frequency = Counter(narrow + wide)
    narrow_scores, wide_scores = ([float(frequency[text]) for text in drawn] for drawn in (narrow, wide))
    p_effect, p_reversed = rank_sum_p_value(wide_scores, narrow_scores), rank_sum_p_value(narrow_scores, wide_scores)
    if p_effect <= RISK:
        yield Satisfied()
        return
    if p_reversed <= RISK:
        observed = (
            f"{len(set(narrow))} of {len(narrow)} texts differ at the narrow end, {len(set(wide))} at the wide end"
        )
        expected = "expected fewer at the narrow end"
        yield Violation(f"{observed} (p = {p_reversed:.0e}); {expected}", case=_most_varied(arms[0]).case.id)
        return
    # Equal choices of one request count once: they may share one computation, whose rounding differs in the next.
    distinct = _draws(arms[0], independent=False)
    agreeing = commonest(distinct)[1] if distinct else 0
    p_agreement = binomial_cdf(agreeing, len(distinct), AGREEMENT) if distinct else 1.0
    narrowed = all(is_narrowed(context.request(x), context.contract) for x in arms[0])
    if p_agreement <= RISK and narrowed and _leave_several_tokens(arms[0], context):
        yield Inconclusive("many tokens are about equally likely, and the narrow end leaves several of them")
        return
    if p_agreement <= RISK and narrowed:
        observed = f"only {agreeing} of {len(distinct)} texts agree at the narrow end"
        p_value = f"p = {p_agreement:.0e} where {AGREEMENT:.0%} agree"
        yield Violation(f"{observed} ({p_value}); expected one text", case=_most_varied(arms[0]).case.id)
        return
    p_equal = _probability_of_equal_texts(arms[1], context, independent=independent) if len(set(wide)) == 1 else 1.0
    if p_equal <= RISK:
        observed = f"all {len(wide)} texts at the wide end are {show(wide[0])}"
        p_value = f"p <= {p_equal:.0e} by their own log probabilities"
        yield Violation(f"{observed} ({p_value}); expected different ones", case=arms[1][0].case.id)
        return
    yield Inconclusive(f"{len(narrow)} and {len(wide)} replies show no effect (p = {p_effect:.0e}, above {RISK:.0e})")


def _most_varied(replies: Sequence[Exchange]) -> Exchange:
    return max(replies, key=lambda x: len(set(texts(x).values())))


def _probability_of_equal_texts(replies: Sequence[Exchange], context: CheckContext, *, independent: bool) -> float:
    """A bound on the probability that all texts are this one: the product over all tokens; 1 where values are missing.

    The values are those at temperature 1, and above 1 the likeliest token is less probable. That the tokens are the
    likeliest is assumed, as another text would hardly have been drawn every time.
    """
    probability = 1.0
    for x in replies:
        request = context.request(x)
        lists = [answer.logprobs or {} for answer in x.choices.values()][: None if independent else 1]
        values = [value for part in lists for value in part.get("token_logprobs", []) if is_number(value)]
        complete = values and sum(len(part.get("tokens", [])) for part in lists) == len(values)
        if not complete or request.echo or request.number("temperature", 1) < 1 or max(values) > 0:
            return 1.0
        probability *= exp(max(fsum(values), -700.0))  # exp(-746) is 0
    return probability


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

    Callers use it against loops; without effect it does not stop them, and with its sign reversed it causes them.

    Fix: subtract the penalty from the logits of tokens that have occurred, before the draw.
    """
    if not _is_about_parameter(group, context):
        return
    problem = not_comparable(group, "low", "high")
    if problem:
        yield problem
        return
    arms = members(group, "low"), members(group, "high")
    independent = _are_independent(chain(*arms))
    low, high = (_draws(arm, independent=independent) for arm in arms)
    low_scores, high_scores = ([repetition(text) for text in drawn] for drawn in (low, high))
    p_effect, p_reversed = rank_sum_p_value(high_scores, low_scores), rank_sum_p_value(low_scores, high_scores)
    constant = _are_constant(arms, context)
    if p_effect <= RISK or (constant and high_scores[0] < low_scores[0]):
        yield Satisfied()
    elif p_reversed <= RISK < _p_reversed_at_equal_length(low, high):
        yield Inconclusive("texts with the penalty repeat themselves more, but not in as many words as those without")
    elif p_reversed <= RISK:
        observed = f"texts repeat {_mean(high_scores)} of their words with the penalty, {_mean(low_scores)} without"
        yield Violation(f"{observed} (p = {p_reversed:.0e}); expected fewer with it", case=arms[1][0].case.id)
    elif constant and low[0] == high[0] and _is_without_effect(arms[0][0], arms[1][0], context):
        choice_count = sum(len(x.choices) for arm in arms for x in arm)
        observed = f"the text is {show(low[0])} at both ends of the penalty, in all of {choice_count} choices"
        yield Violation(f"{observed}; expected less repetition at the upper end", case=arms[1][0].case.id)
    else:
        yield Inconclusive(f"{len(low)} and {len(high)} replies show no effect (p = {p_effect:.0e}, above {RISK:.0e})")


def _p_reversed_at_equal_length(low: Sequence[str], high: Sequence[str]) -> float:
    """The p-value of more repetition with the penalty, in as many words of each text; 1 where most have too few.

    The longer a text is, the more of its words have occurred before, whatever the penalty.
    """
    arms = [[words for text in drawn if len(words := _WORD.findall(text)) >= ENOUGH_WORDS] for drawn in (low, high)]
    if any(len(long_enough) * 2 <= len(drawn) for long_enough, drawn in zip(arms, (low, high), strict=True)):
        return 1.0
    length = min(len(words) for long_enough in arms for words in long_enough)
    low_scores, high_scores = ([_repetition(words[:length]) for words in long_enough] for long_enough in arms)
    return rank_sum_p_value(low_scores, high_scores)


def _are_constant(arms: Sequence[Sequence[Exchange]], context: CheckContext) -> bool:
    """Whether each arm has one text in all choices, at temperature 0, where they need not be independent draws."""
    greedy = all(context.request(x).greedy for arm in arms for x in arm)
    by_arm = [[text for x in arm for text in texts(x).values()] for arm in arms]
    return greedy and all(len(drawn) >= ENOUGH_REPLIES and len(set(drawn)) == 1 for drawn in by_arm)


def _is_without_effect(low: Exchange, high: Exchange, context: CheckContext) -> bool:
    """Whether a working penalty would have changed this text, which is the same at both ends."""
    # The other penalties do not grow with each occurrence, so a model that is certain may still repeat a word.
    others = {"presence_penalty", "repetition_penalty"}
    is_cumulative = not others & {context.get("parameter"), *context.request(high).body}
    repetitive = [answer for answer in high.choices.values() if _most_occurrences(answer.text) >= REPETITIONS]
    if is_cumulative and any(_has_alternative_in_reach(answer.logprobs or {}) for answer in repetitive):
        return True
    lists = [x.choices[0].logprobs or {} for x in (low, high) if 0 in x.choices]
    if len(lists) < 2 or context.request(high).echo:
        return False
    values = [part.get("token_logprobs", []) for part in lists]
    # Values that differ between the ends were taken after the penalty, so they do not show what it had to overcome.
    before_penalty = len(values[0]) == len(values[1]) and all(map(_are_near, *values))
    prompt = " ".join(text for text in context.request(high).prompts if isinstance(text, str))
    names = ("presence_penalty", "frequency_penalty")
    rewarded = any(context.request(low).number(name, 0) <= -PENALTY_MARGIN for name in names)
    return before_penalty and (
        _repeats_beside_new_token(lists[1], prompt) or (rewarded and _is_new_beside_repeated_token(lists[0]))
    )


def _has_alternative_in_reach(lists: Mapping[str, Any]) -> bool:
    """Whether a cumulative penalty overcomes the smallest gap to an alternative; true where none is listed."""
    tops = [list(top.values()) for top in lists.get("top_logprobs", []) if isinstance(top, Mapping)]
    gaps = [max(values) - value for values in tops if all(map(is_number, values)) for value in values]
    positive = [gap for gap in gaps if gap]
    return not positive or min(positive) < PENALTY_MARGIN * REPETITIONS


def _are_near(first: Any, second: Any) -> bool:
    return is_number(first) and is_number(second) and abs(first - second) <= LOGPROB_NOISE


Gaps = Iterator[tuple[str, Sequence[str], Mapping[str, float]]]


def _alternatives_in_reach(lists: Mapping[str, list[Any]]) -> Gaps:
    """Each token with those before it and the alternatives that a penalty, or a reward, of 2 puts above it."""
    tokens, values = lists.get("tokens", []), lists.get("token_logprobs", [])
    for position, top in alternatives_by_position(lists):
        if position < min(len(tokens), len(values)):
            token = tokens[position]
            others = {name: value for name, value in top.items() if name != token and is_number(value)}
            in_reach = {name: value for name, value in others.items() if value > values[position] - PENALTY_MARGIN}
            yield token, tokens[:position], in_reach


def _repeats_beside_new_token(lists: Mapping[str, list[Any]], prompt: str) -> bool:
    """Whether a token was repeated although one that is neither in the text nor in the prompt was in reach."""
    return any(
        token in before and any(name not in before and name not in prompt for name in in_reach)
        for token, before, in_reach in _alternatives_in_reach(lists)
    )


def _is_new_beside_repeated_token(lists: Mapping[str, list[Any]]) -> bool:
    """Whether a new token was drawn although one that is in the text already was in reach."""
    return any(
        token not in before and any(name in before for name in in_reach)
        for token, before, in_reach in _alternatives_in_reach(lists)
    )


def repetition(text: str) -> float:
    """The share of words in the text that occur earlier in it."""
    return _repetition(_WORD.findall(text))


def _repetition(words: Sequence[str]) -> float:
    return 1 - len(set(words)) / len(words) if words else 0.0


def _most_occurrences(text: str) -> int:
    return max(Counter(_WORD.findall(text)).values(), default=0)


def _mean(scores: Sequence[float]) -> str:
    return f"{fsum(scores) / max(len(scores), 1):.0%}"


def _group(low: Sequence[str], high: Sequence[str]) -> Group:
    def replies(drawn: Sequence[str], temperature: float) -> list[Exchange]:
        request = {"temperature": temperature, "logprobs": 1}
        choices = [choice(text, logprobs=logprobs([text, "."], [-1.0, -1.0])) for text in drawn]
        return [plain(completion(item), request) for item in choices]

    return group("arms", "temperature", low=replies(low, 0), high=replies(high, 2 if len(high) > ENOUGH_REPLIES else 0))


def _overtaken_example() -> Group:
    """The same text at both ends, although another word was almost as likely as the repeated one."""
    tokens = [" so", " it", " so"]
    lists = {**logprobs(tokens), "top_logprobs": [{token: -0.25, " as": -0.5} for token in tokens]}
    reply = plain(completion(choice("".join(tokens), logprobs=lists)), {"temperature": 0, "presence_penalty": 2})
    return group("arms", "presence_penalty", low=[reply] * ENOUGH_REPLIES, high=[reply] * ENOUGH_REPLIES)
