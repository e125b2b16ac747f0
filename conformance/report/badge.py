"""badge.json in the format of a shields.io endpoint, and badge.svg, drawn here without any service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any, Final

from conformance.report.tally import broken, embedded, plural, seen_in_recordings
from conformance.report.text import visible
from conformance.report.verdict_words import HEADLINES, INVALID_WAIVERS

LABEL: Final = "conformance"
MOST_LETTERS: Final = 40
# shields.io's name of the colour, and a colour of our own that has enough contrast with white
COLOURS: Final = {
    "conformant": ("brightgreen", "#2c7a4b"),
    "broken": ("red", "#b3261e"),
    "incomplete": ("yellow", "#8a5a00"),
    "suite_fault": ("purple", "#7a3fa0"),
}
_NARROW: Final = frozenset(" .,:;'|!()[]ijlrtfI/")


def label_and_message(results: Mapping[str, Any]) -> tuple[str, str]:
    """The two texts of the badge; the message says what is broken, or else how much was verified."""
    index, name = results["index"], visible(results["target"]["name"])
    short = name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"
    verified = f"{index['verified']} of {plural(index['of'], 'MUST')} verified"
    word = HEADLINES[results["verdict"]].lower()
    return f"{short} {LABEL}{', embedded reference' if embedded(results) else ''}", {
        "conformant": f"nothing broken, {seen_in_recordings(results)}" if results.get("recorded") else verified,
        "broken": _broken(results),
        "incomplete": f"{word}, {verified}",
        "suite_fault": word,
    }[results["verdict"]]


def _broken(results: Mapping[str, Any]) -> str:
    rows = [row for row in results["requirements"] if broken(row) and not row.get("waiver")]
    if not rows:
        return INVALID_WAIVERS.lower()
    level = "MUST" if any(row["level"] == "MUST" for row in rows) else "SHOULD"
    return f"{plural(sum(row['level'] == level for row in rows), level)} broken"


def endpoint(results: Mapping[str, Any]) -> str:
    """badge.json: schema version 1 of https://shields.io/badges/endpoint-badge."""
    label, message = label_and_message(results)
    badge = {"schemaVersion": 1, "label": label, "message": message, "color": COLOURS[results["verdict"]][0]}
    return json.dumps(badge | ({"isError": True} if results["verdict"] == "suite_fault" else {})) + "\n"


def drawing(results: Mapping[str, Any]) -> str:
    """badge.svg: two fields side by side, readable by screen readers and without a web font."""
    return plaque(*label_and_message(results), COLOURS[results["verdict"]][1])


def plaque(label: str, message: str, colour: str) -> str:
    """An SVG of two fields with a text in each."""
    left, right = _width(label), _width(message)
    width, title = left + right, escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" viewBox="0 0 {width} 20"'
        f' role="img" aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><path fill="#40464f" d="M0 0h{left}v20H0z"/>'
        f'<path fill="{colour}" d="M{left} 0h{right}v20H{left}z"/></g>'
        f'<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(label, left / 2, left)}{_text(message, left + right / 2, right)}</g></svg>\n"
    )


def _text(text: str, middle: float, width: int) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{width - 12}">{escape(text)}</text>'


def _width(text: str) -> int:
    """The approximate width in Verdana at 11 pixels; `textLength` corrects the rest."""
    return 12 + round(sum(4.2 if char in _NARROW else 8.2 if char.isupper() else 7 for char in text))
