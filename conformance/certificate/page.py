"""The certificate for people: a page that can be printed, and a badge. Both are drawings; what counts is signed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup

from conformance.certificate.levels import FULL, NONE, areas, names
from conformance.certificate.statement import FAILED, OURS, WARNED
from conformance.certificate.trust import ASSURANCE
from conformance.recording.plan_lock import seed_of
from conformance.report import badge
from conformance.report.page import environment
from conformance.report.tally import plural
from conformance.report.text import visible

MOST_NAMES: Final = 12
PAGE: Final = "certificate.html"
COLOURS: Final = {FULL: "conformant", "partial": "incomplete", NONE: "broken"}


def drawn(told: Mapping[str, Any], id: str) -> dict[str, bytes]:  # noqa: A002
    """Page and badges by the name of their file."""
    label, message, colour = _said(told)
    shield = {"schemaVersion": 1, "label": label, "message": message, "color": badge.COLOURS[colour][0]}
    return {
        PAGE: render(told, id).encode("utf-8"),
        "badge.svg": badge.plaque(label, message, badge.COLOURS[colour][1]).encode("utf-8"),
        "badge.json": (json.dumps(shield) + "\n").encode("utf-8"),
    }


def _said(told: Mapping[str, Any]) -> tuple[str, str, str]:
    ours = told["predicate"][OURS]
    index, score = ours["index"], ours["score"]
    message = f"{ours['level']}, {score['passed']} of {plural(index['of'], 'MUST')}, until {ours['expires_on']}"
    name = visible(ours["target"]["name"])
    short = name if len(name) <= badge.MOST_LETTERS else f"{name[: badge.MOST_LETTERS - 1]}…"
    return f"{short} conformance", message, COLOURS[ours["level"]]


def render(told: Mapping[str, Any], id: str) -> str:  # noqa: A002
    """The page: one file, no script, nothing loaded from anywhere."""
    predicate = told["predicate"]
    ours = predicate[OURS]
    about = {one["name"]: one["about"] for one in areas()}
    template = environment().from_string(_text("certificate.jinja2"))
    return template.render(
        style=Markup(files("conformance.report").joinpath("templates", "style.css").read_text("utf-8")),  # noqa: S704
        own=Markup(_text("certificate.css")),  # noqa: S704 - our own file
        title=f"Certificate: {ours['target']['name']}",
        predicate=predicate,
        ours=ours,
        id=id,
        headline=_headline(predicate),
        areas=[(name, about[name], ours["areas"][name]) for name in names() if name in ours["areas"]],
        seed="follows from the nonce" if ours["plan"]["seed"] == seed_of(ours["plan"]["nonce"]) else "chosen by hand",
        assurance=ASSURANCE[ours["assurance"]],
        most=MOST_NAMES,
    )


def _headline(predicate: Mapping[str, Any]) -> str:
    ours = predicate[OURS]
    if ours["level"] == NONE:
        return "No MUST was seen to hold."
    if predicate["result"] == FAILED:
        lacking = [name for name in names() if ours["areas"][name]["lacking"]]
        return f"Conforms in part: {', '.join(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} something."
    claims = f" Claimed: {', '.join(ours['claims'])}." if ours["claims"] else ""
    warned = " SHOULDs are not all met." if predicate["result"] == WARNED else ""
    return f"Every MUST that applies was verified and holds.{warned}{claims}"


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
