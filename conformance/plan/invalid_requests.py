"""Invalid requests: each breaks exactly one rule that a row promises to enforce, beside a control that breaks none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from conformance.contract.bounds import plainly, top
from conformance.contract.openapi import branches
from conformance.contract.validity import combines
from conformance.model import Combination, Level, Limit, Membership, RequestCase, Requirement, Validity
from conformance.model.json_text import MISSING, dumps
from conformance.plan.boundaries import beyond, shaped
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PROMPT, PlanContext, part
from conformance.plan.drawn_requests import changes, drawn_requests
from conformance.plan.factors import IDS, SECOND_PROMPT, STREAM, USAGE, allowed_members, factors, likely_stop, streaming
from conformance.plan.input_model import (
    EXTREMES,
    WRONG_NAMES,
    InputClass,
    inputs,
    invalid_classes,
    near_misses,
    wrong_type,
)

Labelled = tuple[str, Any]
# What is sent beside the value that breaks a rule. A server that builds each kind of reply on a path of its own may
# check its input on some of them only, so the refusals of `full` take turns over the smallest request and rich ones.
BATCH: Final[Mapping[str, Any]] = {"prompt": [PROMPT, SECOND_PROMPT], "n": 2, "temperature": 1}
SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (
    {**BATCH, **USAGE.patch, "logprobs": 1},
    {**BATCH, "echo": True},
    {},
    STREAM.patch,
    {"prompt": list(IDS), "best_of": 2, "suffix": " and so on.", "max_tokens": 1},
)
# Two classes of a row meet all that changes how a request is read; each further one meets another setting.
ORDER: Final = (0, 2, 1, 3, 4)
FEW: Final = 1  # classes of a row
MOST: Final = 2  # breaking requests for one row
OVERSIZED: Final = 2**31  # a number of choices from here on could exhaust the memory of a server


def invalid_requests(context: PlanContext, drawn: Iterable[Mapping[str, Any]] = ()) -> Iterator[CaseGroup]:
    """One invalid request for each row, alternating between channels; in `full` one for each class that breaks it.

    But the first class of a row, those are left out of which a drawn body is sent.
    """
    drawn_too = _drawn_classes(context, drawn) if context.full else frozenset()
    turn = context.seed
    rows_sent = 0  # so that a class meets one setting after another
    paired: set[str] = set()  # keywords of which a class was sent on both channels
    for row in context.rows_on("refuse"):
        if row.area in {"protocol", "auth"}:
            continue
        found = _breaking(context, row, turn)
        found = [*found[:1], *(one for one in found[1:] if (row.params.get("parameter"), one[0]) not in drawn_too)]
        for index, (label, patch) in enumerate(found if context.full else found[:1]):
            if is_oversized(context, patch):
                continue  # see `oversized_counts`
            rank = _rank(context, row, index)
            keyword = str(row.params.get("keyword", row.id))
            # few classes of a row do not meet all settings, so that one of them is sent on both channels
            few = context.full and (len(found) <= FEW or keyword not in paired)
            both = not index and (few or turn == context.seed)
            paired.add(keyword)
            # in `gate` the rest goes late and leaves room for isolating values that are wrongly rejected
            phase = "values" if context.full or rank < Rank.EXTRA else "learned"
            number = ORDER[(index + rows_sent) % len(found) % len(ORDER)] if context.full else turn
            yield CaseGroup(phase, rank, tuple(_cases(context, row, label, patch, number, both=both)))
        turn += bool(found)
        rows_sent += 1


def _drawn_classes(context: PlanContext, drawn: Iterable[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """The members, and the classes of their types, of the drawn bodies that are surely sent to be refused."""
    sure = [group for group in drawn_requests(context, drawn) if group.guaranteed and len(group.cases) > 1]
    pairs = [(group.cases[0].body, group.cases[1].body) for group in sure]
    return frozenset(
        (name, wrong_type(body[name])) for host, body in pairs for name in changes(host, body) if name in body
    )


def _breaking(context: PlanContext, row: Requirement, turn: int) -> list[tuple[str, dict[str, Any]]]:
    """The changes of the base request that break a row and nothing else, with labels."""
    wanted = row.params.get("combination")
    rule = next((rule for rule in context.contract.combinations if rule.id == wanted), None)
    if rule is not None:
        return _combination(context, rule)
    return [one for one in _changes(context, row, turn) if _breaks_one_rule(context, one[1])]


def breaking_classes(context: PlanContext) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """Each class that breaks a row: its input, its name, the members that have it, and the key of `input_classes`."""
    turn = context.seed
    for row in context.rows_on("refuse"):
        if row.area in {"protocol", "auth"}:
            continue
        found = _breaking(context, row, turn)
        turn += bool(found)
        for label, patch in found:
            (name, value), *others = patch.items()
            path = str(row.params.get("parameter", name))
            any_value = path == name and row.params.get("keyword") == "type" and label in WRONG_NAMES.values()
            key = f"{row.id} {label}" if others else InputClass(name, label, value, any_value=any_value).key
            yield path, label, patch, key


def _rank(context: PlanContext, row: Requirement, index: int) -> Rank:
    """The first class of each row comes before the others, which show the same row."""
    if index:
        of_type = row.params.get("keyword") in {"type", "coercion"}
        return (Rank.USEFUL if context.full else Rank.EXTRA) if of_type else Rank.OBSERVED
    return Rank.RELEVANT if row.level is Level.MUST else Rank.NORMAL if context.full else Rank.EXTRA


def oversized_counts(context: PlanContext) -> Iterator[RequestCase]:
    """Oversized numbers of choices, which exhaust the memory of a server that accepts them: sent last, one by one."""
    for row in context.rows_on("refuse") if context.full else ():
        if row.params.get("keyword") == "maximum":
            for label, patch in list(_changes(context, row, context.seed))[:MOST]:
                if is_oversized(context, patch) and _breaks_one_rule(context, patch):
                    probe = part("refuse", f"{row.id} {label}", "probe")
                    yield context.case("invalid", context.body(patch), probe, breaks=(row.id,), hostile=True)


def is_oversized(context: PlanContext, patch: Mapping[str, Any]) -> bool:
    """Whether members ask for more choices than a server that accepts them could hold."""
    counts = (value for name, value in patch.items() if context.traits(name).multiplies_cost)
    return any(isinstance(count, (int, float)) and count >= OVERSIZED for count in counts)


def _cases(
    context: PlanContext, row: Requirement, label: str, patch: Mapping[str, Any], turn: int, *, both: bool
) -> Iterator[RequestCase]:
    if "stream_options" in patch and "stream" not in patch and context.has("stream"):
        if context.full and not turn and "combination" not in row.params:
            rich = {**USAGE.patch, **_batch(context, patch)}
            yield from _pair(context, row, f"{label}, in a streamed batch", patch, rich)
        else:
            yield from _pair(context, row, f"{label}, streamed", patch, USAGE.patch)
    elif "stream" in patch or not context.has("stream"):
        if context.full and not turn and "combination" not in row.params:
            yield from _pair(context, row, f"{label}, in a batch", patch, _batch(context, patch))
        else:
            yield from _pair(context, row, label, patch, {})
    elif both:
        # a streamed request must be refused before the stream begins, with the same error
        key = f"{row.id} {label}"
        yield from _pair(context, row, label, patch, {}, part("channel", key, "plain"))
        # in a batch of several choices as well, so that one request shows it beside all three
        way = _setting(context, patch, 0) if context.full else streaming(context)
        yield from _pair(context, row, f"{label}, streamed", patch, way, part("channel", key, "stream"))
    elif context.full:
        setting = _setting(context, patch, turn)
        members = ", ".join(f"{name} {dumps(value)}" for name, value in setting.items() if value is not MISSING)
        yield from _pair(context, row, f"{label}, with {members}" if members else label, patch, setting)
    elif turn % 2 and "max_tokens" not in patch:  # those share their control with a documented value, sent plain
        yield from _pair(context, row, f"{label}, streamed", patch, streaming(context))
    else:
        yield from _pair(context, row, label, patch, {})


def _setting(context: PlanContext, patch: Mapping[str, Any], turn: int) -> Mapping[str, Any]:
    """As much of the setting whose turn it is as the contract allows, and this target accepts, beside the change."""
    kept: dict[str, Any] = {}
    alone = context.broken_combinations(context.body(patch))
    for name, value in allowed_members(context, SETTINGS[turn % len(SETTINGS)]).items():
        beside = context.body(kept, {name: value}, patch)
        if name not in patch and context.broken_combinations(beside) == alone:
            kept[name] = value
    return kept


def _batch(context: PlanContext, patch: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in allowed_members(context, BATCH).items() if name not in patch}


def _pair(
    context: PlanContext,
    row: Requirement,
    label: str,
    patch: Mapping[str, Any],
    way: Mapping[str, Any],
    *more: Membership,
) -> Iterator[RequestCase]:
    key = f"{row.id} {label}"
    if "max_tokens" in patch:  # keeps the reply short if the limit is ignored
        way = {**way, **context.first_allowed("stop", *_stops(context))}
    yield context.case("base", context.body(way), part("refuse", key, "control"))
    yield context.case("invalid", context.body(way, patch), part("refuse", key, "probe"), *more, breaks=(row.id,))


def _stops(context: PlanContext) -> list[Any]:
    """Stop sequences that the contract surely allows; one of unclear validity where it allows none."""
    found = [level.value for one in factors(context) if one.name == "stop" for level in one.levels[1:]]
    return [stop for stop in found if context.validity_alone({"stop": stop}) is Validity.VALID] or [
        likely_stop(context)
    ]


def _combination(context: PlanContext, rule: Combination) -> list[tuple[str, dict[str, Any]]]:
    """The example of a combination, and its variants, where the contract makes them invalid and it alone does."""
    if not context.has(*rule.example):
        return []
    found = [("example", dict(rule.example)), *_variants(context, rule)]
    return [(label, patch) for label, patch in found if _is_broken(context, rule, patch)]


def _is_broken(context: PlanContext, rule: Combination, patch: Mapping[str, Any]) -> bool:
    body = context.body(patch)
    others = (one for one in context.contract.combinations if one.id != rule.id)
    invalid = context.validity(dumps(body).encode(), body) is Validity.INVALID
    return invalid and (patch == rule.example or not any(combines(context.contract, one, body) for one in others))


def _variants(context: PlanContext, rule: Combination) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of an example with one member: near misses of the words inside it, and its items in another order."""
    if len(rule.example) != 1:
        return
    ((name, example),) = rule.example.items()
    if isinstance(example, Mapping):
        for key in example:
            known = [one.get(key) for one in context.contract.examples.get(name, ()) if isinstance(one, Mapping)]
            if len(example) == 1 and all(isinstance(word, str) for word in known) and example[key] not in known:
                yield from ((label, {name: {key: word}}) for label, word in near_misses(known))
                yield "absent", {name: {}}
    elif isinstance(example, list) and len(example) > 1:
        first, last = example[0], example[-1]
        for label, items in (("first", [last, first, first]), ("in the middle", [first, last, first]),
                             ("last", [first, first, last])):  # fmt: skip
            yield f"the odd item {label}", {name: items}


def _changes(context: PlanContext, row: Requirement, turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of the base request that break a row, with labels."""
    path, keyword = str(row.params.get("parameter", "")), str(row.params.get("keyword", ""))
    name = top(path)
    if context.has(name):
        yield from ((label, {name: value}) for label, value in _values(context, path, keyword, turn))


def _values(context: PlanContext, path: str, keyword: str, turn: int) -> Iterator[Labelled]:
    limit = context.contract.limit(path if keyword[:4] in {"mini", "maxi"} else f"{path.removesuffix('[]')}[]")
    match keyword:
        case "required":
            yield "absent", MISSING
        case "nullable":
            yield "null", None
        case "enum":
            allowed = [one for branch in branches(context.contract.parameters[path].schema) for one in branch["enum"]]
            yield from near_misses(allowed)
        case "type" | "coercion":
            found = [(input_class.name, input_class.value) for input_class in _classes(context, path, keyword)]
            yield from _rotated(found, turn)
        case "minimum" | "maximum" | "min-items" | "max-items" if limit is not None:
            yield from _outside(context, limit, keyword, turn)


def _rotated(found: tuple[Labelled, ...] | list[Labelled], turn: int) -> list[Labelled]:
    start = turn % max(len(found), 1)
    return [*found[start:], *found[:start]]


def _outside(context: PlanContext, limit: Limit, keyword: str, turn: int) -> Iterator[Labelled]:
    """Just outside of a range, and far outside: by a thousand, or as numbers that overflow."""
    near, *others = [(plainly(value), shaped(limit.parameter, value)) for value in beyond(context, limit, keyword)]
    yield near
    if limit.parameter.endswith("[]"):
        yield from others
        return
    far = [(name, shaped(limit.parameter, value)) for name, value in EXTREMES if (value > 0) is (keyword == "maximum")]
    yield from _rotated([*far, others.pop()], turn)[:1]
    yield from others


def _classes(context: PlanContext, path: str, keyword: str) -> Iterator[InputClass]:
    """The classes that break the type of an input: look-alikes for the row on coercion, where it has one, or all."""
    schema = inputs(context.contract)[path]
    split = f"request.{path}.coercion" in context.rows
    for input_class in invalid_classes(context.contract, path, schema):
        if not split or input_class.look_alike is (keyword == "coercion"):
            yield input_class


def _breaks_one_rule(context: PlanContext, patch: Mapping[str, Any]) -> bool:
    """Whether the change alone makes the base request invalid, and not a combination with other members."""
    body = context.body(USAGE.patch if "stream_options" in patch else {}, patch)
    return context.validity(dumps(body).encode(), body) is Validity.INVALID and not context.clashes(body)


__all__ = ["breaking_classes", "invalid_requests", "is_oversized", "oversized_counts"]
