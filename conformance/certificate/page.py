"""The certificate for people: a printable page and a badge. Only certificate.json is signed."""

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
from conformance.report.page import environment, mutation_text
from conformance.report.tally import plural
from conformance.report.text import visible

MOST_NAMES: Final = 12
PAGE: Final = "certificate.html"
MADE: Final = (PAGE, "badge.svg", "badge.json")
"""The files beside a certificate."""
COLOURS: Final = {FULL: "conformant", "partial": "incomplete", NONE: "broken"}


def drawn(statement: Mapping[str, Any], certificate_id: str) -> dict[str, bytes]:
    """Page and badges by file name."""
    label, message, colour = _badge(statement)
    shield = {"schemaVersion": 1, "label": label, "message": message, "color": badge.COLOURS[colour][0]}
    contents = (
        render(statement, certificate_id),
        badge.plaque(label, message, badge.COLOURS[colour][1]),
        json.dumps(shield) + "\n",
    )
    return {name: content.encode("utf-8") for name, content in zip(MADE, contents, strict=True)}


def _badge(statement: Mapping[str, Any]) -> tuple[str, str, str]:
    """Label, message and colour."""
    ours = statement["predicate"][OURS]
    index, score = ours["index"], ours["score"]
    message = f"{ours['level']}, {score['passed']} of {plural(index['of'], 'MUST')}, until {ours['expires_on']}"
    name = visible(ours["target"]["name"])
    short = name if len(name) <= badge.MOST_LETTERS else f"{name[: badge.MOST_LETTERS - 1]}…"
    return f"{short} conformance{_kind(ours)}", message, COLOURS[ours["level"]]


def _kind(ours: Mapping[str, Any]) -> str:
    """What was judged where it was no target: nobody may read it as a certificate of the provider."""
    return f", {ours['target']['kind']}" if "kind" in ours["target"] else ""


def render(statement: Mapping[str, Any], certificate_id: str) -> str:
    """The page: one file without scripts that loads nothing."""
    predicate = statement["predicate"]
    ours = predicate[OURS]
    about = {area["name"]: area["about"] for area in areas()}
    template = environment().from_string(_text("certificate.jinja2"))
    return template.render(
        style=Markup(files("conformance.report").joinpath("templates", "style.css").read_text("utf-8")),  # noqa: S704
        own=Markup(_text("certificate.css")),  # noqa: S704 - our own file
        title=f"Certificate: {ours['target']['name']}{_kind(ours)}",
        predicate=predicate,
        ours=ours,
        id=certificate_id,
        headline=_headline(predicate),
        kind=ours["target"].get("kind", ""),
        areas=[(name, about[name], ours["areas"][name]) for name in names() if name in ours["areas"]],
        seed="derived from the nonce" if ours["plan"]["seed"] == seed_of(ours["plan"]["nonce"]) else "chosen freely",
        assurance=ASSURANCE[ours["assurance"]],
        most=MOST_NAMES,
        mutation_text=mutation_text,
    )


def _headline(predicate: Mapping[str, Any]) -> str:
    ours = predicate[OURS]
    if ours["level"] == NONE:
        return "No MUST was verified to hold."
    if predicate["result"] == FAILED:
        lacking = [name for name in names() if ours["areas"][name]["lacking"]]
        return f"Conforms in part: something is lacking in {', '.join(lacking)}."
    claims = f" Claimed: {', '.join(ours['claims'])}." if ours["claims"] else ""
    warned = " Some SHOULDs are broken." if predicate["result"] == WARNED else ""
    return f"Every MUST that applies was verified and holds.{warned}{claims}"


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
