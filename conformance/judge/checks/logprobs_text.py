"""Log probabilities against the text: the tokens spell it, the offsets point into it, the counts match usage."""

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
from conformance.judge.comparison import counted, numbered
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, usage
from conformance.judge.token_text import (
    echoed_length,
    is_plain,
    is_special,
    is_text,
    possible_lengths,
    spells,
    token_bytes,
)
from conformance.model import Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView

SPECIAL_TOKENS = 1  # a token that opens or ends a text may be counted but not listed, or listed but not counted


def asks_for_scored_echo(request: RequestView, context: CheckContext) -> bool:
    """Expected where log probabilities of an echoed prompt are requested."""
    return request.echo and asks_for_logprobs(request, context) and any(request.prompts)


def prompt_of(request: RequestView, index: int) -> str | tuple[int, ...]:
    """The prompt that the choice with this index answers; empty where there is none."""
    number = index // request.n
    return request.prompts[number] if 0 <= number < len(request.prompts) else ""


def echoed_prompt(request: RequestView, answer: Choice) -> str:
    """The prompt at the beginning of the text, as the target returned it; empty where there is none."""
    prompt = prompt_of(request, answer.index)
    length = echoed_length(answer.text, prompt) if request.echo and isinstance(prompt, str) and prompt else None
    return answer.text[: length or 0]


def first_generated(request: RequestView, answer: Choice, tokens: Sequence[Any]) -> int:
    """The position of the first token that was sampled, behind those of an echoed prompt; that of none if unknown."""
    if not request.echo:
        return 0
    prompt = prompt_of(request, answer.index)
    if not isinstance(prompt, str):
        opening = bool(tokens) and isinstance(tokens[0], str) and is_special(tokens[0])
        return len(prompt) + opening
    rest = len(echoed_prompt(request, answer).encode("utf-8", "replace"))
    if prompt and not rest:
        return len(tokens)
    for position, token in enumerate(tokens):
        if rest <= 0:
            return position
        rest -= len(token_bytes(token)) if isinstance(token, str) else 0
    return len(tokens)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_logprobs,
    good=lambda: example(example_of(SCORED)),
    bad=lambda: example(example_of(SCORED, **logprobs(["4", ",", "5"], start=8))),
)
def tokens_join_to_text(x: Exchange, context: CheckContext) -> Findings:
    """The tokens of the log probabilities, joined, are the text.

    Highlighting, alignment and scoring locate tokens in the text by joining them; a lost space shifts all later tokens.

    Fix: take the token strings from the decoder that produces the text, leading spaces included.
    """
    request = context.request(x)
    for answer, lists in choices_with_logprobs(x):
        tokens = token_strings(lists)
        if tokens is None or not answer.text:
            continue
        # The tokens of a stop sequence, or the one that ends a text, may be listed though the text leaves them out.
        ended = answer.finish_reason != context.length
        prefix = ended and (bool(request.stops) or spells(tokens[:-1], answer.text))
        if spells(tokens, answer.text, prefix=prefix):
            yield Satisfied(answer.at)
            continue
        echo = echoed_prompt(request, answer)
        if echo and spells(tokens, answer.text[len(echo) :], prefix=prefix):
            continue  # without any token of the prompt: judged by `logprobs_cover_echo`
        if answer.reasoned:
            yield Inconclusive("tokens of reasoning may be listed, and are not part of the text")
            continue
        yield Violation(f"the tokens join to {show(''.join(tokens))}; expected the text {show(answer.text)}", answer.at)


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
    """Each text_offset is the previous one plus the length of its token, from 0 or from the end of the prompt.

    Editors highlight tokens by these offsets; a wrong one marks the wrong characters from there on.

    Fix: count the characters of prompt and text as they are sent, across all chunks of a stream.
    """
    request = context.request(x)
    for answer, lists in choices_with_logprobs(x):
        tokens, offsets = token_strings(lists), lists.get("text_offset", [])
        if tokens is None or not offsets or len(offsets) != len(tokens) or _has_part_without_offsets(answer):
            continue
        message = _wrong_step(tokens, offsets, answer.text)
        if not message and numbered(x, context):
            message = _wrong_start(request, answer, offsets)
        yield Violation(message, answer.at) if message else Satisfied(answer.at)


def _has_part_without_offsets(answer: Choice) -> bool:
    """Whether some part of a stream has tokens but no offsets, which no document requires."""
    of_parts = [part.logprobs for part in answer.parts if part.logprobs]
    return any(lists.get("tokens") and not isinstance(lists.get("text_offset"), list) for lists in of_parts)


def _wrong_step(tokens: Sequence[str], offsets: Sequence[Any], text: str) -> str:
    """A message on the first offset that does not follow from the one before; empty where all do."""
    for index, offset in enumerate(offsets):
        if not is_number(offset) or offset < 0:
            return f"text_offset[{index}] is {show(offset)}; expected a position in the text, 0 or more"
        if index == 0:
            continue
        before, token = offsets[index - 1], tokens[index - 1]
        step = offset - before
        # No document says how characters beyond ASCII are counted, nor whether special tokens have a length.
        # Where a part of a character follows, its offset may be that of the whole character.
        plain = is_plain(token) and is_plain(tokens[index])
        valid = step == len(token) if plain else step in {0, len(token)} if is_special(token) else step >= 0
        if index == 1 and token[:1] == " " != text[:1]:  # some decoders drop the space at the start of a text
            valid = valid or step == len(token) - 1
        if not valid:
            observed = f"text_offset goes from {before} to {offset} over the token {show(token)}"
            return f"{observed}; expected a step of {len(token)}"
    return ""


def _wrong_start(request: RequestView, answer: Choice, offsets: Sequence[Any]) -> str:
    """A message on a first offset that is at neither possible start; empty where it is, or the start is unknown."""
    prompt = prompt_of(request, answer.index)
    if not isinstance(prompt, str) or not is_text(prompt) or (request.echo and not echoed_prompt(request, answer)):
        return ""
    if request.get("suffix"):
        return ""  # the model reads a text made of prompt and suffix, and no document says where in it offsets begin
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

    Benchmarks score a given answer by echoing it; without the prompt's entries every score belongs to another text.

    Fix: score the prompt in the same way, and put its tokens before the generated ones.
    """
    request = context.request(x)
    if not request.echo or not numbered(x, context):
        return
    for answer, lists in choices_with_logprobs(x):
        prompt, tokens = prompt_of(request, answer.index), token_strings(lists)
        if tokens is None or not prompt:
            continue
        if isinstance(prompt, str):
            echo = echoed_prompt(request, answer)
            if echo:  # a text without the prompt is judged by `echo_begins_with_prompt`
                observed = f"the tokens, {len(tokens)} in all, begin with {show(''.join(tokens[:8]))}"
                covered = spells(tokens, echo, prefix=True)
                yield expect(covered, observed, f"the tokens of the prompt {show(echo)}", answer.at)
            continue
        all_generated = answer.finish_reason == context.length and not x.reasoned
        least = len(prompt) + (request.max_tokens or 0 if all_generated else 0)
        expected = f"{least} or more, {len(prompt)} of the prompt first"
        yield expect(len(tokens) >= least, f"{len(tokens)} tokens are listed", expected)


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
    """There are as many log probabilities as completion tokens, plus the prompt tokens if the prompt is echoed.

    If the two counts of one generation disagree, a client can trust neither the bill nor the scores.

    Fix: count usage and log probabilities from the same list of tokens.
    """
    request = context.request(x)
    if request.logprobs is None:
        return
    completion_tokens, prompt_tokens = counted(x, "completion_tokens"), counted(x, "prompt_tokens")
    answers = list(choices_with_logprobs(x))
    complete = len(answers) == request.choices == len(x.choices)
    if completion_tokens is None or not complete or request.best_of > request.n:
        return
    if request.echo and prompt_tokens is None:
        return
    if x.reasoned:
        yield Inconclusive("tokens of reasoning are counted, but need not be listed")
        return
    scored = sum(len(token_entries(lists)) for _, lists in answers)
    if completion_tokens and not scored:
        return  # judged by `logprobs_are_returned`
    echoed_tokens = request.n * (prompt_tokens or 0) if request.echo else 0
    if request.echo and scored <= completion_tokens + SPECIAL_TOKENS * len(answers) < completion_tokens + echoed_tokens:
        return  # without any token of the prompt: judged by `logprobs_cover_echo`
    expected = completion_tokens + echoed_tokens
    longest = max((len(stop) for stop in request.stops), default=0)  # a stop sequence may be a token per character
    ended = sum(answer.finish_reason != context.length for answer, _ in answers)
    tolerance = ended * (SPECIAL_TOKENS + longest) + (2 * SPECIAL_TOKENS * len(answers) if request.echo else 0)
    if scored < expected - tolerance and any(answer.may_reason for answer, _ in answers):
        yield Inconclusive(f"{scored} tokens have log probabilities, and the others may be tokens of reasoning")
        return
    parts = f"{completion_tokens} completion tokens"
    if request.echo:
        parts += f" and {request.n} × {prompt_tokens} prompt tokens"
    yield expect(abs(scored - expected) <= tolerance, f"{scored} tokens have log probabilities", parts)
