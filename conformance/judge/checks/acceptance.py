"""Whether a target accepted or refused one request, and how messages describe that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.judge.catalogue import CheckContext, excerpt, show
from conformance.model import Credential
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING, dumps, readable

MESSAGE_MEMBERS: Final = ("message", "detail", "error", "reason")
"""The members of an error object that may hold its message for a person."""
PARAM_MEMBERS: Final = ("param", "field", "parameter")
"""The members of an error object that may hold the name of a request member."""
TRANSIENT: Final = frozenset({408, 429})
"""Statuses that say nothing about the request, only about the moment: Request Timeout and Too Many Requests."""


def error_instead(x: Exchange) -> bool:
    """Whether the reply has an error in the place of its completion, whatever its status."""
    for document in x.documents:
        value = document.value
        if not isinstance(value, Mapping) or document.choices:
            return False
        if value.get("error") or value.get("object") == "error":
            return True
        if "choices" not in value and not isinstance(document.usage, Mapping):
            error = error_object(value)
            inner = error if isinstance(error, Mapping) and error is not value else {}
            wrapped = any(isinstance(inner.get(name), str) for name in MESSAGE_MEMBERS)
            return wrapped or bool(value.get("detail") or (value.get("message") and value.get("code")))
    return False


def accepted(x: Exchange) -> bool:
    """Whether the reply is a 2xx that does not contain an error instead of a completion."""
    return x.successful and not error_instead(x)


def failed(x: Exchange) -> bool:
    """Whether the reply is a 5xx, which is neither acceptance nor refusal."""
    return x.status is not None and x.status >= 500


def denied(x: Exchange, control: Exchange) -> bool:
    """Whether the request was refused for what distinguishes it from its control."""
    if x.refused or (x.successful and error_instead(x)):
        return True
    return x.status in {401, 403} and x.case.credential is not control.case.credential


def error_object(body: Any) -> Any:
    """The error object of a body: its member `error`, or its only member if that is an object, or the body itself."""
    if not isinstance(body, Mapping):
        return body
    only_member = next(iter(body.values())) if len(body) == 1 else body
    return body.get("error", only_member if isinstance(only_member, Mapping) else body)


def error_text(x: Exchange) -> str:
    """The message of an error, or else the start of its body."""
    error: Any = error_object(x.error if x.error is not MISSING else x.json)
    if isinstance(error, Mapping):
        for name in MESSAGE_MEMBERS:
            if error.get(name):
                return error[name] if isinstance(error[name], str) else show(error[name], 400)
    if isinstance(error, str):
        return error
    return show(x.content[:200], 200) if error is MISSING or error is None else show(error, 200)


def error_param(body: Any) -> Any:
    """The value of an error's `param`, or of a member with the same purpose; None where there is none."""
    error = error_object(body)
    return next((error[name] for name in PARAM_MEMBERS if name in error), None) if isinstance(error, Mapping) else None


def name_pattern(name: str) -> re.Pattern[str]:
    """A pattern for a member's name in a sentence: with spaces or hyphens for underscores, and in any case."""
    spelled = re.escape(name).replace("_", "[ _-]?")
    return re.compile(rf"(?<![A-Za-z0-9_]){spelled}(?![A-Za-z0-9_])", re.IGNORECASE)


def error_words(x: Exchange) -> str:
    """The start of an error body as text, without JSON escapes, to be searched for names."""
    return (x.content.decode("utf-8", "replace") if x.json is MISSING else readable(x.json))[:20_000]


MOST_SHOWN: Final = 60  # characters of a value
CREDENTIALS: Final = {
    Credential.NONE: "no key",
    Credential.WRONG: "a wrong key",
    Credential.CUT_SHORT: "the key without its last character",
    Credential.PROLONGED: "the key with one character more",
    Credential.OTHER_CASE: "the key in other letter case",
    Credential.EMPTY: "an empty key",
    Credential.OTHER_SCHEME: "the key under another scheme",
    Credential.NO_SCHEME: "the key without a scheme",
    Credential.TWICE: "a wrong key before the right one",
    Credential.LOWERCASE_SCHEME: "the scheme in lower case",
}
UNDER_TEST: Final = re.compile(r"^request\.(\w+)")
"""The parameter in the id of a requirement, which the keys of its groups begin with."""


def describe_reply(x: Exchange) -> str:
    """The status, and the error message where the request was not accepted."""
    if x.status is None:
        return f"no response ({show(x.last.error or x.ending.value, 80)})"
    if accepted(x):
        return f"HTTP {x.status}"
    return f"HTTP {x.status}, {show(error_text(x), 100)}"


def describe_request(content: bytes, limit: int) -> str:
    """The bytes of a request after a reply to it, without quotes around them."""
    return f", to the request {excerpt(content.decode('utf-8', 'backslashreplace'), limit)}" if content else ""


def label(group: Group) -> str:
    """What the group tries: its key without the requirement's id."""
    return group.key.partition(" ")[2] or group.key


def describe_probe(group: Group, probe: Exchange, context: CheckContext) -> str:
    """What a probe tries: `name = value` for the parameter or the combination under test, or another key."""
    if probe.case.credential in CREDENTIALS:
        streamed = probe.case.note.rpartition(", ")[2] == "streamed"
        return CREDENTIALS[probe.case.credential] + (", streamed" if streamed else "")
    body, parameter, combination = probe.case.body, context.get("parameter"), context.get("combination")
    examples = (rule.example for rule in context.contract.combinations if rule.id == combination)
    names = [top(parameter)] if isinstance(parameter, str) else list(next(examples, ()))
    under_test = UNDER_TEST.match(group.key)
    if not names and under_test and isinstance(body, Mapping) and under_test[1] in body:
        names = [under_test[1]]
    if not names or not isinstance(body, Mapping):
        description = probe.case.note or label(group)
        return "the request" if description == "base" else description
    parts = [f"{name} = {_shortened(dumps(body[name]))}" if name in body else f"{name} absent" for name in names]
    return ", ".join([*parts, "streamed"] if body.get("stream") is True and "stream" not in names else parts)


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def accepted_control(group: Group) -> tuple[Exchange | None, str]:
    """The control that the target accepted; or None, and why there is none."""
    controls = group.all("control")
    control = next((x for x in controls if accepted(x)), None)
    if control is not None:
        return control, ""
    reply = describe_reply(controls[0]) if controls else "not sent"
    return None, f"{label(group)}: its control was not accepted ({reply}), so the reply proves nothing"
