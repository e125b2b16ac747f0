"""Identity: id and creation time of a completion, beyond what their types say."""

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
HALF_AN_HOUR: Final = 1_800.0  # no time zone is nearer to UTC
NOW: Final = formatdate(CREATED, usegmt=True)
EARLIEST: Final = 1_262_304_000.0  # 2010: before there were completions
LATEST: Final = 4_102_444_800.0  # 2100: milliseconds are far beyond


def _completions(x: Exchange) -> Iterator[tuple[Document, Mapping[str, Any]]]:
    """The documents that speak of a choice: a leading chunk of annotations has no identity yet."""
    return ((document, document.value) for document in x.documents if document.choices)


@check(
    "schema",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice(), id="b7c1"))),
    bad=lambda: example(plain(completion(choice(), id=""))),
)
def id_is_not_empty(x: Exchange, context: CheckContext) -> Findings:
    """A completion's id is not the empty string.

    The id is what logs, caches and support requests refer to; an empty one is the same for all.

    Fix: fill in the id before the first chunk or the body is written.
    """
    held = 0
    for document, value in _completions(x):
        if value.get("id", MISSING) == "":
            yield Violation("id is ''; expected a name for this completion", f"{document.at} /id")
        elif isinstance(value.get("id"), str):
            held += 1
    if held:
        yield Satisfied(count=held)


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

    Read as seconds, a time in milliseconds lies tens of thousands of years ahead, and date libraries raise on it.

    Fix: send whole seconds since 1970 (`int(time.time())`), in chunks too.
    """
    sent = x.last.started_at
    low, high = (sent - DAY, sent + DAY) if sent > EARLIEST else (EARLIEST, LATEST)
    held = 0
    for document, value in _completions(x):
        created = value.get("created")
        if isinstance(created, bool) or not isinstance(created, (int, float)):
            continue
        if low <= created <= high:
            held += 1
        else:
            expected = f"within a day of {sent:.0f}" if sent > EARLIEST else "Unix seconds"
            yield Violation(f"created is {show(created)}; expected {expected}", f"{document.at} /created")
    if held:
        yield Satisfied(count=held)


@check(
    "schema",
    Scope.SUCCESS,
    expected_when=None,  # no request brings a server to say what time it is
    good=lambda: example(plain(completion(choice(), created=CREATED + 75), headers={"date": NOW})),
    bad=lambda: (
        *example(plain(completion(choice(), created=CREATED + 8 * 3600), headers={"date": NOW})),
        *example(stream(completion(choice(), created=CREATED - 5 * 3600), headers={"date": NOW})),
    ),
)
def created_agrees_with_the_clock(x: Exchange, context: CheckContext) -> Findings:
    """`created` is the time that the response's own Date header tells, give or take half an hour.

    Stores sort and expire completions by `created`; local time in place of UTC puts them hours into the future or past.

    Fix: take seconds since 1970 in UTC (`int(time.time())`), never those of a local calendar.
    """
    now = _date(x)
    if now is None:
        return
    held = 0
    for document, value in _completions(x):
        created = value.get("created")
        if isinstance(created, bool) or not isinstance(created, (int, float)) or not EARLIEST < created < LATEST:
            continue
        if abs(created - now) <= HALF_AN_HOUR + x.last.elapsed:
            held += 1
        else:
            told = f"created is {show(created)}, {abs(created - now) / 3600:.1f} h away from the Date header"
            yield Violation(f"{told}; expected about {now:.0f}", f"{document.at} /created")
    if held:
        yield Satisfied(count=held)


def _date(x: Exchange) -> float | None:
    """The time that the response says it is; None where it says none that can be."""
    try:
        told = parsedate_to_datetime(x.header("date") or "")
        now = (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return now if EARLIEST < now < LATEST else None


def _id(x: Exchange) -> str | None:
    found = next((value.get("id") for _, value in _completions(x)), None)
    return found if isinstance(found, str) and found else None


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
    """Two requests get completions of different ids, be they the same request twice.

    Stores keyed by id overwrite one completion with the other.

    Fix: draw a fresh id for each request; a cache that replays a completion should give it a new id.
    """
    found = [(x, name) for role in ("first", "second") for x in group.all(role) if (name := _id(x)) is not None]
    if len(found) < 2:
        yield Inconclusive("fewer than two completions with an id came back")
        return
    ids = [name for _, name in found]
    if len(set(ids)) == len(ids):
        yield Satisfied("id", count=len(ids))
    else:
        again = next(place for place, name in enumerate(ids) if name in ids[:place])
        yield Violation(f"id {show(ids[again])} came twice; expected a new one", "id", found[again][0].case.id)
