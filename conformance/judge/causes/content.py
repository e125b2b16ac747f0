"""Causes of wrong content: where the failures of one row are those of another, the two have one cause.

Rows are taken in the order in which parts of a reply are read from one another, so that the first row of a cause is the
one that explains the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from conformance.judge.causes.cause import MOST_OF, BrokenRow, Draft
from conformance.judge.causes.exchange_index import ExchangeIndex
from conformance.judge.causes.naming import describe
from conformance.judge.causes.topics import CONTENT, SPOILED_BY, Topic
from conformance.model.exchange import Exchange

SAME_SETTINGS: Final = 0.7
"""The weight of failing in the same settings, where failing on the same replies is 1: the reasons may differ."""
KEPT_BESIDE: Final = 0.4
"""The share of the replies that keep a promise: a row that is broken in more of them does not explain its failures."""
_FIRST: Final = (Topic.FRAMING, Topic.MEMBER, Topic.IDENTITY)
"""Topics that are looked at before all others, because everything else is read from them."""
_USAGE: Final = frozenset({"usage", "usage.completion_tokens", "usage.prompt_tokens", "usage.total_tokens"})


def content_causes(rows: Sequence[BrokenRow], earlier: Sequence[Draft], index: ExchangeIndex) -> list[Draft]:
    """The causes of rows on content; a row that an earlier cause explains is added to that."""
    drafts: list[Draft] = []
    for row in sorted(rows, key=lambda row: _rank(row, index)):
        scored = [(_explains(draft, row, index), draft) for draft in (*earlier, *drafts) if draft.rows]
        score, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        if best is not None and score > 0:
            best.rows.append(row)
        else:
            drafts.append(Draft("", [row]))
    for draft in drafts:
        describe(draft, index)
    return _joined(drafts, index)


def _joined(drafts: Sequence[Draft], index: ExchangeIndex) -> list[Draft]:
    """The drafts; those with the same topic and parameter as one, if one setting explains the failures of both."""
    joined: list[Draft] = []
    for draft in drafts:
        same = next((other for other in joined if _same_cause(other, draft, index)), None)
        if same is None:
            joined.append(draft)
        else:
            same.rows += draft.rows
            if same.rows[0].topic is Topic.CHOICES:
                same.settings = index.settings_of_failures(same.rows[:1])
    return joined


def _same_cause(draft: Draft, other: Draft, index: ExchangeIndex) -> bool:
    first, second = draft.rows[0], other.rows[0]
    if first.topic is not second.topic or first.topic not in CONTENT or draft.about != other.about:
        return False
    return first.topic is Topic.CHOICES or bool(index.settings_of_failures([first, second]))


def _rank(row: BrokenRow, index: ExchangeIndex) -> tuple[int, int, int, int, str]:
    """What is looked at first: what others are read from, what one setting alone shows, what is broken most often."""
    tier = _FIRST.index(row.topic) if row.topic in _FIRST else len(_FIRST) + (row.topic is Topic.RELATION)
    compared = bool(row.group) and row.topic in {Topic.CHOICES, Topic.TEXT} and len(index.sufficient_settings(row)) == 1
    failures = len(index.exchanges) if compared else len(row.cases)
    return tier, -failures, list(Topic).index(row.topic), row.level, row.id


def _explains(draft: Draft, row: BrokenRow, index: ExchangeIndex) -> float:
    """How well the first row of a cause explains another row: 0 not at all, 1 where both fail on the same replies."""
    first = draft.rows[0]
    same_topic = [other for other in draft.rows if other.topic is first.topic]
    if not any(row.topic in spoiled_topics(other) for other in same_topic):
        return 0.0
    if first.topic is Topic.MEMBER and row.topic is Topic.MEMBER:
        if any(_same_member(other, row) for other in same_topic):
            return 1.0
        if first.rule != row.rule:
            return 0.0
    overlap = _overlap({case for other in same_topic for case in other.cases}, row)
    return max(overlap, SAME_SETTINGS * _has_settings(first, row, index)) if first.topic in CONTENT else overlap


def _overlap(cases: Collection[str], row: BrokenRow) -> float:
    """The share of a row's failures that are on these cases, less the share of what it keeps."""
    failing = [not frozenset(subject).isdisjoint(cases) for subject in row.verdict.broke]
    if not failing or sum(failing) < MOST_OF * len(failing):
        return 0.0
    in_kept = [subject[-1] in cases for subject in row.verdict.kept]
    kept_beside = sum(in_kept) / len(in_kept) if in_kept else 0.0
    return sum(failing) / len(failing) - kept_beside if kept_beside <= KEPT_BESIDE else 0.0


def _has_settings(first: BrokenRow, row: BrokenRow, index: ExchangeIndex) -> bool:
    """Whether a row is broken exactly where requests have the settings that suffice to break another row."""
    sufficient = index.sufficient_settings(first)
    kept_by = (subject[-1] for subject in row.verdict.kept)
    return (
        bool(sufficient)
        and row.mostly(lambda x: sufficient <= index.settings(x.case.id))
        and not any(sufficient <= index.settings(case) for case in kept_by if case in index.exchanges)
    )


def spoiled_topics(row: BrokenRow) -> frozenset[Topic]:
    """The topics that may be wrong in a reply because this row is broken in it."""
    if row.topic is Topic.CHOICES and not row.group and not any(map(_mixed_up, row.failing)):
        return CONTENT - {Topic.TEXT, Topic.LOGPROBS}  # choices that are missing do not change the others
    if row.topic is not Topic.MEMBER:
        return SPOILED_BY.get(row.topic, frozenset())
    path = str(row.verdict.requirement.params["path"])
    if ".logprobs" in path:
        return frozenset({Topic.MEMBER, Topic.LOGPROBS, Topic.RELATION})
    if path.startswith("choices"):
        return CONTENT | {Topic.MEMBER, Topic.ANSWER}
    if path in _USAGE:
        return frozenset({Topic.MEMBER, Topic.COUNTS, Topic.RELATION})
    return frozenset({Topic.MEMBER, Topic.IDENTITY})


def _mixed_up(x: Exchange) -> bool:
    """Whether the parts of several choices are read as one choice, or no choice has an index that can be read."""
    finished = (sum(part.finish_reason is not None for part in choice.parts) for choice in x.choices.values())
    return not x.choices or any(number > 1 for number in finished)


def _same_member(first: BrokenRow, row: BrokenRow) -> bool:
    """Whether both rows are about one member, in replies and in chunks, or the second is about a part of it."""
    outer, inner = (str(member.verdict.requirement.params["path"]) for member in (first, row))
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))
