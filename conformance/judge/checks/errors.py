"""Errors: that a refusal is one, and that a program and a person can both read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.acceptance import (
    MESSAGE_MEMBERS,
    TRANSIENT,
    describe_probe,
    describe_reply,
    error_instead,
    error_object,
    error_param,
    error_words,
    label,
    name_pattern,
)
from conformance.judge.fixtures import choice, completion, error, example, group, plain, response, stream
from conformance.model import Inconclusive, Parameter, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING

GATEWAY: Final = frozenset({413, 502, 503, 504})
"""Answered by whatever stands before the target: its words are not the target's."""

FINE: Final = completion(choice())


def _of_the_operation(x: Exchange, context: CheckContext) -> bool:
    """Whether the operation itself answered: another method may never reach it."""
    only = context.get("statuses")
    return (
        x.case.method == context.contract.method
        and x.status not in GATEWAY
        and (only is None or x.status in only or str(x.status) in only)
    )


@check(
    "errors",
    Scope.ERROR,
    good=lambda: example(error()),
    bad=lambda: (
        *example(response(b"Internal Server Error", status=500, media_type="text/plain")),
        *example(response(b"<html>Bad Request</html>", status=400, media_type="text/html")),
    ),
)
def error_is_json(x: Exchange, context: CheckContext) -> Findings:
    """An error has a JSON object as its body, declared as JSON.

    SDKs look for the reason in the parsed body; with text or HTML they raise without one, or fail to parse.

    Fix: send every error through the handler that writes the JSON body, those of the framework and router too.
    """
    if not _of_the_operation(x, context):
        return
    declared = x.media_type == "application/json" or x.media_type.endswith("+json")
    if isinstance(x.json, Mapping) and declared:
        yield Satisfied("body")
    else:
        seen = f"HTTP {x.status} with {show(x.header('content-type'))}: {show(x.content[:100])}"
        yield Violation(f"{seen}; expected application/json and a JSON object", "body")


MEMBERS: Final = {"members": ["message", "type", "param", "code"]}


@check(
    "errors",
    Scope.ERROR,
    good=lambda: example(error(), **MEMBERS),
    bad=lambda: (
        *example(plain({"object": "error", "message": "no", "code": 400}, status=400), **MEMBERS),
        *example(plain({"error": "Unauthorized"}, status=401), **MEMBERS),
        *example(plain({"error": {"message": ""}}, status=400)),
        *example(plain({"error": {"message": "no", "param": {"role": "user"}}}, status=400)),
    ),
)
def error_has_envelope(x: Exchange, context: CheckContext) -> Findings:
    """An error body has the common envelope: an `error` object whose message says something.

    Clients read `error.message`, and branch on its type and code; in any other shape they show an error without words.

    Fix: answer `{"error": {"message": …, "type": …, "param": …, "code": …}}`, with null where there is nothing to say.
    """
    if not _of_the_operation(x, context) or not isinstance(x.json, Mapping):
        return  # a body that is no JSON has its own check
    wrong = _envelope_faults(x.json.get("error", MISSING), context.get("members", ["message"]))
    if wrong and str(x.status) in context.contract.errors:
        return  # a documented shape has its own rows
    if wrong:
        expected = f"an error object with {', '.join(context.get('members', ['message']))}"
        yield Violation(f"HTTP {x.status}: {'; '.join(wrong)}; expected {expected}", "/error")
    else:
        yield Satisfied("/error")


def _envelope_faults(told: Any, members: list[str]) -> list[str]:
    if not isinstance(told, Mapping):
        return [f"error is {show(told, 80)}"]
    faults = [f"error.{name} is absent" for name in members if name not in told]
    message, param, kind, code = (told.get(name) for name in ("message", "param", "type", "code"))
    if "message" in told and not (isinstance(message, str) and message.strip()):
        faults.append(f"error.message is {show(message, 60)}")
    faults += [
        f"error.{name} is {show(value, 60)}"
        for name, value in (("param", param), ("type", kind))
        if not (value is None or isinstance(value, str))
    ]
    if not (code is None or isinstance(code, (str, int))):
        faults.append(f"error.code is {show(code, 60)}")
    return faults


@check(
    "errors",
    Scope.ANY,
    good=lambda: (
        *example(plain(FINE)),
        *example(stream(completion(choice(finish=None)), {"error": {"message": "lost a worker"}})),
    ),
    bad=lambda: (
        *example(plain({"error": {"message": "the prompt is too long", "code": 400}})),
        *example(plain({"object": "error", "message": "The model `m` does not exist.", "code": 404})),
        *example(stream({"error": {"message": "the prompt is too long", "code": 400}})),
    ),
)
def refusal_is_not_a_success(x: Exchange, context: CheckContext) -> Findings:
    """No reply with HTTP 2xx has an error in the place of its completion.

    Clients, retries, caches, metrics and billing go by the status; an error behind a 200 looks like an empty success.

    Fix: validate before the status line is sent, streams too, and put the error's code into the status.
    """
    if not x.successful or not x.documents:
        return
    if error_instead(x):
        expected = "expected the 4xx or 5xx that it stands for"
        yield Violation(f"HTTP {x.status} carries {show(x.documents[0].value)}; {expected}", x.documents[0].at)
    else:
        yield Satisfied()


def _message(x: Exchange) -> str:
    """The words meant for a person; what is no text is not spoken in them."""
    told = error_object(x.json)
    message = next((told[name] for name in MESSAGE_MEMBERS if name in told), "") if isinstance(told, Mapping) else told
    return message if isinstance(message, str) else ""


STACK: Final = {
    "a stack trace": re.compile(
        r"Traceback \(most recent call last\)|\bpanicked at\b|goroutine \d+ \[|\n[ \t]+at [\w.$<>]+\("
    ),
    "a line of source": re.compile(
        r"File \\?\"[^\"]+\", line \d+|site-packages"
        r"|(?<![\w:/.])/(?:[\w.+-]+/)+[\w.+-]+\.(?:py|rs|go|cc|cpp|cu|java|ts|js)\b"
    ),
    "a memory address": re.compile(r"\bat 0x[0-9a-fA-F]{6,}"),
    "an exception": re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b\\?['\"]?\s*[:(]\s*(?!null)(?!\\?\")"),
}
SERIALISED: Final = re.compile(r"^\s*\[?\{['\"]\w+['\"]\s*:.*\}\]?\s*$", re.DOTALL)


@check(
    "errors",
    Scope.ERROR,
    good=lambda: example(error("Invalid value for 'temperature': 3 is greater than 2.")),
    bad=lambda: (
        *example(error('Traceback (most recent call last):\n  File "/srv/app/api.py", line 7, in create')),
        *example(error('{"detail": [{"loc": ["body", "n"], "msg": "too small"}]}')),
        *example(error("'NoneType' object at 0x7f81c2 has no attribute 'shape'")),
        *example(error("TypeError: unsupported operand")),
    ),
)
def error_message_is_clean(x: Exchange, context: CheckContext) -> Findings:
    """An error speaks to the caller: no stack trace, no path, no exception or JSON text inside its message.

    Users are shown these words; and what they reveal of the server's insides helps those who attack it.

    Fix: catch exceptions at the edge, log them with the request id, and say in a sentence what to change.
    """
    if not _of_the_operation(x, context) or not x.content:
        return
    message = _message(x)[:20_000]
    text = x.content[:20_000].decode("utf-8", "replace")
    sent = x.case.content.decode("utf-8", "replace")
    for what, pattern in STACK.items():
        found = pattern.search(message) or (pattern.search(text) if what != "an exception" else None)
        if found and found[0] not in sent:
            yield Violation(f"the error has {what}, {show(found[0], 100)}; expected a sentence", "/error/message")
            return
    if SERIALISED.match(message):
        yield Violation(f"the message is {show(message)}, serialised data; expected a sentence", "/error/message")
    else:
        yield Satisfied("/error/message")


KNOWN_STATUS: Final = {"statuses": [400, 401, 429, 500]}


@check(
    "errors",
    Scope.ERROR,
    good=lambda: example(error(), **KNOWN_STATUS),
    bad=lambda: example(error(status=418), **KNOWN_STATUS),
)
def error_status_is_documented(x: Exchange, context: CheckContext) -> Findings:
    """An error has a status that the document lists.

    Generated clients know the documented statuses only and raise "unexpected status" for the others.

    Fix: list the status in the OpenAPI document, or answer with one that is listed.
    """
    known = {str(status).upper() for status in context.get("statuses", context.contract.errors)}
    if not known or x.status is None:
        return
    held = bool({str(x.status), f"{x.status // 100}XX", "DEFAULT"} & known)
    yield expect(held, f"HTTP {x.status}", " or ".join(sorted(known)), "status")


UNDER_TEST: Final = re.compile(r"^request\.(\w+)")
PART: Final = re.compile(r"^request\.\w+(?:\.\w+)*\.(\w+)\.[\w-]+$")
"""The last part of a path: to name it is as good as to name the member that it is a part of, where it is no word."""


@check(
    "errors",
    Scope.GROUP,
    group="refuse",
    good=lambda: example(group("refuse", "request.temperature.maximum 3", control=plain(FINE), probe=error())),
    bad=lambda: (
        *example(group("refuse", "request.n.minimum 0", control=plain(FINE), probe=error("bad request"))),
        *example(group("refuse", "request.top_p.maximum 2", control=plain(FINE), probe=error("top_p is bad"))),
    ),
)
def error_names_the_field(group: Group, context: CheckContext) -> Findings:
    """A refusal names the member of the request that it is about, and no other.

    With a dozen parameters in a request, "invalid request" leaves the caller to try them one by one.

    Fix: fill in `error.param`, and begin the message with the parameter's name.
    """
    field = UNDER_TEST.match(group.key)
    probe = next((x for x in group.all("probe") if x.refused and isinstance(x.json, Mapping)), None)
    if field is None or probe is None:
        return
    names = _under_test(field[1], group.key, context)
    parts = [*names, *PART.findall(group.key.partition(" ")[0])]
    param, expected = error_param(probe.json), " or ".join(names)
    own = isinstance(param, str) and bool(param)
    if own and any(name_pattern(name).search(param) for name in parts):
        yield Satisfied(label(group))
    elif own:
        seen = f"{describe_probe(group, probe, context)}: the member that is named is {show(param)}"
        yield Violation(f"{seen}; expected {expected}", "/error/param", probe.case.id)
    elif any(name_pattern(name).search(error_words(probe)) for name in parts if name in names or "_" in name):
        yield Satisfied(label(group))
    else:
        seen = f"{describe_probe(group, probe, context)}: {describe_reply(probe)}"
        yield Violation(f"{seen}; expected {expected} to be named", "/error", probe.case.id)


def _under_test(name: str, key: str, context: CheckContext) -> list[str]:
    """The member under test; of a combination, each of those that do not go together."""
    rule = next((one for one in context.contract.combinations if one.id == key.partition(" ")[0]), None)
    if rule is None:
        return [name]
    compared = [one for one in rule.compare or () if isinstance(one, str) and one in context.contract.parameters]
    return list(dict.fromkeys([name, *rule.given, *rule.where, *rule.shape, *compared]))


def _required(parameter: Parameter | None) -> bool:
    """Whether the target may rightly speak of it though it was not sent."""
    return parameter is not None and (parameter.required or parameter.default is not MISSING)


@check(
    "errors",
    Scope.ERROR,
    expected_when=None,
    good=lambda: example(error(request={"temperature": 3})),
    bad=lambda: example(plain({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}, status=422)),
)
def error_names_a_sent_field(x: Exchange, context: CheckContext) -> Findings:
    """A refusal speaks of members that the request has, or ought to have.

    A member that the caller never sent was added on the way, by a gateway that the caller cannot mend.

    Fix: pass requests on as they came; what a gateway adds for itself it must take back when it is refused.
    """
    if not isinstance(x.case.body, Mapping) or not isinstance(x.json, Mapping) or not x.refused:
        return
    named = _fields(x.json)
    foreign = [
        name for name in named if name not in x.case.body and not _required(context.contract.parameters.get(name))
    ]
    if named:
        expected = "a member of the request, or one that is required"
        yield expect(not foreign, f"the error is about {show(foreign)}, which was not sent", expected, "/error")


def _fields(body: Mapping[str, Any]) -> list[str]:
    """The request members that an error body names: `error.param`, or the places of a validation report."""
    report, param = body.get("detail"), error_param(body)
    found = [param] if isinstance(param, str) else []
    for item in report[:20] if isinstance(report, list) else []:
        at = item.get("loc") if isinstance(item, Mapping) else None
        if isinstance(at, list) and len(at) > 1 and at[0] == "body" and isinstance(at[1], str):
            found.append(at[1])
    tops = (re.split(r"[.\[]", one.removeprefix("body."))[0] for one in found)
    return [name for name in tops if re.fullmatch(r"[a-z][a-z_]*", name) and name != "body"]


def _shape(x: Exchange) -> tuple[Any, ...]:
    """What of an error must not depend on the channel: status, members, and the words a program branches on."""
    body = x.json if x.json is not MISSING else x.error
    told = body.get("error", MISSING) if isinstance(body, Mapping) else MISSING
    if not isinstance(told, Mapping):
        return x.status, tuple(sorted(body)) if isinstance(body, Mapping) else (), type(told).__name__
    return x.status, tuple(sorted(told)), tuple(show(told.get(name)) for name in ("type", "code", "param"))


@check(
    "errors",
    Scope.GROUP,
    group="channel",
    good=lambda: example(group("channel", plain=error(), stream=error(request={"stream": True}))),
    bad=lambda: (
        *example(group("channel", plain=error(), stream=stream({"error": {"message": "no", "code": 400}}))),
        *example(group("channel", plain=error(), stream=plain({"message": "no", "code": 400}, status=400))),
    ),
)
def errors_agree_on_both_channels(group: Group, context: CheckContext) -> Findings:
    """The same mistake is refused in the same way, with and without `stream`.

    A client has one place where it handles refusals; a second status or shape for streams slips past it.

    Fix: validate before the reply begins, on one path for both, and write the error as plain JSON.
    """
    pairs = list(zip(group.all("plain"), group.all("stream"), strict=False))
    sure = [pair for pair in pairs if not any(_unsure(x) for x in pair)]
    if not sure:
        if pairs:
            yield Inconclusive(
                f"{label(group)}: {describe_reply(pairs[0][0])} plain, {describe_reply(pairs[0][1])} streamed"
            )
        return
    apart = [pair for pair in sure if _shape(pair[0]) != _shape(pair[1])]
    if all(x.successful for pair in sure for x in pair):
        return  # accepted on both: the rows on refusing speak of that
    if apart:
        one, other = apart[0]
        seen = f"{label(group)}: plain {_told(one)}; streamed {_told(other)}"
        yield Violation(f"{seen}; expected the same error on both", "/error", other.case.id, len(apart) < len(sure))
    else:
        yield Satisfied(label(group))


def _unsure(x: Exchange) -> bool:
    return x.status is None or x.status >= 500 or x.status in TRANSIENT


def _told(x: Exchange) -> str:
    _, members, words = _shape(x)
    return f"{describe_reply(x)} with members {show(list(members), 80)} and {show(words, 80)}"
