"""Choices: one for each prompt and candidate, each under its index."""

from __future__ import annotations

from collections import Counter

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.comparison import members, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, plain, stream
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING
from conformance.model.request_view import RequestView

TWO = {"n": 2}
BATCH = {"prompt": ["A:", "B:"], "temperature": 0}
BEST = {"n": 2, "best_of": 4, "prompt": ["A:", "B:"]}


def asks_for_best_of(request: RequestView, context: CheckContext) -> bool:
    """Due where the server is to pick the best of more candidates than it returns."""
    return (request.integer("best_of") or 0) > request.n and not request.stream


def asks_plainly(request: RequestView, context: CheckContext) -> bool:
    """Due where each candidate is returned."""
    return not asks_for_best_of(request, context)


def several(request: RequestView, context: CheckContext) -> bool:
    """Due where more than one choice is asked for."""
    return request.choices > 1


def _complete(x: Exchange, request: RequestView) -> Finding:
    expected, found = request.choices, list(x.choices)
    counts = f"n {request.n} × {len(request.prompts)} prompts" if len(request.prompts) > 1 else f"n {request.n}"
    whole = len(found) == expected and all(index == place for place, index in enumerate(found))
    return expect(whole, f"choices have the indices {show(found)}", f"0 to {expected - 1}, for {counts}")


@check(
    "choices",
    Scope.SUCCESS,
    expected_when=asks_plainly,
    good=lambda: example(plain(completion(choice(), choice(index=1)), TWO)),
    bad=lambda: (
        example(plain(completion(choice()), TWO))
        + example(stream(completion(choice()), completion(choice()), request=TWO))
        + example(plain(completion(choice(index=1))))
    ),
)
def choices_are_complete(x: Exchange, context: CheckContext) -> Findings:
    """A reply has n choices for each prompt, with the indices from 0 on and no other.

    Callers hand results back to their sources by index; a choice too few, or under another index, is a lost answer.

    Fix: number the choices prompt × n + candidate, in plain bodies and in every chunk.
    """
    request = context.request(x)
    if x.error is MISSING and request.prompts and asks_plainly(request, context):
        yield _complete(x, request)


@check(
    "choices",
    Scope.SUCCESS,
    expected_when=asks_for_best_of,
    good=lambda: example(plain(completion(*(choice(index=index) for index in range(4))), BEST)),
    bad=lambda: example(plain(completion(choice(index=4), choice(index=5)), BEST)),
)
def best_of_returns_n(x: Exchange, context: CheckContext) -> Findings:
    """With `best_of` above n, each prompt still gets n choices, with the indices from 0 on.

    The other candidates are the server's own business; returned or missing ones break the mapping to prompts.

    Fix: rank the candidates of each prompt, keep n, and number them anew.
    """
    request = context.request(x)
    if x.error is not MISSING or not request.prompts or not asks_for_best_of(request, context):
        return
    if len(request.prompts) > 1 and list(x.choices) == list(range(request.n)):
        yield Inconclusive(
            f"{request.n} of {request.choices} choices came: right for one prompt, so that best_of is not to blame"
        )
    else:
        yield _complete(x, request)


@check(
    "choices",
    Scope.PLAIN,
    good=lambda: example(plain(completion(choice(), choice(index=1)), TWO)),
    bad=lambda: example(plain(completion(choice(), choice()), TWO)),
)
def choice_indices_are_unique(x: Exchange, context: CheckContext) -> Findings:
    """No two choices of a body have the same index.

    A client that files choices by index overwrites one with the other.

    Fix: count the index over the whole request, not anew for each prompt.
    """
    for document in x.documents if not x.streamed else ():
        indices = [show(found.get("index", MISSING)) for found in document.choices]
        if indices:
            twice = [index for index, count in Counter(indices).items() if count > 1]
            yield expect(not twice, f"index {', '.join(twice)} occurs more than once", "each index once", document.at)


@check(
    "choices",
    Scope.PLAIN,
    expected_when=several,
    good=lambda: example(plain(completion(choice(), choice(index=1)), TWO)),
    bad=lambda: example(plain(completion(choice(index=1), choice()), TWO)),
)
def choices_are_in_order(x: Exchange, context: CheckContext) -> Findings:
    """The choices of a body stand in the order of their indices.

    Many callers zip prompts with choices and never look at the index.

    Fix: sort the choices by index before they are sent.
    """
    for document in x.documents if not x.streamed else ():
        indices = [found.get("index") for found in document.choices]
        whole = [index for index in indices if isinstance(index, (int, float)) and not isinstance(index, bool)]
        if len(whole) == len(indices) > 1:
            yield expect(whole == sorted(whole), f"indices come as {show(whole)}", show(sorted(whole)), document.at)


@check(
    "choices",
    Scope.GROUP,
    group="batch",
    good=lambda: example(_batch(" a1", " b1")),
    bad=lambda: example(_batch(" b1", " a1")),
)
def batch_order_holds(group: Group, context: CheckContext) -> Findings:
    """The choices of several prompts have the indices of their prompts: index = prompt × n + candidate.

    A batch is cut up by index; answers under each other's index are filed with the wrong questions.

    Fix: carry the number of the prompt through the scheduler instead of numbering by completion.
    """
    singles = sorted((role for role in group.members if role.startswith("single-")), key=_number)
    problem = not_comparable(group, "batch", *singles)
    if problem or len(singles) < 2:
        yield problem or Inconclusive("a batch of one prompt has no order")
        return
    if len(singles) < len(context.request(members(group, "batch")[0]).prompts):
        yield Inconclusive("not each prompt of the batch was answered alone, so their order cannot be told")
        return
    alone = [texts(members(group, role)[0]) for role in singles]
    for x in members(group, "batch"):
        n = context.request(x).n
        found, size = texts(x), len(singles)
        slices = [tuple(found.get(place * n + candidate, "") for candidate in range(n)) for place in range(size)]
        wanted = [tuple(one.get(candidate, "") for candidate in range(n)) for one in alone]
        if len(set(wanted)) < len(wanted):
            yield Inconclusive("two prompts have the same answer, so their order cannot be told")
        elif slices == wanted:
            yield Satisfied()
        elif sorted(slices) == sorted(wanted):
            places = [wanted.index(one) for one in slices]
            observed = f"the answers come for the prompts {places}"
            yield Violation(f"{observed}; expected {list(range(size))}", "choices", x.case.id)
        elif all(any(one == two for two in wanted) for one in slices):
            yield Violation(f"one prompt's answer comes twice: {show(slices)}; expected {show(wanted)}", "", x.case.id)
        elif sorted(_flat(slices)) == sorted(_flat(wanted)):
            observed = f"the answers are mixed up among the prompts: {show(slices)}"
            yield Violation(f"{observed}; expected {show(wanted)}", "choices", x.case.id)
        else:
            yield _partly(slices, wanted, x.case.id)


def _flat(slices: list[tuple[str, ...]]) -> list[str]:
    return [text for one in slices for text in one]


def _partly(slices: list[tuple[str, ...]], wanted: list[tuple[str, ...]], case: str) -> Finding:
    """Some answers differ from those alone; whether any of them is another prompt's."""
    for place, one in enumerate(slices):
        if one in wanted and wanted.index(one) != place:
            observed = f"prompt {place} has the answer of prompt {wanted.index(one)}, {show(one)}"
            return Violation(f"{observed}; expected {show(wanted[place])}", f"choice {place * len(one)}", case)
    if any(one == two for one, two in zip(slices, wanted, strict=True)):
        return Satisfied()
    return Inconclusive("no answer of the batch is that of its prompt alone, so their order cannot be told")


def _number(role: str) -> int:
    return int(role.rpartition("-")[2]) if role.rpartition("-")[2].isdecimal() else 0


def _batch(first: str, second: str) -> Group:
    whole = plain(completion(choice(first), choice(second, index=1)), BATCH)
    alone = [plain(completion(choice(text)), {**BATCH, "prompt": text}) for text in (" a1", " b1")]
    return group("batch", "two", batch=whole, single_0=alone[0], single_1=alone[1])
