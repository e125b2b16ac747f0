"""A stream drawn over time: a tick for each event, gaps for pauses, and shapes for finish, usage and [DONE]."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from conformance.model.exchange import DONE, Exchange
from conformance.model.sse import Event

WIDTH, LEFT, RIGHT, AXIS = 720, 8, 8, 40


@dataclass(frozen=True, slots=True)
class Tick:
    """One event: the arrival time of its last byte, and its kind: text, finish, usage, done or other."""

    number: int
    at: float
    kind: str


def ticks(x: Exchange) -> tuple[Tick, ...]:
    """The events of a stream in order; empty where arrival times are unknown, as with a content coding."""
    if not x.streamed or (x.header("content-encoding") or "identity").strip().lower() not in {"", "identity"}:
        return ()
    values = {document.number: document.value for document in x.documents}
    return tuple(Tick(number, at, kind(event, values.get(number))) for number, (event, at) in enumerate(_arrivals(x)))


def _arrivals(x: Exchange) -> Iterator[tuple[Event, float]]:
    """Each event with its arrival time, in one pass over pieces and events."""
    pieces = iter(x.pieces)
    arrived, at = 0, 0.0
    for event in x.messages:
        while arrived < event.end:
            piece = next(pieces, None)
            if piece is None:
                break
            arrived, at = arrived + len(piece.data), piece.at
        yield event, at


def kind(event: Event, value: Any) -> str:
    """The kind of an event with this JSON value (None where it has none)."""
    if (event.payload or b"").strip() == DONE.encode():
        return "done"
    if not isinstance(value, Mapping):
        return "other"
    if isinstance(value.get("usage"), Mapping):
        return "usage"
    return _kind_of_choices(value)


def _kind_of_choices(value: Mapping[str, Any]) -> str:
    choices = value.get("choices")
    objects = [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []
    if any(choice.get("finish_reason") for choice in objects):
        return "finish"
    return "text" if objects else "other"


_SIGNS = {"finish": "○", "usage": "◆", "done": "⚑"}


def caption(ticks: Collection[Tick], elapsed: float) -> str:
    """The drawing in words, for readers who cannot see it."""
    moments = [tick.at for tick in ticks]
    if not moments:
        return ""
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    words = [f"{len(moments)} events", f"first after {_time(moments[0])}", f"last after {_time(moments[-1])}"]
    if pauses:
        words.append(f"longest pause {_time(max(pauses))}")
    words.append(f"closed after {_time(max(elapsed, moments[-1]))}")
    words += [f"{sign} {kind}" for kind, sign in _SIGNS.items() if any(tick.kind == kind for tick in ticks)]
    return ", ".join(words)


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def draw(ticks: Collection[Tick], elapsed: float, cited: Collection[int] = ()) -> Markup:
    """The drawing as inline SVG; `cited` has the numbers of the events that evidence points at."""
    if not ticks:
        return Markup()
    end = max(elapsed, max(tick.at for tick in ticks), 1e-6)
    positions = {tick.number: LEFT + (WIDTH - LEFT - RIGHT) * tick.at / end for tick in ticks}
    columns = sorted({round(positions[tick.number] / 2) * 2 for tick in ticks if tick.kind in {"text", "other"}})
    parts = [f'<path class="axis" d="M{LEFT} {AXIS}H{WIDTH - RIGHT}"/>']
    parts.append(f'<path class="text" d="{"".join(f"M{x} 20v20" for x in columns)}"/>')
    parts += [_mark(tick, positions[tick.number]) for tick in ticks if tick.kind in _SHAPES]
    parts += [_cite(tick, positions[tick.number]) for tick in ticks if tick.number in cited]
    parts += [_label(end * share, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    # hidden from screen readers, because the caption says the same
    drawn = f'<svg class="timeline" viewBox="0 0 {WIDTH} 60" aria-hidden="true">{"".join(parts)}</svg>'
    return Markup(drawn)  # noqa: S704 - numbers and fixed words only


_SHAPES: dict[str, str] = {
    "finish": "M{x} 14V40M{x} 10m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    "usage": "M{x} 14V40M{x} 5l5 5l-5 5l-5-5Z",
    "done": "M{x} 5V40M{x} 5h9v7h-9Z",
}


def _mark(tick: Tick, position: float) -> str:
    x = min(round(position, 1), WIDTH - 12.0) if tick.kind == "done" else round(position, 1)
    shape = _SHAPES[tick.kind].format(x=x)
    title = f"event {tick.number}: {tick.kind}, {_time(tick.at)}"
    return f'<path class="{tick.kind}" d="{shape}"><title>{title}</title></path>'


def _cite(tick: Tick, position: float) -> str:
    x = round(position, 1)
    title = f"evidence: event {tick.number}, {_time(tick.at)}"
    return f'<path class="cited" d="M{x} 42l4 7h-8Z"><title>{title}</title></path>'


def _label(at: float, share: float) -> str:
    x = LEFT + (WIDTH - LEFT - RIGHT) * share
    anchor = "start" if share == 0 else "end" if share == 1 else "middle"
    return f'<text x="{x:.0f}" y="58" text-anchor="{anchor}">{_time(at)}</text>'
