"""All verdicts of a run → its causes, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from conformance.judge.causes.blocked import blocked_by
from conformance.judge.causes.cause import BrokenRow, Cause, Draft
from conformance.judge.causes.content import content_causes
from conformance.judge.causes.exchange_index import ExchangeIndex
from conformance.judge.causes.kinds import KINDS
from conformance.judge.causes.leniency import REFUSAL_GROUPS, credential_causes, leniency_causes, parameters_of
from conformance.judge.causes.refusals import refusal_causes
from conformance.judge.causes.request_settings import words
from conformance.judge.causes.unusable_replies import (
    errors_and_headers,
    errors_as_success,
    no_streaming,
    same_text,
    server_errors,
    unfinished_replies,
)
from conformance.model import BROKEN, Contract, Outcome, Verdict
from conformance.model.exchange import Exchange

_COLLECTIVE: Final[tuple[Callable[[Sequence[BrokenRow], ExchangeIndex], Iterable[Draft]], ...]] = (
    errors_as_success, credential_causes, no_streaming, same_text, server_errors, errors_and_headers, leniency_causes,
    refusal_causes, unfinished_replies,
)  # fmt: skip
"""Causes that many requirements share, in the order in which they are looked for; the first one takes a row."""
_WITH_MATRIX: Final = frozenset({"unvalidated", "coerced", "validation-5xx"})
"""Kinds on validation, which are shown by parameter and rule."""


def causes(contract: Contract, verdicts: Iterable[Verdict], exchanges: Iterable[Exchange]) -> tuple[Cause, ...]:
    """The causes of all broken requirements, the most harmful first; each requirement belongs to one."""
    verdicts = tuple(verdicts)
    index = ExchangeIndex(contract, {x.case.id: x for x in exchanges})
    rows = [index.row(verdict) for verdict in verdicts if verdict.outcome in BROKEN]
    drafts: list[Draft] = []
    for find in _COLLECTIVE:
        drafts += find(_without_cause(rows, drafts), index)
    drafts += content_causes(_without_cause(rows, drafts), drafts, index)
    merged = sorted(_merged(drafts), key=_urgency)
    inconclusive = [verdict for verdict in verdicts if verdict.outcome is Outcome.INCONCLUSIVE]
    blocked = blocked_by(merged, inconclusive, index)
    return tuple(_finished(draft, blocked.get(draft.key, ())) for draft in merged)


def _without_cause(rows: Sequence[BrokenRow], drafts: Sequence[Draft]) -> list[BrokenRow]:
    explained = {row.id for draft in drafts for row in draft.rows}
    return [row for row in rows if row.id not in explained]


def _merged(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts that have rows; those with one key as one."""
    by_key: dict[str, Draft] = {}
    for draft in drafts:
        if not draft.rows:
            continue
        if draft.key in by_key:
            by_key[draft.key].rows += draft.rows
        else:
            by_key[draft.key] = draft
    return list(by_key.values())


def _urgency(draft: Draft) -> tuple[int, int, int, str]:
    return min(row.level for row in draft.rows), KINDS[draft.kind].harm, -len(draft.rows), draft.key


def _finished(draft: Draft, blocked: tuple[str, ...]) -> Cause:
    kind = KINDS[draft.kind]
    first = draft.rows[0].verdict
    in_settings = f" {words(draft.settings)}" if draft.settings else ""
    broken, examined = draft.counted if draft.counted[1] else (first.violations, first.examined)
    return Cause(
        id=draft.key,
        kind=draft.kind,
        name=kind.name.format(subject=draft.subject, where=in_settings),
        level=min(draft.rows, key=lambda row: row.level).verdict.requirement.level,
        harm=kind.harm,
        means=kind.means,
        rows=tuple(row.id for row in draft.rows),
        blocked=blocked,
        observed=draft.observed,
        expected=draft.expected if draft.observed else "",
        broken=broken,
        examined=examined,
        matrix=tuple(
            (parameter, row.rule, row.verdict.outcome.value)
            for row in draft.rows
            if draft.kind in _WITH_MATRIX and row.group in REFUSAL_GROUPS
            for parameter in parameters_of(row)
        ),
    )
