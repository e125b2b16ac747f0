"""Groups that compare a plain reply with a stream: whether a difference is due to the channel alone.

A stop sequence that never matches is tried in a stream, and the text without it is plain. If streams lose text, the two
differ, and nothing is wrong with the stop sequence: the relations of plain/streamed pairs say what is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from conformance.judge.comparison import comparable, texts
from conformance.model import Finding, Inconclusive, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps

PAIRS: Final = "twin"
COMPARE_CHANNELS: Final = frozenset({PAIRS, "channel"})
"""The kinds of groups whose point it is to compare the channels."""
STREAMING: Final = frozenset({"stream", "stream_options"})


def within_one_channel(finding: Finding, group: Group, pairs: Iterable[Group]) -> Finding:
    """The finding; inconclusive where a plain reply and a stream are compared that differ for another reason.

    Either they do not have the same choices, or a plain/streamed pair without other members differs as well.
    """
    if isinstance(finding, Violation):
        observed = finding.message
    elif isinstance(finding, Inconclusive) and finding.repeat:
        observed = finding.reason
    else:
        return finding
    if group.kind in COMPARE_CHANNELS or (isinstance(finding, Violation) and _has_its_own_channel(finding.case, group)):
        return finding
    plain, streamed = _by_channel(group)
    if not plain or not streamed:
        return finding
    difference = ""
    if _asks_for_the_same(plain[0], streamed[0]) and list(plain[0].choices) != list(streamed[0].choices):
        difference = "a plain reply and a stream have other choices"
    elif any(_differs(pair) for pair in pairs if _has_no_more(pair, plain[0].case.body, streamed[0].case.body)):
        difference = "a stream differs from the plain reply to the same request"
    if not difference:
        return finding
    return Inconclusive(f"{difference}, so comparing them shows nothing else; {observed}")


def _has_its_own_channel(case_id: str, group: Group) -> bool:
    """Whether every other role has a reply on the channel of this case, so that it is compared with those."""
    role = next((role for role, members in group.members.items() if any(x.case.id == case_id for x in members)), None)
    if role is None:
        return False
    channel = next(_asks_stream(x.case.body) for x in group.members[role] if x.case.id == case_id)
    others = [members for name, members in group.members.items() if name != role and members]
    return all(any(comparable(x) and _asks_stream(x.case.body) is channel for x in members) for members in others)


def _asks_for_the_same(plain: Exchange, streamed: Exchange) -> bool:
    """Whether two requests ask for the same choices."""
    bodies = [x.case.body if isinstance(x.case.body, Mapping) else {} for x in (plain, streamed)]
    return all(bodies[0].get(name) == bodies[1].get(name) for name in ("n", "prompt"))


def _by_channel(group: Group) -> tuple[list[Exchange], list[Exchange]]:
    """The replies of a group that can be compared, plain and streamed."""
    replies = [x for members in group.members.values() for x in members if comparable(x)]
    streamed = [x for x in replies if _asks_stream(x.case.body)]
    return [x for x in replies if x not in streamed], streamed


def _asks_stream(body: Any) -> bool:
    return isinstance(body, Mapping) and body.get("stream") is True


def _has_no_more(pair: Group, *bodies: Any) -> bool:
    """Whether each of these requests has all members that the requests of the pair have."""
    members = {name for body in _bodies(pair) for name in body} - STREAMING
    return all(isinstance(body, Mapping) and members <= body.keys() for body in bodies)


def _bodies(pair: Group) -> Iterator[Mapping[str, Any]]:
    for members in pair.members.values():
        yield from (x.case.body for x in members if isinstance(x.case.body, Mapping))


def _differs(pair: Group) -> bool:
    """Whether no stream of a pair has the texts of one of its plain replies."""
    plain, streamed = _by_channel(pair)
    plain_texts, streamed_texts = ({dumps(sorted(texts(x).items())) for x in replies} for replies in (plain, streamed))
    return bool(plain_texts and streamed_texts) and plain_texts.isdisjoint(streamed_texts)


__all__ = ["PAIRS", "within_one_channel"]
