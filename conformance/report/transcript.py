"""An exchange for a reader: commands that repeat it, the bytes of the response with evidence marked, the rest folded.

All bytes are in the recording; a report shows what evidence points at, with its surroundings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from conformance.model.exchange import Exchange
from conformance.report import timeline
from conformance.report.json_layout import laid_out
from conformance.report.replay_commands import Destination, curl, is_long, python
from conformance.report.source_map import event_of, pointer_of, span
from conformance.report.text import decoded, visible

AROUND: Final = 160
"""Characters shown on either side of a mark in a long text."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text: plain, `mark` where evidence points, `fold` where something was left out."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """One event, a whole plain body, or a fold in place of several events (`number` is None there)."""

    number: int | None
    at: str
    segments: tuple[Segment, ...]
    cited: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """One exchange, ready to be shown."""

    case: str
    anchor: str
    origin: str
    note: str
    request: str
    status: str
    attempts: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    curl: str
    python: str
    body: tuple[Segment, ...]
    drawing: Markup
    caption: str
    passages: tuple[Passage, ...]


def transcript(x: Exchange, to: Destination, cited_places: Collection[str], anchor: str, limit: int) -> Transcript:
    """The exchange with the evidence at `cited_places` marked, in about `limit` characters of response."""
    case, ticks = x.case, timeline.ticks(x)
    cited = {number for at in cited_places if (number := event_of(at)) is not None}
    elapsed = x.last.elapsed
    times_of_events = {tick.number: f"{tick.at * 1000:.0f} ms" for tick in ticks}
    return Transcript(
        case=case.id,
        anchor=anchor,
        origin=case.origin,
        note=case.note,
        request=f"{case.method} {to.url(case)}",
        status=_status(x),
        attempts=tuple(_attempt(x)) if len(x.attempts) > 1 else (),
        headers=tuple((name, value) for name, value in x.headers),
        curl=curl(case, to),
        python=python(case, to),
        body=excerpt(decoded(case.content), (), 600) if is_long(case) else (),
        drawing=timeline.draw(ticks, elapsed, cited),
        caption=timeline.caption(ticks, elapsed),
        passages=tuple(
            _events(x, cited_places, cited, times_of_events, limit) if x.streamed else _body(x, cited_places, limit)
        ),
    )


def _status(x: Exchange) -> str:
    if x.status is None:
        return visible(f"no response: {x.last.error or x.ending.value}")
    ended = "" if x.ending.value == "complete" else f", {x.ending.value.replace('_', ' ')}"
    return f"HTTP {x.status} in {x.last.elapsed * 1000:.0f} ms{ended}, {len(x.content):,} bytes"


def _attempt(x: Exchange) -> Iterator[str]:
    for number, attempt in enumerate(x.attempts, 1):
        answer = f"HTTP {attempt.status}" if attempt.status is not None else visible(attempt.error)
        yield f"attempt {number}: {answer} after {attempt.elapsed * 1000:.0f} ms"


def _body(x: Exchange, cited_places: Iterable[str], limit: int) -> Iterator[Passage]:
    text = x.content.decode("utf-8", "backslashreplace")
    if not any(at.startswith("byte ") for at in cited_places):  # evidence on bytes is seen in them alone
        text = laid_out(text)
    spans = [located for at in cited_places if (pointer := pointer_of(at)) and (located := span(text, pointer))]
    if text:
        yield Passage(0, "", excerpt(text, spans, limit))


def _events(
    x: Exchange, cited_places: Collection[str], cited: Collection[int], times_of_events: dict[int, str], limit: int
) -> Iterator[Passage]:
    """All events if they fit, else both ends and the surroundings of cited events, with folds in between."""
    numbers = _numbered(x)
    chosen = _choose([len(event.raw) for event in x.events], numbers, cited, limit)
    left_out: list[int] = []
    for position, event in enumerate(x.events):
        if position not in chosen:
            left_out.append(len(event.raw))
            continue
        if left_out:
            yield _folded(left_out)
            left_out = []
        number = numbers[position]
        text = event.raw.decode("utf-8", "backslashreplace")
        begin = text.find("{")
        if begin >= 0 and any(number == event_of(at) and pointer_of(at) for at in cited_places if number is not None):
            text = text[:begin] + laid_out(text[begin:])
        located = (
            span(text[begin:], pointer)
            for at in cited_places
            if number is not None and event_of(at) == number and begin >= 0 and (pointer := pointer_of(at))
        )
        spans = [(begin + start, begin + end) for start, end in filter(None, located)]
        at = times_of_events.get(number, "") if number is not None else ""
        yield Passage(number, at, excerpt(text.rstrip("\n"), spans, max(limit // 4, 400)), number in cited)
    if left_out:
        yield _folded(left_out)


def _numbered(x: Exchange) -> list[int | None]:
    """The number of each event among those with data, which is how evidence numbers events."""
    numbers: list[int | None] = []
    count = 0
    for event in x.events:
        numbers.append(None if event.payload is None else count)
        count += event.payload is not None
    return numbers


def _choose(sizes: Sequence[int], numbers: Sequence[int | None], cited: Collection[int], limit: int) -> set[int]:
    """The events to show: cited ones, their neighbours, both ends, then as many from the start as there is room for."""
    positions = range(len(sizes))
    if sum(sizes) <= limit:
        return set(positions)
    cited_at = sorted(position for position in positions if numbers[position] in cited)
    neighbours = sorted({position + step for position in cited_at for step in (-1, 1)})
    preferred = (*cited_at[:20], *neighbours[:40], 0, 1, *positions[-3:])
    chosen = {position for position in preferred if position in positions}
    room = limit - sum(sizes[position] for position in chosen)
    for position in positions:
        room -= 0 if position in chosen else sizes[position]
        if room < 0:
            break
        chosen.add(position)
    return chosen


def _folded(sizes: Sequence[int]) -> Passage:
    text = f"{len(sizes):,} more event{'s' * (len(sizes) > 1)}, {sum(sizes):,} bytes"
    return Passage(None, "", (Segment(text, "fold"),))


def excerpt(text: str, spans: Iterable[tuple[int, int]], limit: int) -> tuple[Segment, ...]:
    """The text with the spans marked; if longer than `limit`, only its ends and the surroundings of the spans."""
    marks = _merged(spans)
    keep = [(0, len(text))]
    if len(text) > limit:
        around = [(max(start - AROUND, 0), min(end, start + limit) + AROUND) for start, end in marks]
        keep = _merged([(0, limit // 2), *around, (len(text) - limit // 4, len(text))])
    return tuple(_segments(text, keep, marks))


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _segments(text: str, keep: Sequence[tuple[int, int]], marks: Sequence[tuple[int, int]]) -> Iterator[Segment]:
    reached = 0
    for start, end in keep:
        if start > reached:
            yield Segment(f"{start - reached:,} more characters", "fold")
        cuts = sorted({start, end, *(cut for mark in marks for cut in mark if start < cut < end)})
        for left, right in pairwise(cuts):
            inside = any(first <= left and right <= last for first, last in marks)
            yield Segment(visible(text[left:right], lines=True), "mark" if inside else "")
        reached = end
