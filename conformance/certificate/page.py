"""The certificate for people: a printable page and a badge. Only certificate.json is signed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup

from conformance.certificate.levels import FULL, NONE, areas, names
from conformance.certificate.statement import CERTIFIED, FAILED, WARNED
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
    certified = statement["predicate"][CERTIFIED]
    index, score = certified["index"], certified["score"]
    message = (
        f"{certified['level']}, {score['passed']} of {plural(index['of'], 'MUST')}, until {certified['expires_on']}"
    )
    name = visible(certified["target"]["name"])
    short = name if len(name) <= badge.MOST_LETTERS else f"{name[: badge.MOST_LETTERS - 1]}…"
    return f"{short} conformance{_kind(certified)}", message, COLOURS[certified["level"]]


def _kind(certified: Mapping[str, Any]) -> str:
    """The kind of what was judged if it was no target, so that nobody takes it for a certificate of the provider."""
    return f", {certified['target']['kind']}" if "kind" in certified["target"] else ""


def render(statement: Mapping[str, Any], certificate_id: str) -> str:
    """The page: one file without scripts that loads nothing."""
    predicate = statement["predicate"]
    certified = predicate[CERTIFIED]
    about = {area["name"]: area["about"] for area in areas()}
    template = environment().from_string(_text("certificate.jinja2"))
    return template.render(
        style=Markup(files("conformance.report").joinpath("templates", "style.css").read_text("utf-8")),  # noqa: S704
        own=Markup(_text("certificate.css")),  # noqa: S704 - our own file
        title=f"Certificate: {certified['target']['name']}{_kind(certified)}",
        predicate=predicate,
        certified=certified,
        id=certificate_id,
        headline=_headline(predicate),
        kind=certified["target"].get("kind", ""),
        areas=[(name, about[name], certified["areas"][name]) for name in names() if name in certified["areas"]],
        seed=_seed(certified["plan"]),
        assurance=ASSURANCE[certified["assurance"]],
        most=MOST_NAMES,
        mutation_text=mutation_text,
    )


def _seed(plan: Mapping[str, Any]) -> str:
    return "derived from the nonce" if plan["seed"] == seed_of(plan["nonce"]) else "chosen freely"


def _headline(predicate: Mapping[str, Any]) -> str:
    certified = predicate[CERTIFIED]
    if certified["level"] == NONE:
        return "No MUST was verified to hold."
    if predicate["result"] == FAILED:
        lacking = [name for name in names() if certified["areas"][name]["lacking"]]
        return f"Conforms in part: something is lacking in {', '.join(lacking)}."
    claims = f" Claimed: {', '.join(certified['claims'])}." if certified["claims"] else ""
    warned = " Some SHOULDs are broken." if predicate["result"] == WARNED else ""
    return f"Every MUST that applies was verified and holds.{warned}{claims}"


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
