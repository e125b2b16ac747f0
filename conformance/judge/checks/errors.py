"""Errors: an error has an error status, and both programs and people can read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.acceptance import (
    MESSAGE_MEMBERS,
    TRANSIENT,
    UNDER_TEST,
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

GATEWAY: Final = frozenset({406, 411, 413, 417, 502, 503, 504})
"""Statuses that a gateway before the target may have sent, with a body that is not the target's."""

FINE: Final = completion(choice())


def _from_operation(x: Exchange, context: CheckContext) -> bool:
    """Whether the operation itself answered with a status that is judged; other methods may never reach it."""
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

    SDKs take the reason from the parsed body; with text or HTML they raise without a reason, or fail to parse.

    Fix: send every error, those of the framework and router included, through the handler that writes the JSON body.
    """
    if not _from_operation(x, context):
        return
    declared = x.media_type == "application/json" or x.media_type.endswith("+json")
    if isinstance(x.json, Mapping) and declared:
        yield Satisfied("body")
    else:
        observed = f"HTTP {x.status} with {show(x.header('content-type'))}: {show(x.content[:100])}"
        yield Violation(f"{observed}; expected application/json and a JSON object", "body")


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
    """An error body has the common envelope: an `error` object with a message that is not empty.

    Clients read `error.message` and branch on its type and code; from any other shape they report no reason at all.

    Fix: answer `{"error": {"message": …, "type": …, "param": …, "code": …}}`, with null for what does not apply.
    """
    if not _from_operation(x, context) or not isinstance(x.json, Mapping):
        return  # error_is_json judges a body that is no JSON
    defects = _envelope_defects(x.json.get("error", MISSING), context.get("members", ["message"]))
    if defects and str(x.status) in context.contract.errors:
        return  # a documented shape has requirements of its own
    if defects:
        expected = f"an error object with {', '.join(context.get('members', ['message']))}"
        yield Violation(f"HTTP {x.status}: {'; '.join(defects)}; expected {expected}", "/error")
    else:
        yield Satisfied("/error")


def _envelope_defects(error: Any, members: list[str]) -> list[str]:
    if not isinstance(error, Mapping):
        return [f"error is {show(error, 80)}"]
    defects = [f"error.{name} is absent" for name in members if name not in error]
    message, param, kind, code = (error.get(name) for name in ("message", "param", "type", "code"))
    if "message" in error and not (isinstance(message, str) and message.strip()):
        defects.append(f"error.message is {show(message, 60)}")
    defects += [
        f"error.{name} is {show(value, 60)}"
        for name, value in (("param", param), ("type", kind))
        if not (value is None or isinstance(value, str))
    ]
    if not (code is None or isinstance(code, (str, int))):
        defects.append(f"error.code is {show(code, 60)}")
    return defects


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

    Clients, retries, caches, metrics and billing go by the status; an error with a 200 looks like an empty success.

    Fix: validate before the status line is sent, for streams too, and use the status that the error has.
    """
    if not x.successful or not x.documents:
        return
    if error_instead(x):
        document = x.documents[0]
        yield Violation(f"HTTP {x.status} with {show(document.value)}; expected a 4xx or 5xx", document.at)
    else:
        yield Satisfied()


def _message(x: Exchange) -> str:
    """The message for a person; empty where it is not a string."""
    error = error_object(x.json)
    message = error
    if isinstance(error, Mapping):
        message = next((error[name] for name in MESSAGE_MEMBERS if name in error), "")
    return message if isinstance(message, str) else ""


INTERNALS: Final = {
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
    """An error message is a sentence for the caller: no stack trace, path, exception or serialised data in it.

    Users are shown this message, and what it reveals about the server's internals helps attackers.

    Fix: catch exceptions at the outermost handler, log them with the request id, and send a sentence on what to change.
    """
    if not _from_operation(x, context) or not x.content:
        return
    message = _message(x)[:20_000]
    text = x.content[:20_000].decode("utf-8", "replace")
    sent = x.case.content.decode("utf-8", "replace")
    for internal, pattern in INTERNALS.items():
        match = pattern.search(message) or (pattern.search(text) if internal != "an exception" else None)
        if match and match[0] not in sent:
            yield Violation(f"the error has {internal}, {show(match[0], 100)}; expected a sentence", "/error/message")
            return
    if SERIALISED.match(message):
        yield Violation(f"the message is serialised data, {show(message)}; expected a sentence", "/error/message")
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

    Generated clients know only the documented statuses and raise "unexpected status" for all others.

    Fix: list the status in the OpenAPI document, or answer with one that is listed.
    """
    statuses = {str(status).upper() for status in context.get("statuses", context.contract.errors)}
    if not statuses or x.status is None:
        return
    documented = bool({str(x.status), f"{x.status // 100}XX", "DEFAULT"} & statuses)
    yield expect(documented, f"HTTP {x.status}", " or ".join(sorted(statuses)), "status")


PART: Final = re.compile(r"^request\.\w+(?:\.\w+)*\.(\w+)\.[\w-]+$")
"""The last member of a path, such as `include_usage`. Naming it is as good as naming the member at the top, unless its
name is an ordinary word, which is taken for a name only in `error.param`."""


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
    """A refusal names the member of the request that caused it, and no other.

    With a dozen parameters in a request, "invalid request" leaves the caller to try them one by one.

    Fix: fill in `error.param`, and begin the message with the parameter's name.
    """
    parameter = UNDER_TEST.match(group.key)
    probe = next((x for x in group.all("probe") if x.refused and isinstance(x.json, Mapping)), None)
    if parameter is None or probe is None or any(x.refused for x in group.all("control")):
        return  # where the control is refused as well, the error may be about what both requests have
    names = _members_under_test(parameter[1], group.key, context)
    parts = [*names, *PART.findall(group.key.partition(" ")[0])]
    param, expected = error_param(probe.json), " or ".join(names)
    has_param = isinstance(param, str) and bool(param)
    if has_param and any(name_pattern(name).search(param) for name in parts):
        yield Satisfied(label(group))
    elif has_param:
        observed = f"{describe_probe(group, probe, context)}: the error names {show(param)}"
        yield Violation(f"{observed}; expected {expected}", "/error/param", case=probe.case.id)
    elif any(name_pattern(name).search(error_words(probe)) for name in parts if name in names or "_" in name):
        yield Satisfied(label(group))
    else:
        observed = f"{describe_probe(group, probe, context)}: {describe_reply(probe)}"
        yield Violation(f"{observed}; expected a message that names {expected}", "/error", case=probe.case.id)


def _members_under_test(name: str, key: str, context: CheckContext) -> list[str]:
    """The member under test; of a combination, all members that restrict one another."""
    combination = next((rule for rule in context.contract.combinations if rule.id == key.partition(" ")[0]), None)
    if combination is None:
        return [name]
    parameters = context.contract.parameters
    compared = [member for member in combination.compare or () if isinstance(member, str) and member in parameters]
    return list(dict.fromkeys([name, *combination.given, *combination.where, *combination.shape, *compared]))


def _may_be_named_unsent(parameter: Parameter | None) -> bool:
    """Whether an error may name this parameter though it was not sent: it is required, or has a default."""
    return parameter is not None and (parameter.required or parameter.default is not MISSING)


@check(
    "errors",
    Scope.ERROR,
    expected_when=None,
    good=lambda: example(error(request={"temperature": 3})),
    bad=lambda: example(plain({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}, status=422)),
)
def error_names_a_sent_field(x: Exchange, context: CheckContext) -> Findings:
    """A refusal names only members that the request has, or should have.

    A member that the caller never sent was added by a gateway, where the caller cannot change it.

    Fix: forward requests unchanged; if a member that the gateway adds is refused, retry without it.
    """
    if not isinstance(x.case.body, Mapping) or not isinstance(x.json, Mapping) or not x.refused:
        return
    mentioned, parameters = _named_members(x.json), context.contract.parameters
    unsent = [name for name in mentioned if name not in x.case.body and not _may_be_named_unsent(parameters.get(name))]
    if mentioned:
        expected = "a member of the request, or one that is required"
        yield expect(not unsent, f"the error names {show(unsent)}, which was not sent", expected, "/error")


def _named_members(body: Mapping[str, Any]) -> list[str]:
    """The request members that an error body names: in `error.param`, or in the `loc` of a validation report."""
    report, param = body.get("detail"), error_param(body)
    paths = [param] if isinstance(param, str) else []
    for item in report[:20] if isinstance(report, list) else []:
        at = item.get("loc") if isinstance(item, Mapping) else None
        if isinstance(at, list) and len(at) > 1 and at[0] == "body" and isinstance(at[1], str):
            paths.append(at[1])
    tops = (re.split(r"[.\[]", path.removeprefix("body."))[0] for path in paths)
    return [name for name in tops if re.fullmatch(r"[a-z][a-z_]*", name) and name != "body"]


def _shape(x: Exchange) -> tuple[Any, ...]:
    """The parts of an error that must not depend on `stream`: status, members, and the values a program branches on."""
    body = x.json if x.json is not MISSING else x.error
    error = body.get("error", MISSING) if isinstance(body, Mapping) else MISSING
    if not isinstance(error, Mapping):
        return x.status, tuple(sorted(body)) if isinstance(body, Mapping) else (), type(error).__name__
    return x.status, tuple(sorted(error)), {name: show(error.get(name, MISSING)) for name in ("type", "code", "param")}


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
    """The same invalid request is refused in the same way, with and without `stream`.

    A client handles refusals in one place; another status or shape for streams is not recognised there.

    Fix: validate before the reply begins, on one path for both, and write the error as plain JSON.
    """
    pairs = list(zip(group.all("plain"), group.all("stream"), strict=False))
    conclusive = [pair for pair in pairs if not any(_is_transient(x) for x in pair)]
    if not conclusive:
        if pairs:
            yield Inconclusive(
                f"{label(group)}: {describe_reply(pairs[0][0])} plain, {describe_reply(pairs[0][1])} streamed"
            )
        return
    different = [pair for pair in conclusive if _shape(pair[0]) != _shape(pair[1])]
    if all(x.successful for pair in conclusive for x in pair):
        return  # both accepted: the requirements on refusing judge that
    if different:
        plainly, streamed = different[0]
        shapes = f"{_describe_shape(plainly)} in the plain reply, {_describe_shape(streamed)} in the streamed one"
        observed = f"{describe_probe(group, plainly, context)}: {shapes}"
        flaky = len(different) < len(conclusive)
        yield Violation(f"{observed}; expected the same error for both", "/error", case=streamed.case.id, flaky=flaky)
    else:
        yield Satisfied(label(group))


def _is_transient(x: Exchange) -> bool:
    return x.status is None or x.status >= 500 or x.status in TRANSIENT


def _describe_shape(x: Exchange) -> str:
    _, members, values = _shape(x)
    if not isinstance(values, dict):
        return f"{describe_reply(x)} without an error object"
    described = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"{describe_reply(x)} with members {', '.join(members) or 'none'} and {described}"
