"""Causes that leave a client without a usable reply: no streams, one text for all, server errors, broken replies.

The errors themselves are here as well: an error that is sent as a success, and one that is not as promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from conformance.contract.bounds import top
from conformance.judge.causes.cause import BrokenRow, Draft, is_invalid
from conformance.judge.causes.exchange_index import ExchangeIndex
from conformance.judge.causes.leniency import rows_on_refusal
from conformance.judge.causes.topics import Topic
from conformance.judge.checks.acceptance import accepted, error_instead, failed
from conformance.judge.comparison import comparable, texts
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING, dumps

FEWEST_STREAMS: Final = 2
"""Streams that fail, at least, before streaming counts as not offered: one may fail because of another member."""
FEWEST_PROMPTS: Final = 5
"""Different prompts with one text, at least, before the text counts as the same whatever is asked."""
ABOUT_CONTENT: Final = frozenset(Topic) - {Topic.FRAMING, Topic.MEMBER, Topic.ERRORS, Topic.HEADERS}
"""The topics that break when the text does not depend on the request."""


def no_streaming(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """No request with `stream: true` gets an event stream, though plain requests are accepted."""
    streams = [x for x in index.ordinary if "streamed" in index.settings(x.case.id)]
    offered = any(x.successful and x.streamed and x.messages for x in streams)
    plain = any(accepted(x) and "plain" in index.settings(x.case.id) for x in index.ordinary)
    if len(streams) < FEWEST_STREAMS or offered or not plain:
        return
    # invalid requests too: a target that refuses all streams never looks at their other members
    ids = {case for case in index.exchanges if "streamed" in index.settings(case)}
    members = [row for row in rows if row.mostly(lambda x: x.case.id in ids)]
    reply, count = Counter(map(_described, streams)).most_common(1)[0]
    yield Draft(
        "not-streamed",
        sorted(members, key=lambda row: row.parameter != "stream"),
        observed=f"{reply} in {count} of {len(streams)} streams",
        expected="an event stream",
        counted=(len(streams), len(streams)),
        affects=lambda x: x.case.id in ids,
    )


def _described(x: Exchange) -> str:
    """What kind of reply this is, without its details."""
    if x.status is None:
        return "no response"
    return f"HTTP {x.status}" + (f" with {x.media_type or 'no content type'}" if x.successful else "")


def same_text(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """All replies have the same text, whatever the prompt."""
    replies = [x for x in index.ordinary if comparable(x) and x.choices]
    prompts = {dumps(x.case.body.get("prompt")) for x in replies}
    contents = {tuple(texts(x).items()) for x in replies}
    if len(prompts) < FEWEST_PROMPTS or len(contents) != 1:
        return
    ids = {x.case.id for x in replies}
    yield Draft(
        "same-body",
        [row for row in rows if row.topic in ABOUT_CONTENT and row.mostly(lambda x: x.case.id in ids)],
        observed=f"{len(replies)} replies to {len(prompts)} different prompts have the same text",
        expected="a text of its own for each",
        counted=(len(replies), len(replies)),
        affects=lambda x: x.case.id in ids,
    )


def server_errors(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Rows whose requests got a 5xx: those of invalid requests together, those of valid ones by shared requests."""
    failing = [row for row in rows if row.mostly(failed)]
    failing.sort(key=lambda row: not _tries_a_value(row))
    invalid = [row for row in failing if _concerns_invalid(row)]
    if invalid:
        yield _of_server_errors(invalid, index, invalid=True)
    for valid in _by_shared_request([row for row in failing if not _concerns_invalid(row)]):
        yield _of_server_errors(valid, index, invalid=False)


def _tries_a_value(row: BrokenRow) -> bool:
    """Whether the row is about the acceptance or refusal of requests in groups; all of them are alike in validity."""
    return row.topic is Topic.ANSWER and bool(row.group)


def _concerns_invalid(row: BrokenRow) -> bool:
    """Whether the requests that fail are invalid: the first, or more than half where they are of several kinds."""
    if _tries_a_value(row):
        return is_invalid(row.failing[0])
    return sum(map(is_invalid, row.failing)) * 2 > len(row.failing)


def _of_server_errors(rows: list[BrokenRow], index: ExchangeIndex, *, invalid: bool) -> Draft:
    replies = {x.case.id: x for row in rows for x in row.failing if failed(x)}
    statuses = {str(x.status) for x in replies.values()}
    settings = index.settings_of_failures(rows)
    if not settings:
        names = {top(row.parameter) for row in rows if row.parameter}
        settings = tuple(names) if len(names) == 1 else ()
    hostile = all(x.case.hostile for x in replies.values())
    return Draft(
        "adversarial-5xx" if hostile else "validation-5xx" if invalid else "server-error",
        rows,
        subject=statuses.pop() if len(statuses) == 1 else "5xx",
        settings=settings,
        affects=lambda x: x.case.id in replies or (failed(x) and is_invalid(x) is invalid),
    )


def _by_shared_request(rows: Sequence[BrokenRow]) -> list[list[BrokenRow]]:
    """Rows that share a failing request, together."""
    parts: list[list[BrokenRow]] = []
    for row in sorted(rows, key=lambda row: -len(row.cases)):
        sharing = next((part for part in parts if any(row.cases & other.cases for other in part)), None)
        if sharing is None:
            parts.append([row])
        else:
            sharing.append(row)
    return parts


def unfinished_replies(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Replies that do not come, that break off, or that are mixed up with those to simultaneous requests."""
    for row in rows:
        if (row.area != "robustness" and row.group != "burst") or row.topic is Topic.TEXT:
            continue
        if row.verdict.requirement.check == "burst_does_not_mix":
            yield Draft("mixed", [row])
        elif row.group == "burst":
            yield Draft("cut-beside-others", [row], affects=_broken_off)
        elif row.group or row.mostly(lambda x: x.status is None):
            yield Draft("no-answer", [row], affects=lambda x: x.status is None)
        else:
            yield Draft("cut", [row], settings=index.settings_of_failures([row]), affects=_broken_off)


def _broken_off(x: Exchange) -> bool:
    return x.status is None or x.ending.value not in {"complete", "abandoned"}


def errors_as_success(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Errors that are sent with a 2xx status."""
    on_errors = [row for row in rows if row.topic is Topic.ERRORS]
    members = [row for row in (*on_errors, *rows_on_refusal(rows)) if row.mostly(_is_error_as_success)]
    if any(row in on_errors for row in members):
        yield Draft("error-as-success", members, settings=index.settings_of_failures(members))


def _is_error_as_success(x: Exchange) -> bool:
    return x.successful and (error_instead(x) or x.error is not MISSING)


def errors_and_headers(rows: Sequence[BrokenRow], index: ExchangeIndex) -> Iterator[Draft]:
    """Error bodies, and header fields, that are not as promised."""
    errors = [row for row in rows if row.topic is Topic.ERRORS]
    if errors:
        yield Draft("errors", errors, settings=index.settings_of_failures(errors))
    headers = [row for row in rows if row.topic is Topic.HEADERS]
    if headers:
        yield Draft("headers", headers)
