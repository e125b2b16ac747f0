"""Best of several candidates, judged by their own log probabilities, without a tokenizer or a second server."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, fsum
from operator import eq, gt
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check
from conformance.judge.checks.logprobs import is_number
from conformance.judge.comparison import members, not_comparable
from conformance.judge.fixtures import choice, completion, example, logprobs, plain
from conformance.judge.tolerances import RISK
from conformance.model import Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

MOST_SINGLES, MOST_BESTS = 64, 24  # the exact test takes time in proportion to their product squared
SATISFIED_RISK: Final = 0.01
"""The promise counts as kept where a server that ignores `best_of` would look as good with at most this probability.
A choice, larger than RISK: a wrong pass overlooks a defect, a wrong violation accuses a target."""


def mann_whitney_upper_tail(singles: int, bests: int, candidates: int, at_least: int) -> float:
    """P(U >= at_least): the exact p-value of the Mann-Whitney U test that a best of `candidates` is none.

    U counts the pairs of a single draw and a best of k draws in which the single is above the best. With k = 1 its
    distribution is that of Mann and Whitney (Ann. Math. Statist. 18, 1947). For a best of k, whose distribution
    function is F^k, the probability of each order of the sample is that of Lehmann's alternatives (Ann. Math. Statist.
    24, 1953; Savage, 27, 1956): of the replies up to some rank, the one at that rank is a given reply in proportion to
    the number of draws that it stands for. Dynamic programming over the ranks, from the lowest, sums over all orders.
    """
    # paths[s, b][u]: the probability that s singles and b bests are the lowest, and u pairs are decided
    paths: dict[tuple[int, int], dict[int, float]] = {(0, 0): {0: float(factorial(singles) * factorial(bests))}}
    for ranked in range(singles + bests):
        for b in range(max(0, ranked - singles), min(bests, ranked) + 1):
            s = ranked - b
            before = paths.pop((s, b), {})
            for next_s, next_b in ((s + 1, b), (s, b + 1)):
                if next_s > singles or next_b > bests:
                    continue
                weight = (candidates if next_b > b else 1) / (next_s + candidates * next_b)
                after = paths.setdefault((next_s, next_b), {})
                for pairs, probability in before.items():
                    reached = pairs + (singles - s if next_b > b else 0)
                    after[reached] = after.get(reached, 0.0) + probability * weight
    return fsum(probability for pairs, probability in paths[singles, bests].items() if pairs >= at_least)


def mean_logprobs(replies: Sequence[Exchange], context: CheckContext) -> list[float]:
    """The mean log probability of the tokens of each choice that the limit ended, so that all have one length."""
    means = []
    for x in replies:
        for answer in x.choices.values():
            values = [value for value in (answer.logprobs or {}).get("token_logprobs", []) if is_number(value)]
            if values and answer.finish_reason == context.length and len(values) == context.request(x).max_tokens:
                means.append(sum(values) / len(values))
    return means


@check(
    "effects",
    Scope.GROUP,
    group="best",
    good=lambda: example(_drawn([-0.5] * 12)),
    bad=lambda: example(_drawn([-1.06 - number / 3 for number in range(12)])) + example(_drawn([-9.0] * 12)),
)
def best_of_is_the_likeliest(group: Group, context: CheckContext) -> Findings:
    """With `best_of`, the candidate with the highest log probability per token is returned.

    Callers pay for every candidate; where an arbitrary one is returned, they pay for nothing.

    Fix: draw the candidates, compute the mean log probability of the tokens of each, and return the highest.
    """
    problem = not_comparable(group, "one", "best")
    if problem:
        yield problem
        return
    replies = members(group, "best")
    singles = mean_logprobs(members(group, "one"), context)[:MOST_SINGLES]
    bests = mean_logprobs(replies, context)[:MOST_BESTS]
    # A quarter of the candidates is not counted, because those that ended before the limit are not compared. A choice.
    candidates = min(context.request(x).best_of for x in replies) * 3 // 4
    if not singles or not bests or candidates < 2:
        yield Inconclusive("there are too few texts of one length with log probabilities to compare candidates")
        return
    above, equal = (sum(compared(single, best) for single in singles for best in bests) for compared in (gt, eq))
    observed = f"in {above} of {len(singles) * len(bests)} pairs a single draw is likelier than a best of many"
    p_value = mann_whitney_upper_tail(len(singles), len(bests), candidates, above)
    if p_value <= RISK:
        yield Violation(f"{observed} (p = {p_value:.0e}); expected hardly any", case=replies[-1].case.id)
    elif 1 - mann_whitney_upper_tail(len(singles), len(bests), 1, above + equal + 1) <= SATISFIED_RISK:
        yield Satisfied()
    else:
        reason = f"{observed} (p = {p_value:.0e}); a violation needs p <= {RISK:.0e}"
        yield Inconclusive(reason, repeat=p_value <= SATISFIED_RISK)


def _drawn(bests: Sequence[float]) -> Group:
    def reply(values: Sequence[float], **request: int) -> Exchange:
        choices = [
            choice(" a", index, logprobs=logprobs([" a"], [value]), finish="length")
            for index, value in enumerate(values)
        ]
        return plain(completion(*choices), {"max_tokens": 1, "logprobs": 1, "n": len(values), **request})

    singles = reply([-1.0 - number / 10 for number in range(40)])
    return Group("best", "example", {"one": (singles,), "best": tuple(reply([value], best_of=20) for value in bests)})
