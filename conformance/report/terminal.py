"""What a terminal shows: one block for each broken requirement, and the last lines of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, Final

from conformance.report import drawn
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
    urgency,
    waived,
    waiver_text,
)
from conformance.report.text import visible
from conformance.report.verdict_words import OUTCOMES, word

WIDTH: Final = 118


def block(row: Row, results: Mapping[str, Any]) -> str:
    """One requirement: what was promised, observed and examined, and how to see it again."""
    head = "WAIVED" if waived(row) else word(row["outcome"]).upper()
    lines = [f"{head} {visible(results['target']['name'])} {row['id']} ({row['level']})"]
    lines += _field("promised", f"{row['promise']}  [{source(row, results['provider'])}]")
    first = evidence_first(row)
    if first:
        where = f"{first['case']}, {first['at']}: " if first["at"] else f"{first['case']}: "
        lines += _field("observed", visible(where + first["message"]))
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
    """The blocks of all requirements that are broken, crashed or left open by an incomplete run; most urgent first."""
    rows = [row for row in results["requirements"] if broken(row) or row["outcome"] == "error" or row["incomplete"]]
    for row in sorted(rows, key=urgency):
        if row["outcome"] != "not_run":
            yield block(row, results)
    not_run = sum(row["outcome"] == "not_run" for row in rows)
    if not_run:
        yield f"NOT RUN {plural(not_run, 'requirement')}: the run ended before the requests that show them"


def summary(results: Mapping[str, Any]) -> str:
    """The last lines of a run: result, index and score, counts, cost, and why it is incomplete."""
    result, because = headline(results)
    numbers = count(results["requirements"])
    counts = ", ".join(f"{numbers[outcome]} {word(outcome)}" for outcome in OUTCOMES if numbers[outcome])
    waivers = sum(map(waived, results["requirements"]))
    index, score, totals = results["index"], results["score"], results["totals"]
    verified = f"index {index['verified']}/{index['of']} MUSTs verified"
    tokens = f"{totals['prompt_tokens']:,} prompt and {totals['completion_tokens']:,} completion tokens"
    lines = [
        f"{visible(results['target']['name'])}: {result}. {because}",
        f"  {verified}, score {score['passed']}/{score['of']} of these passed",
        f"  {counts}{f'; {waivers} of these waived' if waivers else ''}",
        f"  {plural(totals['requests'], 'request')}, {tokens}, {results['duration_s']:.1f} s",
    ]
    if results.get("recorded"):
        lines[1] = (
            f"  {seen_in_recordings(results)}, score {score['passed']}/{score['of']} of the verified MUSTs passed"
        )
    said, warning = ("", "") if results.get("recorded") else drawn.summary(results)
    lines += [f"  {said}"] * bool(said) + [f"  warning: {warning}"] * bool(warning)
    if classes := results.get("classes"):
        lines.append(f"  classes: {classes['exercised']:,} of {classes['of']:,}")
    lines += list(_pinned(results))
    lines += [f"  waiver: {visible(fault)}" for fault in results.get("waiver_faults", ())]
    lines += [f"  incomplete: {visible(reason)}" for reason in results["incomplete"]]
    return "\n".join(lines)


def _pinned(results: Mapping[str, Any]) -> Iterator[str]:
    """What the requirement set that the run is pinned to leaves out of the result."""
    pinned = results.get("requirement_set")
    if pinned:
        newer = [row for row in results["requirements"] if not scored(row)]
        not_scored = f"{plural(len(newer), 'newer one')} not scored, {sum(map(broken, newer))} of them broken"
        gone = f"; {plural(len(pinned['gone']), 'older one')} no longer required" if pinned["gone"] else ""
        yield f"  requirements of {pinned['date']}: {not_scored}{gone}"
