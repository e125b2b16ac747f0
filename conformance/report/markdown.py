"""summary.md: a run on one screen, as Markdown, which CI systems show on the page of the job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.report import causes, run_facts
from conformance.report.findings import finding, message
from conformance.report.replay_commands import one_line
from conformance.report.tally import (
    Row,
    by_area,
    count,
    headline,
    most_urgent,
    plural,
    scored,
    seen_in_recordings,
)
from conformance.report.text import visible
from conformance.report.verdict_words import HEADLINES, INVALID_WAIVERS, OUTCOMES, UNJUDGED_HEADLINE, word

MOST_ROWS: Final = 40
MOST_CHARACTERS: Final = 300
MOST_COMMANDS: Final = 12
MOST_COMMAND: Final = 1_000
# ASCII punctuation that Markdown may interpret; dots and dashes inside a line begin no list and make no link
_SPECIAL: Final = re.compile(r"(?!(?<!www)(?<!^)[.](?! |$)|(?<!^)-(?!-))[^\w ,;()=%]|_", re.ASCII | re.IGNORECASE)
_PLAIN: Final = re.compile(r"[^\W_]")


def plain(text: str, limit: int = MOST_CHARACTERS) -> str:
    """Text that Markdown and HTML show as it is, in a table cell too."""
    printable = visible(text)
    cut = printable if len(printable) <= limit else f"{printable[:limit]}…"
    return _SPECIAL.sub(lambda match: _reference(match.group()), cut)


def _reference(char: str) -> str:
    return char if not char.isascii() and _PLAIN.match(char) else f"&#{ord(char)};"


def code(text: str, limit: int = MOST_CHARACTERS) -> str:
    """Target text as code: no name in it mentions a user, no address in it becomes a link."""
    return f"<code>{plain(text, limit)}</code>" if text else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; cells are Markdown already."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def render(results: Mapping[str, Any]) -> str:
    """Result, what is broken, what is incomplete, counts by area."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    result, because = headline(results)
    rows, index, score = (results[name] for name in ("requirements", "index", "score"))
    yield f"## {plain(results['target']['name'])}: {result.lower()}\n"
    yield f"{because}\n"
    cells = (
        seen_in_recordings(results)
        if results.get("recorded")
        else f"{index['verified']} of {plural(index['of'], 'MUST')}",
        f"{score['passed']} of {score['of']} of these",
        run_facts.requests(results),
        run_facts.tokens(results),
        run_facts.duration(results),
    )
    yield from table(("Verified", "Passed", "Requests", "Tokens", "Time"), [cells])
    failed = most_urgent(rows)
    shown_causes = causes.shown_causes(results)
    if shown_causes:
        yield "\n### Causes\n"
        titles = ("Level", "Cause", "Observed and expected", "How often", "Requirements")
        yield from table(titles, map(_cause, shown_causes[:MOST_ROWS]))
        yield from _more(len(shown_causes))
    if failed:
        yield "\n### Broken\n"
        heads = ("Verdict", "Requirement", "Observed and expected", "How often")
        yield from table(heads, map(_broken, failed[:MOST_ROWS]))
        yield from _more(len(failed))
        yield from _smallest(failed)
    open_rows = [row for row in rows if row["incomplete"]]
    if results.get("waiver_faults"):
        yield f"\n### {INVALID_WAIVERS}\n"
        yield from (f"- {plain(fault)}" for fault in results["waiver_faults"])
    if result != UNJUDGED_HEADLINE and (results["incomplete"] or open_rows):
        yield f"\n### {HEADLINES['incomplete']}\n"
        yield from (f"- {plain(reason)}" for reason in results["incomplete"])
        yield from (f"- {plain(row['id'])} ({row['level']}): {plain(row['reason'])}" for row in open_rows[:MOST_ROWS])
        yield from _more(len(open_rows))
    if rows and result != UNJUDGED_HEADLINE:
        yield from _areas(rows)
    yield f"\n{', '.join(_facts(results))}"


def _areas(rows: Sequence[Row]) -> Iterator[str]:
    yield "\n<details><summary>Verdicts by area</summary>\n"
    areas = by_area(rows)
    heads = [name for name in OUTCOMES if any(row["outcome"] == name for row in rows)]
    counts = ((plain(area), count(areas[area])) for area in sorted(areas))
    cells = ([area, *(str(numbers[name] or "") for name in heads)] for area, numbers in counts)
    yield from table(["Area", *map(word, heads)], cells)
    yield "\n</details>"


def _cause(item: causes.ShownCause) -> tuple[str, ...]:
    text = f"{item.words.observed}; expected {item.words.expected}" if item.words.expected else item.words.observed
    level = f"{item.cause['level']}{', waived' if item.cause['waived'] else ''}"
    rows = item.counts or plain(item.rows[0]["id"])
    return level, plain(item.cause["name"].replace("`", "")), code(text), item.words.share, rows


def _broken(row: Row) -> tuple[str, ...]:
    waived = f", waived until {row['waiver']['expires']}" if row["waiver"] else ""
    waived += "" if scored(row) else ", not scored"
    return word(row["outcome"]), f"{plain(row['id'])} ({row['level']}{waived})", code(message(row)), finding(row).share


def _smallest(rows: Iterable[Row]) -> Iterator[str]:
    """The commands to try first, folded; a command that is too long to show whole is left out."""
    commands = [(row["id"], one_line(row["smallest"]["curl"])) for row in rows if row.get("smallest")]
    short_commands = [(name, command) for name, command in commands if len(command) <= MOST_COMMAND][:MOST_COMMANDS]
    if short_commands:
        yield "\n<details><summary>Smallest requests that show a failure</summary>\n"
        yield from (f"- {plain(name)}: {code(command, MOST_COMMAND)}" for name, command in short_commands)
        yield "\n</details>"


def _more(number: int) -> Iterator[str]:
    if number > MOST_ROWS:
        yield f"\nand {number - MOST_ROWS} more in the report."


def _facts(results: Mapping[str, Any]) -> Iterator[str]:
    yield f"Contract {plain(results['provider'])} {plain(results['contract_revision'])}"
    yield f"hash {results['contract_sha256'][:12]}"
    yield f"model {code(results['target']['model']) or 'not given'}"
    yield f"{plain(results['profile'])} profile"
    yield f"seed {results['seed']}"
    yield f"suite {plain(results['suite_version'])}"
    yield from (f"claims {plain(claim)}" for claim in results["claims"])
