"""The model at work: a prompt and a wish → what was written, token by token, with its log probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from conformance.reference.language_model import LanguageModel
from conformance.reference.sampling import Pool, Sampling, draw, shape
from conformance.reference.tokenizer import EOS, Spelling, label, spell

FORCED = 40.0
TIPPED = 0.03  # of all steps, where rounding decides
NEAR = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """One token of a text: what it adds, its log probability, and the likeliest alternatives by name.

    The first token of a prompt has no predecessor, so both are None there.
    """

    token: int
    text: str
    logprob: float | None
    top: tuple[tuple[str, float], ...] | None = ()


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be written: the prompt, the limits, the sampling, and the tokens that a format dictates.

    `rounding`: dice that now and then tip the balance between two tokens that are nearly as likely.
    """

    prompt: tuple[int, ...]
    limit: int
    sampling: Sampling
    roped: bool = False
    stops: tuple[str, ...] = ()
    keep_stop: bool = False
    suffix: str = ""
    script: tuple[int, ...] | None = None
    alternatives: int | None = None
    rounding: Random | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A text, the steps that make it (joined, they are the text), why it ended, and what came after a stop's match.

    `spoken` counts the tokens as usage does; `beyond` is what the text would be had the stop been ignored.
    """

    steps: tuple[Step, ...]
    text: str
    stopped: bool
    spoken: int
    beyond: str = ""

    @property
    def likelihood(self) -> float:
        """The mean log probability of a token."""
        return sum(step.logprob or 0.0 for step in self.steps) / max(len(self.steps), 1)


def written(model: LanguageModel, order: Order, seed: int | str) -> Written:
    """What comes of these dice; remembered, for the same is often asked for."""
    if order.rounding is not None:
        return write(model, order, Random(seed))  # noqa: S311 - words, not secrets
    return _written(model, order, tuple(order.sampling.bias), seed)  # among equals the order of biases decides


@lru_cache(maxsize=2048)
def _written(model: LanguageModel, order: Order, biased: tuple[int, ...], seed: int | str) -> Written:
    return write(model, order, Random(seed))  # noqa: S311 - words, not secrets


def write(model: LanguageModel, order: Order, rng: Random) -> Written:
    """Write until the limit, a stop sequence, or the text's natural end."""
    topic = model.topic(order.prompt, order.suffix)
    before, last = ([-1, -1, *order.prompt])[-2:]
    spelling, told, seen = Spelling(), Counter[int](), set(order.prompt)
    steps: list[Step] = []
    text = ""
    for number in range(order.limit):
        pool = _pool(model, order, (topic, before, last), number, spelling.pending, told, seen)
        if order.rounding is not None and order.rounding.random() < TIPPED:
            pool = tipped(pool)
        token = _next(pool, order, number, rng)
        if token == EOS:
            return Written(tuple(steps), text, True, len(steps))
        steps.append(_step(pool, token, spelling.add(token), order.alternatives))
        text += steps[-1].text
        cut = _cut(text, len(steps[-1].text), order) if order.stops and steps[-1].text else None
        if cut is not None:
            left = kept(steps, cut)
            return Written(left, text[:cut], True, len(left), text)
        told[token] += 1
        seen.add(token)
        before, last = last, token
    return Written(tuple(steps), text, False, len(steps))


def _pool(
    model: LanguageModel,
    order: Order,
    place: tuple[int, int, int],
    number: int,
    pending: bytes,
    told: Counter[int],
    seen: set[int],
) -> Pool:
    found = model.successors(*place, pending)
    end = None if pending else model.end_logit(*place, number, roped=order.roped)
    logits = dict(found.logits)
    if end is not None:
        logits[EOS] = end
    if order.script is not None:
        forced = order.script[number] if number < len(order.script) else EOS
        logits[forced] = logits.get(forced, found.floor) + FORCED
    pool = shape(logits, found.floor, order.sampling, told, seen)
    # A model of bytes has no pieces to fall back on.
    return replace(pool, tail=0) if model.tokenizer.bytewise else pool


def _next(pool: Pool, order: Order, number: int, rng: Random) -> int:
    if order.script is not None:
        return order.script[number] if number < len(order.script) else EOS
    return draw(pool, order.sampling, rng)


def tipped(pool: Pool) -> Pool:
    """The pool with its two likeliest tokens exchanged, where they are near each other."""
    (first, high), (second, low) = pool.best(2)
    return replace(pool, logits={**pool.logits, first: low, second: high}) if high - low < NEAR else pool


def _step(pool: Pool, token: int, text: str, alternatives: int | None) -> Step:
    mass = pool.mass()
    logprob = min(pool.logits.get(token, pool.floor) - mass, 0.0)
    if alternatives is None:
        return Step(token, text, logprob)
    # The name of the sampled token is what it adds to the text, so that a client finds it among the alternatives.
    best = pool.best(alternatives)
    names = {(text if one == token else label(one)): min(logit - mass, 0.0) for one, logit in best}
    names.setdefault(text, logprob)
    return Step(token, text, logprob, tuple(names.items()))


def _cut(text: str, added: int, order: Order) -> int | None:
    """Where the earliest stop sequence that this token completes cuts the text; None where there is none."""
    found = []
    for stop in order.stops:
        at = text.find(stop, max(0, len(text) - added - len(stop) + 1))
        if at >= 0:
            found.append((at, at + len(stop)))
    return (min(found)[1] if order.keep_stop else min(found)[0]) if found else None


def kept(steps: Sequence[Step], length: int) -> tuple[Step, ...]:
    """The steps that make the first `length` characters, the last one cut where the text is."""
    found: list[Step] = []
    for step in steps:
        if length <= 0:
            break
        found.append(step if len(step.text) <= length else _clipped(step, step.text[:length]))
        length -= len(step.text)
    return tuple(found)


def _clipped(step: Step, text: str) -> Step:
    top = None if step.top is None else tuple((text if name == step.text else name, value) for name, value in step.top)
    return replace(step, text=text, top=top)


@lru_cache(maxsize=256)
def score(model: LanguageModel, prompt: tuple[int, ...], alternatives: int | None) -> tuple[Step, ...]:
    """The prompt as steps, each judged by what stands before it: what `echo` shows beside `logprobs`."""
    steps: list[Step] = []
    for number, (token, text) in enumerate(zip(prompt, spell(prompt), strict=True)):
        if number == 0 or alternatives is None:
            steps.append(Step(token, text, None, None))
            continue
        before = prompt[number - 2] if number > 1 else -1
        found = model.successors(0, before, prompt[number - 1])
        pool = shape(found.logits, found.floor, Sampling(), {}, set())
        steps.append(_step(pool, token, text, alternatives))
    return tuple(steps)
