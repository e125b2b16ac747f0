"""Twins: the same greedy request plain and streamed, which differ in nothing but the form of the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.logprobs import is_number
from conformance.judge.comparison import (
    attribute_to,
    compare,
    compare_values,
    constant,
    contrast,
    counted,
    finish_reasons,
    members,
    not_comparable,
    same_choices,
    texts,
)
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, stream, usage
from conformance.judge.token_text import is_lossy_copy
from conformance.judge.tolerances import close_logprobs
from conformance.model import ENOUGH_REPLIES, Finding, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

ROLES = ("plain", "stream")
COLD = {"temperature": 0}


def pair(one: Mapping[str, Any], *chunks: Mapping[str, Any], times: int = 1) -> Group:
    """A plain body and chunks of a stream as twins, each so many times."""
    plainly, streamed = plain(one, COLD), stream(*chunks, request=COLD)
    return Group("twin", "example", {"plain": (plainly,) * times, "stream": (streamed,) * times})


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    good=lambda: example(pair(completion(choice()), completion(choice(" 4,", finish=None)), completion(choice(" 5")))),
    bad=lambda: example(pair(completion(choice(), choice(index=1)), completion(choice()))),
)
def twin_choices_agree(group: Group, context: CheckContext) -> Findings:
    """A stream has the same choices as the plain reply.

    How many answers there are is no matter of chance; a stream that drops or merges some loses them for good.

    Fix: give each choice its index in every chunk, and stream all of them.
    """
    faults = list(same_choices(group, ROLES))
    problem = not_comparable(group, *ROLES)
    yield from faults or [problem or Satisfied()]


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    good=lambda: example(pair(completion(choice()), completion(choice(" 4,", finish=None)), completion(choice(" 5")))),
    bad=lambda: (
        example(pair(completion(choice()), completion(choice(" 6, 7")), times=ENOUGH_REPLIES))
        + example(pair(completion(choice()), completion(choice(""))))
    ),
)
def twin_text_agrees(group: Group, context: CheckContext) -> Findings:
    """The texts of a stream, joined, are the texts of the plain reply.

    Applications switch streaming on for comfort; nobody expects other words, or fewer, from it.

    Fix: let both forms read from one decoder, and flush what it holds back before the end.
    """
    problem = not_comparable(group, *ROLES)
    if problem:
        yield problem
        return
    lost = dict(_lost(group, context))
    yield from lost.values()
    for finding in compare(group, ROLES, texts, "text", context):
        if not lost or isinstance(finding, Satisfied):
            yield finding


def _lost(group: Group, context: CheckContext) -> list[tuple[int, Finding]]:
    """Text that is gone in a way that no other draw explains, at once or beside plain replies that always agree."""
    found: list[tuple[int, Finding]] = []
    plains, streams = members(group, "plain"), members(group, "stream")
    for index in plains[0].choices:
        wholes = [texts(x)[index] for x in plains if index in x.choices]
        whole, settled = wholes[0], len(wholes) >= ENOUGH_REPLIES and constant(wholes)
        reasons = {x.choices[index].finish_reason for x in (*plains, *streams) if index in x.choices}
        copies = [(x, texts(x)[index]) for x in streams if index in x.choices]
        # A prefix that ended by itself may be another draw.
        odd = [(x, text) for x, text in copies if text != whole]
        odd = [(x, text) for x, text in odd if reasons == {context.length} or not whole.startswith(text)]
        damaged = [(x, text) for x, text in odd if is_lossy_copy(text, whole, sure=not settled)]
        empty = [(x, text) for x, text in odd if not text and whole and reasons == {context.length}]
        if empty or (damaged and (not settled or len(damaged) == len(odd))):
            x, text = (empty or damaged)[0]
            observed, expected = contrast(text, whole)
            flaky = settled and len(odd) < len(copies)
            message = f"text is lost: the stream has {observed}; expected {expected} as in the plain reply"
            found.append((index, Violation(message, f"choice {index}", x.case.id, flaky=flaky)))
    return found


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    good=lambda: example(pair(completion(choice()), completion(choice()))),
    bad=lambda: example(pair(completion(choice()), completion(choice(finish="stop")), times=ENOUGH_REPLIES)),
)
def twin_finish_agrees(group: Group, context: CheckContext) -> Findings:
    """A choice finishes for the same reason, plain or streamed.

    Whether to ask for more is decided by the reason; it cannot depend on how the text was carried.

    Fix: let both forms read the reason from one place.
    """
    yield from compare(group, ROLES, finish_reasons, "finish_reason", context)


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    expected_when=lambda request, context: (
        request.stream and (request.include_usage or "stream_options" not in context.contract.parameters)
    ),
    good=lambda: example(pair(completion(choice(), usage=usage()), completion(choice()), completion(usage=usage()))),
    bad=lambda: (
        example(pair(completion(choice(), usage=usage()), completion(choice()), completion(usage=usage(5, 4))))
        + example(
            pair(completion(choice(), usage=usage()), completion(choice(), usage=usage(4, 1)), times=ENOUGH_REPLIES)
        )
    ),
)
def twin_usage_agrees(group: Group, context: CheckContext) -> Findings:
    """A stream reports the same tokens as the plain reply.

    The same work must cost the same; bills that depend on the form of the reply cannot be predicted.

    Fix: count in the engine and report the one count in both forms.
    """
    if not_comparable(group, *ROLES):
        return
    plains, streams = members(group, "plain"), members(group, "stream")
    prompts = [one for one in (counted(x, "prompt_tokens") for x in plains) if one is not None]
    for x in streams:
        told = counted(x, "prompt_tokens")
        if told is not None and prompts:
            observed = f"prompt_tokens is {told} in the stream"
            yield attribute_to(expect(told in prompts, observed, f"{prompts[0]} as plain", "usage"), x.case.id)

    # Only replies with the same texts and endings owe the same count.
    sides = [[(_wording(x), counted(x, "completion_tokens")) for x in side] for side in (plains, streams)]
    sides = [[(wording, told) for wording, told in side if told is not None] for side in sides]
    common = [wording for wording, _ in sides[1] if any(wording == other for other, _ in sides[0])]
    if common:
        first, second = ([told for wording, told in side if wording == common[0]] for side in sides)
        yield compare_values(first, second, "completion_tokens of the same text", ROLES, case=streams[0].case.id)


def _wording(x: Exchange) -> tuple[object, ...]:
    return tuple(texts(x).items()), tuple(finish_reasons(x).items())


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    expected_when=lambda request, _: request.logprobs is not None and request.max_tokens != 0,
    good=lambda: example(_scored([-0.25, -0.5], [-0.25, -0.49])),
    bad=lambda: example(_scored([-0.25, -0.5], [-0.25, -3.5])) + example(_scored([-0.25, -0.5], None)),
)
def twin_logprobs_agree(group: Group, context: CheckContext) -> Findings:
    """The log probabilities of a stream, joined, are those of the plain reply.

    Scores are collected while a text is streamed; they cannot depend on how it was carried.

    Fix: send with each chunk the entries of exactly the tokens that it brings, offsets counted from one start.
    """

    def lists(x: Exchange) -> dict[int, tuple[object, ...]]:
        if context.request(x).logprobs is None:
            return {}
        shown = {index: found.logprobs or {} for index, found in x.choices.items() if found.text}
        parts = ("tokens", "text_offset", "token_logprobs")
        found = {index: tuple(tuple(_plain(one.get(part, []))) for part in parts) for index, one in shown.items()}
        return {index: one if any(one) else () for index, one in found.items()}

    yield from compare(group, ROLES, lists, "logprobs (tokens, offsets, values)", context, same=_near)


def _plain(values: list[Any]) -> list[Any]:
    return [value if isinstance(value, (str, int, float)) or value is None else show(value) for value in values]


def _near(one: tuple[tuple[Any, ...], ...], other: tuple[tuple[Any, ...], ...]) -> bool:
    """Equal tokens and offsets, and values as close as two evaluations on real hardware are."""
    if not one or not other:
        return one == other
    if one[:2] != other[:2] or len(one[2]) != len(other[2]):
        return False
    return all(map(_close, one[2], other[2]))


def _close(one: Any, other: Any) -> bool:
    if is_number(one) and is_number(other):
        return close_logprobs(one, other)
    return bool(one == other)


def _scored(plainly: list[float], streamed: list[float] | None) -> Group:
    tokens = [" 4,", " 5"]
    whole = completion(choice(logprobs=logprobs(tokens, plainly)))
    part = completion(choice(logprobs=logprobs(tokens, streamed) if streamed else None))
    request = {**COLD, "logprobs": 1}
    return Group(
        "twin",
        "example",
        {
            "plain": (plain(whole, request),) * ENOUGH_REPLIES,
            "stream": (stream(part, request=request),) * ENOUGH_REPLIES,
        },
    )
