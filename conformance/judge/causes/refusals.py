"""Causes of refusal: valid requests that a target refuses, by the parameter, the value or the form that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from conformance.contract.bounds import top
from conformance.judge.causes.cause import BrokenRow, Draft, is_invalid
from conformance.judge.causes.exchange_index import ExchangeIndex, members_of
from conformance.judge.causes.leniency import list_parameters
from conformance.judge.causes.request_settings import Settings
from conformance.judge.causes.topics import Topic
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING

ACCEPTANCE_GROUPS: Final = frozenset({"accept", "drawn", "twin"})
"""The kinds of groups whose requests must be accepted."""
PARSED_APART: Final = frozenset({"streamed", "plain", "batch", "ids"})
"""Settings for which servers use other code to parse a request. Other settings of a refused request are chance."""


def refusal_causes(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Valid requests that are refused: by parameter first, then those that are refused because of these."""
    members = [row for row in _rows_on_acceptance(rows) if not row.mostly(lambda x: x.successful)]
    null = [row for row in members if row.rule == "null" and row.parameter]
    single = [row for row in members if row.parameter and row not in null and row.group == "accept"]
    forms = [row for row in members if row.group == "accept" and not row.parameter]
    rest = [row for row in members if row not in null and row not in single and row not in forms]
    drafts = [_of_parameter(row, index) for row in single]
    if null:
        names = [row.parameter for row in null]
        drafts.append(
            Draft("null-refused", null, subject=list_parameters(names, "parameters"), affects=_refuses_null(names))
        )
    if forms:
        names = [row.id.rpartition(".")[2].replace("-", " ") for row in forms]
        drafts.append(Draft("form-refused", forms, subject=", ".join(names)))
    for row in rest:
        _assign(row, drafts, index)
    yield from drafts


def _rows_on_acceptance(rows: Sequence[BrokenRow]) -> list[BrokenRow]:
    """The rows of requirements that a request is accepted, alone or with other members."""
    return [
        row
        for row in rows
        if row.topic is Topic.ANSWER and (row.group in ACCEPTANCE_GROUPS or (row.area == "limits" and not row.group))
    ]


def _of_parameter(row: BrokenRow, index: ExchangeIndex) -> Draft:
    settings = tuple(name for name in index.settings_of_failures([row]) if name in PARSED_APART)
    affects = _refuses(top(row.parameter))
    subject = f"`{row.parameter}`"
    return Draft("refused", [row], subject=subject, about=row.parameter, settings=settings, affects=affects)


def _assign(row: BrokenRow, drafts: list[Draft], index: ExchangeIndex) -> None:
    """Add a row to the cause of its refusals; to a new one where there is none yet."""
    cause = next((draft for draft in drafts if row.mostly(draft.affects)), None)
    if cause is None and (name := _only_member(row, index)):
        cause = Draft("value-refused", [], subject=f"`{name}`", about=name, affects=_refuses(name))
        drafts.append(cause)
    if cause is None:
        cause = next((draft for draft in drafts if draft.kind == "together-refused"), None)
    if cause is None:
        settings = index.settings_of_failures([row])
        affects = _refuses_settings(frozenset(settings), index)
        drafts.append(Draft("together-refused", [row], settings=settings, affects=affects))
    else:
        cause.rows.append(row)


def _only_member(row: BrokenRow, index: ExchangeIndex) -> str:
    """The only member that all failing requests have beyond the usual ones; empty where there are more."""
    names = [set(members_of(x)) - index.habitual_members for x in row.failing]
    common = set.intersection(*names) if names else set()
    return next(iter(common)) if len(common) == 1 else ""


def _refuses(name: str) -> Callable[[Exchange], bool]:
    """Whether a request that has this member was refused."""
    return lambda x: x.refused and isinstance(x.case.body, Mapping) and name in x.case.body


def _refuses_null(names: Collection[str]) -> Callable[[Exchange], bool]:
    """Whether a request in which one of these members is null was refused."""

    def has_null(x: Exchange) -> bool:
        body = x.case.body
        return isinstance(body, Mapping) and any(body.get(name, MISSING) is None for name in names)

    return lambda x: x.refused and has_null(x)


def _refuses_settings(settings: Settings, index: ExchangeIndex) -> Callable[[Exchange], bool]:
    """Whether a valid request with these settings was refused."""
    return lambda x: x.refused and not is_invalid(x) and settings <= index.settings(x.case.id)
