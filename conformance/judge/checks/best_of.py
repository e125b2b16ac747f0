"""Best of several candidates, told by their own log probabilities: no tokenizer and no second server is needed."""

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

MOST_ONES, MOST_BESTS = 64, 24  # more would take long to reckon
LIKELY: Final = 0.01  # a promise is taken for kept where chance alone would look so good this seldom


def beaten(ones: int, bests: int, candidates: int, at_least: int) -> float:
    """The chance that so many pairs have the one above the best of so many candidates, or more; exact.

    Replies are laid out from the least likely to the likeliest. The best of k ranks as the last of k draws does, so
    that among the replies up to some place the one at that place is it in proportion to the draws it stands for.
    """
    paths: dict[tuple[int, int], dict[int, float]] = {(0, 0): {0: float(factorial(ones) * factorial(bests))}}
    for placed in range(ones + bests):
        for b in range(max(0, placed - ones), min(bests, placed) + 1):
            a = placed - b
            before = paths.pop((a, b), {})
            for more_a, more_b in ((1, 0), (0, 1)):
                if a + more_a > ones or b + more_b > bests:
                    continue
                weight = (candidates if more_b else 1) / (a + more_a + candidates * (b + more_b))
                after = paths.setdefault((a + more_a, b + more_b), {})
                for pairs, share in before.items():
                    reached = pairs + (ones - a if more_b else 0)
                    after[reached] = after.get(reached, 0.0) + share * weight
    return fsum(share for pairs, share in paths[ones, bests].items() if pairs >= at_least)


def means(replies: Sequence[Exchange], context: CheckContext) -> list[float]:
    """The log probability per token of each choice that the limit ended, so that all are of one length."""
    found = []
    for x in replies:
        for one in x.choices.values():
            values = [value for value in (one.logprobs or {}).get("token_logprobs", []) if is_number(value)]
            if values and one.finish_reason == context.length and len(values) == context.request(x).max_tokens:
                found.append(sum(values) / len(values))
    return found


@check(
    "effects",
    Scope.GROUP,
    group="best",
    good=lambda: example(_drawn([-0.5] * 12)),
    bad=lambda: example(_drawn([-1.06 - place / 3 for place in range(12)])) + example(_drawn([-9.0] * 12)),
)
def best_of_is_the_likeliest(group: Group, context: CheckContext) -> Findings:
    """With `best_of`, the candidate with the highest log probability per token comes back.

    Callers pay for every candidate; where any of them comes back, they pay for nothing.

    Fix: draw the candidates, take the mean log probability of each one's tokens, and return the highest.
    """
    problem = not_comparable(group, "one", "best")
    if problem:
        yield problem
        return
    replies = members(group, "best")
    ones, bests = means(members(group, "one"), context)[:MOST_ONES], means(replies, context)[:MOST_BESTS]
    # a quarter of the candidates is left out of account: some may have ended of themselves
    candidates = min(context.request(x).best_of for x in replies) * 3 // 4
    if not ones or not bests or candidates < 2:
        yield Inconclusive("no log probabilities of texts of one length tell how likely the candidates are")
        return
    above, tied = (sum(holds(one, best) for one in ones for best in bests) for holds in (gt, eq))
    told = f"{above} of {len(ones) * len(bests)} pairs have a single draw above the best of many"
    chance = beaten(len(ones), len(bests), candidates, above)
    if chance <= RISK:
        yield Violation(f"{told} (chance {chance:.0e}); expected hardly any", case=replies[-1].case.id)
    elif 1 - beaten(len(ones), len(bests), 1, above + tied + 1) <= LIKELY:
        yield Satisfied()
    else:
        yield Inconclusive(f"{told} (chance {chance:.0e}); more would tell", repeat=chance <= LIKELY)


def _drawn(bests: Sequence[float]) -> Group:
    def reply(values: Sequence[float], **request: int) -> Exchange:
        told = [
            choice(" a", place, logprobs=logprobs([" a"], [value]), finish="length")
            for place, value in enumerate(values)
        ]
        return plain(completion(*told), {"max_tokens": 1, "logprobs": 1, "n": len(values), **request})

    ones = reply([-1.0 - place / 10 for place in range(40)])
    return Group("best", "example", {"one": (ones,), "best": tuple(reply([value], best_of=20) for value in bests)})
