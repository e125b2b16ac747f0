"""summary.md: a run on one screen, as Markdown; CI systems show it on the page of the job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.report.replay_commands import one_line
from conformance.report.tally import OUTCOMES, Row, broken, by_area, count, headline, observed, plural, scored, urgency
from conformance.report.text import visible

MOST_ROWS: Final = 40
MOST_CHARACTERS: Final = 300
MOST_COMMANDS: Final = 12
MOST_COMMAND: Final = 1_000
# ascii punctuation, but for dots and dashes inside a line that neither begin a list nor make a link
_MEANS_SOMETHING: Final = re.compile(
    r"(?!(?<!www)(?<!^)[.](?! |$)|(?<!^)-(?!-))[^\w ,;()=%]|_", re.ASCII | re.IGNORECASE
)
_PLAIN: Final = re.compile(r"[^\W_]")


def plain(text: str, most: int = MOST_CHARACTERS) -> str:
    """Text that Markdown and HTML leave as it is, in a cell of a table too."""
    told = visible(text)
    cut = told if len(told) <= most else f"{told[:most]}…"
    return _MEANS_SOMETHING.sub(lambda found: _reference(found.group()), cut)


def _reference(char: str) -> str:
    return char if not char.isascii() and _PLAIN.match(char) else f"&#{ord(char)};"


def code(text: str, most: int = MOST_CHARACTERS) -> str:
    """Target text, set as code: no name in it calls anybody, no address in it becomes a link."""
    return f"<code>{plain(text, most)}</code>" if text else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; cells are Markdown already."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def render(results: Mapping[str, Any]) -> str:
    """Verdict, what is broken, what is not settled, counts by area."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    verdict, because = headline(results)
    rows, index, score, totals = (results[name] for name in ("requirements", "index", "score", "totals"))
    yield f"## {plain(results['target']['name'])}: {verdict.lower()}\n"
    yield f"{because}\n"
    prices = (
        f"{index['verified']} of {index['of']} MUSTs verified",
        f"{score['passed']} of {score['of']} of these kept",
        f"{totals['requests']:,} in {plural(totals['attempts'], 'attempt')}",
        f"{totals['prompt_tokens']:,} prompt, {totals['completion_tokens']:,} completion",
        f"{results['duration_s']:,.1f} s",
    )
    yield from table(("Index", "Score", "Requests", "Tokens", "Time"), [prices])
    found = sorted((row for row in rows if broken(row) or row["outcome"] == "error"), key=urgency)
    if found:
        yield "\n### Broken\n"
        yield from table(("Outcome", "Requirement", "Observed"), map(_broken, found[:MOST_ROWS]))
        yield from _more(len(found))
        yield from _smallest(found)
    owed = [row for row in rows if row["incomplete"]]
    if results.get("waiver_faults"):
        yield "\n### Waivers that no longer fit\n"
        yield from (f"- {plain(fault)}" for fault in results["waiver_faults"])
    if results["incomplete"] or owed:
        yield "\n### Not settled\n"
        yield from (f"- {plain(reason)}" for reason in results["incomplete"])
        yield from (f"- {plain(row['id'])} ({row['level']}): {plain(row['reason'])}" for row in owed[:MOST_ROWS])
        yield from _more(len(owed))
    if rows:
        yield from _areas(rows)
    yield f"\n{', '.join(_facts(results))}"


def _areas(rows: Sequence[Row]) -> Iterator[str]:
    yield "\n<details><summary>Outcomes by area</summary>\n"
    areas = by_area(rows)
    heads = [name for name in OUTCOMES if any(row["outcome"] == name for row in rows)]
    counted = ((plain(area), count(areas[area])) for area in sorted(areas))
    shown = ([area, *(str(each[name] or "") for name in heads)] for area, each in counted)
    yield from table(["Area", *(name.replace("_", " ") for name in heads)], shown)
    yield "\n</details>"


def _broken(row: Row) -> tuple[str, str, str]:
    waived = f", waived until {row['waiver']['expires']}" if row["waiver"] else ""
    waived += "" if scored(row) else ", not scored"
    first = observed(row)
    said = first["message"] if first else row["reason"]
    return row["outcome"], f"{plain(row['id'])} ({row['level']}{waived})", code(said)


def _smallest(rows: Iterable[Row]) -> Iterator[str]:
    """What to paste first, folded; a command that is too long to be shown whole is left out."""
    told = [(row["id"], one_line(row["smallest"]["curl"])) for row in rows if row.get("smallest")]
    shown = [(name, command) for name, command in told if len(command) <= MOST_COMMAND][:MOST_COMMANDS]
    if shown:
        yield "\n<details><summary>Smallest requests that show it</summary>\n"
        yield from (f"- {plain(name)}: {code(command, MOST_COMMAND)}" for name, command in shown)
        yield "\n</details>"


def _more(number: int) -> Iterator[str]:
    if number > MOST_ROWS:
        yield f"\nand {number - MOST_ROWS} more in the report."


def _facts(results: Mapping[str, Any]) -> Iterator[str]:
    yield f"Contract {plain(results['provider'])} {plain(results['contract_revision'])}"
    yield f"hash {results['contract_sha256'][:12]}"
    yield f"model {code(results['target']['model']) or 'not named'}"
    yield f"{plain(results['profile'])} profile"
    yield f"seed {results['seed']}"
    yield f"suite {plain(results['suite_version'])}"
    yield from (f"claims {plain(claim)}" for claim in results["claims"])
