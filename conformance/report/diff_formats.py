"""A difference for a terminal, a pull request, a browser, a machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from conformance.report import markdown
from conformance.report.diff import BROKEN, CHANGED, MEANING, NEW, Change, Difference
from conformance.report.findings import message
from conformance.report.page import rendered, shell
from conformance.report.run_facts import when
from conformance.report.tally import Row, plural, result_word
from conformance.report.terminal import block
from conformance.report.text import visible
from conformance.report.verdict_words import word

SCHEMA: Final = "conformance-diff/1"
MOST_MARKDOWN: Final = 40


def outcomes(change: Change) -> str:
    """`pass → fail`; one side where there is no other."""
    sides = [word(row["outcome"]) for row in (change.before, change.after) if row is not None]
    return " → ".join(sides)


def headline(difference: Difference, *, strict: bool = False) -> str:
    """The answer in one line."""
    gating = sum(change.gates(strict=strict) for change in difference.changes)
    counts = [_counted(kind, len(difference.of(kind))) for kind in MEANING if difference.of(kind)]
    summary = (
        f"{', '.join(counts)}, {difference.unchanged} unchanged" if counts else f"{difference.unchanged} unchanged"
    )
    if gating:
        return f"{plural(gating, 'new failure')}: {summary}"
    scope = " that gates" if difference.of(BROKEN) else ""
    return f"No new failure{scope}: {summary}"


def _counted(kind: str, number: int) -> str:
    return plural(number, kind) if kind == NEW else f"{number} {kind}"


def terminal(difference: Difference, *, strict: bool = False) -> str:
    """The two runs, what makes them less comparable, each kind with its requirements, and the headline."""
    return "\n".join(_terminal(difference, strict=strict)) + "\n"


def _terminal(difference: Difference, *, strict: bool) -> Iterator[str]:
    for side, results in (("before", difference.before), ("after", difference.after)):
        yield f"{side:<7} {visible(describe_run(results))}"
    yield from (f"note    {visible(note)}" for note in difference.notes)
    for kind, meaning in MEANING.items():
        changes = difference.of(kind)
        if changes:
            yield f"\n{kind.upper()} ({meaning})"
        for change in changes:
            yield f"  {change.id} ({change.row['level']}): {outcomes(change)}{_waived(change.row)}"
            if kind == BROKEN:
                yield from (f"  {line}" for line in block(change.row, difference.after).splitlines()[1:])
            if kind == CHANGED:
                yield from (f"    now     {visible(message)}" for message in change.appeared)
                yield from (f"    before  {visible(message)}" for message in change.vanished)
    yield f"\n{headline(difference, strict=strict)}"


def describe_run(results: Mapping[str, Any]) -> str:
    """A run in one line: target, result, time, contract."""
    result = result_word(results).lower()
    contract = f"{results['provider']} {results['contract_revision']}"
    return f"{results['target']['name']}, {result}, {when(results)} UTC, {contract}"


def _waived(row: Row) -> str:
    return ", waived" if row.get("waiver") else ""


def as_markdown(difference: Difference, *, strict: bool = False) -> str:
    """For a comment on a pull request."""
    return "\n".join(_markdown(difference, strict=strict)) + "\n"


def _markdown(difference: Difference, *, strict: bool) -> Iterator[str]:
    answer = headline(difference, strict=strict)
    yield f"## {markdown.plain(difference.after['target']['name'])}: {answer[0].lower()}{answer[1:]}\n"
    yield f"- before: {markdown.plain(describe_run(difference.before))}"
    yield f"- after: {markdown.plain(describe_run(difference.after))}"
    yield from (f"- {markdown.plain(note)}" for note in difference.notes)
    for kind, meaning in MEANING.items():
        changes = difference.of(kind)
        if not changes:
            continue
        yield f"\n### {kind.capitalize()}: {len(changes)}\n\n{meaning.capitalize()}.\n"
        yield from markdown.table(("Requirement", "Verdict", "Observed"), map(_markdown_row, changes[:MOST_MARKDOWN]))
        if len(changes) > MOST_MARKDOWN:
            yield f"\nand {len(changes) - MOST_MARKDOWN} more."


def _markdown_row(change: Change) -> tuple[str, str, str]:
    row = f"{markdown.plain(change.id)} ({change.row['level']}{_waived(change.row)})"
    return row, outcomes(change), markdown.code(observed(change))


def observed(change: Change) -> str:
    """What was observed now, or else the reason of the verdict."""
    if change.appeared:
        return change.appeared[0]
    return message(change.row)


def html(difference: Difference, *, strict: bool = False) -> str:
    """A standalone page that loads nothing."""
    answer = headline(difference, strict=strict)
    body = rendered(
        "diff.jinja2",
        difference=difference,
        verdict="broken" if difference.exit_code(strict=strict) else "conformant",
        answer=answer.split(": ", 1),
        sides=(("before", difference.before), ("after", difference.after)),
        kinds=[(kind, meaning, difference.of(kind)) for kind, meaning in MEANING.items() if difference.of(kind)],
        result_word=result_word,
        observed=observed,
    )
    return shell(f"Conformance: {answer}", body)


def as_json(difference: Difference, *, strict: bool = False) -> str:
    """The same for machines."""
    document = {
        "schema": SCHEMA,
        "exit_code": int(difference.exit_code(strict=strict)),
        "strict": strict,
        "before": _side(difference.before),
        "after": _side(difference.after),
        "notes": difference.notes,
        "unchanged": difference.unchanged,
        "changes": [
            {
                "kind": change.kind.replace(" ", "_"),
                "id": change.id,
                "level": change.row["level"],
                "gates": change.gates(strict=strict),
                "before": change.before and change.before["outcome"],
                "after": change.after and change.after["outcome"],
                "appeared": change.appeared,
                "vanished": change.vanished,
                "reason": change.row["reason"],
            }
            for change in difference.changes
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _side(results: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "provider",
        "contract_revision",
        "contract_sha256",
        "plan_sha256",
        "started_at",
        "verdict",
        "index",
        "score",
    )
    return {"target": results["target"]["name"], **{name: results[name] for name in names}}


FORMATS: Final[Mapping[str, Callable[..., str]]] = {
    "terminal": terminal,
    "markdown": as_markdown,
    "html": html,
    "json": as_json,
}
