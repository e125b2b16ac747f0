"""One requirement in words: what it promises, why a client cares, a good and a bad example, how to fix a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.judge.catalogue import Check, Example, Scope, load
from conformance.model import Contract, Credential, Level, Requirement
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps

LAYERS: Final = {
    "contract": "this provider's document",
    "standard": "a standard that the document invokes",
    "ecosystem": "what common clients rely on",
}
SCOPES: Final = {
    Scope.ANY: "every response, whatever its status",
    Scope.SUCCESS: "every complete successful response, plain or streamed",
    Scope.PLAIN: "every complete successful response without streaming",
    Scope.STREAM: "every complete stream",
    Scope.ERROR: "every complete error response",
}
GROUPS: Final = {
    "accept": "a request with one more documented value than its control, which the target accepts",
    "refuse": "a request that breaks only this rule, beside a valid control that the target accepts",
    "drawn": "a valid request that is drawn at random from the document",
    "drawn-invalid": "a drawn request with one wrong value, beside the same without it, which the target accepts",
    "observe": "a request at a point that the document leaves open, beside a valid control",
    "channel": "the same invalid request with and without streaming",
    "alive": "a plain request after adversarial or aborted ones",
    "twin": "the same request with and without streaming, at temperature 0",
    "spelling": "the same request in two forms that HTTP and JSON have equal",
    "after": "the same request twice, the second right after a refusal or a stream that the client left",
    "repeat": "the same request twice, at temperature 0",
    "seed": "the same request twice, sampled with one seed; the second may be streamed",
    "vary": "the same request several times, sampled without a seed or with different seeds",
    "null": "the same request without a parameter and with null for it",
    "default": "the same request without a parameter and with its documented default",
    "batch": "a list of prompts, and each prompt alone",
    "never": "the same request with and without a member that must change nothing",
    "logprobs": "the same request with and without log probabilities",
    "ranks": "the same request for many and for few alternatives of each token",
    "scored": "a request for a text with log probabilities, and that text echoed as the end of a prompt",
    "many": "the same request for one choice and for several",
    "prefix": "the same request with a low and a high token limit",
    "cut": "a request, and the same with a stop sequence taken from its own reply",
    "uncut": "a request, and the same with stop sequences that cut none or few of its texts",
    "echo": "the same request with and without echo",
    "ban": "a request, and the same with a bias against a token of its reply",
    "force": "a request, and the same with a bias towards one token",
    "narrow": "a request at temperature 0, and one whose sampling parameters leave a single candidate",
    "best": "single samples, and requests for the best of many",
    "burst": "distinguishable requests, one after another and all at once",
    "suffix": "the same request with and without a suffix",
    "json": "requests for a JSON format",
    "overflow": "a request whose prompt and limit exceed the context, beside a short one",
    "arms": "many requests with a low and a high value of the parameter",
    "tier": "a request for a service tier",
}
MOST_CHARACTERS: Final = 700
"""The longest body that an example shows whole."""


def card(contract: Contract, requirement: Requirement) -> str:
    """Everything about one requirement, as Markdown."""
    return "\n".join(_card(contract, requirement))


def _card(contract: Contract, requirement: Requirement) -> Iterator[str]:
    check = load()[requirement.check]
    yield f"### {requirement.id}\n"
    layer = f"{requirement.layer} ({LAYERS[requirement.layer]})"
    yield f"**{requirement.level}** · {layer} · check `{requirement.check}`\n"
    yield f"{requirement.promise}\n"
    yield f"- **Source**: {source(contract, requirement)}"
    yield f"- **Why it matters**: {check.why}"
    yield f"- **Exercised on**: {exercised(check, requirement)}"
    yield f"- **What is checked**: {check.holds}"
    yield f"- **How to fix a server**: {requirement.fix or check.fix}"
    if requirement.params:
        yield f"- **Parameters**: {_values(requirement.params)}"


def source(contract: Contract, requirement: Requirement) -> str:
    """Where the promise is written: in the vendored document and on the provider's page, or in a standard."""
    at, quote = requirement.source.at, requirement.source.quote
    lines = requirement.source.page.partition(":")[2]
    pointer = f"`specs/{contract.provider}/openapi.yaml{at}`" if at.startswith("#") else at
    page = f", line {lines} of {contract.document}" if lines else ""
    return pointer + page + (f": “{quote}”" if quote else "")


def exercised(check: Check, requirement: Requirement) -> str:
    """Which exchanges the requirement is judged on."""
    if check.scope is Scope.GROUP:
        members = [example.subject.members for example in check.good() if isinstance(example.subject, Group)]
        roles = ", ".join(f"`{role}`" for role in dict.fromkeys(role for roles_of in members for role in roles_of))
        return f"{GROUPS[check.group]} (group `{check.group}`: {roles})"
    return SCOPES[check.scope] + (f" with {_values(requirement.when)}" if requirement.when else "")


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {dumps(value)}" for name, value in values.items())


def examples(contract: Contract, requirement: Requirement) -> str:
    """The good and the bad example of the requirement's check, as bytes on the wire."""
    check = load()[requirement.check]
    parts = [
        _example(contract, f"{title} example of `{check.name}`", _nearest(among, requirement))
        for title, among in (("Good", check.good()), ("Bad", check.bad()))
    ]
    if requirement.level is Level.MAY:
        parts.append("A MAY is only recorded: no target fails because of it.")
    return "\n\n".join(parts)


def _nearest(among: Sequence[Example], requirement: Requirement) -> Example:
    """The first of the examples whose parameters agree best with those of the requirement."""

    def agreement(example: Example) -> int:
        return sum(requirement.params.get(name) == value for name, value in example.params.items())

    return max(among, key=agreement)


def _example(contract: Contract, title: str, example: Example) -> str:
    condition = f" (where {_values(example.params)})" if example.params else ""
    return f"**{title}**{condition}\n\n```http\n{_wire(contract, example.subject)}\n```"


def _wire(contract: Contract, subject: Exchange | Group) -> str:
    if isinstance(subject, Exchange):
        return _exchange(contract, subject)
    parts = []
    for role, members in subject.members.items():
        count = f" ({len(members)} times)" if len(members) > 1 else ""
        parts.append(f"# {role}{count}\n{_exchange(contract, members[0])}")
    return "\n\n".join(parts)


def _exchange(contract: Contract, exchange: Exchange) -> str:
    """Request and response without the header fields that every request has; a stream is shown as its events."""
    case = exchange.case
    request = _cut(case.content.decode("utf-8", "backslashreplace"))
    content = _cut(exchange.content.decode("utf-8", "backslashreplace").rstrip("\n"))
    status = "(no response)" if exchange.status is None else f"HTTP/1.1 {exchange.status}"
    credentials = {Credential.NONE: ["(without a key)"], Credential.WRONG: ["authorization: Bearer not-a-key"]}
    media = [f"{name}: {value}" for name, value in case.headers if value != "application/json"]
    head = [f"{case.method} {case.path or contract.path}", *credentials.get(case.credential, []), *media]
    fields = [f"{name}: {value}" for name, value in exchange.headers]
    return "\n".join([*head, *([request] if request else []), "", status, *fields, "", content]).rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
