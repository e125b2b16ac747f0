"""The runs of a target as inline SVG: index and score as lines, broken requirements as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from markupsafe import Markup

WIDTH: Final = 900
LEFT: Final = 44
RIGHT: Final = 16
TOP: Final = 12
FLOOR: Final = 112
BASE: Final = 172
TALLEST: Final = 38
WORDS: Final = {"verified": "verified", "kept": "passed"}
CLOSEST: Final = 14.0
"""The least distance between the numbers over two bars, in pixels."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run. `settled` is False where it was incomplete: then its counts are lower bounds and its shares partial."""

    when: str
    verified: float | None
    kept: float | None
    musts: int
    shoulds: int
    settled: bool
    changed: str = ""


def draw(points: Sequence[Point]) -> Markup:
    """The drawing; the table beside it has every number of it."""
    places = _places(len(points))
    most = max((point.musts + point.shoulds for point in points), default=0)
    parts = [*_frame(points, places, most)]
    for x, point in zip(places, points, strict=True):
        parts += _bar(x, point, most, places)
        if point.changed:
            title = escape(f"{point.when}: {point.changed}")
            parts.append(f'<path class="cut" d="M{x:.1f} {TOP - 6}V{BASE}"><title>{title}</title></path>')
    for name in ("verified", "kept"):
        parts += _line(name, points, places)
    drawn = f'<svg class="trend" viewBox="0 0 {WIDTH} 192" aria-hidden="true">{"".join(parts)}</svg>'
    return Markup(drawn)  # noqa: S704 - numbers, fixed words, and dates that are escaped


def _places(number: int) -> list[float]:
    """The horizontal positions of the runs: in order, at equal distances whatever the time between them."""
    width = WIDTH - LEFT - RIGHT
    return [LEFT + width * (run + 0.5) / number for run in range(number)]


def _frame(points: Sequence[Point], places: Sequence[float], most: int) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = _height(share)
        yield f'<path class="axis" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{share:.0%}</text>'
    yield f'<path class="axis" d="M{LEFT} {BASE}H{WIDTH - RIGHT}"/>'
    yield f'<text x="{LEFT - 6}" y="{BASE - 2}" text-anchor="end">{"broken" if most else "none"}</text>'
    ends = {0, len(points) - 1} if places[-1] - places[0] > 70 else {len(points) - 1}
    for number in sorted(ends):
        day = escape(points[number].when[:10])
        yield f'<text x="{places[number]:.1f}" y="{BASE + 14}" text-anchor="middle">{day}</text>'


def _height(share: float) -> float:
    return FLOOR - (FLOOR - TOP) * share


def _line(name: str, points: Sequence[Point], places: Sequence[float]) -> Iterator[str]:
    """Solid between settled runs; dashed to and from incomplete ones, whose points are hollow."""
    shown = [
        (x, _height(share), point)
        for x, point in zip(places, points, strict=True)
        if (share := getattr(point, name)) is not None
    ]
    for (x, y, point), (to_x, to_y, following) in pairwise(shown):
        sure = "" if point.settled and following.settled else " unsure"
        yield f'<path class="{name}{sure}" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'
    for x, y, point in shown:
        sure, note = ("", "") if point.settled else (" unsure", ", incomplete run")
        title = escape(f"{point.when}: {getattr(point, name):.1%} {WORDS[name]}{note}")
        yield f'<circle class="{name}{sure}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{title}</title></circle>'


def _bar(x: float, point: Point, most: int, places: Sequence[float]) -> Iterator[str]:
    step = places[1] - places[0] if len(places) > 1 else 60.0
    wide, y = min(step * 0.6, 18.0), float(BASE)
    sure, least = ("", "") if point.settled else (" unsure", "at least ")
    for name, number in (("musts", point.musts), ("shoulds", point.shoulds)):
        if number:
            tall = max(TALLEST * number / most, 2.0)
            y -= tall
            title = escape(f"{point.when}: {least}{number} {name[:-1].upper()} broken")
            box = f'x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            yield f'<rect class="{name}{sure}" {box}><title>{title}</title></rect>'
    if point.musts + point.shoulds and step > CLOSEST:
        plus = "" if point.settled else "+"
        number = point.musts + point.shoulds
        yield f'<text x="{x:.1f}" y="{y - 3:.1f}" text-anchor="middle">{number}{plus}</text>'
