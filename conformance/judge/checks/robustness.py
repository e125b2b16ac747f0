"""Robustness: the target answers every request completely, and still answers afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.acceptance import describe_reply, describe_request, error_object, error_text, label
from conformance.judge.comparison import compare, texts
from conformance.judge.fixtures import choice, completion, error, example, group, plain, response, stream
from conformance.model import BUSY, ENOUGH_REPLIES, Ending, Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING

EXPECTED: Final = "expected a completion, or a 4xx with the reason"
FINE: Final = completion(choice())


@check(
    "robustness",
    Scope.ANY,
    good=lambda: example(error()),
    bad=lambda: (
        *example(error("list index out of range", 500)),
        *example(stream(FINE, {"error": {"message": "list index out of range", "code": 500}})),
    ),
)
def no_server_error(x: Exchange, context: CheckContext) -> Findings:
    """No request makes the server fail with a 5xx, as the status or inside a stream.

    Clients retry a 5xx though it will never succeed, and the caller does not learn what is wrong with the request.

    Fix: catch the exception behind it; answer a mistake of the caller with a 4xx that explains it.
    """
    status = _inner_status(x) or x.status
    if status is None or (status == 501 and x.case.method != context.contract.method):
        return
    if status < 500:
        yield Satisfied()
    elif status in BUSY:
        yield Inconclusive(f"{_failure(x, status)}, which load or a gateway may cause")
    else:
        yield Violation(f"{_failure(x, status)}{describe_request(x.case.content, 160)}; {EXPECTED}")


def _inner_status(x: Exchange) -> int | None:
    """The 5xx status that an error inside a stream carries as its code; None where there is none."""
    error = error_object(x.error) if x.successful and x.streamed and x.error is not MISSING else None
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 500 <= code < 600 else None


def _failure(x: Exchange, status: int) -> str:
    """The failed reply in words."""
    if status == x.status:
        return describe_reply(x)
    return f"HTTP {x.status} with an error {status} inside, {show(error_text(x), 120)}"


@check(
    "robustness",
    Scope.ANY,
    needs_whole_run=True,
    good=lambda: example(plain(FINE)),
    bad=lambda: (
        *example(response(b'{"id": "cmpl', ending=Ending.TRUNCATED, error="peer closed the connection")),
        *example(stream(FINE, done=False, ending=Ending.TIMED_OUT, error="no byte for 30 s")),
    ),
)
def response_is_complete(x: Exchange, context: CheckContext) -> Findings:
    """Each response ends in time, and as its framing announced.

    A body that stops early or never ends leaves the client with half a text and a connection that it must close.

    Fix: end the response on every code path, errors included, with the announced length or a final chunk.
    """
    if x.ending is Ending.ABANDONED or x.case.id in context.cut_beside_others:
        return  # of the latter, complete_beside_others speaks
    if x.status is None and x.ending is not Ending.TIMED_OUT:
        yield Inconclusive(f"no response: {show(x.last.error, 120)}")
    elif x.ending is Ending.UNREAD:
        yield Inconclusive(f"the response was not kept completely: {show(x.last.error, 120)}")
    elif x.ending is Ending.COMPLETE and not x.decoded[1]:
        yield Satisfied()
    else:
        why = x.last.error or x.decoded[1]
        observed = f"{x.ending.value.replace('_', ' ')}{_bytes_read(x)} ({show(why, 120)})"
        yield Violation(f"{observed}; expected a complete response")


def _bytes_read(x: Exchange) -> str:
    """How much of the response was read; the error says it of responses that were too large to keep."""
    if x.status is None:
        return " before the first byte"
    in_error = " bytes were read" in x.last.error or " bytes are kept" in x.last.error
    return "" if in_error else f" after {sum(len(piece.data) for piece in x.pieces)} bytes"


def _still_answers(group: Group, before: str, after: str, circumstance: str) -> Findings:
    """Whether the requests after an exchange are answered; a lost connection counts once it is confirmed."""
    probes = group.all(after)
    if not probes or not group.all(before):
        return
    good = [x for x in probes if x.successful]
    lost = [x for x in probes if x.status is None or x.status >= 500]
    if lost and (good or len(lost) >= ENOUGH_REPLIES):
        observed = f"{label(group)}: {describe_reply(lost[0])} {circumstance}"
        yield Violation(f"{observed}; expected HTTP 2xx", "", lost[0].case.id, flaky=bool(good))
    elif lost:
        again = tuple(x.case.id for x in lost)  # not what came before, which must not be sent for nothing
        yield Inconclusive(f"{label(group)}: {describe_reply(lost[0])} {circumstance}", repeat=True, cases=again)
    elif good:
        yield Satisfied(label(group))
    else:
        yield Inconclusive(f"{label(group)}: {describe_reply(probes[0])}")


def _lost() -> list[Exchange]:
    return [response(b"", status=None, error="connection refused")] * ENOUGH_REPLIES


@check(
    "robustness",
    Scope.GROUP,
    group="alive",
    good=lambda: example(group("alive", "empty prompt", hostile=error(), probe=plain(FINE))),
    bad=lambda: (
        *example(group("alive", "empty prompt", hostile=error(status=500), probe=_lost())),
        *example(group("alive", "silence", before=plain(FINE), without=_lost(), again=_lost())),
    ),
)
def alive_after_hostile(group: Group, context: CheckContext) -> Findings:
    """After an adversarial request, a client that hung up, or any other request, a plain request is answered as before.

    One caller's mistake must not stop the service for all others.

    Fix: confine the failure to its request: validate before it reaches the engine, and release its resources.
    """
    if group.all("again"):
        yield _silence(group)
    else:
        yield from _still_answers(group, "hostile", "probe", "to a plain request afterwards")


UNREACHABLE: Final = re.compile(
    r"name resolution|getaddrinfo|name or service|unreachable|no route|no connection within", re.IGNORECASE
)
"""Errors of a connection that the network between client and target may cause."""


def _silence(group: Group) -> Finding:
    """The finding on a target that answers nothing any more, not even what it answered before."""
    again, without, before = (group.all(role) for role in ("again", "without", "before"))
    case, error = (without or again)[0].case, again[-1].last.error
    observed = f"no response to {len(without)} requests, first to {show(case.content, 160)}"
    observed += f" after {show(before[-1].case.content, 160)} was answered" if before else ""
    observed += f", nor to {len(again)} that had been answered before ({show(error, 80)})"
    if len(again) < ENOUGH_REPLIES or UNREACHABLE.search(error):
        return Inconclusive(observed)
    return Violation(f"{observed}; expected HTTP 2xx", case=case.id)


def _after(text: str) -> Group:
    """A greedy request alone, and again after a refusal, with this text."""
    alone, after = (plain(completion(choice(words)), {"temperature": 0}) for words in (" 4, 5", text))
    return group("after", "refusal", alone=[alone] * ENOUGH_REPLIES, after=[after] * ENOUGH_REPLIES)


@check(
    "robustness",
    Scope.GROUP,
    group="after",
    good=lambda: example(_after(" 4, 5")),
    bad=lambda: example(_after("1, 2, 3")),
)
def nothing_is_left_behind(group: Group, context: CheckContext) -> Findings:
    """A refusal, or a stream that its client left, does not change the text of the next reply.

    Text that was meant for another request, or a half-cleared buffer, reaches the next caller.

    Fix: give each request state of its own, and release it however the request ends.
    """
    for finding in compare(group, ("alone", "after"), texts, "text", context):
        # the same request gave other texts, which is the point here and no sign of chance
        yield replace(finding, steady=False) if isinstance(finding, Violation) else finding


@check(
    "robustness",
    Scope.GROUP,
    group="repeat",
    good=lambda: example(group("repeat", first=plain(FINE), second=plain(FINE))),
    bad=lambda: example(group("repeat", first=plain(FINE), second=_lost())),
)
def repeat_is_answered(group: Group, context: CheckContext) -> Findings:
    """A request that was answered once is answered when it is sent again.

    Faults of caches and reused slots show at the second request; every application sends some prompt twice.

    Fix: check the state that the first request leaves behind: prefix cache, slot, template state.
    """
    if any(x.successful for x in group.all("first")):
        yield from _still_answers(group, "first", "second", "the second time")
