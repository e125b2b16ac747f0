"""How a target answered one request, in the few words that acceptance and refusal are told in."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.judge.catalogue import CheckContext, show
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING, dumps, readable

WORDS: Final = ("message", "detail", "error", "reason")
"""What the member of an error is called that speaks to a person."""
TRANSIENT: Final = frozenset({408, 429})


def error_instead(x: Exchange) -> bool:
    """Whether an error stands where the completion should begin, whatever the status says."""
    for document in x.documents:
        value = document.value
        if not isinstance(value, Mapping) or document.choices:
            return False
        if value.get("error") or value.get("object") == "error":
            return True
        if "choices" not in value and not isinstance(document.usage, Mapping):
            told = error_object(value)
            wrapped = told is not value and any(isinstance(told.get(name), str) for name in WORDS)
            return wrapped or bool(value.get("detail") or (value.get("message") and value.get("code")))
    return False


def accepted(x: Exchange) -> bool:
    """A 2xx that is no error in disguise."""
    return x.successful and not error_instead(x)


def failed(x: Exchange) -> bool:
    """A 5xx: neither acceptance nor refusal."""
    return x.status is not None and x.status >= 500


def denied(x: Exchange, control: Exchange) -> bool:
    """Whether the request was turned down for what distinguishes it from its control."""
    if x.refused or (x.successful and error_instead(x)):
        return True
    return x.status in {401, 403} and x.case.credential is not control.case.credential


def error_object(body: Any) -> Any:
    """What an error body says, taken out of its wrapping: `error`, or whatever its only member is called."""
    if not isinstance(body, Mapping):
        return body
    only = next(iter(body.values())) if len(body) == 1 else body
    return body.get("error", only if isinstance(only, Mapping) else body)


def error_text(x: Exchange) -> str:
    """What an error says to a person: its message, or else what there is."""
    error: Any = error_object(x.error if x.error is not MISSING else x.json)
    if isinstance(error, Mapping):
        for name in WORDS:
            if error.get(name):
                return error[name] if isinstance(error[name], str) else show(error[name], 400)
    if isinstance(error, str):
        return error
    return show(x.content[:200], 200) if error is MISSING or error is None else show(error, 200)


PARAMS: Final = ("param", "field", "parameter")


def error_param(body: Any) -> Any:
    """The member of the request that an error names in a place of its own."""
    told = error_object(body)
    return next((told[name] for name in PARAMS if name in told), None) if isinstance(told, Mapping) else None


def spelling(name: str) -> re.Pattern[str]:
    """How a member's name is written in a sentence."""
    spelled = re.escape(name).replace("_", "[ _-]?")
    return re.compile(rf"(?<![A-Za-z0-9_]){spelled}(?![A-Za-z0-9_])", re.IGNORECASE)


def error_words(x: Exchange) -> str:
    """All that an error body says, its escapes undone, for a search."""
    return (x.content.decode("utf-8", "replace") if x.json is MISSING else readable(x.json))[:20_000]


MOST_SHOWN: Final = 60


def describe_reply(x: Exchange) -> str:
    """Status and, where it was no success, the words that came with it."""
    if x.status is None:
        return f"no response ({show(x.last.error or x.ending.value, 80)})"
    if accepted(x):
        return f"HTTP {x.status}"
    return f"HTTP {x.status}, {show(error_text(x), 100)}"


def label(group: Group) -> str:
    """What the group tries, without the requirement's id."""
    return group.key.partition(" ")[2] or group.key


def tried(group: Group, probe: Exchange, context: CheckContext) -> str:
    """What a probe tries, by the members that were sent: the parameter's, or those that do not go together."""
    body = probe.case.body
    named = context.get("parameter")
    rules = (one.example for one in context.contract.combinations if one.id == context.get("combination"))
    names = [top(named)] if isinstance(named, str) else list(next(rules, ()))
    if not names or not isinstance(body, Mapping):
        return label(group)
    told = [f"{name} = {_value(body[name])}" if name in body else f"{name} absent" for name in names]
    return ", ".join([*told, "streamed"] if body.get("stream") is True and "stream" not in names else told)


def _value(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def open_control(group: Group) -> tuple[Exchange | None, str]:
    """The control that the target accepted; or None, and why there is none."""
    controls: Collection[Exchange] = group.all("control")
    found = next((x for x in controls if accepted(x)), None)
    if found is not None:
        return found, ""
    told = describe_reply(next(iter(controls))) if controls else "not sent"
    return None, f"{label(group)}: its control was not accepted ({told}), so the answer proves nothing"
