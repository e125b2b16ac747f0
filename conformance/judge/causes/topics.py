"""Which part of a reply a check looks at, and which other parts are wrong as well when that one is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from conformance.judge.catalogue import load
from conformance.model import Verdict


class Topic(StrEnum):
    """The part of a reply that a check looks at. A later topic is read from an earlier one, so it can break with it."""

    ANSWER = "answer"  # whether there is a reply at all, and a complete one
    FRAMING = "framing"
    MEMBER = "member"
    IDENTITY = "identity"
    CHOICES = "choices"
    TEXT = "text"
    LIMIT = "limit"
    FINISH = "finish"
    COUNTS = "counts"
    LOGPROBS = "logprobs"
    RELATION = "relation"
    ERRORS = "errors"
    HEADERS = "headers"


CONTENT: Final = frozenset({
    Topic.CHOICES, Topic.TEXT, Topic.LIMIT, Topic.FINISH, Topic.COUNTS, Topic.LOGPROBS, Topic.RELATION,
})  # fmt: skip
"""The topics of what the model generated, and of what is said about it."""
SPOILED_BY: Final[Mapping[Topic, frozenset[Topic]]] = {
    Topic.FRAMING: frozenset(Topic) - {Topic.ERRORS, Topic.HEADERS},
    Topic.IDENTITY: frozenset({Topic.IDENTITY}),
    Topic.CHOICES: CONTENT,
    Topic.TEXT: CONTENT - {Topic.CHOICES},
    Topic.LIMIT: frozenset({Topic.LIMIT, Topic.FINISH, Topic.COUNTS, Topic.RELATION}),
    Topic.FINISH: frozenset({Topic.FINISH, Topic.LIMIT, Topic.RELATION}),
    Topic.COUNTS: frozenset({Topic.COUNTS, Topic.LIMIT, Topic.RELATION}),
    Topic.LOGPROBS: frozenset({Topic.LOGPROBS, Topic.RELATION}),
    Topic.RELATION: frozenset({Topic.RELATION}),
}  # fmt: skip
"""The topics that may be wrong in a reply because the given one is."""
_OF_AREA: Final[Mapping[str, Topic]] = {
    "robustness": Topic.ANSWER, "limits": Topic.ANSWER, "framing": Topic.FRAMING, "schema": Topic.IDENTITY,
    "stream": Topic.IDENTITY, "choices": Topic.CHOICES, "echo": Topic.TEXT, "stop": Topic.TEXT, "effects": Topic.TEXT,
    "unicode": Topic.TEXT, "concurrency": Topic.TEXT, "tokens": Topic.LIMIT, "finish": Topic.FINISH,
    "usage": Topic.COUNTS, "logprobs": Topic.LOGPROBS, "relations": Topic.RELATION, "errors": Topic.ERRORS,
    "headers": Topic.HEADERS,
}  # fmt: skip
_OF_CHECK: Final[Mapping[str, Topic]] = {
    "plain_field_conforms": Topic.MEMBER, "chunk_field_conforms": Topic.MEMBER, "error_field_conforms": Topic.ERRORS,
    "deltas_are_not_cumulative": Topic.TEXT, "no_text_after_finish": Topic.TEXT, "twin_text_agrees": Topic.TEXT,
    "nothing_is_left_behind": Topic.TEXT, "chunk_has_choices": Topic.CHOICES, "twin_choices_agree": Topic.CHOICES,
    "batch_order_holds": Topic.CHOICES, "completion_tokens_within_limit": Topic.LIMIT,
    "stop_finishes_with_stop": Topic.FINISH, "twin_finish_agrees": Topic.FINISH,
    "cut_text_finishes_with_length": Topic.FINISH, "batch_usage_is_the_sum": Topic.COUNTS,
    "twin_usage_agrees": Topic.COUNTS, "twin_logprobs_agree": Topic.LOGPROBS,
    "filter_bounds_the_choice": Topic.RELATION, "logprobs_count_the_tokens": Topic.RELATION,
}  # fmt: skip
"""The topic of each check whose topic is not that of its area."""


def topic_of(verdict: Verdict) -> Topic:
    """The topic of the check that a requirement is bound to."""
    name = verdict.requirement.check
    check = load().get(name)
    return _OF_CHECK.get(name) or _OF_AREA.get(check.area if check else "", Topic.RELATION)
