"""Log probabilities against the text: tokens that make it up, offsets that point into it, counts that match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.logprobs import (
    ECHOED,
    SCORED,
    TOKENS,
    asks_for_logprobs,
    choices_with_logprobs,
    example_of,
    is_number,
    token_entries,
    token_strings,
)
from conformance.judge.comparison import counted
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, usage
from conformance.judge.token_text import echoed_length, is_plain, is_special, is_text, possible_lengths, spells
from conformance.model import Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView

AROUND = 1  # a token that opens or ends a text may be counted and not listed, or listed and not counted


def asks_for_scored_echo(request: RequestView, context: CheckContext) -> bool:
    """Due where log probabilities of an echoed prompt are asked for."""
    return request.echo and asks_for_logprobs(request, context) and any(request.prompts)


def prompt_of(request: RequestView, index: int) -> str | tuple[int, ...]:
    """The prompt that a choice answers; empty where it cannot be told."""
    place = index // request.n
    return request.prompts[place] if 0 <= place < len(request.prompts) else ""


def echoed_prompt(request: RequestView, found: Choice) -> str:
    """The part of the text that is the prompt, as the target returned it."""
    prompt = prompt_of(request, found.index)
    length = echoed_length(found.text, prompt) if request.echo and isinstance(prompt, str) and prompt else None
    return found.text[: length or 0]


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_logprobs,
    good=lambda: example(example_of(SCORED)),
    bad=lambda: example(example_of(SCORED, **logprobs(["4", ",", "5"], start=8))),
)
def tokens_join_to_text(x: Exchange, context: CheckContext) -> Findings:
    """The tokens of the log probabilities, joined, are the text.

    Highlighting, alignment and scoring place tokens in the text by joining them; one lost space shifts all that follow.

    Fix: take the token strings from the same decoder that makes the text, leading spaces included.
    """
    request = context.request(x)
    for found, lists in choices_with_logprobs(x):
        tokens = token_strings(lists)
        if tokens is None or not found.text:
            continue
        # The tokens of a stop sequence, or the one that ends a text, may be listed although the text leaves them out.
        more = found.finish_reason != context.length and (bool(request.stops) or spells(tokens[:-1], found.text))
        if spells(tokens, found.text, more=more):
            yield Satisfied(found.at)
            continue
        echo = echoed_prompt(request, found)
        if echo and spells(tokens, found.text[len(echo) :], more=more):
            continue  # the prompt is not covered at all: that is logprobs_cover_echo's
        if found.reasoned:
            yield Inconclusive("tokens of reasoning may be listed, and are no part of the text")
            continue
        yield Violation(f"the tokens join to {show(''.join(tokens))}; expected the text {show(found.text)}", found.at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_logprobs,
    good=lambda: example(example_of(SCORED)) + example(example_of(SCORED, text_offset=[0, 2, 3])),
    bad=lambda: (
        example(example_of(SCORED, text_offset=[-1, -1, -1])) + example(example_of(SCORED, text_offset=[8, 9, 10]))
    ),
)
def text_offsets_follow_tokens(x: Exchange, context: CheckContext) -> Findings:
    """Each text_offset is the one before plus the length of the token there, from 0 or from the end of the prompt.

    Editors mark tokens by these offsets; one that is off marks the wrong characters from there on.

    Fix: count characters of prompt and text as they are sent, across all chunks of a stream.
    """
    request = context.request(x)
    for found, lists in choices_with_logprobs(x):
        tokens, offsets = token_strings(lists), lists.get("text_offset", [])
        if tokens is None or not offsets or len(offsets) != len(tokens) or _left_out(found):
            continue
        fault = _misplaced(tokens, offsets, found.text) or _starts_elsewhere(request, found, offsets)
        yield Violation(fault, found.at) if fault else Satisfied(found.at)


def _left_out(found: Choice) -> bool:
    """Whether a part of a stream that brings tokens has no offsets at all: no document requires them."""
    lists = [part.logprobs for part in found.parts if part.logprobs]
    return any(one.get("tokens") and not isinstance(one.get("text_offset"), list) for one in lists)


def _misplaced(tokens: Sequence[str], offsets: Sequence[Any], text: str) -> str:
    """What is wrong with the offsets among themselves."""
    for place, offset in enumerate(offsets):
        if not is_number(offset) or offset < 0:
            return f"text_offset[{place}] is {show(offset)}; expected a position in the text, 0 or more"
        if place == 0:
            continue
        before, token = offsets[place - 1], tokens[place - 1]
        step = offset - before
        # How characters beyond ASCII are counted is nowhere said, nor whether a mark of the tokenizer takes room.
        fits = step == len(token) if is_plain(token) else step in {0, len(token)} if is_special(token) else step >= 0
        if place == 1 and token[:1] == " " != text[:1]:  # the space that some decoders drop at the start of a text
            fits = fits or step == len(token) - 1
        if not fits:
            return (
                f"text_offset goes from {before} to {offset} over the token {show(token)}; "
                f"expected a step of {len(token)}"
            )
    return ""


def _starts_elsewhere(request: RequestView, found: Choice, offsets: Sequence[Any]) -> str:
    prompt = prompt_of(request, found.index)
    if not isinstance(prompt, str) or not is_text(prompt) or (request.echo and not echoed_prompt(request, found)):
        return ""
    starts = {0} if request.echo else {0, *possible_lengths(prompt)}
    if offsets[0] in starts:
        return ""
    return f"text_offset begins at {offsets[0]}; expected {' or '.join(map(str, sorted(starts)))}"


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_scored_echo,
    good=lambda: example(
        plain(completion(choice("1, 2, 3", logprobs=logprobs(["1, 2", ",", " 3"], [None, -1.0, -1.0]))), ECHOED)
    ),
    bad=lambda: example(plain(completion(choice("1, 2, 3", logprobs=logprobs([" 3"]))), ECHOED)),
)
def logprobs_cover_echo(x: Exchange, context: CheckContext) -> Findings:
    """With `echo` the log probabilities begin with the tokens of the prompt.

    Benchmarks score a given answer by echoing it; without the prompt's entries every score is that of another text.

    Fix: run the prompt through the same scoring, and put its tokens before the generated ones.
    """
    request = context.request(x)
    if not request.echo:
        return
    for found, lists in choices_with_logprobs(x):
        prompt, tokens = prompt_of(request, found.index), token_strings(lists)
        if tokens is None or not prompt:
            continue
        if isinstance(prompt, str):
            echo = echoed_prompt(request, found)
            if echo:  # whether the text has the prompt is a row of its own
                told = f"the {len(tokens)} tokens begin with {show(''.join(tokens[:8]))}"
                yield expect(spells(tokens, echo, more=True), told, f"those of the prompt, {show(echo)}", found.at)
            continue
        shown = found.finish_reason == context.length and not x.reasoned
        least = len(prompt) + (request.max_tokens or 0 if shown else 0)
        yield expect(len(tokens) >= least, f"{len(tokens)} tokens are listed", f"the {len(prompt)} of the prompt first")


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=lambda request, context: (
        asks_for_logprobs(request, context)
        and request.best_of == request.n
        and (request.include_usage or not request.stream)
    ),
    good=lambda: (
        example(plain(completion(choice(" 4, 5", logprobs=logprobs(TOKENS)), usage=usage(completion=3)), SCORED))
        + example(
            plain(completion(choice(logprobs=logprobs(TOKENS), reasoning="Well"), usage=usage(completion=9)), SCORED)
        )
    ),
    bad=lambda: example(
        plain(completion(choice(" 4, 5", logprobs=logprobs(TOKENS)), usage=usage(completion=4)), SCORED)
    ),
)
def logprobs_count_the_tokens(x: Exchange, context: CheckContext) -> Findings:
    """There are as many log probabilities as completion tokens, plus those of the prompt where it is echoed.

    Two accounts of one generation that disagree leave a client unable to trust the bill or the scores.

    Fix: count usage and log probabilities from the same list of tokens.
    """
    request = context.request(x)
    if request.logprobs is None:
        return
    told, prompt = counted(x, "completion_tokens"), counted(x, "prompt_tokens")
    found = list(choices_with_logprobs(x))
    complete = len(found) == request.choices == len(x.choices)
    if told is None or not complete or request.best_of > request.n or (request.echo and prompt is None):
        return
    if x.reasoned:
        yield Inconclusive("tokens of reasoning count, and need not be listed")
        return
    listed = sum(len(token_entries(lists)) for _, lists in found)
    if told and not listed:
        return  # none are there at all: that is logprobs_are_returned's
    if request.echo and listed <= told + AROUND * len(found) < told + request.n * (prompt or 0):
        return  # the prompt is not covered at all: that is logprobs_cover_echo's
    expected = told + (request.n * (prompt or 0) if request.echo else 0)
    longest = max((len(stop) for stop in request.stops), default=0)
    ended = sum(choice.finish_reason != context.length for choice, _ in found)
    slack = ended * (AROUND + longest) + (2 * AROUND * len(found) if request.echo else 0)
    parts = f"{told} completion tokens" + (f" and {request.n} × {prompt} prompt tokens" if request.echo else "")
    if listed < expected - slack and any(choice.may_reason for choice, _ in found):
        yield Inconclusive(f"{listed} tokens have log probabilities, and others may have gone into reasoning")
        return
    yield expect(abs(listed - expected) <= slack, f"{listed} tokens have log probabilities", parts)
