"""results.json and recorded exchanges → report.html: one file, no request leaves it, every target text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.model.exchange import Exchange
from conformance.report.evidence import CitedTraffic, citations, with_companions
from conformance.report.replay_commands import again
from conformance.report.results import address
from conformance.report.source_map import event_of
from conformance.report.tally import (
    OUTCOMES,
    Row,
    accepted,
    broken,
    by_area,
    count,
    headline,
    observed,
    plural,
    scored,
    urgency,
    waived,
)
from conformance.report.text import visible
from conformance.report.transcript import Segment, Transcript, transcript

MOST_EXCHANGES: Final = 150
ROOM: Final = 200_000
"""Characters of responses in one report, shared by the exchanges that it shows."""

COLUMNS: Final = (
    ("o", "Outcome"), ("a", "Area"), ("id", "Requirement"), ("l", "Level"), ("y", "Layer"), ("p", "Promise"),
    ("n", "Examined"), ("s", "Source"),
)  # fmt: skip
LEGEND: Final = {
    "fail": "a MUST is broken, each time it was asked for",
    "flaky": "broken at some times and kept at others, on the same request",
    "warn": "a SHOULD is not met",
    "error": "a check of this suite crashed: our fault, never the target's",
    "inconclusive": "an occasion was due and showed nothing either way",
    "not_run": "planned, but the budget or the run ended before it",
    "pass": "kept in each occurrence that was examined, at least one",
    "not_applicable": "no occasion: not promised for this target, or nothing that a client can provoke",
}


@cache
def environment() -> Environment:
    """The templates, with escaping always on."""
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
        "split": _split,
        "accepted": accepted,
        "again": again,
        "examined": _examined,
        "event_of": event_of,
        "observed": observed,
        "pre": pre,
    }
    return env


def _finalize(value: Any) -> Any:
    """Whatever a template prints is made visible first, then escaped."""
    if isinstance(value, Markup):
        return value
    text = value if type(value) is str else str(value)
    return text if text.isprintable() else visible(text)


def render(results: Mapping[str, Any], exchanges: Iterable[Exchange] = ()) -> str:
    """The report as a page of its own."""
    title = f"{results['target']['name']}: {headline(results)[0].lower()}"
    return shell(title, fragment(results, exchanges))


def shell(title: str, body: Markup) -> str:
    """A page around a body, style and script inlined."""
    page = environment().get_template("shell.jinja2")
    return page.render(title=title, body=body, style=asset("style.css"), script=asset("report.js"))


@cache
def asset(name: str) -> Markup:
    """A style sheet or script of the package, as it stands."""
    return Markup(files(__package__).joinpath("templates", name).read_text("utf-8"))  # noqa: S704 - our own file


def fragment(results: Mapping[str, Any], exchanges: Iterable[Exchange] = ()) -> Markup:
    """The report as one element, for a page of its own or for pytest-html's."""
    traffic = CitedTraffic({x.case.id: x for x in exchanges})
    rows = with_companions(sorted(results["requirements"], key=urgency), traffic)
    cited = citations(rows)
    shown = _transcripts(cited, traffic.exchanges, results)
    template = environment().get_template("report.jinja2")
    html = template.render(
        results=results,
        headline=headline(results),
        rows=rows,
        broken=[row for row in rows if broken(row)],
        trust=list(_trust(results)),
        facts=list(_facts(results)),
        areas=[{"name": name, **summed(found)} for name, found in sorted(by_area(rows).items())],
        counts=count(rows),
        levels=[name for name in ("MUST", "SHOULD", "MAY") if any(row["level"] == name for row in rows)],
        layers=sorted({row["layer"] for row in rows}),
        columns=COLUMNS,
        legend=LEGEND.items(),
        transcripts=shown,
        anchors={case: one.anchor for case, one in zip(cited, shown, strict=False)} if shown else {},
        left_out=max(len(cited) - len(shown), 0) if shown else 0,
    )
    return Markup(html)  # noqa: S704 - rendered with escaping on


def _transcripts(
    cited: dict[str, list[str]], exchanges: Mapping[str, Exchange], results: Mapping[str, Any]
) -> list[Transcript]:
    """The cited exchanges that are at hand, each once; cases without one leave `cited`."""
    for case in [case for case in cited if case not in exchanges]:
        del cited[case]
    taken = list(cited.items())[:MOST_EXCHANGES]
    most = min(max(ROOM // max(len(taken), 1), 600), 6_000)
    target = results["target"]
    return [
        transcript(exchanges[case], address(target, exchanges[case].case), places, f"x{number}", most)
        for number, (case, places) in enumerate(taken)
    ]


def _trust(results: Mapping[str, Any]) -> Iterable[tuple[bool, str]]:
    rows, index = results["requirements"], results["index"]
    missing = index["of"] - index["verified"]
    told = f"{missing} of {index['of']} MUSTs that apply were not verified."
    yield not missing, told if missing else f"All {index['of']} MUSTs that apply were verified."
    for fault in results.get("waiver_faults", ()):
        yield False, fault[:1].upper() + fault[1:]
    for reason in results["incomplete"]:
        yield False, f"Incomplete: {reason}"
    faults = sum(row["outcome"] == "error" for row in rows)
    yield not faults, f"{plural(faults, 'check')} of the suite crashed." if faults else "No check of the suite crashed."
    examined = sum(row["examined"] for row in rows)
    yield (
        examined > 0,
        f"{plural(examined, 'occurrence')} examined in {plural(results['totals'].get('requests', 0), 'exchange')}.",
    )
    proof = results.get("mutation_score")
    if proof:
        yield True, f"The suite finds {proof['killed']} of {proof['of']} planted faults."
    for claim in results["claims"]:
        yield True, f"Claimed by the target: {claim}."


def _facts(results: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    totals, target = results["totals"], results["target"]
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
    attempts = totals.get("attempts", totals.get("requests", 0))
    yield "requests", f"{totals.get('requests', 0):,} in {plural(attempts, 'attempt')}", ""
    yield "tokens", f"{totals.get('prompt_tokens', 0):,} prompt, {totals.get('completion_tokens', 0):,} completion", ""
    yield "started", results["started_at"].replace("T", " ").replace("+00:00", " UTC"), ""
    yield "took", f"{results['duration_s']:,.1f} s", ""


def summed(rows: Sequence[Row]) -> dict[str, Any]:
    """What an area amounts to: in words, and as shares of a bar."""
    found = count(rows)
    excused = sum(map(waived, rows))
    breaks = sum(broken(row) and row["level"] == "MUST" and not waived(row) and scored(row) for row in rows)
    unmet = sum(map(broken, rows)) - breaks - excused
    applicable = len(rows) - found["not_applicable"]
    kept = f"{found['pass']}/{applicable}" if applicable else "not applicable"
    return {
        "mood": "bad" if breaks else "meh" if unmet or excused else "",
        "said": next(
            (f"{n} {word}" for n, word in ((breaks, "broken"), (unmet, "not met"), (excused, "waived")) if n), kept
        ),
        "shares": [(one, found[one]) for one in OUTCOMES if found[one]],
    }


_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a long name of a schema is best broken


def _short(at: str) -> Markup:
    """The last two telling steps of a pointer, enough to recognise the place."""
    if not at.startswith("#/"):
        return Markup(_content(visible(at)))  # noqa: S704 - escaped
    steps = [step for step in at[2:].split("/") if step not in {"paths", "properties", "components", "schemas"}]
    told = (_content(visible(step.replace("~1", "/").replace("~0", "~"))) for step in steps[-2:])
    told = (_HUMP.sub("<wbr>", step) for step in told)
    return Markup(" / <wbr>".join(told))  # noqa: S704 - escaped


def _split(message: str) -> tuple[str, str]:
    """What was observed, and what was expected, of a message in the house's order."""
    observed, found, expected = message.rpartition("; expected ")
    return (observed, expected) if found else (message, "")


def _examined(row: Row) -> str:
    if not row["examined"]:
        return "nothing came up"
    kept = f", {row['violations']:,} broke the promise" if row["violations"] else ", each kept the promise"
    return f"{plural(row['examined'], 'occurrence')} in {plural(row['exchanges'], 'exchange')}{kept}"


def prose(text: str) -> Markup:
    """A sentence of ours: capital first, words between backticks as code."""
    parts = _content(visible(text[:1].upper() + text[1:])).split("`")
    marked = [f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts)]
    return Markup("".join(marked) if len(parts) % 2 else "`".join(parts))  # noqa: S704 - escaped above


def pre(segments: Iterable[Segment]) -> Markup:
    """Segments for the inside of a `pre`, where quotes need no escape and would double the size of JSON."""
    return Markup("".join(_OPEN[one.kind] + _content(one.text) + _CLOSE[one.kind] for one in segments))  # noqa: S704


_OPEN: Final = {"": "", "mark": "<mark>", "fold": '<span class="fold">… '}
_CLOSE: Final = {"": "", "mark": "</mark>", "fold": " …</span>"}


def _content(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
