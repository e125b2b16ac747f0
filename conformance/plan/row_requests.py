"""Rows of covering arrays as requests: every pair of values in `gate`, every triple in `full`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.model import RequestCase
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup
from conformance.plan.context import TOKENS_LONG, PlanContext, part, rename
from conformance.plan.covering_rows import Banned, Row, body_of, row_of, rows
from conformance.plan.factors import ABSENT, Factor, factors
from conformance.plan.single_values import accepts, single_values

DRAWN: Final = "with drawn values"
FORCED: Final = {"100": 100}


def combination_rows(context: PlanContext, drawn: Iterable[Mapping[str, Any]] = ()) -> Iterator[CaseGroup]:
    """Requests in which every allowed pair or triple of values occurs, less those that earlier replies have shown.

    Rows that no other request is compared with carry drawn values where a dimension leaves the value free.
    """
    found = factors(context)
    if not context.full:
        yield from _gate(context, found, rows(context, found, 2, _shown(context, found)))
        return
    twins, single = _rows(context, found)
    for place, (plain, streamed) in enumerate(twins):
        pair = ((plain, "plain"), (streamed, "stream"))
        cases = [case for row, role in pair for case in _row(context, found, row, (f"row {place}", role))]
        yield CaseGroup("rows", 3, tuple(cases))
        yield from _longer(context, found, plain, place)
    patches = [body for body in drawn if "model" not in body]
    for place, row in enumerate(single):
        cases = list(_row(context, found, row, patch=patches[place % len(patches)] if patches else {}))
        yield CaseGroup("rows", 3, tuple(cases))
        if "seed" in context.kinds and _draws(context, cases[0].body, seeded=True):
            twice = [rename(cases[0], cases[0].id, [part("seed", f"row {place}", one)]) for one in ("first", "second")]
            yield CaseGroup("rows", 6, tuple(twice), (0, 1))


def _rows(context: PlanContext, found: Sequence[Factor]) -> tuple[list[tuple[Row, Row]], list[Row]]:
    """Twins, and the single rows that make all triples with them.

    Pairs of everything but the channel go on both channels: each triple with the channel is met twice over, as twins.
    What shows in text alone must meet where there is text: rows without any are rows of their own.
    """
    mute = _mute(found)
    twins = list(_twins(context, found, mute))
    begun = [row for pair in twins for row in pair]
    begun += rows(context, found, 3, begun, mute)
    begun += _silent(context, found, mute)
    begun += rows(context, found, 3, begun) if mute else []
    return twins, begun[2 * len(twins) :]


def bodies_of_single_rows(context: PlanContext) -> list[dict[str, Any]]:
    """The bodies of the rows that may carry drawn values."""
    found = factors(context)
    return [body_of(context, found, row) for row in _rows(context, found)[1]]


def with_drawn_values(body: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A body with drawn values in place of its own where any of that shape do as well."""
    worn = {name: value for name, value in patch.items() if name != "prompt" and body.get(name) is not None}
    text, own = patch.get("prompt"), body.get("prompt")
    if isinstance(text, str) and isinstance(own, str):
        if own.isascii() and not text.isascii():
            text = own
        worn["prompt"] = text if own.isascii() or not text.isascii() else f"{text} {own}"
    elif isinstance(text, str) and isinstance(own, list) and isinstance(own[0], str):
        worn["prompt"] = [text, *own[1:]]
    return {**body, **worn}


def _gate(context: PlanContext, found: Sequence[Factor], wanted: Sequence[Row]) -> Iterator[CaseGroup]:
    """Rows of pairs. One that draws and one that draws from a seed go out twice: the copy shows what they are for."""
    cases = [case for row in wanted for case in _row(context, found, row)]
    yield from (CaseGroup("rows", 0, (case,)) for case in cases)
    for kind, roles in (("seed", ("first", "second")), ("vary", ("draw", "draw"))):
        able = [case for case in cases if kind in context.kinds and _draws(context, case.body, kind == "seed")]
        if able:
            # of draws, log probabilities tell whether chance had room
            case = next((one for one in able if one.body.get("logprobs")), able[0])
            if kind == "vary" and context.has("logprobs") and not case.body.get("logprobs"):
                case = context.case("row", {**case.body, "logprobs": 1})
            yield CaseGroup("rows", 2, tuple(rename(case, case.id, [part(kind, "row", one)]) for one in roles), (0, 1))


def _draws(context: PlanContext, body: Mapping[str, Any], seeded: bool) -> bool:
    """Whether the texts of a request are drawn at random, from a seed or from none, and long enough to tell apart."""
    request = context.request(body)
    free = (
        request.number("temperature", 1) >= 1 and request.number("top_p", 1) == 1 and request.integer("top_k", 99) != 1
    )
    several = (request.max_tokens or 0) > 2
    return free and several and seeded == ("seed" in body) and not {"logit_bias", "response_format"} & body.keys()


def _row(
    context: PlanContext,
    found: Sequence[Factor],
    row: Row,
    twin: tuple[str, str] | None = None,
    patch: Mapping[str, Any] | None = None,
) -> Iterator[RequestCase]:
    groups = [part("twin", *twin)] if twin else []
    if not context.full:
        # accepted, a row speaks for each of its values; refused, for none
        levels = [one.levels[level] for one, level in zip(found, row, strict=True) if level]
        groups += [membership for one in levels for membership in accepts(context, one, "joint")]
    plain = body_of(context, found, row)
    body = with_drawn_values(plain, patch or {})
    if "force" in context.kinds and _repeats_one_token(context, body):
        groups.append(part("force", f"100 {dumps(row)}", "with"))
    keeps_format = not any(context.traits(name).breaks_format for name in body)
    if "json" in context.kinds and "response_format" in body and keeps_format:
        groups.append(part("json", f"row {dumps(row)}", "probe"))
    yield context.case("row", body, *groups, note=DRAWN if body != plain else "")


def _repeats_one_token(context: PlanContext, body: Mapping[str, Any]) -> bool:
    """Whether a forced token has room to repeat itself, and nothing else shapes the text."""
    several = (context.request(body).max_tokens or 0) > 2
    free = not any(context.traits(name).ends_forced_text for name in body)
    return body.get("logit_bias") == FORCED and several and free


def _shown(context: PlanContext, found: Sequence[Factor]) -> list[Row]:
    """Rows that were answered; before any were sent, those that wave 0 surely holds, so that a plan stays the same."""
    if context.known.rows_sent:
        bodies = [x.case.body for x in context.known.replies.values() if x.successful]
    else:
        bodies = [case.body for bundle in single_values(context) for case in bundle.cases if bundle.rank <= 1]
    held = [row_of(found, body) for body in bodies if isinstance(body, dict)]
    return sorted({tuple(level for level in row if level is not None) for row in held if None not in row})


def _longer(context: PlanContext, found: Sequence[Factor], row: Row, place: int) -> Iterator[CaseGroup]:
    """A row and the same with a higher limit: what comes first must be the same, and end as a text that was cut."""
    body = body_of(context, found, row)
    limit = context.request(body).max_tokens
    if "prefix" in context.kinds and limit is not None and 0 < limit < 2 * TOKENS_LONG:
        both = (("short", body), ("long", {**body, "max_tokens": 2 * TOKENS_LONG}))
        cases = [context.case("row", one, part("prefix", f"row {place}", role)) for role, one in both]
        yield CaseGroup("rows", 6, tuple(cases))


def _mute(found: Sequence[Factor]) -> list[Banned]:
    """The levels at which nothing is generated."""
    return [
        ((place, level),)
        for place, one in enumerate(found)
        for level, told in enumerate(one.levels)
        if one.name == "max_tokens" and told.value == 0 and told.value is not ABSENT
    ]


def _silent(context: PlanContext, found: Sequence[Factor], mute: Sequence[Banned]) -> Iterator[Row]:
    """Rows of all pairs with nothing generated."""
    for ((fixed, level),) in mute:
        free = [place for place in range(len(found)) if place != fixed]
        for short in rows(context, [found[place] for place in free], 2):
            row = (*short[:fixed], level, *short[fixed:])
            if not context.barred(body_of(context, found, row)):
                yield row


def _twins(context: PlanContext, found: Sequence[Factor], mute: Sequence[Banned]) -> Iterator[tuple[Row, Row]]:
    """Rows of all pairs at the base's temperature, each plain and with a stream that reports usage."""
    names = [one.name for one in found]
    if "channel" not in names or not context.greedy:
        return
    channel, fixed = names.index("channel"), {names.index(name) for name in ("channel", "temperature") if name in names}
    labels = [one.label for one in found[channel].levels]
    streams = [labels.index(label) for label in ("stream", "stream-with-usage") if label in labels]
    if not streams:
        return
    free = [place for place in range(len(found)) if place not in fixed]
    silent = [((free.index(place), level),) for ((place, level),) in mute]
    for number, short in enumerate(rows(context, [found[place] for place in free], 2, (), silent)):
        whole = [0] * len(found)
        for place, level in zip(free, short, strict=True):
            whole[place] = level
        streamed = list(whole)
        streamed[channel] = streams[-1] if number % 3 else streams[0]
        if not any(context.barred(body_of(context, found, tuple(row))) for row in (whole, streamed)):
            yield tuple(whole), tuple(streamed)


__all__ = ["DRAWN", "bodies_of_single_rows", "combination_rows", "with_drawn_values"]
