"""Limits: what is documented is accepted, what is excluded is refused, what is open is observed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.acceptance import (
    TRANSIENT,
    accepted,
    accepted_control,
    denied,
    describe_probe,
    describe_reply,
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
    good=lambda: example(group("accept", "request.n.accepts n=2", control=plain(FINE), probe=plain(FINE, {"n": 2}))),
    bad=lambda: example(group("accept", "request.n.accepts n=2", control=plain(FINE), probe=error(request={"n": 2}))),
)
def valid_is_accepted(group: Group, context: CheckContext) -> Findings:
    """A documented value is accepted.

    Programs are written from the document: a value that it allows and the server refuses stops them in production.

    Fix: validate by the published schema, types and bounds included, and no stricter.
    """
    control, missing = accepted_control(group)
    probes = group.all("probe")
    if not probes and any(accepted(x) for x in group.all("joint")):
        yield Satisfied(label(group))  # accepted in company: it speaks for each value; refused, it would speak for none
        return
    if control is None or not probes:
        yield Inconclusive(missing or f"{label(group)}: not sent alone")
        return
    taken = [x for x in probes if accepted(x)]
    turned_down = [x for x in probes if denied(x, control)]
    broken = [x for x in probes if failed(x)]
    if turned_down:
        seen = f"{describe_probe(group, turned_down[0], context)}: {describe_reply(turned_down[0])}"
        expected = f"expected 2xx, as its control has ({control.case.id})"
        yield Violation(f"{seen}; {expected}", "", turned_down[0].case.id, flaky=bool(taken))
    elif taken:
        yield Satisfied(label(group))
    elif len(broken) >= ENOUGH_REPLIES:
        seen = f"{describe_probe(group, broken[0], context)}: {describe_reply(broken[0])}, {len(broken)} times"
        yield Violation(f"{seen}; expected 2xx, as its control has", "", broken[0].case.id)
    else:
        yield Inconclusive(
            f"{label(group)}: {describe_reply(probes[0])}, neither accepted nor refused", repeat=bool(broken)
        )


REFUSED: Final = error("n must be at least 1", request={"n": 0}, validity=Validity.INVALID)


@check(
    "limits",
    Scope.GROUP,
    group="refuse",
    keyed=True,
    good=lambda: example(group("refuse", "request.n.minimum n=0", control=plain(FINE), probe=REFUSED)),
    bad=lambda: (
        *example(group("refuse", "request.n.minimum n=0", control=plain(FINE), probe=plain(FINE, {"n": 0}))),
        *example(group("refuse", "auth.no-key", control=plain(FINE), probe=error(status=404)), statuses=[401, 403]),
    ),
)
def invalid_is_refused(group: Group, context: CheckContext) -> Findings:
    """A value that the document excludes is refused with a 4xx.

    A mistake that is accepted without a word is found in the results, or on the bill, instead of in the first reply.

    Fix: check the request against the schema before generation begins and answer 400 or 422.
    """
    control, missing = accepted_control(group)
    probes = group.all("probe")
    if control is None or not probes:
        yield Inconclusive(missing or f"{label(group)}: not sent")
        return
    statuses = context.get("statuses", ())
    wanted = f"HTTP {' or '.join(map(str, statuses))}" if statuses else "a 4xx that says why"
    refused = [x for x in probes if (x.status in statuses if statuses else x.refused or _disguised(x))]
    wrong = [x for x in probes if x not in refused and (x.successful or (statuses and _another_refusal(x)))]
    wrong = [x for x in wrong if x.case.method == control.case.method or x.choices or not x.successful]
    broken = [x for x in probes if failed(x) and x not in refused]
    if wrong:
        seen = f"{describe_probe(group, wrong[0], context)}: {describe_reply(wrong[0])}"
        yield Violation(f"{seen}; expected {wanted}", "", wrong[0].case.id, flaky=bool(refused))
    elif refused:
        yield Satisfied(label(group))
    elif len(broken) >= ENOUGH_REPLIES:
        seen = f"{describe_probe(group, broken[0], context)}: {describe_reply(broken[0])}, {len(broken)} times"
        yield Violation(f"{seen}; expected {wanted}", "", broken[0].case.id)
    else:
        yield Inconclusive(
            f"{label(group)}: {describe_reply(probes[0])}, which is no verdict on it", repeat=bool(broken)
        )


def _disguised(x: Exchange) -> bool:
    # That the status says success is refusal_is_not_a_success' concern.
    return x.successful and error_instead(x)


def _another_refusal(x: Exchange) -> bool:
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
    """What the target does where the document can be read in two ways.

    A client that meets the point must know what this server does; neither answer is wrong.

    Fix: nothing to mend; say in the document which reading is meant.
    """
    control, missing = accepted_control(group)
    probe = group.one("probe")
    if control is None or probe is None:
        yield Inconclusive(missing or f"{label(group)}: not sent")
    elif accepted(probe):
        yield Observation(label(group), f"accepted, {describe_reply(probe)}")
    elif denied(probe, control):
        yield Observation(label(group), f"refused, {describe_reply(probe)}")
    else:
        yield Inconclusive(f"{label(group)}: {describe_reply(probe)}, neither accepted nor refused")


BEYOND_CONTEXT: Final = re.compile(r"context|too long|too large|maximum.{0,24}(?:length|tokens)", re.IGNORECASE)
LONG: Final = 400  # bytes of a request: shorter ones fit any context

ALONE: Final = frozenset({"accept", "refuse", "observe", "overflow"})


@check(
    "limits",
    Scope.ANY,
    needs_whole_run=True,
    good=lambda: example(plain(FINE, {"n": 2, "temperature": 0})),
    bad=lambda: example(error("n must be 1 when temperature is 0", request={"n": 2, "temperature": 0})),
)
def combination_is_accepted(x: Exchange, context: CheckContext) -> Findings:
    """Documented values that are each accepted alone are accepted together.

    No document lists pairs that exclude each other beyond those it names; a client finds the others at run time.

    Fix: accept the combination, or say in the error that it is not supported and in the document which pairs are not.
    """
    case = x.case
    if case.validity is not Validity.VALID or case.credential is not Credential.KEY or case.hostile:
        return
    if case.method != context.contract.method or any(m.role == "probe" and m.kind in ALONE for m in case.groups):
        return
    if accepted(x):
        yield Satisfied()
    elif x.refused:
        told = error_text(x)
        if UNSUPPORTED.search(told):  # a model's limits, said in plain words
            yield Observation("valid requests refused as not supported", describe_reply(x))
        elif len(case.content) > LONG and (BEYOND_CONTEXT.search(told) or x.status == 413):
            yield Observation("valid requests refused as too long for the model", describe_reply(x))
        elif single := _refused_alone(x, context):
            yield Observation(
                "valid requests refused for a value that is refused alone", f"{single}: {describe_reply(x)}"
            )
        else:
            yield Violation(
                f"{describe_reply(x)} to {show(case.content, 200)}; expected 2xx, for each value is documented"
            )


def _refused_alone(x: Exchange, context: CheckContext) -> str:
    """The member of a refused request that is refused by itself; empty where they were refused for being together."""
    body = x.case.body
    if not context.alone or not isinstance(body, Mapping):
        return ""
    param = error_param(x.json)
    told = param if isinstance(param, str) and param else error_words(x)
    same = [name for name in body if name in context.alone and dumps(body[name]) in context.alone[name]]
    named = [name for name in body if name != "model" and name_pattern(name).search(told)]
    if not same and len(named) == 1 and dumps(body[named[0]]) not in context.taken.get(named[0], ()):
        same = [name for name in named if name in context.alone]  # another value of it, as little liked
    return same[0] if same else ""


@check(
    "limits",
    Scope.GROUP,
    group="twin",
    good=lambda: example(group("twin", plain=plain(FINE), stream=stream(FINE))),
    bad=lambda: example(group("twin", plain=plain(FINE, {"echo": True}), stream=error(request={"echo": True}))),
)
def channels_accept_alike(group: Group, context: CheckContext) -> Findings:
    """A request that is accepted plain is accepted streamed, and the other way round.

    An application switches streaming on for its users' comfort and does not expect other parameters to fail by it.

    Fix: validate and build both kinds of reply on one path.
    """
    plains, streams = group.all("plain"), group.all("stream")
    if not plains or not streams:
        return
    taken = {side: [accepted(x) for x in members] for side, members in (("plain", plains), ("stream", streams))}
    if any(taken["plain"]) and any(taken["stream"]):
        yield Satisfied(label(group))
    elif any(taken["plain"]) or any(taken["stream"]):
        good, bad = ("plain", streams) if any(taken["plain"]) else ("stream", plains)
        lost = [x for x in bad if x.refused or failed(x)]
        if any(x.refused for x in lost) or len(lost) >= ENOUGH_REPLIES:
            other = "stream" if good == "plain" else "plain"
            seen = f"{other}: {describe_reply(lost[0])}; {good}: HTTP 200"
            yield Violation(f"{seen}; expected the same on both", label(group), lost[0].case.id)
        else:
            yield Inconclusive(f"{label(group)}: {describe_reply(bad[0])}", repeat=bool(lost))
