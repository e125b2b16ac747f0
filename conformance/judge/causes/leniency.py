"""Causes of acceptance: invalid requests and wrong credentials that a target accepts, or refuses in a wrong way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from conformance.contract.bounds import top
from conformance.judge.causes.cause import BrokenRow, Draft
from conformance.judge.causes.exchange_index import ExchangeIndex
from conformance.judge.causes.topics import Topic
from conformance.judge.checks.acceptance import accepted
from conformance.model import Credential

REFUSAL_GROUPS: Final = frozenset({"refuse", "drawn-invalid"})
"""The kinds of groups whose probe must be refused."""
MOST_NAMED: Final = 3
"""Parameters in the name of a cause; of more, their number is named."""


def credential_causes(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Requests without a valid key that are accepted, or refused with a wrong status; valid keys that are refused."""
    members = [row for row in rows if row.group and row.mostly(lambda x: x.case.credential is not Credential.KEY)]
    let_in = [row for row in members if row.mostly(lambda x: x.case.credential.refused and accepted(x))]
    credentials = {x.case.credential for row in let_in for x in row.failing}
    if let_in:
        kind = "no-authentication" if Credential.WRONG in credentials else "no-key"
        yield Draft(kind if Credential.NONE in credentials else "credential-accepted", let_in)
    shut_out = [row for row in members if row.mostly(lambda x: not x.case.credential.refused)]
    if shut_out:
        yield Draft("credential-refused", shut_out)
    rest = [row for row in members if row not in let_in and row not in shut_out]
    if rest:
        yield Draft("credential-status", rest)


def leniency_causes(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Invalid requests that are accepted, or refused with an undocumented status."""
    members = rows_on_refusal(rows)
    wrong_status = [row for row in members if not row.mostly(lambda x: x.successful)]
    lenient = [row for row in members if row not in wrong_status]
    malformed = [row for row in lenient if not parameters_of(row) and row.group == "refuse"]
    with_parameter = [row for row in lenient if row not in malformed]
    if wrong_status:
        yield Draft("wrong-status", wrong_status)
    if malformed:
        yield Draft("malformed", malformed)
    if with_parameter:
        yield _of_wrong_values(with_parameter, index)


def _of_wrong_values(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Draft:
    """Wrong values that are accepted: converted from another JSON type only, or not validated at all."""
    settings = index.settings_of_failures(rows)
    if any(name == top(row.parameter) for row in rows for name in settings):
        settings = ()
    names = list(dict.fromkeys(name for row in rows for name in parameters_of(row)))
    coerced = all(row.rule == "coercion" for row in rows if parameters_of(row))
    violations, examined = sum(row.verdict.violations for row in rows), sum(row.verdict.examined for row in rows)
    observed = f"{violations} of {examined} wrong values of {list_parameters(names, 'parameters')} were accepted"
    return Draft(
        "coerced" if coerced else "unvalidated",
        sorted(rows, key=lambda row: (not row.parameter, -row.verdict.violations)),
        subject=list_parameters(names, "values") + (" is" if len(names) == 1 else " are"),
        settings=settings,
        observed=observed if len(rows) > 1 else "",
        expected="a 4xx that says why",
        counted=(violations, examined),
    )


def rows_on_refusal(rows: Sequence[BrokenRow]) -> list[BrokenRow]:
    """The rows of requirements that a request is refused."""
    return [row for row in rows if row.topic is Topic.ANSWER and row.group in REFUSAL_GROUPS]


def parameters_of(row: BrokenRow) -> list[str]:
    """The parameters that a row on acceptance or refusal is broken for: its own, or those that its groups try."""
    if row.parameter:
        return [row.parameter]
    if row.group == "refuse":  # a rule on several members is named after the first of them
        area, _, rest = row.id.partition(".")
        return [rest.rpartition(".")[0]] if area == "request" else []
    keys = (
        part.key.split(" ")
        for x in row.failing
        for part in x.case.groups
        if part.kind == row.group and part.key.partition(" ")[0] == row.id
    )
    return sorted({words[1] for words in keys if len(words) > 1 and not words[1].isdigit()})


def list_parameters(names: Sequence[str], noun: str) -> str:
    """A few names as part of a sentence; of many, only how many there are."""
    if len(names) > MOST_NAMED:
        return f"{noun} of {len(names)} parameters" if noun != "parameters" else f"{len(names)} parameters"
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
