"""Rows of covering arrays as requests: every pair of factor levels in `gate`, every triple in `full`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.model import RequestCase
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import BIAS_TOKENS, FORCED, FORCED_AMONG_MANY, TOKENS_LONG, PlanContext, part, rename
from conformance.plan.covering_rows import Banned, Row, body_of, row_of, rows
from conformance.plan.factors import ABSENT, RICH, Factor, exceeds_default_limit, factors, streaming, sure_members
from conformance.plan.invalid_requests import GATE_SETTINGS
from conformance.plan.single_values import accepts, single_values

DRAWN: Final = "with drawn values"
NO_CLASSES: Final[Mapping[str, Any]] = {}


def combination_rows(context: PlanContext, drawn: Iterable[Mapping[str, Any]] = ()) -> Iterator[CaseGroup]:
    """Requests in which every allowed pair or triple of factor levels occurs, less those in earlier replies.

    Rows that are not compared with another request carry drawn values where any value of a kind does.
    """
    all_factors = factors(context)
    if not context.full:
        yield from _gate(context, all_factors, rows(context, all_factors, 2, _answered_rows(context, all_factors)))
        return
    paired, single = _rows(context, all_factors)
    for index, (plain, streamed) in enumerate(paired):
        roles = ((plain, "plain"), (streamed, "stream"))
        turned = classes_in_turn(context, all_factors, plain, index)
        cases = [
            case for row, role in roles for case in _row(context, all_factors, row, (f"row {index}", role), turned)
        ]
        yield CaseGroup("rows", Rank.NORMAL, tuple(cases))
        yield from _longer(context, {**body_of(context, all_factors, plain), **turned}, index)
    patches = [body for body in drawn if "model" not in body]
    for index, row in enumerate(single):
        drawn_values = patches[index % len(patches)] if patches else {}
        turned = classes_in_turn(context, all_factors, row, len(paired) + index)
        cases = list(_row(context, all_factors, row, classes=turned, patch=drawn_values))
        yield CaseGroup("rows", Rank.NORMAL, tuple(cases))
        if "seed" in context.kinds and _is_sampled(context, cases[0].body, seeded=True):
            copies = [
                rename(cases[0], cases[0].id, [part("seed", f"row {index}", role)]) for role in ("first", "second")
            ]
            yield CaseGroup("rows", Rank.EXTRA, tuple(copies), (0, 1))


def _rows(context: PlanContext, all_factors: Sequence[Factor]) -> tuple[list[tuple[Row, Row]], list[Row]]:
    """Plain/streamed pairs of rows, and the single rows that complete all triples.

    All pairs of levels of the other factors occur on both channels, which covers each triple with the channel twice.
    Levels that show in text only must meet where text is generated, so rows that generate none come in addition.
    """
    without_text = _levels_without_text(all_factors)
    paired = list(_paired_rows(context, all_factors, without_text))
    begun = [*_rows_of_single_values(context, all_factors), *(row for pair in paired for row in pair)]
    before = len(begun)
    begun += rows(context, all_factors, 3, begun, without_text)
    begun += _rows_without_text(context, all_factors, without_text)
    begun += rows(context, all_factors, 3, begun) if without_text else []
    return paired, begun[before:]


def bodies_of_single_rows(context: PlanContext) -> list[dict[str, Any]]:
    """The bodies of the rows that may carry drawn values."""
    all_factors = factors(context)
    return [body_of(context, all_factors, row) for row in _rows(context, all_factors)[1]]


def with_drawn_values(body: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A body with drawn values in place of its own where any value of that shape does."""
    drawn = {name: value for name, value in patch.items() if name != "prompt" and body.get(name) is not None}
    text, own = patch.get("prompt"), body.get("prompt")
    if isinstance(text, str) and isinstance(own, str):
        if own.isascii() and not text.isascii():
            text = own
        # such prompts have a long beginning in common, by which a cache must not find another's reply
        drawn["prompt"] = text if own.isascii() else f"{own}{text}"
    elif isinstance(text, str) and isinstance(own, list) and isinstance(own[0], str):
        drawn["prompt"] = [text, *own[1:]]
    return {**body, **drawn}


def _gate(context: PlanContext, all_factors: Sequence[Factor], wanted: Sequence[Row]) -> Iterator[CaseGroup]:
    """Rows of pairs. One that samples and one that samples with a seed are sent twice, to compare their texts."""
    cases = [case for row in wanted for case in _row(context, all_factors, row)]
    yield from (CaseGroup("rows", Rank.ALWAYS, (case,)) for case in cases)
    for kind, roles in (("seed", ("first", "second")), ("vary", ("draw", "draw"))):
        able = [
            case for case in cases if kind in context.kinds and _is_sampled(context, case.body, seeded=kind == "seed")
        ]
        if able:
            # log probabilities show whether the model had a choice
            case = next((case for case in able if case.body.get("logprobs")), able[0])
            if kind == "vary" and context.has("logprobs") and not case.body.get("logprobs"):
                case = context.case("row", {**case.body, "logprobs": 1})
            copies = tuple(rename(case, case.id, [part(kind, "row", role)]) for role in roles)
            yield CaseGroup("rows", Rank.RELEVANT, copies, (0, 1))


def classes_in_turn(context: PlanContext, all_factors: Sequence[Factor], row: Row, number: int) -> dict[str, Any]:
    """The values of the classes whose turn it is in a row, where it has the one level that they stand for.

    Each parameter changes at its own pace, so that a class occurs with different classes of the others.
    """
    body = body_of(context, all_factors, row)
    validity = context.validity_of(body)
    turned: dict[str, Any] = {}
    for position, (factor, level) in enumerate(zip(all_factors, row, strict=True)):
        if not level or not factor.classes:
            continue
        patch = factor.classes[(number + number // len(factor.classes) * (position + 1)) % len(factor.classes)].patch
        changed = {**body, **turned, **patch}
        if context.may_send(changed) and context.validity_of(changed) is validity:
            turned.update(patch)
    return turned


def _is_sampled(context: PlanContext, body: Mapping[str, Any], *, seeded: bool) -> bool:
    """Whether the texts of a request are sampled freely, with a seed or without one, and long enough to differ."""
    request = context.request(body)
    free = (
        request.number("temperature", 1) >= 1 and request.number("top_p", 1) == 1 and request.integer("top_k", 99) != 1
    )
    several = (request.max_tokens or 0) > 2
    return free and several and seeded == ("seed" in body) and not {"logit_bias", "response_format"} & body.keys()


def _row(
    context: PlanContext,
    all_factors: Sequence[Factor],
    row: Row,
    pair: tuple[str, str] | None = None,
    classes: Mapping[str, Any] = NO_CLASSES,
    patch: Mapping[str, Any] | None = None,
) -> Iterator[RequestCase]:
    """The request of a row; `pair` is its key and role in a plain/streamed pair, `patch` has drawn values.

    `classes` are the values whose turn it is in the place of those of the levels.
    """
    groups = [part("twin", *pair)] if pair else []
    if not context.full:
        # a joint case: accepted, a row proves each of its values; rejected, none
        levels = [factor.levels[level] for factor, level in zip(all_factors, row, strict=True) if level]
        groups += [membership for level in levels for membership in accepts(context, level, "joint")]
    plain = {**body_of(context, all_factors, row), **classes}
    penalized = any(context.traits(name).acts_on_repetition for name in plain)
    if not context.full and any(row) and context.has("max_tokens") and not (penalized and "logit_bias" in plain):
        # room for the effects of all values of the row, but for penalties to overcome a bias
        plain["max_tokens"] = TOKENS_LONG
        if _limits_by_default(context, plain):
            del plain["max_tokens"]
    body = with_drawn_values(plain, patch or {})
    if "force" in context.kinds and _repeats_one_token(context, body):
        groups.append(part("force", f"{BIAS_TOKENS[0]} {dumps(row)}", "with"))
    keeps_format = not any(context.traits(name).breaks_format for name in body)
    if "json" in context.kinds and "response_format" in body and keeps_format:
        groups.append(part("json", f"row {dumps(row)}", "probe"))
    yield context.case("row", body, *groups, note=DRAWN if body != plain else "")


def _limits_by_default(context: PlanContext, body: Mapping[str, Any]) -> bool:
    """Whether the default may be the limit of a stream: where it is low, kept to in a plain reply, and cheap."""
    request, default = context.request(body), context.contract.default("max_tokens")
    low = isinstance(default, int) and default <= 2 * TOKENS_LONG and not exceeds_default_limit(context)
    return low and request.include_usage and request.choices == 1


def _repeats_one_token(context: PlanContext, body: Mapping[str, Any]) -> bool:
    """Whether a forced token has room to repeat itself, and nothing else ends the text or gives it a format."""
    several = (context.request(body).max_tokens or 0) > 2
    free = not any(context.traits(name).ends_forced_text for name in body)
    return body.get("logit_bias") in (FORCED, FORCED_AMONG_MANY) and several and free


def _answered_rows(context: PlanContext, all_factors: Sequence[Factor]) -> list[Row]:
    """The rows that replies have shown; before rows are sent, those of requests that any budget has room for.

    Not those that were answered by then, so that the plan does not depend on which requests a budget left out.
    """
    if context.known.rows_sent:
        return _held(
            all_factors, [exchange.case.body for exchange in context.known.replies.values() if exchange.successful]
        )
    settings = (*GATE_SETTINGS[:2], RICH, {**RICH, **streaming(context)})
    rich = _held(all_factors, [context.body(sure_members(context, setting)) for setting in settings])
    return sorted({*_rows_of_single_values(context, all_factors), *rich})


def _rows_of_single_values(context: PlanContext, all_factors: Sequence[Factor]) -> list[Row]:
    """The rows of the requests that try values by themselves, for which any budget has room."""
    essential = [case_group for case_group in single_values(context) if case_group.rank <= Rank.ESSENTIAL]
    return _held(all_factors, [case.body for case_group in essential for case in case_group.cases])


def _held(all_factors: Sequence[Factor], bodies: Iterable[Any]) -> list[Row]:
    held = [row_of(all_factors, body) for body in bodies if isinstance(body, dict)]
    return sorted({tuple(level for level in row if level is not None) for row in held if None not in row})


def _longer(context: PlanContext, body: Mapping[str, Any], index: int) -> Iterator[CaseGroup]:
    """A row and the same with a higher limit: the shorter text must begin the longer one, and end at its limit."""
    limit = context.request(body).max_tokens
    if "prefix" in context.kinds and limit is not None and 0 < limit < 2 * TOKENS_LONG:
        bodies = (("short", body), ("long", {**body, "max_tokens": 2 * TOKENS_LONG}))
        cases = [context.case("row", members, part("prefix", f"row {index}", role)) for role, members in bodies]
        yield CaseGroup("rows", Rank.EXTRA, tuple(cases))


def _levels_without_text(all_factors: Sequence[Factor]) -> list[Banned]:
    """The levels at which nothing is generated, as combinations with one member."""
    return [
        ((index, number),)
        for index, factor in enumerate(all_factors)
        for number, level in enumerate(factor.levels)
        if factor.name == "max_tokens" and level.value == 0 and level.value is not ABSENT
    ]


def _rows_without_text(
    context: PlanContext, all_factors: Sequence[Factor], without_text: Sequence[Banned]
) -> Iterator[Row]:
    """Rows of all pairs with nothing generated."""
    for ((fixed, level),) in without_text:
        free = [index for index in range(len(all_factors)) if index != fixed]
        for short in rows(context, [all_factors[index] for index in free], 2):
            row = (*short[:fixed], level, *short[fixed:])
            if not context.barred(body_of(context, all_factors, row)):
                yield row


def _paired_rows(
    context: PlanContext, all_factors: Sequence[Factor], without_text: Sequence[Banned]
) -> Iterator[tuple[Row, Row]]:
    """Rows of all pairs at the base's temperature, each plain and streamed; two of three streams report usage."""
    names = [factor.name for factor in all_factors]
    if "channel" not in names or not context.greedy:
        return
    channel, fixed = names.index("channel"), {names.index(name) for name in ("channel", "temperature") if name in names}
    labels = [level.label for level in all_factors[channel].levels]
    streams = [labels.index(label) for label in ("stream", "stream-with-usage") if label in labels]
    if not streams:
        return
    free = [index for index in range(len(all_factors)) if index not in fixed]
    banned = [((free.index(index), level),) for ((index, level),) in without_text]
    for number, short in enumerate(rows(context, [all_factors[index] for index in free], 2, (), banned)):
        plain = [0] * len(all_factors)
        for index, level in zip(free, short, strict=True):
            plain[index] = level
        streamed = list(plain)
        streamed[channel] = streams[-1] if number % 3 else streams[0]
        if not any(context.barred(body_of(context, all_factors, tuple(row))) for row in (plain, streamed)):
            yield tuple(plain), tuple(streamed)


__all__ = ["DRAWN", "bodies_of_single_rows", "combination_rows", "with_drawn_values"]
