"""From logits to a token: penalties and bias first, then temperature, top_k, min_p and top_p, then the draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from math import exp, log
from random import Random
from typing import TypeAlias

from conformance.reference.tokenizer import EOS, PIECES

Logits: TypeAlias = dict[int, float]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are sampled, as the request says; the defaults change nothing."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    probability_floor: float = 0.0
    presence: float = 0.0
    frequency: float = 0.0
    repetition: float = 1.0
    bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    ignore_end: bool = False

    @property
    def changes_logits(self) -> bool:
        """Whether penalties or biases change the logits."""
        return bool(self.bias or self.presence or self.frequency or self.repetition != 1.0)


@dataclass(frozen=True, slots=True)
class Pool:
    """All tokens that may come next: those with logits of their own, and `tail` more pieces with the floor as logit."""

    logits: Logits
    floor: float
    tail: int

    def log_sum(self) -> float:
        """The logarithm of the sum of all exponentiated logits: logit minus this is the log probability."""
        top = max(self.logits.values(), default=self.floor)
        return top + log(sum([exp(logit - top) for logit in self.logits.values()]) + self.tail * exp(self.floor - top))

    def best(self, count: int) -> list[tuple[int, float]]:
        """The `count` likeliest tokens with their logits, best first."""
        best = nlargest(count, self.logits.items(), key=lambda item: item[1])
        if len(best) < count or (best and best[-1][1] < self.floor):
            others = [(piece, self.floor) for piece in PIECES if piece not in self.logits][: min(self.tail, count)]
            best = nlargest(count, [*best, *others], key=lambda item: item[1])
        return best


def adjusted(
    logits: Mapping[int, float], floor: float, sampling: Sampling, generated: Mapping[int, int], seen: set[int]
) -> Pool:
    """Apply penalties and biases. `generated` counts the tokens so far, `seen` also holds those of the prompt."""
    pool = dict(logits)
    if sampling.changes_logits:
        if sampling.repetition != 1.0:
            for token in seen:
                logit = pool.get(token, floor)
                pool[token] = logit / sampling.repetition if logit > 0 else logit * sampling.repetition
        if sampling.presence or sampling.frequency:
            for token, count in generated.items():
                pool[token] = pool.get(token, floor) - sampling.presence - sampling.frequency * count
        for token, bias in sampling.bias.items():
            pool[token] = pool.get(token, floor) + bias
    if sampling.ignore_end:
        pool.pop(EOS, None)
    return Pool(pool, floor, len(PIECES) - sum([token in PIECES for token in pool]))


def draw(pool: Pool, sampling: Sampling, rng: Random) -> int:
    """One token. Temperature 0, and any filter that leaves one candidate, give the likeliest."""
    if sampling.temperature <= 0 or sampling.top_k == 1:
        return pool.best(1)[0][0]
    ranked = sorted(pool.logits.items(), key=lambda item: -item[1])
    tail = pool.tail
    if sampling.top_k > 0:
        ranked = ranked[: sampling.top_k]
        tail = min(tail, max(0, sampling.top_k - len(ranked)))
    top = max(ranked[0][1], pool.floor) if ranked else pool.floor
    weights = [exp((logit - top) / sampling.temperature) for _, logit in ranked]
    tail_weight = exp((pool.floor - top) / sampling.temperature)
    if sampling.probability_floor > 0:
        weights = [weight for weight in weights if weight >= sampling.probability_floor]
        tail = tail if tail_weight >= sampling.probability_floor else 0
    if sampling.top_p < 1:
        weights, tail = _nucleus(weights, tail_weight, tail, sampling.top_p)
    point = rng.random() * (sum(weights) + tail * tail_weight)
    for (token, _), weight in zip(ranked, weights, strict=False):
        point -= weight
        if point < 0:
            return token
    return _any_piece(pool, rng) if tail else ranked[0][0]


def _nucleus(weights: list[float], tail_weight: float, tail: int, top_p: float) -> tuple[list[float], int]:
    """The weights of the likeliest tokens that together have `top_p` of the probability, and how many of the tail."""
    mass = top_p * (sum(weights) + tail * tail_weight)
    total = 0.0
    for number, weight in enumerate(weights, 1):
        total += weight
        if total >= mass:
            return weights[:number], 0
    return weights, min(tail, int((mass - total) / tail_weight) + 1) if tail_weight else 0


def _any_piece(pool: Pool, rng: Random) -> int:
    while (piece := rng.randrange(len(PIECES))) in pool.logits:
        pass
    return piece
