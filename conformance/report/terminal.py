"""What a terminal shows: one block for each broken promise, and the last lines of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from conformance.report.replay_commands import again, one_line
from conformance.report.tally import (
    OUTCOMES,
    Row,
    accepted,
    broken,
    count,
    headline,
    observed,
    plural,
    scored,
    urgency,
    waived,
)
from conformance.report.text import visible

WIDTH = 118
_HEAD = {"fail": "FAILED", "warn": "WARNED", "flaky": "FLAKY", "error": "ERROR", "inconclusive": "UNKNOWN"}


def block(row: Row, results: Mapping[str, Any]) -> str:
    """One requirement that is not simply kept: what was promised, observed, examined, and how to see it again."""
    head = "WAIVED" if waived(row) else _HEAD.get(row["outcome"], row["outcome"].upper())
    provider = results["provider"]
    lines = [f"{head} {visible(results['target']['name'])} {row['id']} ({row['level']})"]
    lines += _field("promised", f"{row['promise']}  [{place(row, provider)}]")
    first = observed(row)
    if first:
        where = f"{first['case']}, {first['at']}: " if first["at"] else f"{first['case']}: "
        lines += _field("observed", visible(where + first["message"]))
        broke = f"{plural(row['examined'], 'occurrence')} in {plural(row['exchanges'], 'exchange')}"
        lines += _field("examined", f"{broke}, {row['violations']:,} broke the promise")
        smallest = row.get("smallest") or {"case": first["case"], "curl": "", "python": ""}
        lines += _pasted("repeat", again(results, smallest["case"]))
        lines += _pasted("curl", smallest["curl"]) + _pasted("python", smallest["python"])
    elif row["reason"]:
        lines += _field("because", visible(row["reason"]))
    if waived(row):
        lines += _field("waived", visible(accepted(row)))
    if not scored(row):
        lines += _field("counts", f"not scored: {row['not_scored']}")
    return "\n".join(lines)


def place(row: Row, provider: str) -> str:
    """Where the promise stands, as a path into the vendored document."""
    at: str = row["source"]["at"]
    return f"specs/{provider}/openapi.yaml{at}" if at.startswith("#") else at or row["source"]["page"] or "?"


def _pasted(name: str, text: str) -> list[str]:
    """What is there to be copied: on one line, however long."""
    return [f"  {name:<9} {visible(one_line(text))}"] if text else []


def _field(name: str, text: str) -> list[str]:
    lines = wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"  {name:<9} {lines[0]}", *(" " * 12 + line for line in lines[1:])]


def blocks(results: Mapping[str, Any]) -> Iterator[str]:
    """The blocks of all rows that are broken, in doubt where the run owes them, or our fault; the most urgent first."""
    rows = [row for row in results["requirements"] if broken(row) or row["outcome"] == "error" or row["incomplete"]]
    unsent = [row for row in rows if row["outcome"] == "not_run"]
    for row in sorted(rows, key=urgency):
        if row["outcome"] != "not_run":
            yield block(row, results)
    if unsent:
        yield f"NOT RUN {plural(len(unsent), 'requirement')}: the run ended before the requests that show them"


def summary(results: Mapping[str, Any]) -> str:
    """The last lines of a run: verdict, index beside score, counts, price, and why it is incomplete."""
    verdict, because = headline(results)
    found = count(results["requirements"])
    counts = ", ".join(f"{found[name]} {name.replace('_', ' ')}" for name in OUTCOMES if found[name])
    excused = sum(map(waived, results["requirements"]))
    index, score, totals = results["index"], results["score"], results["totals"]
    verified = f"index {index['verified']}/{index['of']} MUSTs verified"
    tokens = f"{totals['prompt_tokens']:,} prompt and {totals['completion_tokens']:,} completion tokens"
    lines = [
        f"{visible(results['target']['name'])}: {verdict}. {because}",
        f"  {verified}, score {score['passed']}/{score['of']} of these passed",
        f"  {counts}{f'; {excused} of these waived' if excused else ''}",
        f"  {plural(totals['requests'], 'request')}, {tokens}, {results['duration_s']:.1f} s",
    ]
    lines += list(_pinned(results))
    lines += [f"  waiver: {visible(fault)}" for fault in results.get("waiver_faults", ())]
    lines += [f"  incomplete: {visible(reason)}" for reason in results["incomplete"]]
    return "\n".join(lines)


def _pinned(results: Mapping[str, Any]) -> Iterator[str]:
    """What a set of requirements leaves out of the verdict."""
    pinned = results.get("requirement_set")
    if pinned:
        newer = [row for row in results["requirements"] if not scored(row)]
        told = f"{plural(len(newer), 'newer one')} not scored, {sum(map(broken, newer))} of them broken"
        gone = f"; {plural(len(pinned['gone']), 'older one')} no longer required" if pinned["gone"] else ""
        yield f"  requirements of {pinned['date']}: {told}{gone}"
