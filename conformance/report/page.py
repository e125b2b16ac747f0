"""results.json and recorded exchanges → report.html: one file that loads nothing and escapes every target text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.model.exchange import Exchange
from conformance.report import causes, drawn, findings, run_facts
from conformance.report.evidence import CitedTraffic, citations, with_counterparts
from conformance.report.replay_commands import Destination, again
from conformance.report.source_map import event_of
from conformance.report.tally import (
    Row,
    broken,
    by_area,
    count,
    headline,
    plural,
    scored,
    seen_in_recordings,
    unjudged,
    urgency,
    waived,
    waiver_text,
)
from conformance.report.text import visible
from conformance.report.transcript import Segment, Transcript, transcript
from conformance.report.verdict_words import AREAS, MEANINGS, ORIGINS, word

MOST_EXCHANGES: Final = 150
MOST_LISTED: Final = 7
MOST_IN_CAUSE: Final = 40
"""Requirements listed beneath one cause; the others are in the table below."""
MOST_REASONS: Final = 20
MOST_CHARACTERS: Final = 140_000
"""Characters of responses in one report, shared by the exchanges that it shows."""

COLUMNS: Final = (
    ("o", "Verdict"), ("a", "Area"), ("id", "Requirement"), ("l", "Level"), ("y", "Layer"), ("p", "Promise"),
    ("n", "Examined"), ("s", "Source"),
)  # fmt: skip


@cache
def environment() -> Environment:
    """The templates, with escaping always on, and their filters."""
    env = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    env.filters |= {
        "lines": lambda text: Markup(_content(visible(text, lines=True))),  # noqa: S704
        "prose": prose,
        "short": _short,
        "dotted": lambda id: Markup(_content(visible(id)).replace(".", ".<wbr>")),  # noqa: S704, A006 - escaped
        "split": findings.split,
        "waiver": waiver_text,
        "again": again,
        "examined": findings.examined,
        "event_of": event_of,
        "message": findings.message,
        "evidence_first": findings.evidence_first,
        "finding": findings.finding,
        "folded": _folded,
        "origin": lambda name: ORIGINS.get(name, name),
        "pre": pre,
        "word": word,
    }
    return env


def _finalize(value: Any) -> Any:
    """Make visible whatever a template prints; escaping follows."""
    if isinstance(value, Markup):
        return value
    text = value if type(value) is str else str(value)
    return text if text.isprintable() else visible(text)


def render(results: Mapping[str, Any], exchanges: Iterable[Exchange] = (), folder: str = "") -> str:
    """The report as a standalone page; `folder` is where it is written."""
    title = f"{results['target']['name']}: {headline(results)[0].lower()}"
    return shell(title, fragment(results, exchanges, folder))


def rendered(template: str, **values: Any) -> Markup:
    """A template with these values, escaped."""
    return Markup(environment().get_template(template).render(**values))  # noqa: S704 - rendered with escaping on


def shell(title: str, body: Markup) -> str:
    """A page around a body, with style and script inlined."""
    page = environment().get_template("shell.jinja2")
    return page.render(title=title, body=body, style=asset("style.css"), script=asset("report.js"))


@cache
def asset(name: str) -> Markup:
    """A style sheet or script of the package, unchanged."""
    return Markup(files(__package__).joinpath("templates", name).read_text("utf-8"))  # noqa: S704 - our own file


def fragment(results: Mapping[str, Any], exchanges: Iterable[Exchange] = (), folder: str = "") -> Markup:
    """The report as one element, for a standalone page or for pytest-html's."""
    traffic = CitedTraffic({exchange.case.id: exchange for exchange in exchanges})
    rows = with_counterparts(sorted(causes.explained(results), key=urgency), traffic)
    cited = citations(rows)
    transcripts = _transcripts(cited, traffic.exchanges, Destination.of(results["target"], folder))
    return rendered(
        "report.jinja2",
        results=results,
        headline=headline(results),
        rows=rows,
        causes=causes.shown_causes(results),
        most_in_cause=MOST_IN_CAUSE,
        broken=[row for row in rows if broken(row)],
        most_listed=MOST_LISTED,
        nothing_broken=(unjudged(results) and "Nothing was judged.") or "No requirement was seen broken.",
        trust=list(_trust(results)),
        facts=list(_facts(results)),
        areas=[
            {"name": name, "about": AREAS.get(name, ""), **summed(in_area)}
            for name, in_area in sorted(by_area(rows).items())
        ],
        counts=count(rows),
        levels=[name for name in ("MUST", "SHOULD", "MAY") if any(row["level"] == name for row in rows)],
        layers=sorted({row["layer"] for row in rows}),
        columns=COLUMNS,
        folded=sum(map(_folded, rows)),
        legend=MEANINGS.items(),
        origins=[
            (name, text)
            for name, text in ORIGINS.items()
            if name in {each_transcript.origin for each_transcript in transcripts}
        ],
        transcripts=transcripts,
        anchors={each_transcript.case: each_transcript.anchor for each_transcript in transcripts},
        left_out=len(cited) - len(transcripts) if transcripts else 0,
    )


def _transcripts(cited: dict[str, list[str]], exchanges: Mapping[str, Exchange], to: Destination) -> list[Transcript]:
    """The cited exchanges that were recorded, each once; cases without an exchange are removed from `cited`."""
    for case in [case for case in cited if case not in exchanges]:
        del cited[case]
    listed_cases = list(cited.items())[:MOST_EXCHANGES]
    limit = min(max(MOST_CHARACTERS // max(len(listed_cases), 1), 600), 6_000)
    return [
        transcript(exchanges[case], to, cited_places, f"x{number}", limit)
        for number, (case, cited_places) in enumerate(listed_cases)
    ]


def _trust(results: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """What supports the result (`yes`), what weakens it (`no`) and what a reader should know (`note`)."""
    rows, index = results["requirements"], results["index"]
    missing = index["of"] - index["verified"]
    if results.get("recorded"):
        yield "note", f"Recordings of others: {seen_in_recordings(results)}."
        yield from (("no", reason) for reason in results["recorded"]["reasons"][:MOST_REASONS])
    elif missing:
        yield "no", f"{missing} of {index['of']} MUSTs that apply were not verified."
    else:
        yield "yes", f"All {index['of']} MUSTs that apply were verified."
    for fault in results.get("waiver_faults", ()):
        yield "no", fault[:1].upper() + fault[1:]
    in_headline = unjudged(results)
    for reason in (reason for reason in results["incomplete"] if reason != in_headline):
        yield "no", f"Incomplete: {reason}"
    crashed = sum(row["outcome"] == "error" for row in rows)
    if crashed:
        yield "no", f"{plural(crashed, 'check')} of the suite crashed."
    else:
        yield "yes", "No check of the suite crashed."
    examined, requests = sum(row["examined"] for row in rows), results["totals"].get("requests", 0)
    yield "yes" if examined else "no", f"{plural(examined, 'occurrence')} examined in {plural(requests, 'exchange')}."
    drawn_text, warning = drawn.summary(results)
    if drawn_text:
        sentence = f"{drawn_text[:1].upper()}{drawn_text[1:]}"
        yield ("no", f"{sentence}: {warning}.") if warning else ("yes", f"{sentence}.")
    if results.get("mutation_score"):
        yield "note", mutation_text(results["mutation_score"])
    for claim in results["claims"]:
        yield "note", f"Claimed by the target: {claim}."


def mutation_text(score: Mapping[str, Any]) -> str:
    """The mutation score in words: a figure of the suite's own making, and for which build it was measured."""
    measured = (
        f", measured on build {score['build'][:7]}, not on this one" if score.get("current", True) is False else ""
    )
    return (
        f"Of {plural(score['of'], 'defect')} built into the reference for this contract, this profile finds"
        f" {score['killed']:,}{measured}; a measure of our own making."
    )


def _facts(results: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    target = results["target"]
    yield "target", target["base_url"], ""
    yield "model", target["model"] or "–", ""
    yield "contract", f"{results['provider']} {results['contract_revision']}", ""
    if document := results.get("document"):
        address = document.get("url") or document.get("index") or document["form"]
        yield "document", f"{document.get('title') or document['file']}, {address}", document["file"]
    pinned = results.get("requirement_set")
    if pinned:
        newer = sum(not scored(row) for row in results["requirements"])
        yield "requirements of", f"{pinned['date']}, {newer} newer not scored", ""
    yield "contract hash", results["contract_sha256"][:12], results["contract_sha256"]
    yield "plan hash", results["plan_sha256"][:12], results["plan_sha256"]
    yield "profile, seed", f"{results['profile']}, {results['seed']}", ""
    yield "suite", results["suite_version"], ""
    yield "requests", run_facts.requests(results), ""
    yield "tokens", run_facts.tokens(results), ""
    if classes := run_facts.classes(results):
        yield "classes", classes, "classes of inputs that the requests have"
    yield "started", results["started_at"].replace("T", " ").replace("+00:00", " UTC"), ""
    yield "took", run_facts.duration(results), ""


def summed(rows: Sequence[Row]) -> dict[str, Any]:
    """The verdicts of an area, in words and as shares of a bar; both count what applies to the target."""
    counts = count(rows)
    applicable = len(rows) - counts.pop("not_applicable")
    waivers = sum(map(waived, rows))
    failed = [row for row in rows if broken(row) and not waived(row)]
    unscored = sum(not scored(row) for row in failed)
    musts = sum(scored(row) and row["level"] == "MUST" for row in failed)
    shoulds = len(failed) - unscored - musts
    unsettled = counts["inconclusive"] + counts["not_run"] + counts["error"]
    words = (
        (musts, "broken"),
        (shoulds, "SHOULD broken"),
        (waivers, "waived"),
        (unscored, "not scored"),
        (unsettled, "not verified"),
        (applicable, "passed"),
    )
    summary_text = next(
        (f"{number} of {applicable} {text}" for number, text in words if number), word("not_applicable")
    )
    return {
        "mood": "bad" if musts else "meh" if shoulds or waivers or unscored or unsettled else "",
        "summary": summary_text,
        "shares": [(outcome, number) for outcome, number in counts.items() if number],
    }


def _folded(row: Row) -> bool:
    """Whether the row is hidden at first: what passed or was not judged distracts from what readers look for."""
    return row["outcome"] in {"pass", "not_run", "not_applicable"}


_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a long camel-case name may be broken


def _short(at: str) -> Markup:
    """The last two steps of a pointer that carry a name, enough to recognise the place."""
    if not at.startswith("#/"):
        return Markup(_content(visible(at)))  # noqa: S704 - escaped
    steps = [step for step in at[2:].split("/") if step not in {"paths", "properties", "components", "schemas"}]
    names = (_content(visible(step.replace("~1", "/").replace("~0", "~"))) for step in steps[-2:])
    return Markup(" / <wbr>".join(_HUMP.sub("<wbr>", name) for name in names))  # noqa: S704 - escaped


def prose(text: str) -> Markup:
    """A sentence of the suite: capitalised, words between backticks as code."""
    parts = _content(visible(text[:1].upper() + text[1:])).split("`")
    marked = [f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)]
    return Markup("".join(marked) if len(parts) % 2 else "`".join(parts))  # noqa: S704 - escaped above


def pre(segments: Iterable[Segment]) -> Markup:
    """Segments as the content of a `pre`, where quotes need no escape, which would double the size of JSON."""
    parts = (_OPEN[segment.kind] + _content(segment.text) + _CLOSE[segment.kind] for segment in segments)
    return Markup("".join(parts))  # noqa: S704 - escaped


_OPEN: Final = {"": "", "mark": "<mark>", "fold": '<span class="fold">… '}
_CLOSE: Final = {"": "", "mark": "</mark>", "fold": " …</span>"}


def _content(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
