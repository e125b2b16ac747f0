"""Two roles of a group that should agree: when their difference is evidence, and when it needs confirmation.

A target may answer one request in several ways, even at temperature 0. So a difference counts only when it is
reproduced: with at least three replies in each role, the first always gives one value, and the second never gives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final, TypeVar

from conformance.judge.catalogue import CheckContext, plural, show
from conformance.judge.near_ties import near_tie
from conformance.model import ENOUGH_REPLIES, Ending, Finding, Inconclusive, Satisfied, Validity, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING, as_integer

Value = TypeVar("Value")
View = Callable[[Exchange], Mapping[int, Any]]
Same = Callable[[Any, Any], bool]
ROLES: Final = {
    "plain": "in the plain reply",
    "stream": "in the stream",
    "first": "the first time",
    "second": "the second time",
    "with": "with the parameter",
    "without": "without the parameter",
    "absent": "without the parameter",
    "null": "with null for the parameter",
    "explicit": "with the default written out",
    "joint": "with all defaults written out",
    "usual": "in the usual form of the request",
    "unusual": "in the other form of the request",
    "alone": "by itself",
    "after": "after the other request",
    "one": "with one choice",
    "many": "with several choices",
    "short": "with the lower limit",
    "long": "with the higher limit",
    "greedy": "at temperature 0",
    "narrow": "with a single candidate",
    "batch": "in the batch",
    "the prompts alone": "for the prompts alone",
    "without, cut": "without the parameter and cut by it",
}
"""Roles in the words of a message; a role that is not here, such as `single-1`, stands for itself."""


def role_in_words(role: str) -> str:
    """A role for a message."""
    number = role.removeprefix("single-")
    return f"for prompt {number} alone" if number != role else ROLES.get(role, f"in the role {role}")


def comparable(x: Exchange) -> bool:
    """Whether a reply can be compared with others: complete, 2xx, without an error in its body, and not filtered."""
    return (
        x.successful
        and x.ending is Ending.COMPLETE
        and x.case.validity is not Validity.INVALID
        and x.error is MISSING
        and not x.filtered
    )


def members(group: Group, role: str) -> tuple[Exchange, ...]:
    """The replies of a role that can be compared with others."""
    return tuple(x for x in group.all(role) if comparable(x))


def numbered(x: Exchange, context: CheckContext) -> bool:
    """Whether an index tells which prompt a choice answers: there is one, or every requested choice came back."""
    request = context.request(x)
    return len(request.prompts) < 2 or len(x.choices) == request.choices


def misnumbered(replies: Iterable[Exchange], context: CheckContext) -> Inconclusive | None:
    """Why the choices of these replies cannot be compared by prompt; None where they can."""
    wrong = next((x for x in replies if not numbered(x, context)), None)
    if wrong is None:
        return None
    counts = f"{len(wrong.choices)} choices came back, not {context.request(wrong).choices}"
    return Inconclusive(f"{counts}, so an index does not say which prompt a choice answers")


def not_comparable(group: Group, *roles: str) -> Inconclusive | None:
    """Why these roles cannot be compared; None where they can."""
    for role in roles:
        if members(group, role):
            continue
        replies = group.all(role)
        if not replies:
            return Inconclusive(f"there is no reply {role_in_words(role)}")
        x = replies[0]
        if x.filtered:
            return Inconclusive(f"the reply {role_in_words(role)} ended by content_filter, so its text proves nothing")
        status = "no response" if x.status is None else f"HTTP {x.status}, {x.ending.value}"
        return Inconclusive(f"the reply {role_in_words(role)} has nothing to compare ({status})")
    return None


def equal(first: Any, second: Any) -> bool:
    """Whether two values are equal."""
    return bool(first == second)


def compare_values(
    first: Sequence[Any],
    second: Sequence[Any],
    noun: str,
    roles: tuple[str, str],
    *,
    at: str = "",
    case: str = "",
    same: Same = equal,
    drawn: bool = False,
) -> Finding:
    """The finding on two roles whose values should agree: `first` has the expected ones, `second` those under test.

    Agreement by chance must not count as evidence, so both roles must always give one value; unless the second is
    `drawn` at random, and no two of its values are the same.
    """
    model = first[0]
    if all(same(model, value) for value in (*first, *second)):
        return Satisfied(at)
    different = next((value for value in second if not same(model, value)), second[0])
    observed, expected = contrast(different, model)
    base, tested = map(role_in_words, roles)
    difference = f"{noun} is {observed} {tested}"
    if min(len(first), len(second)) < ENOUGH_REPLIES:
        counts = f"{len(second)} and {len(first)} replies; {ENOUGH_REPLIES} of each are needed"
        return Inconclusive(f"{difference} and {expected} {base}, in {counts}", repeat=True)
    disjoint = not any(same(value, other) for value in first for other in second)
    scattered = drawn and not any(same(value, other) for value, other in combinations(second, 2))
    if disjoint and constant(first, same) and (scattered or constant(second, same)):
        how_often = "another each time" if scattered else f"{len(second)} times of {len(second)}"
        message = f"{difference} ({how_often}); expected {expected}, as {base} ({len(first)} times of {len(first)})"
        return Violation(message, at, case, steady=not scattered)
    return Inconclusive(f"the target is not deterministic: {noun} differs between replies to one request")


def attribute_to(finding: Finding, case: str) -> Finding:
    """The finding, attributed to this case where it is a violation."""
    return replace(finding, case=case) if isinstance(finding, Violation) else finding


def constant(values: Iterable[Any], same: Same = equal) -> bool:
    """Whether all values are the same."""
    all_values = list(values)
    return all(same(all_values[0], value) for value in all_values[1:])


def contrast(first: Any, second: Any) -> tuple[str, str]:
    """Two values for a message; of long texts only the part around the first difference."""
    if isinstance(first, str) and isinstance(second, str) and max(len(first), len(second)) > 60:
        pairs = enumerate(zip(first, second, strict=False))
        difference = next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))
        start = max(0, difference - 12)
        return _excerpt(first, start), _excerpt(second, start)
    return show(first), show(second)


def _excerpt(text: str, start: int) -> str:
    return f"{'…' if start else ''}{show(text[start : start + 60])} ({len(text)} characters)"


def compare(
    group: Group,
    roles: tuple[str, str],
    view: View,
    noun: str,
    context: CheckContext,
    *,
    exact: bool = False,
    same: Same = equal,
) -> Iterator[Finding]:
    """One finding per choice: whether the value that `view` takes from it is the same in both roles.

    `exact`: texts that are drawn at random must be equal as well; otherwise they may differ.
    """
    problem = not_comparable(group, *roles)
    if problem:
        yield problem
        return
    sides = [members(group, role) for role in roles]
    may_differ = not exact and not all(context.request(x).greedy for side in sides for x in side)
    views = [[view(x) for x in side] for side in sides]
    case = sides[1][0].case.id
    for index in sorted({index for side in views for values in side for index in values}):
        first, second = ([values[index] for values in side if index in values] for side in views)
        if not first or not second:
            continue
        if not any((*first, *second)):
            yield Inconclusive(f"{noun} is empty in every reply, so there is nothing to compare")
            continue
        finding = compare_values(first, second, noun, roles, at=f"choice {index}", case=case, same=same, drawn=exact)
        if may_differ and not isinstance(finding, Satisfied):
            finding = Inconclusive(f"{noun} differs, as it may where temperature is above 0")
        elif not isinstance(finding, Satisfied) and (tie := near_tie(sides, index, context)):
            finding = Inconclusive(f"{noun} differs, as it may at a near tie: {tie}")
        yield finding


def texts(x: Exchange) -> Mapping[int, str]:
    """The text of each choice, without the U+FFFD that may stand for a character that the limit cut in two."""
    return {index: choice.text.rstrip("\ufffd") for index, choice in x.choices.items()}


def finish_reasons(x: Exchange) -> Mapping[int, str | None]:
    """The finish_reason of each choice."""
    return {index: choice.finish_reason for index, choice in x.choices.items()}


def unchanged(group: Group, roles: tuple[str, str], context: CheckContext) -> Iterator[Finding]:
    """Whether nothing differs between two roles: the indices of choices, their texts and their finish reasons.

    Finish reasons are compared only where the texts agree: different texts have the same reason only by chance.
    """
    yield from same_choices(group, roles)
    findings = list(compare(group, roles, texts, "text", context))
    yield from findings
    all_empty = not any(text for role in roles for x in members(group, role) for text in texts(x).values())
    if all_empty or all(isinstance(finding, Satisfied) for finding in findings):
        yield from compare(group, roles, finish_reasons, "finish_reason", context)


def same_choices(group: Group, roles: tuple[str, str]) -> Iterator[Finding]:
    """Violations for replies whose choices have other indices than those of the first role, which is never chance."""
    if not_comparable(group, *roles):
        return
    model = members(group, roles[0])[0]
    for x in members(group, roles[1]):
        if list(x.choices) != list(model.choices):
            observed = f"{describe_indices(list(x.choices))} {role_in_words(roles[1])}"
            expected = f"{len(model.choices)} with {indices(list(model.choices))}, as {role_in_words(roles[0])}"
            yield Violation(f"{observed}; expected {expected}", "", x.case.id)


def describe_indices(numbers: Sequence[int]) -> str:
    """How many choices a reply has, and their indices."""
    if not numbers:
        return "no choice came back"
    return f"{plural(len(numbers), 'choice')} came back, with {indices(numbers)}"


def indices(numbers: Sequence[int]) -> str:
    """The indices of choices, such as `the indices 0 to 3`."""
    if len(numbers) == 1:
        return f"index {numbers[0]}"
    run = list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    return f"the indices {numbers[0]} to {numbers[-1]}" if run else f"the indices {show(list(numbers))}"


def counted(x: Exchange, name: str) -> int | None:
    """A count in the reply's usage; None where it is absent or no whole number."""
    return as_integer((x.usage or {}).get(name))


def commonest(values: Sequence[Value]) -> tuple[Value, int]:
    """The value that occurs most often, and how often."""
    return Counter(values).most_common(1)[0]
