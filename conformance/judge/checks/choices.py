"""Choices: one for each prompt and candidate, each under its index."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.comparison import describe_indices, indices, members, misnumbered, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, plain, stream
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING
from conformance.model.request_view import RequestView

TWO = {"n": 2}
BATCH = {"prompt": ["A:", "B:"], "temperature": 0}
BEST = {"n": 2, "best_of": 4, "prompt": ["A:", "B:"]}


def selects_candidates(request: RequestView, context: CheckContext) -> bool:
    """Expected where the server selects from more candidates than it returns."""
    return (request.integer("best_of") or 0) > request.n and not request.stream


def returns_all_candidates(request: RequestView, context: CheckContext) -> bool:
    """Expected where each candidate is returned."""
    return not selects_candidates(request, context)


def has_several_choices(request: RequestView, context: CheckContext) -> bool:
    """Expected where the request is for more than one choice."""
    return request.choices > 1


def _has_all_choices(x: Exchange, request: RequestView) -> Finding:
    count, numbers = request.choices, list(x.choices)
    reason = f"n = {request.n}" + (f" for each of {len(request.prompts)} prompts" if len(request.prompts) > 1 else "")
    complete = numbers == list(range(count))
    return expect(complete, describe_indices(numbers), f"{count} with {indices(range(count))}, as {reason}")


@check(
    "choices",
    Scope.SUCCESS,
    expected_when=returns_all_candidates,
    good=lambda: example(plain(completion(choice(), choice(index=1)), TWO)),
    bad=lambda: (
        example(plain(completion(choice()), TWO))
        + example(stream(completion(choice()), completion(choice()), request=TWO))
        + example(plain(completion(choice(index=1))))
    ),
)
def choices_are_complete(x: Exchange, context: CheckContext) -> Findings:
    """A reply has n choices for each prompt, with consecutive indices from 0.

    Callers assign results to prompts by index; a choice that is missing, or has another index, is a lost answer.

    Fix: number the choices prompt × n + candidate, in plain bodies and in every chunk.
    """
    request = context.request(x)
    if x.error is MISSING and request.prompts and returns_all_candidates(request, context):
        yield _has_all_choices(x, request)


@check(
    "choices",
    Scope.SUCCESS,
    expected_when=selects_candidates,
    good=lambda: example(plain(completion(*(choice(index=index) for index in range(4))), BEST)),
    bad=lambda: example(plain(completion(choice(index=4), choice(index=5)), BEST)),
)
def best_of_returns_n(x: Exchange, context: CheckContext) -> Findings:
    """With `best_of` above n, each prompt still gets n choices, with consecutive indices from 0.

    Callers assign choices to prompts by index; surplus or missing ones break that mapping.

    Fix: rank the candidates of each prompt, keep n, and renumber them.
    """
    request = context.request(x)
    if x.error is not MISSING or not request.prompts or not selects_candidates(request, context):
        return
    if len(request.prompts) > 1 and list(x.choices) == list(range(request.n)):
        counts = f"{request.n} choices were returned, of {request.choices}"
        yield Inconclusive(f"{counts}: the right number for one prompt, so this is no defect of best_of")
    else:
        yield _has_all_choices(x, request)


@check(
    "choices",
    Scope.PLAIN,
    good=lambda: example(plain(completion(choice(), choice(index=1)), TWO)),
    bad=lambda: example(plain(completion(choice(), choice()), TWO)),
)
def choice_indices_are_unique(x: Exchange, context: CheckContext) -> Findings:
    """No two choices of a body have the same index.

    A client that stores choices by index overwrites one with the other.

    Fix: number the choices over the whole request, not from 0 for each prompt.
    """
    for document in x.documents if not x.streamed else ():
        indices = [show(item.get("index", MISSING)) for item in document.choices]
        if indices:
            repeated = [index for index, count in Counter(indices).items() if count > 1]
            observed = f"index {', '.join(repeated)} occurs more than once"
            yield expect(not repeated, observed, "each index once", document.at)


@check(
    "choices",
    Scope.PLAIN,
    expected_when=has_several_choices,
    good=lambda: example(plain(completion(choice(), choice(index=1)), TWO)),
    bad=lambda: example(plain(completion(choice(index=1), choice()), TWO)),
)
def choices_are_in_order(x: Exchange, context: CheckContext) -> Findings:
    """The choices of a body are in the order of their indices.

    Many callers zip prompts with choices and never look at the index.

    Fix: sort the choices by index before sending them.
    """
    for document in x.documents if not x.streamed else ():
        indices = [item.get("index") for item in document.choices]
        numbers = [index for index in indices if isinstance(index, (int, float)) and not isinstance(index, bool)]
        if len(numbers) == len(indices) > 1:
            in_order = sorted(numbers)
            yield expect(numbers == in_order, f"the indices are {show(numbers)}", show(in_order), document.at)


@check(
    "choices",
    Scope.GROUP,
    group="batch",
    good=lambda: example(_batch(" a1", " b1")),
    bad=lambda: example(_batch(" b1", " a1")),
)
def batch_order_holds(group: Group, context: CheckContext) -> Findings:
    """The choices of several prompts have the indices of their prompts: index = prompt × n + candidate.

    A batch is split by index; answers with exchanged indices are assigned to the wrong questions.

    Fix: keep the number of the prompt through the scheduler instead of numbering choices as they finish.
    """
    singles = sorted((role for role in group.members if role.startswith("single-")), key=_number)
    problem = not_comparable(group, "batch", *singles)
    if problem or len(singles) < 2:
        yield problem or Inconclusive("the batch has one prompt, so it has no order")
        return
    if len(singles) < len(context.request(members(group, "batch")[0]).prompts):
        yield Inconclusive("not every prompt of the batch was also sent alone, so the order cannot be determined")
        return
    alone = [texts(members(group, role)[0]) for role in singles]
    if problem := misnumbered(members(group, "batch"), context):
        yield problem
        return
    for x in members(group, "batch"):
        n = context.request(x).n
        by_index, size = texts(x), len(singles)
        answers = [tuple(by_index.get(row * n + candidate, "") for candidate in range(n)) for row in range(size)]
        expected = [tuple(single.get(candidate, "") for candidate in range(n)) for single in alone]
        if len(set(expected)) < len(expected):
            yield Inconclusive("two prompts have the same answer, so the order cannot be determined")
        elif answers == expected:
            yield Satisfied()
        elif sorted(answers) == sorted(expected):
            order = [expected.index(answer) for answer in answers]
            observed = f"the answers are those of the prompts {order}"
            yield Violation(f"{observed}; expected {list(range(size))}", "choices", case=x.case.id)
        elif all(any(answer == other for other in expected) for answer in answers):
            observed = f"one prompt's answer is returned twice: {show(answers)}"
            yield Violation(f"{observed}; expected {show(expected)}", case=x.case.id)
        elif sorted(chain(*answers)) == sorted(chain(*expected)):
            observed = f"the answers are mixed up among the prompts: {show(answers)}"
            yield Violation(f"{observed}; expected {show(expected)}", "choices", case=x.case.id)
        else:
            yield _partly_in_order(answers, expected, x.case.id)


def _partly_in_order(answers: list[tuple[str, ...]], expected: list[tuple[str, ...]], case: str) -> Finding:
    """The finding where some answers are those of no prompt alone: a violation if one is another prompt's."""
    for row, answer in enumerate(answers):
        if answer in expected and expected.index(answer) != row:
            observed = f"prompt {row} has the answer of prompt {expected.index(answer)}, {show(answer)}"
            return Violation(f"{observed}; expected {show(expected[row])}", f"choice {row * len(answer)}", case)
    if any(answer == own_answer for answer, own_answer in zip(answers, expected, strict=True)):
        return Satisfied()
    return Inconclusive("no answer of the batch equals that of its prompt alone, so the order cannot be determined")


def _number(role: str) -> int:
    return int(role.rpartition("-")[2]) if role.rpartition("-")[2].isdecimal() else 0


def _batch(first: str, second: str) -> Group:
    batch = plain(completion(choice(first), choice(second, index=1)), BATCH)
    alone = [plain(completion(choice(text)), {**BATCH, "prompt": text}) for text in (" a1", " b1")]
    return group("batch", "two", batch=batch, single_0=alone[0], single_1=alone[1])
