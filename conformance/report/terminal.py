"""What a terminal shows: one block for each broken requirement, and the last lines of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, Final

from conformance.report import causes, drawn, run_facts
from conformance.report.findings import evidence_first, examined
from conformance.report.replay_commands import again, one_line
from conformance.report.tally import (
    Row,
    broken,
    count,
    headline,
    plural,
    scored,
    seen_in_recordings,
    unjudged,
    urgency,
    verified_and_passed,
    waived,
    waiver_text,
)
from conformance.report.text import visible
from conformance.report.verdict_words import OUTCOMES, UNJUDGED_HEADLINE, word

WIDTH: Final = 118
MOST_BLOCKED: Final = 5
MOST_CAUSES: Final = 12


def block(row: Row, results: Mapping[str, Any]) -> str:
    """One requirement: what was promised, observed and examined, and how to see it again."""
    head = "WAIVED" if waived(row) else word(row["outcome"]).upper()
    lines = [f"{head} {visible(results['target']['name'])} {row['id']} ({row['level']})"]
    lines += _field("promised", f"{row['promise']}  [{source(row, results['provider'])}]")
    first = evidence_first(row)
    if first:
        position = f"{first['case']}, {first['at']}: " if first["at"] else f"{first['case']}: "
        lines += _field("observed", visible(position + first["message"]))
        lines += _field("examined", examined(row))
        lines += _field("matters", row["why"]) if row.get("why") else []
        smallest = row.get("smallest") or {"python": "", **first}
        lines += _command("repeat", again(results, smallest["case"]))
        lines += _field("note", smallest["repeats"]) if smallest.get("repeats") else []
        lines += _command("curl", smallest["curl"]) + _command("python", smallest["python"])
    elif row["reason"]:
        lines += _field("because", visible(row["reason"]))
    if waived(row):
        lines += _field("waived", visible(waiver_text(row)))
    if not scored(row):
        lines += _field("counts", f"not scored: {row['not_scored']}")
    return "\n".join(lines)


def source(row: Row, provider: str) -> str:
    """Where the promise is written, as a path into the vendored document."""
    at: str = row["source"]["at"]
    return f"specs/{provider}/openapi.yaml{at}" if at.startswith("#") else at or row["source"]["page"] or "?"


def _command(name: str, text: str) -> list[str]:
    """A command to copy: on one line, however long."""
    return [f"  {name:<9} {visible(one_line(text))}"] if text else []


def _field(name: str, text: str) -> list[str]:
    lines = wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"  {name:<9} {lines[0]}", *(" " * 12 + line for line in lines[1:])]


def blocks(results: Mapping[str, Any]) -> Iterator[str]:
    """A block for each cause, then one for each requirement that crashed or that an incomplete run left open."""
    rows = {row["id"]: row for row in results["requirements"]}
    found_causes = causes.of(results)
    for number, cause in enumerate(found_causes, 1):
        yield _cause(cause, f"CAUSE {number} of {len(found_causes)}", rows, results)
    explained = {name for cause in found_causes for name in cause["rows"]}
    others = [row for name, row in rows.items() if name not in explained]
    others = [row for row in others if broken(row) or row["outcome"] == "error" or row["incomplete"]]
    for row in sorted(others, key=urgency):
        if row["outcome"] != "not_run":
            yield block(row, results)
    not_run = sum(row["outcome"] == "not_run" for row in others)
    if not_run and not unjudged(results):
        yield f"NOT RUN {plural(not_run, 'requirement')}: the run ended before the requests that show them"


def _cause(cause: Mapping[str, Any], head: str, rows: Mapping[str, Row], results: Mapping[str, Any]) -> str:
    """One cause, the row that shows it best, and the ids of what else is broken or blocked because of it."""
    waived = ", waived" if cause["waived"] else ""
    lines = [f"{head} {visible(results['target']['name'])} ({cause['level']}{waived}): {visible(cause['name'])}"]
    in_words = causes.words(cause, rows)
    if cause["observed"]:
        lines += _field("observed", visible(f"{in_words.observed}; expected {in_words.expected}"))
    lines += _field("often", f"{in_words.share} occurrences") if in_words.share and cause["observed"] else []
    lines += _field("means", in_words.means) if cause["observed"] or len(cause["rows"]) > 1 else []
    also = cause["rows"][1:]
    lines += _field("also", f"{plural(len(also), 'requirement')} broken with it: {', '.join(also)}") if also else []
    if cause["blocked"]:
        ids = ", ".join(cause["blocked"][:MOST_BLOCKED])
        unlisted = f" and {len(cause['blocked']) - MOST_BLOCKED} more" if len(cause["blocked"]) > MOST_BLOCKED else ""
        lines += _field("blocked", f"{plural(len(cause['blocked']), 'requirement')} cannot be judged: {ids}{unlisted}")
    return "\n".join([*lines, block(rows[cause["rows"][0]], results)])


def summary(results: Mapping[str, Any]) -> str:
    """The last lines of a run: result, MUSTs verified and passed, counts, cost, and why it is incomplete."""
    result, because = headline(results)
    numbers = count(results["requirements"])
    counts = ", ".join(f"{numbers[outcome]} {word(outcome)}" for outcome in OUTCOMES if numbers[outcome])
    waivers = sum(map(waived, results["requirements"]))
    score = results["score"]
    lines = [f"{visible(results['target']['name'])}: {result}. {because}"]
    if result == UNJUDGED_HEADLINE:
        return lines[0]
    lines += [
        f"  {verified_and_passed(results)}",
        f"  {counts}{f'; {waivers} of these waived' if waivers else ''}",
        f"  requests: {run_facts.requests(results)}; tokens: {run_facts.tokens(results)}",
        f"  took {run_facts.duration(results)}",
    ]
    if results.get("recorded"):
        lines[1] = f"  {seen_in_recordings(results)}, {score['passed']} of {score['of']} verified MUSTs passed"
    lines += list(_causes(results))
    drawn_text, warning = ("", "") if results.get("recorded") else drawn.summary(results)
    lines += [f"  {drawn_text}"] * bool(drawn_text) + [f"  warning: {warning}"] * bool(warning)
    if classes := run_facts.classes(results):
        lines.append(f"  classes: {classes}")
    lines += list(_pinned(results))
    lines += [f"  waiver: {visible(fault)}" for fault in results.get("waiver_faults", ())]
    lines += [f"  incomplete: {visible(reason)}" for reason in results["incomplete"]]
    return "\n".join(lines)


def _causes(results: Mapping[str, Any]) -> Iterator[str]:
    """A line for each cause, the most harmful first."""
    found_causes = causes.of(results)
    if found_causes:
        yield f"  {plural(len(found_causes), 'cause')}:"
    for number, cause in enumerate(found_causes[:MOST_CAUSES], 1):
        counts = causes.counts(cause)
        waived = ", waived" if cause["waived"] else ""
        yield f"  {number:>3}. {cause['level']}{waived}: {visible(cause['name'])}{f' ({counts})' if counts else ''}"
    if len(found_causes) > MOST_CAUSES:
        yield f"       and {len(found_causes) - MOST_CAUSES} more"


def _pinned(results: Mapping[str, Any]) -> Iterator[str]:
    """What the requirement set that the run is pinned to leaves out of the result."""
    pinned = results.get("requirement_set")
    if pinned:
        newer = [row for row in results["requirements"] if not scored(row)]
        not_scored = f"{plural(len(newer), 'newer one')} not scored, {sum(map(broken, newer))} of them broken"
        removed = f"; {plural(len(pinned['gone']), 'older one')} no longer required" if pinned["gone"] else ""
        yield f"  requirements of {pinned['date']}: {not_scored}{removed}"
