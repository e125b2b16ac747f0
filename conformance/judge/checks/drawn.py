"""Drawn requests: bodies that nobody chose, drawn at random from the document, valid and invalid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.acceptance import (
    accepted,
    accepted_control,
    describe_reply,
    describe_request,
    failed,
    label,
)
from conformance.judge.checks.limits import justified_refusal
from conformance.judge.fixtures import choice, completion, error, example, group, plain
from conformance.model import ENOUGH_REPLIES, Ending, Inconclusive, Satisfied, Validity, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps

FINE: Final = completion(choice())
DRAWN: Final = {"prompt": "\u0e44\u0e17\u0e22", "max_tokens": 2, "user": "\u202eabc"}
WRONG: Final = {**DRAWN, "n": [None, None]}
MOST_SHOWN: Final = 200  # characters of a body


@check(
    "limits",
    Scope.GROUP,
    group="drawn",
    keyed=True,
    needs_whole_run=True,
    good=lambda: example(group("drawn", "request.drawn.accepts 1", probe=plain(FINE, DRAWN))),
    bad=lambda: (
        *example(group("drawn", "request.drawn.accepts 1", probe=error("cannot parse the body", request=DRAWN))),
        *example(group("drawn", "request.drawn.accepts 1", probe=plain({"choices": []}, DRAWN))),
    ),
)
def drawn_is_accepted(group: Group, context: CheckContext) -> Findings:
    """A valid request that is drawn at random from the document is accepted, and answered with choices.

    The inputs of an application were not thought of by anyone who tested the server: every valid one has to work.

    Fix: find what the refused request has that others lack; validate by the published schema and no stricter.
    """
    replies = group.all("probe")
    expected = "expected 2xx with choices, as each value is documented"
    wrong = [x for x in replies if x.refused or (accepted(x) and _is_empty(x))]
    failures = [x for x in replies if failed(x)]
    for x in wrong[:1]:
        observed = describe_reply(x) if x.refused else f"{describe_reply(x)} without choices"
        violation = Violation(f"{observed}{_body(x)}; {expected}", case=x.case.id, flaky=len(wrong) < len(replies))
        yield (justified_refusal(x, context) if x.refused else None) or violation
    if wrong:
        return
    if len(failures) >= ENOUGH_REPLIES:
        observed = f"{describe_reply(failures[0])}, {len(failures)} times{_body(failures[0])}"
        yield Violation(f"{observed}; {expected}", case=failures[0].case.id)
    elif any(accepted(x) for x in replies):
        yield Satisfied()
    elif replies:
        again = tuple(x.case.id for x in failures)
        yield Inconclusive(f"{describe_reply(replies[0])}, neither accepted nor refused", bool(failures), again)


def _difference(group: Group, control: Exchange, probe: Exchange) -> str:
    """What a request has that its control has not: the member that the key names, or else the first that differs."""
    body, other = probe.case.body, control.case.body
    if not isinstance(body, Mapping) or not isinstance(other, Mapping):
        return label(group)
    differing = [name for name, value in body.items() if name not in other or dumps(value) != dumps(other[name])]
    of_key = [name for name in group.key.split(" ")[1:2] if name in differing]
    return (
        "".join(f"{name} = {show(body[name], MOST_SHOWN // 3)}" for name in (of_key or differing)[:1])
        or f"{label(group)}, absent"
    )


def _is_empty(x: Exchange) -> bool:
    """Whether a reply that was completed has no choice in it."""
    return x.ending is Ending.COMPLETE and not x.choices


def _body(x: Exchange) -> str:
    return describe_request(x.case.content, MOST_SHOWN)


@check(
    "limits",
    Scope.GROUP,
    group="drawn-invalid",
    keyed=True,
    good=lambda: example(
        group(
            "drawn-invalid",
            "request.drawn.refuses n 1",
            control=plain(FINE, DRAWN),
            probe=error("n is no integer", request=WRONG, validity=Validity.INVALID),
        )
    ),
    bad=lambda: example(
        group("drawn-invalid", "request.drawn.refuses n 1", control=plain(FINE, DRAWN), probe=plain(FINE, WRONG))
    ),
)
def drawn_is_refused(group: Group, context: CheckContext) -> Findings:
    """A drawn request with one value that the document excludes is refused with a 4xx, as the rest of it is accepted.

    Validation that is skipped for some inputs lets a client's mistake pass unnoticed just when it is hardest to see.

    Fix: validate every request in full, whatever else it holds, before generation begins.
    """
    control, missing = accepted_control(group)
    probes = group.all("probe")
    if control is None or not probes:
        yield Inconclusive(missing or "not sent")
        return
    accepting = [x for x in probes if accepted(x)]
    failures = [x for x in probes if failed(x)]
    wrong = _difference(group, control, probes[0])
    expected = f"expected a 4xx, as its control was accepted without that ({control.case.id})"
    if accepting:
        observed = f"{wrong}: {describe_reply(accepting[0])}{_body(accepting[0])}"
        yield Violation(f"{observed}; {expected}", case=accepting[0].case.id, flaky=len(accepting) < len(probes))
    elif len(failures) >= ENOUGH_REPLIES:
        observed = f"{wrong}: {describe_reply(failures[0])}, {len(failures)} times"
        yield Violation(f"{observed}; {expected}", case=failures[0].case.id)
    elif any(x.refused or (x.successful and not accepted(x)) for x in probes):
        yield Satisfied()
    else:
        reason = f"{wrong}: {describe_reply(probes[0])}, neither accepted nor refused"
        yield Inconclusive(reason, bool(failures), tuple(x.case.id for x in failures))
