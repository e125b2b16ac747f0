"""The model generates: a task → a text, token by token, with log probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from random import Random

from conformance.reference.language_model import LanguageModel
from conformance.reference.sampling import Pool, Sampling, adjusted, draw
from conformance.reference.tokenizer import EOS, Spelling, label, spell

SCRIPT_BONUS = 40.0  # added to the logit of the token that a format prescribes, so that it is almost certain
SWAPPED = 0.03  # share of the steps of a non-deterministic model where rounding may decide
SHORTEST_TEXT, LONGEST_TEXT = 3, 64  # tokens of a prompt that are its own text; fewer may follow by chance
NEAR_TIE = 1.0  # difference of two logits below which rounding may decide


@dataclass(frozen=True, slots=True)
class Step:
    """One token of a text: what it adds, its log probability, and the likeliest alternatives by name.

    The first token of a prompt follows no other, so both are None there.
    """

    token: int
    text: str
    logprob: float | None
    top: tuple[tuple[str, float], ...] | None = ()


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """What to generate: the prompt, the limits, the sampling, and the tokens that a format prescribes.

    `rounding`: random numbers that now and then exchange the two likeliest tokens where they are nearly tied.
    """

    prompt: tuple[int, ...]
    limit: int
    sampling: Sampling
    soft_limited: bool = False
    stops: tuple[str, ...] = ()
    keep_stop: bool = False
    suffix: str = ""
    script: tuple[int, ...] | None = None
    alternatives: int | None = None
    rounding: Random | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """A text, the steps whose texts make it up, and whether it ended by itself or at a stop sequence.

    `token_count`: the completion tokens of usage. `uncut_text`: the text with the stop sequence that cut it and what
    the same token added after that.
    """

    steps: tuple[Step, ...]
    text: str
    stopped: bool
    token_count: int
    uncut_text: str = ""

    @property
    def mean_logprob(self) -> float:
        """The mean log probability of a token: what best_of compares."""
        return sum(step.logprob or 0.0 for step in self.steps) / max(len(self.steps), 1)


def generate(model: LanguageModel, task: GenerationTask, seed: int | str) -> Generation:
    """The text that these random numbers give; cached, because many requests are sent again."""
    if task.rounding is not None:
        return generate_with(model, task, Random(seed))  # noqa: S311 - not cryptographic
    return _cached(model, task, tuple(task.sampling.bias), seed)  # among equal logits the order of biases decides


@lru_cache(maxsize=2048)
def _cached(model: LanguageModel, task: GenerationTask, biased: tuple[int, ...], seed: int | str) -> Generation:
    return generate_with(model, task, Random(seed))  # noqa: S311 - not cryptographic


def generate_with(model: LanguageModel, task: GenerationTask, rng: Random) -> Generation:
    """Generate until the limit, a stop sequence, or the text's natural end."""
    topic = model.topic(task.prompt, task.suffix)
    before, last = ([-1, -1, *task.prompt])[-2:]
    spelling, generated, seen = Spelling(), Counter[int](), set(task.prompt)
    steps: list[Step] = []
    text = ""
    for number in range(task.limit):
        pool = _pool(model, task, (topic, before, last), number, spelling.pending, generated, seen)
        if task.rounding is not None and task.rounding.random() < SWAPPED:
            pool = with_tied_tokens_swapped(pool)
        token = _next(pool, task, number, rng)
        if token == EOS:
            return Generation(tuple(steps), text, True, len(steps))
        steps.append(_step(pool, token, spelling.add(token), task.alternatives))
        text += steps[-1].text
        cut = _cut(text, len(steps[-1].text), task) if task.stops and steps[-1].text else None
        if cut is not None:
            steps_kept = steps_of_prefix(steps, cut)
            return Generation(steps_kept, text[:cut], True, len(steps_kept), text)
        generated[token] += 1
        seen.add(token)
        before, last = last, token
    return Generation(tuple(steps), text, False, len(steps))


def _pool(
    model: LanguageModel,
    task: GenerationTask,
    context: tuple[int, int, int],
    number: int,
    pending: bytes,
    generated: Counter[int],
    seen: set[int],
) -> Pool:
    """The candidates for the next token, with penalties and biases applied."""
    successors = model.successors(*context, pending)
    end = None if pending else model.end_logit(*context, number, soft_limited=task.soft_limited)
    logits = dict(successors.logits)
    if end is not None:
        logits[EOS] = end
    if task.script is not None:
        forced = _scripted(task.script, number)
        logits[forced] = logits.get(forced, successors.floor) + SCRIPT_BONUS
    pool = adjusted(logits, successors.floor, task.sampling, generated, seen)
    # A model of bytes has no other pieces.
    return replace(pool, tail=0) if model.tokenizer.bytewise else pool


def _next(pool: Pool, task: GenerationTask, number: int, rng: Random) -> int:
    return draw(pool, task.sampling, rng) if task.script is None else _scripted(task.script, number)


def _scripted(script: tuple[int, ...], number: int) -> int:
    return script[number] if number < len(script) else EOS


def with_tied_tokens_swapped(pool: Pool) -> Pool:
    """The pool with its two likeliest tokens exchanged, where they are nearly tied."""
    (first, high), (second, low) = pool.best(2)
    return replace(pool, logits={**pool.logits, first: low, second: high}) if high - low < NEAR_TIE else pool


def _step(pool: Pool, token: int, text: str, alternatives: int | None) -> Step:
    log_sum = pool.log_sum()
    logprob = min(pool.logits.get(token, pool.floor) - log_sum, 0.0)
    if alternatives is None:
        return Step(token, text, logprob)
    # The sampled token is listed under the text that it adds, so that a client finds it among the alternatives.
    best = pool.best(alternatives)
    top = {(text if other == token else label(other)): min(logit - log_sum, 0.0) for other, logit in best}
    top.setdefault(text, logprob)
    return Step(token, text, logprob, tuple(top.items()))


def _cut(text: str, added: int, task: GenerationTask) -> int | None:
    """The length at which the earliest stop sequence that this token completes cuts the text; None without one."""
    matches = []
    for stop in task.stops:
        at = text.find(stop, max(0, len(text) - added - len(stop) + 1))
        if at >= 0:
            matches.append((at, at + len(stop)))
    if not matches:
        return None
    start, end = min(matches)
    return end if task.keep_stop else start


def steps_of_prefix(steps: Sequence[Step], length: int) -> tuple[Step, ...]:
    """The steps of the first `length` characters, with the text of the last one cut."""
    prefix: list[Step] = []
    for step in steps:
        if length <= 0:
            break
        prefix.append(step if len(step.text) <= length else _clipped(step, step.text[:length]))
        length -= len(step.text)
    return tuple(prefix)


def _clipped(step: Step, text: str) -> Step:
    top = None if step.top is None else tuple((text if name == step.text else name, value) for name, value in step.top)
    return replace(step, text=text, top=top)


@lru_cache(maxsize=256)
def score(model: LanguageModel, prompt: tuple[int, ...], alternatives: int | None) -> tuple[Step, ...]:
    """The prompt as steps, each with its log probability after those before it: what `echo` shows with `logprobs`.

    What the model would have generated itself has the log probabilities that it has when it is generated.
    """
    begin = None if alternatives is None else _begin_of_text(model, prompt)
    pools = () if begin is None else tuple(_pools(model, prompt, begin))
    steps: list[Step] = []
    for number, (token, text) in enumerate(zip(prompt, spell(prompt), strict=True)):
        if number == 0 or alternatives is None:
            steps.append(Step(token, text, None, None))
            continue
        if begin is not None and number >= begin:
            steps.append(_step(pools[number - begin], token, text, alternatives))
            continue
        before = prompt[number - 2] if number > 1 else -1
        successors = model.successors(0, before, prompt[number - 1])
        pool = adjusted(successors.logits, successors.floor, Sampling(), {}, set())
        steps.append(_step(pool, token, text, alternatives))
    return tuple(steps)


def _begin_of_text(model: LanguageModel, prompt: tuple[int, ...]) -> int | None:
    """Where a text begins that the model generates after what precedes it; None where there is none.

    The topic of a text is that of its prompt, so a prompt that continues another one must be recognised as such: most
    of the tokens that come next are among the candidates. Not all need be, as a text may be cut into other tokens.
    """
    longest, begin_of_longest = 0, None
    for begin in range(max(1, len(prompt) - LONGEST_TEXT), len(prompt)):
        pairs = zip(prompt[begin:], _pools(model, prompt, begin), strict=False)
        length = len(list(takewhile(lambda pair: pair[0] in pair[1].logits, pairs)))
        if length > longest and length >= min(SHORTEST_TEXT, len(prompt) - begin):
            longest, begin_of_longest = length, begin
    return begin_of_longest


def _pools(model: LanguageModel, prompt: tuple[int, ...], begin: int) -> Iterator[Pool]:
    """The candidates for each token from `begin` on, as when the text from there is generated."""
    task = GenerationTask(prompt[:begin], len(prompt) - begin, Sampling())
    topic = model.topic(task.prompt)
    before, last = ([-1, *task.prompt])[-2:]
    spelling = Spelling()
    for number, token in enumerate(prompt[begin:]):
        yield _pool(model, task, (topic, before, last), number, spelling.pending, Counter(), set())
        spelling.add(token)
        before, last = last, token
