"""The causes of a run as results.json has them, and in words: for terminal, page and summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.judge.causes import Cause
from conformance.report.findings import Finding, finding
from conformance.report.tally import Row, broken, plural, scored, waived


def entries(causes: Sequence[Cause], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The entries of `causes` in results.json, the most harmful first, each with the evidence of its first row."""
    by_id = {row["id"]: row for row in rows}
    return [_entry(cause, by_id) for cause in causes]


def _entry(cause: Cause, rows: Mapping[str, Row]) -> dict[str, Any]:
    first = rows[cause.rows[0]]
    return {
        "id": cause.id,
        "kind": cause.kind,
        "name": cause.name,
        "level": cause.level.value,
        "observed": cause.observed,
        "expected": cause.expected,
        "broken": cause.broken,
        "examined": cause.examined,
        "means": cause.means,
        "rows": list(cause.rows),
        "blocked": list(cause.blocked),
        "waived": all(waived(rows[name]) for name in cause.rows),
        "matrix": [list(cell) for cell in cause.matrix],
        "evidence": first["evidence"][:1],
    }


def attributed(rows: Sequence[Row], causes: Sequence[Cause]) -> list[dict[str, Any]]:
    """The rows, each with the cause that it belongs to, or by which it is blocked.

    The run does not owe the verdict of a blocked row if its cause decides the result: a broken MUST, or a failure that
    is waived. If only a SHOULD is broken, the verdict is still owed, or a run could conform without it.
    """
    by_id = {row["id"]: row for row in rows}
    cause_of = {name: cause.id for cause in causes for name in cause.rows}
    blocked_by = {name: cause for cause in causes for name in cause.blocked}
    marked = []
    for row in rows:
        blocking = blocked_by.get(row["id"])
        settled = blocking is not None and any(_speaks(by_id[name]) for name in blocking.rows)
        marked.append(
            {
                **row,
                "incomplete": row["incomplete"] and not settled,
                "cause": cause_of.get(row["id"]),
                "blocked_by": blocking.id if blocking else None,
            }
        )
    return marked


def _speaks(row: Row) -> bool:
    """Whether a broken row decides the result of a run, or would without its waiver."""
    return broken(row) and ((row["level"] == "MUST" and scored(row)) or waived(row))


def of(results: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The causes of a run; none in results of earlier versions."""
    causes: Sequence[Mapping[str, Any]] = results.get("causes", ())
    return causes


def words(cause: Mapping[str, Any], rows: Mapping[str, Row]) -> Finding:
    """The sentences of a cause: what was observed and expected, how often, and what it means for a client."""
    first = finding(rows[cause["rows"][0]])
    share = f"{cause['broken']:,} of {cause['examined']:,}" if cause["broken"] else ""
    means = (
        first.means if len(cause["rows"]) == 1 and first.means else f"{cause['means'][:1].upper()}{cause['means'][1:]}."
    )
    if cause["observed"]:
        return Finding(cause["observed"], cause["expected"], share, means)
    return Finding(first.observed, first.expected, share, means)


def counts(cause: Mapping[str, Any]) -> str:
    """How many requirements break with it, and how many cannot be judged because of it."""
    parts = [f"{plural(len(cause['rows']), 'requirement')} broken"] if len(cause["rows"]) > 1 else []
    if cause["blocked"]:
        parts.append(f"{plural(len(cause['blocked']), 'requirement')} cannot be judged because of it")
    return ", ".join(parts)


def table(cause: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The matrix of a cause: rules as columns, a line for each parameter with the outcome of each rule."""
    rules = list(dict.fromkeys(rule for _, rule, _ in cause["matrix"]))
    lines: dict[str, dict[str, str]] = {}
    for parameter, rule, outcome in cause["matrix"]:
        lines.setdefault(parameter, {})[rule] = outcome
    return rules, [(name, [cells.get(rule, "") for rule in rules]) for name, cells in lines.items()]


@dataclass(frozen=True, slots=True)
class ShownCause:
    """A cause as a page shows it: its entry, its sentences, its rows and those that it blocks, and its matrix."""

    cause: Mapping[str, Any]
    words: Finding
    counts: str
    rows: list[Row]
    blocked: list[Row]
    rules: list[str]
    lines: list[tuple[str, list[str]]]


def shown_causes(results: Mapping[str, Any]) -> list[ShownCause]:
    """The causes of a run with all that a page shows of them."""
    rows = {row["id"]: row for row in results["requirements"]}
    return [
        ShownCause(
            cause,
            words(cause, rows),
            counts(cause),
            [rows[name] for name in cause["rows"]],
            [rows[name] for name in cause["blocked"]],
            *table(cause),
        )
        for cause in of(results)
    ]


def explained(results: Mapping[str, Any]) -> list[Row]:
    """The rows; one that is blocked has a `because`: the anchor and the name of its cause."""
    names = {cause["id"]: (f"cause-{number}", cause["name"]) for number, cause in enumerate(of(results), 1)}
    return [
        {**row, "because": names[row["blocked_by"]]} if row.get("blocked_by") in names else row
        for row in results["requirements"]
    ]
