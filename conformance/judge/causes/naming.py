"""The kind and the name of a cause of wrong content: which members, which parameter, in which settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from conformance.contract.bounds import top
from conformance.judge.catalogue import Scope
from conformance.judge.causes.cause import BrokenRow, Draft
from conformance.judge.causes.exchange_index import CHANNEL_MEMBERS, ExchangeIndex, members_of
from conformance.judge.causes.topics import Topic
from conformance.model import Contract
from conformance.model.exchange import Exchange
from conformance.model.request_view import RequestView

_MEMBER_FAULTS: Final = {
    "required": "missing", "not_null": "null", "type": "of the wrong type", "enum": "of another value",
}  # fmt: skip
"""What is wrong with a member, by the keyword that it violates."""
_BY_PARAMETER: Final = frozenset({Topic.CHOICES, Topic.TEXT, Topic.RELATION, Topic.LIMIT})
"""Topics that are named after the parameter that shows them."""


def describe(draft: Draft, index: ExchangeIndex) -> None:
    """Name the kind, subject and settings of a cause by its first row."""
    first = draft.rows[0]
    draft.settings = index.settings_of_failures(draft.rows[:1])
    draft.kind = _kind_of_topic(first)
    if first.topic is Topic.MEMBER:
        draft.subject = _wrong_members(draft.rows)
        path = first.verdict.requirement.params["path"]
        draft.about = re.sub(r"[^A-Za-z0-9_]+", "-", f"{first.rule} {path}").strip("-")
    elif first.topic is Topic.CHOICES and first.mostly(lambda x: _ignores_n(x, index.contract)):
        _name_after(draft, "n", "no-effect")
    elif first.area == "logprobs":
        draft.kind = "logprobs"
    elif first.topic in _BY_PARAMETER and (parameter := _parameter(first, index)):
        without_effect = index.has_effect(parameter, first.failing) is False
        _name_after(draft, parameter, "no-effect" if without_effect else "misapplied")


def _kind_of_topic(row: BrokenRow) -> str:
    match row.topic:
        case Topic.COUNTS if row.mostly(lambda x: x.successful and x.usage is None):
            return "no-usage"
        case Topic.COUNTS if row.scope is Scope.STREAM:
            return "usage-chunk"
        case (
            Topic.FRAMING | Topic.MEMBER | Topic.IDENTITY | Topic.CHOICES | Topic.LIMIT | Topic.FINISH | Topic.COUNTS
            | Topic.LOGPROBS
        ):  # fmt: skip
            return row.topic.value
        case Topic.ANSWER:
            return "unanswered"
        case _:
            return "text"


def _name_after(draft: Draft, parameter: str, kind: str) -> None:
    draft.kind, draft.subject, draft.about = kind, f"`{parameter}`", parameter
    draft.settings = tuple(setting for setting in draft.settings if setting != parameter)


def _ignores_n(x: Exchange, contract: Contract) -> bool:
    """Whether a reply has one choice for each prompt though the request asks for several."""
    body = x.case.body
    request = RequestView(body if isinstance(body, Mapping) else {}, contract.defaults)
    return request.n > 1 and list(x.choices) == list(range(max(len(request.prompts), 1)))


def _parameter(row: BrokenRow, index: ExchangeIndex) -> str:
    """The parameter that a row on content is about: its own, or the only one that all its requests have."""
    if row.parameter:
        return top(row.parameter)
    names = [
        {name for case in cases if case in index.exchanges for name in members_of(index.exchanges[case])}
        for cases in (*row.verdict.broke, *row.verdict.kept)
    ]
    common = set.intersection(*names) - index.habitual_members - CHANNEL_MEMBERS if names else set()
    return row.area if row.area in common else next(iter(common)) if len(common) == 1 else ""


def _wrong_members(rows: Sequence[BrokenRow]) -> str:
    """What is wrong with which members, and in which replies."""
    params = [row.verdict.requirement.params for row in rows if row.topic is Topic.MEMBER]
    fault = _MEMBER_FAULTS.get(str(params[0]["keyword"]), "not as documented")
    paths = list(dict.fromkeys(str(param["path"]) for param in params))
    roots = [path for path in paths if not any(path != other and path.startswith(other) for other in paths)]
    reply = "chunk" if {str(param["channel"]) for param in params} == {"chunk"} else "reply"
    verdict = rows[0].verdict
    replies = f"every {reply}" if verdict.violations >= verdict.examined else _PLURAL[reply]
    noun = "a member is" if len(roots) == 1 else "members are"
    return f"{noun} {fault} in {replies}: {', '.join(f'`{path}`' for path in roots)}"


_PLURAL: Final = {"chunk": "chunks", "reply": "replies"}
