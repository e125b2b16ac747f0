"""Two roles of a group should agree: when their difference is evidence, and when it only raises a doubt.

A target may answer one request in several ways, even at temperature 0. So a difference counts only when it comes
again: with at least three replies in each role, the first always gives the same, and the second never gives that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

from conformance.judge.catalogue import CheckContext, show
from conformance.judge.near_ties import near_tie
from conformance.model import ENOUGH_REPLIES, Ending, Finding, Inconclusive, Satisfied, Validity, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING

Value = TypeVar("Value")
View = Callable[[Exchange], Mapping[int, Any]]
Same = Callable[[Any, Any], bool]


def comparable(x: Exchange) -> bool:
    """Whether a reply can take part in a relation: a whole success, without an error inside and not filtered."""
    return (
        x.successful
        and x.ending is Ending.COMPLETE
        and x.case.validity is not Validity.INVALID
        and x.error is MISSING
        and not x.filtered
    )


def members(group: Group, role: str) -> tuple[Exchange, ...]:
    """The replies of a role that can be compared."""
    return tuple(x for x in group.all(role) if comparable(x))


def not_comparable(group: Group, *roles: str) -> Inconclusive | None:
    """Why these roles cannot be compared; None where they can."""
    for role in roles:
        if members(group, role):
            continue
        found = group.all(role)
        if not found:
            return Inconclusive(f"no reply stands for {role!r}")
        x = found[0]
        if x.filtered:
            return Inconclusive(f"content_filter took part in {role!r}, which excuses its text")
        told = "no response" if x.status is None else f"HTTP {x.status}, {x.ending.value}"
        return Inconclusive(f"{role!r} gave nothing to compare ({told})")
    return None


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal."""
    return bool(one == other)


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
    """What the values of two roles that should agree come to.

    What is the same each time by luck must not be held against what differs, so both roles have to be sure of
    themselves; unless the second is `drawn`, and no two of its values are alike.
    """
    model = first[0]
    if all(same(model, value) for value in (*first, *second)):
        return Satisfied(at)
    odd = next((value for value in second if not same(model, value)), second[0])
    shown_odd, shown_model = contrast(odd, model)
    told = f"{noun} is {shown_odd} in {roles[1]!r}"
    if min(len(first), len(second)) < ENOUGH_REPLIES:
        counted = f"seen {len(second)} and {len(first)} times"
        return Inconclusive(
            f"{told}, {shown_model} in {roles[0]!r}; {counted}, {ENOUGH_REPLIES} of each would tell", repeat=True
        )
    apart = not any(same(one, other) for one in first for other in second)
    scattered = drawn and not any(same(one, other) for one, other in combinations(second, 2))
    if apart and constant(first, same) and (scattered or constant(second, same)):
        again = "never the same" if scattered else f"{len(second)} and {len(first)} times alike"
        message = f"{told} ({again}); expected {shown_model} as in {roles[0]!r}"
        return Violation(message, at, case, steady=not scattered)
    return Inconclusive(f"the target is not deterministic: {noun} differs between replies to one request")


def attribute_to(finding: Finding, case: str) -> Finding:
    """The finding with the case that it shows in, where it is a violation."""
    return replace(finding, case=case) if isinstance(finding, Violation) else finding


def constant(values: Iterable[Any], same: Same = equal) -> bool:
    """Whether all values are the same."""
    listed = list(values)
    return all(same(listed[0], value) for value in listed[1:])


def contrast(one: Any, other: Any) -> tuple[str, str]:
    """Two values for a message; of long texts only the part around the first difference."""
    if isinstance(one, str) and isinstance(other, str) and max(len(one), len(other)) > 60:
        pairs = enumerate(zip(one, other, strict=False))
        start = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
        cut = max(0, start - 12)
        lead = "…" if cut else ""
        return tuple(f"{lead}{show(text[cut : cut + 60])} ({len(text)} characters)" for text in (one, other))  # type: ignore[return-value]
    return show(one), show(other)


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
    """One finding per choice: whether what `view` shows of it agrees in both roles.

    `exact` compares requests that sample as well; otherwise texts that were drawn may differ.
    """
    problem = not_comparable(group, *roles)
    if problem:
        yield problem
        return
    sides = [members(group, role) for role in roles]
    drawn = not exact and not all(context.request(x).greedy for side in sides for x in side)
    views = [[view(x) for x in side] for side in sides]
    last = sides[1][0].case.id
    for index in sorted({index for side in views for one in side for index in one}):
        first, second = ([one[index] for one in side if index in one] for side in views)
        if not first or not second:
            continue
        if not any((*first, *second)):
            yield Inconclusive(f"{noun} is empty in every reply, so there is nothing to compare")
            continue
        finding = compare_values(first, second, noun, roles, at=f"choice {index}", case=last, same=same, drawn=exact)
        if drawn and not isinstance(finding, Satisfied):
            finding = Inconclusive(f"{noun} differs, as it may where temperature is above 0")
        elif not isinstance(finding, Satisfied) and (tied := near_tie(sides, index, context)):
            finding = Inconclusive(f"{noun} differs, as it may where two tokens are nearly as likely: {tied}")
        yield finding


def texts(x: Exchange) -> Mapping[int, str]:
    """The text of each choice. A character that the limit cut in two may be dropped or replaced at its end."""
    return {index: choice.text.rstrip("\ufffd") for index, choice in x.choices.items()}


def finish_reasons(x: Exchange) -> Mapping[int, str | None]:
    """The finish_reason of each choice."""
    return {index: choice.finish_reason for index, choice in x.choices.items()}


def unchanged(group: Group, roles: tuple[str, str], context: CheckContext) -> Iterator[Finding]:
    """Whether nothing differs between two roles: the choices there are, their texts and their reasons to finish.

    Where texts differ, by right or not, the reasons of other texts are the same or not by luck.
    """
    yield from same_choices(group, roles)
    found = list(compare(group, roles, texts, "text", context))
    yield from found
    silent = not any(text for role in roles for x in members(group, role) for text in texts(x).values())
    if silent or all(isinstance(one, Satisfied) for one in found):
        yield from compare(group, roles, finish_reasons, "finish_reason", context)


def same_choices(group: Group, roles: tuple[str, str]) -> Iterator[Finding]:
    """Violations for replies with other choices than their counterpart: how many there are is no matter of chance."""
    if not_comparable(group, *roles):
        return
    model = members(group, roles[0])[0]
    for x in members(group, roles[1]):
        if list(x.choices) != list(model.choices):
            observed = f"choices have the indices {show(list(x.choices))} in {roles[1]!r}"
            yield Violation(f"{observed}; expected {show(list(model.choices))} as in {roles[0]!r}", "", x.case.id)


def counted(x: Exchange, name: str) -> int | None:
    """A whole number of the reply's usage; None where it says none."""
    value = (x.usage or {}).get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return None
    return int(value)


def commonest(values: Sequence[Value]) -> tuple[Value, int]:
    """The value that occurs most often, and how often."""
    return Counter(values).most_common(1)[0]
