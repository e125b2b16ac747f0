"""Identity: id and creation time of a completion, beyond their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import formatdate, parsedate_to_datetime
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.fixtures import CREATED, choice, completion, example, group, plain, stream
from conformance.model import Inconclusive, Satisfied, Violation
from conformance.model.exchange import Document, Exchange, Group
from conformance.model.json_text import MISSING

DAY: Final = 86_400.0
HALF_AN_HOUR: Final = 1_800.0  # every time zone but UTC is at least this far from it
NOW: Final = formatdate(CREATED, usegmt=True)
EARLIEST: Final = 1_262_304_000.0  # 2010: before there were completions
LATEST: Final = 4_102_444_800.0  # 2100: milliseconds are far beyond


def _completions(x: Exchange) -> Iterator[tuple[Document, Mapping[str, Any]]]:
    """The documents with choices: an initial chunk of annotations may have no id yet."""
    return ((document, document.value) for document in x.documents if document.choices)


@check(
    "schema",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice(), id="b7c1"))),
    bad=lambda: example(plain(completion(choice(), id=""))),
)
def id_is_not_empty(x: Exchange, context: CheckContext) -> Findings:
    """A completion's id is not the empty string.

    Logs, caches and support requests refer to the id; an empty one is the same for all completions.

    Fix: set the id before the first chunk or the body is written.
    """
    satisfied = 0
    for document, value in _completions(x):
        if value.get("id", MISSING) == "":
            yield Violation('id is ""; expected a string that is not empty', f"{document.at} /id")
        elif isinstance(value.get("id"), str):
            satisfied += 1
    if satisfied:
        yield Satisfied(count=satisfied)


@check(
    "schema",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice()))),
    bad=lambda: (
        *example(plain(completion(choice(), created=CREATED * 1000))),
        *example(plain(completion(choice(), created=0))),
    ),
)
def created_is_in_seconds(x: Exchange, context: CheckContext) -> Findings:
    """`created` is the time of the completion in Unix seconds.

    Read as seconds, a time in milliseconds is tens of thousands of years ahead, and date libraries raise on it.

    Fix: send whole seconds since 1970 (`int(time.time())`), in chunks too.
    """
    sent = x.last.started_at
    low, high = (sent - DAY, sent + DAY) if sent > EARLIEST else (EARLIEST, LATEST)
    satisfied = 0
    for document, value in _completions(x):
        created = value.get("created")
        if isinstance(created, bool) or not isinstance(created, (int, float)):
            continue
        if low <= created <= high:
            satisfied += 1
        else:
            expected = f"within a day of {sent:.0f}" if sent > EARLIEST else "Unix seconds"
            yield Violation(f"created is {show(created)}; expected {expected}", f"{document.at} /created")
    if satisfied:
        yield Satisfied(count=satisfied)


@check(
    "schema",
    Scope.SUCCESS,
    expected_when=None,  # no request makes a server send a Date header
    good=lambda: example(plain(completion(choice(), created=CREATED + 75), headers={"date": NOW})),
    bad=lambda: (
        *example(plain(completion(choice(), created=CREATED + 8 * 3600), headers={"date": NOW})),
        *example(stream(completion(choice(), created=CREATED - 5 * 3600), headers={"date": NOW})),
    ),
)
def created_agrees_with_the_clock(x: Exchange, context: CheckContext) -> Findings:
    """`created` is the time of the response's own Date header, within half an hour.

    Stores sort and expire completions by `created`; local time in place of UTC puts them hours into the future or past.

    Fix: take seconds since 1970 in UTC (`int(time.time())`), never those of a local calendar.
    """
    date = _date_header(x)
    if date is None:
        return
    satisfied = 0
    for document, value in _completions(x):
        created = value.get("created")
        if isinstance(created, bool) or not isinstance(created, (int, float)) or not EARLIEST < created < LATEST:
            continue
        if abs(created - date) <= HALF_AN_HOUR + x.last.elapsed:
            satisfied += 1
        else:
            observed = f"created is {show(created)}, {abs(created - date) / 3600:.1f} h from the Date header"
            yield Violation(f"{observed}; expected about {date:.0f}", f"{document.at} /created")
    if satisfied:
        yield Satisfied(count=satisfied)


def _date_header(x: Exchange) -> float | None:
    """The time of the Date header in Unix seconds; None where it is absent, malformed or not between 2010 and 2100."""
    try:
        date = parsedate_to_datetime(x.header("date") or "")
        now = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return now if EARLIEST < now < LATEST else None


def _id(x: Exchange) -> str | None:
    value = next((value.get("id") for _, value in _completions(x)), None)
    return value if isinstance(value, str) and value else None


@check(
    "schema",
    Scope.GROUP,
    group="repeat",
    good=lambda: example(
        group("repeat", first=plain(completion(choice(), id="a")), second=plain(completion(choice(), id="b")))
    ),
    bad=lambda: example(
        group("repeat", first=plain(completion(choice(), id="a")), second=plain(completion(choice(), id="a")))
    ),
)
def ids_are_unique(group: Group, context: CheckContext) -> Findings:
    """Two completions have different ids, even where the same request was sent twice.

    Stores keyed by id overwrite one completion with the other.

    Fix: create a new id for each request; a cache that replays a completion should give it a new id.
    """
    replies = [(x, id_) for role in ("first", "second") for x in group.all(role) if (id_ := _id(x)) is not None]
    if len(replies) < 2:
        yield Inconclusive("fewer than two replies have a completion with an id")
        return
    ids = [id_ for _, id_ in replies]
    if len(set(ids)) == len(ids):
        yield Satisfied("id", count=len(ids))
    else:
        repeated = next(number for number, id_ in enumerate(ids) if id_ in ids[:number])
        observed = f"id {show(ids[repeated])} was sent twice"
        yield Violation(f"{observed}; expected a new one", "id", case=replies[repeated][0].case.id)
