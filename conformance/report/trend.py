"""The runs of a target as inline SVG: a bar for what each run broke, and a gap for each run without an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from markupsafe import Markup

WIDTH: Final = 900
LEFT: Final = 44
RIGHT: Final = 16
TOP: Final = 22
BASE: Final = 152
LEAST_SCALE: Final = 4
"""What the axis counts to at least, so that one broken requirement is a bar and not the whole drawing."""
CLOSEST: Final = 14.0
"""The least distance between the numbers over two bars, in pixels."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run: how many MUSTs and SHOULDs are broken.

    `settled` is False where it was incomplete: then the counts are lower bounds. `gap` says why nothing was judged.
    """

    when: str
    musts: int
    shoulds: int
    settled: bool
    changed: str = ""
    gap: str = ""


def draw(points: Sequence[Point]) -> Markup:
    """The drawing; the table beside it has every number of it."""
    centres = _places(len(points))
    scale = _scale(points)
    parts = [*_frame(points, centres, scale)]
    for x, point in zip(centres, points, strict=True):
        parts += _gap(x, point, centres) if point.gap else _bar(x, point, scale, centres)
        if point.changed:
            title = escape(f"{point.when}: {point.changed}")
            parts.append(f'<path class="cut" d="M{x:.1f} {TOP - 12}V{BASE}"><title>{title}</title></path>')
    drawn = f'<svg class="trend" viewBox="0 0 {WIDTH} 172" aria-hidden="true">{"".join(parts)}</svg>'
    return Markup(drawn)  # noqa: S704 - numbers, fixed words, and dates that are escaped


def _places(number: int) -> list[float]:
    """The horizontal positions of the runs: in order, at equal distances whatever the time between them."""
    width = WIDTH - LEFT - RIGHT
    return [LEFT + width * (run + 0.5) / number for run in range(number)]


def _scale(points: Sequence[Point]) -> int:
    """What the axis counts to: a multiple of four, for its four lines."""
    highest = max((point.musts + point.shoulds for point in points), default=0)
    return max(-(-highest // 4) * 4, LEAST_SCALE)


def _frame(points: Sequence[Point], centres: Sequence[float], scale: int) -> Iterator[str]:
    for number in range(0, scale + 1, scale // 4):
        y = _height(number, scale)
        yield f'<path class="axis" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{number}</text>'
    ends = {0, len(points) - 1} if centres[-1] - centres[0] > 70 else {len(points) - 1}
    for number in sorted(ends):
        day = escape(points[number].when[:10])
        yield f'<text x="{centres[number]:.1f}" y="{BASE + 14}" text-anchor="middle">{day}</text>'


def _height(number: int, scale: int) -> float:
    return BASE - (BASE - TOP) * number / scale


def _step(centres: Sequence[float]) -> float:
    return centres[1] - centres[0] if len(centres) > 1 else 60.0


def _gap(x: float, point: Point, centres: Sequence[float]) -> Iterator[str]:
    """A run without an answer: an empty frame as high as the drawing, with the reason."""
    wide = min(_step(centres) * 0.6, 18.0)
    title = escape(f"{point.when}: not judged, {point.gap}")
    box = f'x="{x - wide / 2:.1f}" y="{TOP}" width="{wide:.1f}" height="{BASE - TOP}"'
    yield f'<rect class="gap" {box}><title>{title}</title></rect>'
    if _step(centres) > CLOSEST:
        yield f'<text x="{x:.1f}" y="{TOP - 4}" text-anchor="middle">–</text>'


def _bar(x: float, point: Point, scale: int, centres: Sequence[float]) -> Iterator[str]:
    """What a run broke, MUSTs below SHOULDs, with the sum above; a dot where nothing is broken."""
    wide, y = min(_step(centres) * 0.6, 18.0), float(BASE)
    sure, least = ("", "") if point.settled else (" unsure", "at least ")
    for name, number in (("musts", point.musts), ("shoulds", point.shoulds)):
        if number:
            tall = _height(0, scale) - _height(number, scale)
            y -= tall
            title = escape(f"{point.when}: {least}{number} {name[:-1].upper()} broken")
            box = f'x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            yield f'<rect class="{name}{sure}" {box}><title>{title}</title></rect>'
    total = point.musts + point.shoulds
    if not total:
        title = escape(f"{point.when}: nothing seen broken{'' if point.settled else ', incomplete run'}")
        yield f'<circle class="none{sure}" cx="{x:.1f}" cy="{BASE}" r="3"><title>{title}</title></circle>'
    elif _step(centres) > CLOSEST:
        yield f'<text x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle">{total}{"" if point.settled else "+"}</text>'
