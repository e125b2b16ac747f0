"""From logits to a token: bias and penalties first, then temperature, top_k, min_p and top_p, then the draw."""

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
    """How tokens are drawn, in the words of the request; the defaults change nothing."""

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
    def shapes(self) -> bool:
        """Whether logits change before the draw."""
        return bool(self.bias or self.presence or self.frequency or self.repetition != 1.0)


@dataclass(frozen=True, slots=True)
class Pool:
    """All tokens that may come next: explicit logits, and `tail` more pieces that share the floor."""

    logits: Logits
    floor: float
    tail: int

    def mass(self) -> float:
        """The logarithm of the sum of all weights at temperature 1."""
        top = max(self.logits.values(), default=self.floor)
        return top + log(sum([exp(one - top) for one in self.logits.values()]) + self.tail * exp(self.floor - top))

    def best(self, count: int) -> list[tuple[int, float]]:
        """The `count` likeliest tokens with their logits, best first."""
        found = nlargest(count, self.logits.items(), key=lambda item: item[1])
        if len(found) < count or (found and found[-1][1] < self.floor):
            spare = [(piece, self.floor) for piece in PIECES if piece not in self.logits][: min(self.tail, count)]
            found = nlargest(count, [*found, *spare], key=lambda item: item[1])
        return found


def shape(
    logits: Mapping[int, float], floor: float, sampling: Sampling, told: Mapping[int, int], seen: set[int]
) -> Pool:
    """Apply bias and penalties. `told` counts the tokens generated so far, `seen` holds those of the prompt too."""
    pool = dict(logits)
    if sampling.shapes:
        if sampling.repetition != 1.0:
            for token in seen:
                logit = pool.get(token, floor)
                pool[token] = logit / sampling.repetition if logit > 0 else logit * sampling.repetition
        if sampling.presence or sampling.frequency:
            for token, count in told.items():
                pool[token] = pool.get(token, floor) - sampling.presence - sampling.frequency * count
        for token, bias in sampling.bias.items():
            pool[token] = pool.get(token, floor) + bias
    if sampling.ignore_end:
        pool.pop(EOS, None)
    return Pool(pool, floor, len(PIECES) - sum([token in PIECES for token in pool]))


def draw(pool: Pool, sampling: Sampling, rng: Random) -> int:
    """One token. Temperature 0, and any filter that leaves one candidate, takes the best."""
    if sampling.temperature <= 0 or sampling.top_k == 1:
        return pool.best(1)[0][0]
    ranked = sorted(pool.logits.items(), key=lambda item: -item[1])
    tail = pool.tail
    if sampling.top_k > 0:
        ranked = ranked[: sampling.top_k]
        tail = min(tail, max(0, sampling.top_k - len(ranked)))
    top = max(ranked[0][1], pool.floor) if ranked else pool.floor
    weights = [exp((logit - top) / sampling.temperature) for _, logit in ranked]
    each = exp((pool.floor - top) / sampling.temperature)
    if sampling.probability_floor > 0:
        weights = [weight for weight in weights if weight >= sampling.probability_floor]
        tail = tail if each >= sampling.probability_floor else 0
    if sampling.top_p < 1:
        weights, tail = _nucleus(weights, each, tail, sampling.top_p)
    place = rng.random() * (sum(weights) + tail * each)
    for (token, _), weight in zip(ranked, weights, strict=False):
        place -= weight
        if place < 0:
            return token
    return _any_piece(pool, rng) if tail else ranked[0][0]


def _nucleus(weights: list[float], each: float, tail: int, top_p: float) -> tuple[list[float], int]:
    """The smallest set of the likeliest tokens that holds `top_p` of the mass."""
    wanted = top_p * (sum(weights) + tail * each)
    held = 0.0
    for place, weight in enumerate(weights):
        held += weight
        if held >= wanted:
            return weights[: place + 1], 0
    return weights, min(tail, int((wanted - held) / each) + 1) if each else 0


def _any_piece(pool: Pool, rng: Random) -> int:
    while (piece := rng.randrange(len(PIECES))) in pool.logits:
        pass
    return piece
