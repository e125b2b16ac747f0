"""Limits: documented values are accepted, excluded ones refused, and unspecified ones observed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check
from conformance.judge.checks.acceptance import (
    TRANSIENT,
    accepted,
    accepted_control,
    denied,
    describe_probe,
    describe_reply,
    describe_request,
    error_instead,
    error_param,
    error_text,
    error_words,
    failed,
    label,
    name_pattern,
)
from conformance.judge.fixtures import choice, completion, error, example, group, plain, stream
from conformance.model import ENOUGH_REPLIES, Credential, Inconclusive, Observation, Satisfied, Validity, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps

FINE: Final = completion(choice())
UNSUPPORTED: Final = re.compile(
    r"unsupported|(?:not|n't|never)\s+(?:\w+\s+){0,2}(?:support|available|allow(?!ed values?))", re.IGNORECASE
)


@check(
    "limits",
    Scope.GROUP,
    group="accept",
    keyed=True,
    needs_whole_run=True,
    good=lambda: example(group("accept", "request.n.accepts n=2", control=plain(FINE), probe=plain(FINE, {"n": 2}))),
    bad=lambda: example(group("accept", "request.n.accepts n=2", control=plain(FINE), probe=error(request={"n": 2}))),
)
def valid_is_accepted(group: Group, context: CheckContext) -> Findings:
    """A documented value is accepted.

    Programs are written from the document: a value that it allows and the server refuses makes them fail in production.

    Fix: validate by the published schema, types and bounds included, and no stricter.
    """
    control, missing = accepted_control(group)
    probes = group.all("probe")
    if not probes and any(accepted(x) for x in group.all("joint")):
        yield Satisfied(label(group))  # an accepted joint case proves each of its values; a refused one proves none
        return
    if control is None or not probes:
        yield Inconclusive(missing or f"{label(group)}: not sent alone")
        return
    right = context.get("statuses", ())  # by which a server may decline the request
    successes = [x for x in probes if accepted(x) or x.status in right]
    refusals = [x for x in probes if denied(x, control) and x not in successes]
    failures = [x for x in probes if failed(x) and x not in successes]
    if refusals:
        observed = f"{describe_probe(group, refusals[0], context)}: {describe_reply(refusals[0])}"
        declined = f"or HTTP {' or '.join(map(str, right))}, and 2xx is what" if right else "as"
        expected = f"expected 2xx, {declined} its control has ({control.case.id})"
        yield Violation(f"{observed}; {expected}", case=refusals[0].case.id, flaky=bool(successes))
    elif successes:
        yield Satisfied(label(group))
    elif _is_confirmed(failures, context):
        observed = f"{describe_probe(group, failures[0], context)}: {describe_reply(failures[0])}"
        yield Violation(f"{observed}; expected 2xx, as its control has", case=failures[0].case.id)
    else:
        reason = f"{label(group)}: {describe_reply(probes[0])}, neither accepted nor refused"
        yield Inconclusive(reason, bool(failures), _ids(failures))


LENGTH_REQUIRED: Final = 411
REFUSED: Final = error("n must be at least 1", request={"n": 0}, validity=Validity.INVALID)


@check(
    "limits",
    Scope.GROUP,
    group="refuse",
    keyed=True,
    needs_whole_run=True,
    good=lambda: example(group("refuse", "request.n.minimum n=0", control=plain(FINE), probe=REFUSED)),
    bad=lambda: (
        *example(group("refuse", "request.n.minimum n=0", control=plain(FINE), probe=plain(FINE, {"n": 0}))),
        *example(group("refuse", "auth.no-key", control=plain(FINE), probe=error(status=404)), statuses=[401, 403]),
    ),
)
def invalid_is_refused(group: Group, context: CheckContext) -> Findings:
    """A value that the document excludes is refused with a 4xx.

    A mistake that is accepted silently is found in the results or on the bill, instead of in the first reply.

    Fix: validate the request against the schema before generation begins and answer 400 or 422.
    """
    control, missing = accepted_control(group)
    probes = group.all("probe")
    look_alikes = group.all("look-alike")  # what the row on the type is not about: refused, they keep to it as well
    if look_alikes and not probes:
        if control is not None and any(x.refused for x in look_alikes):
            yield Satisfied(label(group))
        return
    if control is None or not probes:
        yield Inconclusive(missing or f"{label(group)}: not sent")
        return
    statuses = context.get("statuses", ())
    expected = f"HTTP {' or '.join(map(str, statuses))}" if statuses else "a 4xx that says why"
    refusals = [x for x in probes if (x.status in statuses if statuses else x.refused)]
    wrong = [x for x in probes if x not in refusals and (x.successful or (statuses and _is_client_error(x)))]
    # Another method may have an operation of its own, so that a success without choices is no acceptance.
    wrong = [
        x for x in wrong if x.case.method == control.case.method or x.choices or not x.successful or error_instead(x)
    ]
    wrong = [x for x in wrong if not _lacks_a_length(x)]
    failures = [x for x in probes if failed(x) and x not in refusals]
    if wrong:
        observed = f"{describe_probe(group, wrong[0], context)}: {describe_reply(wrong[0])}"
        yield Violation(f"{observed}; expected {expected}", case=wrong[0].case.id, flaky=bool(refusals))
    elif refusals:
        yield Satisfied(label(group))
    elif _is_confirmed(failures, context):
        observed = f"{describe_probe(group, failures[0], context)}: {describe_reply(failures[0])}"
        yield Violation(f"{observed}; expected {expected}", case=failures[0].case.id)
    else:
        reason = f"{label(group)}: {describe_reply(probes[0])}, neither accepted nor refused"
        yield Inconclusive(reason, bool(failures), _ids(failures))


def _lacks_a_length(x: Exchange) -> bool:
    """Whether a body in chunks was declined because its length is not known (RFC 9110 §15.5.12)."""
    in_chunks = any(name.lower() == "transfer-encoding" for name, _ in x.case.headers)
    return x.status == LENGTH_REQUIRED and in_chunks


def _is_confirmed(failures: list[Exchange], context: CheckContext) -> bool:
    """Whether a server error is the target's answer to this request, and not of the moment."""
    return len(failures) >= ENOUGH_REPLIES or any(x.case.id in context.failing_cases for x in failures)


def _ids(replies: list[Exchange]) -> tuple[str, ...]:
    """The ids of the cases that are sent again to confirm a server error: not those of their controls."""
    return tuple(x.case.id for x in replies)


def _is_client_error(x: Exchange) -> bool:
    return x.status is not None and 400 <= x.status < 500 and x.status not in TRANSIENT


@check(
    "limits",
    Scope.GROUP,
    group="observe",
    keyed=True,
    good=lambda: example(group("observe", "request.top_p.edge top_p=0", control=plain(FINE), probe=plain(FINE))),
    bad=lambda: example(group("observe", "request.top_p.edge top_p=0", control=plain(FINE), probe=error())),
)
def edge_is_observed(group: Group, context: CheckContext) -> Findings:
    """The target accepts or refuses a value that the document neither allows nor excludes.

    A client that uses such a value must know what this server does; neither is wrong.

    Fix: nothing; state in the document whether the value is allowed.
    """
    control, missing = accepted_control(group)
    probe = group.first("probe")
    if control is None or probe is None:
        yield Inconclusive(missing or f"{label(group)}: not sent")
    elif accepted(probe):
        yield Observation(label(group), f"accepted, {describe_reply(probe)}")
    elif denied(probe, control):
        yield Observation(label(group), f"refused, {describe_reply(probe)}")
    else:
        yield Inconclusive(f"{label(group)}: {describe_reply(probe)}, neither accepted nor refused")


BEYOND_CONTEXT: Final = re.compile(r"context|too long|too large|maximum.{0,24}(?:length|tokens)", re.IGNORECASE)
LONG: Final = 400  # bytes of a request; a shorter one fits any context. A choice

KINDS_OF_ONE_VALUE: Final = frozenset({"accept", "refuse", "observe", "overflow"})


@check(
    "limits",
    Scope.ANY,
    needs_whole_run=True,
    good=lambda: example(plain(FINE, {"n": 2, "temperature": 0})),
    bad=lambda: example(error("n must be 1 when temperature is 0", request={"n": 2, "temperature": 0})),
)
def combination_is_accepted(x: Exchange, context: CheckContext) -> Findings:
    """Documented values that are accepted separately are accepted together.

    A client can avoid only the combinations that the document excludes; it finds all others at run time.

    Fix: accept the combination, or name it as not supported, both in the error and in the document.
    """
    case = x.case
    if case.validity is not Validity.VALID or case.credential is not Credential.KEY or case.hostile:
        return
    tries_one_value = any(part.role == "probe" and part.kind in KINDS_OF_ONE_VALUE for part in case.groups)
    if case.method != context.contract.method or tries_one_value:
        return
    if accepted(x):
        yield Satisfied()
    elif x.refused:
        yield justified_refusal(x, context) or Violation(
            f"{describe_reply(x)}{describe_request(case.content, 200)}; expected 2xx, as each value is documented"
        )


def justified_refusal(x: Exchange, context: CheckContext) -> Observation | None:
    """Why a refused request, though valid, says nothing about how its values go together; None where it does."""
    reply, message = describe_reply(x), error_text(x)
    if UNSUPPORTED.search(message):  # a limit of the model, which no document can list for all models
        return Observation("valid requests refused as not supported", reply)
    if len(x.case.content) > LONG and (BEYOND_CONTEXT.search(message) or x.status == 413):
        return Observation("valid requests refused as too long for the model", reply)
    if member := _member_refused_alone(x, context):
        return Observation("valid requests refused for a value that is refused alone", f"{member}: {reply}")
    return None


def _member_refused_alone(x: Exchange, context: CheckContext) -> str:
    """The member of a refused request that is refused alone as well; empty where the combination was refused."""
    body = x.case.body
    if not context.refused_alone or not isinstance(body, Mapping):
        return ""
    param = error_param(x.json)
    text = param if isinstance(param, str) and param else error_words(x)
    refused = [name for name in body if dumps(body[name]) in context.refused_alone.get(name, ())]
    mentioned = [name for name in body if name != "model" and name_pattern(name).search(text)]
    if not refused and len(mentioned) == 1:
        (name,) = mentioned
        if name in context.refused_alone and dumps(body[name]) not in context.accepted_values.get(name, ()):
            refused = mentioned  # another value of it was refused alone
    return refused[0] if refused else ""


@check(
    "limits",
    Scope.GROUP,
    group="twin",
    needs_whole_run=True,
    good=lambda: example(group("twin", plain=plain(FINE), stream=stream(FINE))),
    bad=lambda: example(group("twin", plain=plain(FINE, {"echo": True}), stream=error(request={"echo": True}))),
)
def channels_accept_alike(group: Group, context: CheckContext) -> Findings:
    """A request that is accepted without streaming is accepted with it, and vice versa.

    An application that turns streaming on does not expect its other parameters to be refused because of it.

    Fix: validate and build both kinds of reply on one path.
    """
    plains, streams = group.all("plain"), group.all("stream")
    if not plains or not streams:
        return
    plain_accepted, stream_accepted = any(map(accepted, plains)), any(map(accepted, streams))
    if plain_accepted and stream_accepted:
        yield Satisfied(label(group))
    elif plain_accepted or stream_accepted:
        good, bad, replies = ("plain", "stream", streams) if plain_accepted else ("stream", "plain", plains)
        wrong = [x for x in replies if x.refused or failed(x)]
        if any(x.refused for x in wrong) or _is_confirmed(wrong, context):
            observed = f"{bad}: {describe_reply(wrong[0])}; {good}: HTTP 200"
            yield Violation(f"{observed}; expected the same for both", label(group), case=wrong[0].case.id)
        else:
            yield Inconclusive(f"{label(group)}: {describe_reply(replies[0])}", bool(wrong), _ids(wrong))
