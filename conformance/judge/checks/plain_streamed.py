"""Plain/streamed pairs: the same greedy request with and without streaming gets the same reply in another form."""

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
    misnumbered,
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


def pair(body: Mapping[str, Any], *chunks: Mapping[str, Any], copies: int = 1) -> Group:
    """A plain reply and a stream as a pair, with `copies` of each."""
    members = {"plain": (plain(body, COLD),) * copies, "stream": (stream(*chunks, request=COLD),) * copies}
    return Group("twin", "example", members)


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    good=lambda: example(pair(completion(choice()), completion(choice(" 4,", finish=None)), completion(choice(" 5")))),
    bad=lambda: example(pair(completion(choice(), choice(index=1)), completion(choice()))),
)
def twin_choices_agree(group: Group, context: CheckContext) -> Findings:
    """A stream has the same choices as the plain reply.

    The number of choices does not depend on chance; answers that a stream drops or merges are lost.

    Fix: send each choice with its index in every chunk, and stream all of them.
    """
    violations = list(same_choices(group, ROLES))
    problem = not_comparable(group, *ROLES)
    yield from violations or [problem or Satisfied()]


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    good=lambda: example(pair(completion(choice()), completion(choice(" 4,", finish=None)), completion(choice(" 5")))),
    bad=lambda: (
        example(pair(completion(choice()), completion(choice(" 6, 7")), copies=ENOUGH_REPLIES))
        + example(pair(completion(choice()), completion(choice(""))))
    ),
)
def twin_text_agrees(group: Group, context: CheckContext) -> Findings:
    """The chunks of each choice in a stream, joined, are the text of the plain reply.

    Applications stream to show text sooner; they rely on getting the same text.

    Fix: let both forms read from one decoder, and flush the text that it holds back before the end.
    """
    problem = not_comparable(group, *ROLES) or misnumbered([x for role in ROLES for x in members(group, role)], context)
    if problem:
        yield problem
        return
    lost = dict(_lost_text(group, context))
    yield from lost.values()
    for finding in compare(group, ROLES, texts, "text", context):
        if not lost or isinstance(finding, Satisfied):
            yield finding


def _lost_text(group: Group, context: CheckContext) -> list[tuple[int, Finding]]:
    """Violations by choice, where a stream lacks text in a way that non-determinism does not explain.

    One reply is enough where every character beyond ASCII is gone, or all of the text. Any other gap counts if the
    plain replies agree among themselves.
    """
    violations: list[tuple[int, Finding]] = []
    plains, streams = members(group, "plain"), members(group, "stream")
    for index in plains[0].choices:
        full_texts = [texts(x)[index] for x in plains if index in x.choices]
        full, plains_agree = full_texts[0], len(full_texts) >= ENOUGH_REPLIES and constant(full_texts)
        reasons = {x.choices[index].finish_reason for x in (*plains, *streams) if index in x.choices}
        copies = [(x, texts(x)[index]) for x in streams if index in x.choices]
        # A prefix that ended by itself may be another sample.
        different = [(x, text) for x, text in copies if text != full]
        different = [(x, text) for x, text in different if reasons == {context.length} or not full.startswith(text)]
        damaged = [(x, text) for x, text in different if is_lossy_copy(text, full, sure=not plains_agree)]
        empty = [(x, text) for x, text in different if not text and full and reasons == {context.length}]
        if empty or (damaged and (not plains_agree or len(damaged) == len(different))):
            x, text = (empty or damaged)[0]
            observed, expected = contrast(text, full)
            flaky = plains_agree and len(different) < len(copies)
            message = f"the stream lacks text: {observed}; expected {expected} as in the plain reply"
            violations.append((index, Violation(message, f"choice {index}", x.case.id, flaky=flaky)))
    return violations


@check(
    "relations",
    Scope.GROUP,
    group="twin",
    good=lambda: example(pair(completion(choice()), completion(choice()))),
    bad=lambda: example(pair(completion(choice()), completion(choice(finish="stop")), copies=ENOUGH_REPLIES)),
)
def twin_finish_agrees(group: Group, context: CheckContext) -> Findings:
    """A choice has the same finish_reason, plain or streamed.

    Clients decide by the reason whether to continue a text; it must not depend on streaming.

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
            pair(completion(choice(), usage=usage()), completion(choice(), usage=usage(4, 1)), copies=ENOUGH_REPLIES)
        )
    ),
)
def twin_usage_agrees(group: Group, context: CheckContext) -> Findings:
    """A stream reports the same token counts as the plain reply.

    The same work must cost the same; a bill that depends on streaming cannot be predicted.

    Fix: count in the engine and report the one count in both forms.
    """
    if not_comparable(group, *ROLES):
        return
    plains, streams = members(group, "plain"), members(group, "stream")
    prompts = [count for count in (counted(x, "prompt_tokens") for x in plains) if count is not None]
    for x in streams:
        count = counted(x, "prompt_tokens")
        if count is not None and prompts:
            observed = f"prompt_tokens is {count} in the stream"
            yield attribute_to(
                expect(count in prompts, observed, f"{prompts[0]} as in the plain reply", "usage"), x.case.id
            )

    # Counts of completion tokens are comparable only between replies with the same texts and finish reasons.
    sides = [[(_wording(x), counted(x, "completion_tokens")) for x in side] for side in (plains, streams)]
    sides = [[(wording, count) for wording, count in side if count is not None] for side in sides]
    common = [wording for wording, _ in sides[1] if any(wording == other for other, _ in sides[0])]
    if common:
        first, second = ([count for wording, count in side if wording == common[0]] for side in sides)
        yield compare_values(first, second, "completion_tokens of the same text", ROLES, case=streams[0].case.id)


def _wording(x: Exchange) -> tuple[object, ...]:
    """The texts and finish reasons of a reply."""
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

    Clients collect scores while a text is streamed; the scores must not depend on streaming.

    Fix: send with each chunk the entries of exactly its tokens, with all offsets counted from the same start.
    """

    def logprobs_by_choice(x: Exchange) -> dict[int, tuple[object, ...]]:
        if context.request(x).logprobs is None:
            return {}
        names = ("tokens", "text_offset", "token_logprobs")
        lists = {index: choice.logprobs or {} for index, choice in x.choices.items() if choice.text}
        columns = {
            index: tuple(tuple(_scalars(of_choice.get(name, []))) for name in names)
            for index, of_choice in lists.items()
        }
        return {index: column if any(column) else () for index, column in columns.items()}

    yield from compare(group, ROLES, logprobs_by_choice, "logprobs (tokens, offsets, values)", context, same=_close)


def _scalars(values: list[Any]) -> list[Any]:
    """The values, with text in place of arrays and objects, which have no place in these lists."""
    return [value if isinstance(value, (str, int, float)) or value is None else show(value) for value in values]


def _close(first: tuple[tuple[Any, ...], ...], second: tuple[tuple[Any, ...], ...]) -> bool:
    """Whether tokens and offsets are equal, and values as close as rounding leaves them."""
    if not first or not second:
        return first == second
    if first[:2] != second[:2] or len(first[2]) != len(second[2]):
        return False
    return all(map(_close_values, first[2], second[2]))


def _close_values(first: Any, second: Any) -> bool:
    if is_number(first) and is_number(second):
        return close_logprobs(first, second)
    return bool(first == second)


def _scored(unstreamed: list[float], streamed: list[float] | None) -> Group:
    tokens = [" 4,", " 5"]
    full = completion(choice(logprobs=logprobs(tokens, unstreamed)))
    part = completion(choice(logprobs=logprobs(tokens, streamed) if streamed else None))
    request = {**COLD, "logprobs": 1}
    return Group(
        "twin",
        "example",
        {
            "plain": (plain(full, request),) * ENOUGH_REPLIES,
            "stream": (stream(part, request=request),) * ENOUGH_REPLIES,
        },
    )
