"""Requirements that cannot be judged because a cause spoils every reply that was expected to show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from conformance.judge.catalogue import Scope, load
from conformance.judge.causes.cause import Draft
from conformance.judge.causes.content import spoiled_topics
from conformance.judge.causes.exchange_index import ExchangeIndex
from conformance.judge.causes.topics import topic_of
from conformance.model import Verdict
from conformance.model.exchange import Exchange


def blocked_by(
    drafts: Sequence[Draft], inconclusive: Sequence[Verdict], index: ExchangeIndex
) -> Mapping[str, tuple[str, ...]]:
    """The ids of inconclusive requirements by the key of the first cause that blocks them."""
    blocked: dict[str, list[str]] = defaultdict(list)
    for verdict in inconclusive:
        due = [[index.exchanges[case] for case in cases if case in index.exchanges] for cases in verdict.due]
        for draft in drafts if due else ():
            if all(any(_spoils(draft, x, verdict) for x in subject) for subject in due):
                blocked[draft.key].append(verdict.requirement.id)
                break
    return {key: tuple(ids) for key, ids in blocked.items()}


def _spoils(draft: Draft, x: Exchange, verdict: Verdict) -> bool:
    """Whether a reply cannot show a requirement because of a cause: it has no text, or the wrong one.

    Two replies that differ by chance show nothing either, so relations are spoiled only by what leaves no text.
    """
    if draft.affects(x):
        return True
    shows_cause = any(x.case.id == failing.case.id for row in draft.rows for failing in row.failing)
    if not shows_cause or topic_of(verdict) not in spoiled_topics(draft.rows[0]):
        return False
    silent = not any(choice.text for choice in x.choices.values())
    return silent or bool(verdict.repeat) or load()[verdict.requirement.check].scope is not Scope.GROUP
