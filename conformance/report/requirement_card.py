"""A requirement in words: what it promises, why a client cares, what good and bad look like, how to mend a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.judge.catalogue import Check, Example, Scope, load
from conformance.model import Contract, Credential, Requirement
from conformance.model.exchange import Exchange, Group
from conformance.report.requirement_examples import Exhibit, exhibits

LAYERS: Final = {
    "contract": "this provider's document",
    "standard": "a standard that the document invokes",
    "ecosystem": "what common clients rely on",
}
SCOPES: Final = {
    Scope.ANY: "every response, whatever its status",
    Scope.SUCCESS: "every complete success, plain or streamed",
    Scope.PLAIN: "every complete success that was not asked to stream",
    Scope.STREAM: "every complete stream",
    Scope.ERROR: "every complete error response",
}
KINDS: Final = {
    "accept": "a request with one documented value more than its sibling, which the target accepts",
    "refuse": "a request that breaks this alone, beside its sibling that does not and that the target accepts",
    "observe": "a request at a point that the document leaves open, beside its sibling that is plainly valid",
    "channel": "the same invalid request with and without streaming",
    "alive": "a plain request after hostile or broken-off ones",
    "twin": "the same request with and without streaming, at temperature 0",
    "repeat": "the same request twice, at temperature 0",
    "seed": "the same request twice, sampled with one seed; the second one may be streamed",
    "vary": "the same request several times, sampled without a seed or with different ones",
    "null": "the same request without a parameter and with null for it",
    "default": "the same request without a parameter and with its documented default",
    "batch": "a list of prompts, and each of them alone",
    "never": "the same request with and without something that must change nothing",
    "logprobs": "the same request with and without log probabilities",
    "many": "the same request for one choice and for several",
    "prefix": "the same request under a low and a high token limit",
    "cut": "a request, and the same with a stop sequence that was taken from its own reply",
    "echo": "the same request with and without echo",
    "ban": "a request, and the same with a bias against what it wrote",
    "force": "a request, and the same with a bias for one token",
    "narrow": "a request at temperature 0, and one that leaves sampling a single candidate",
    "best": "single draws, and requests for the best of many",
    "burst": "requests that can be told apart, alone and all at once",
    "suffix": "the same request with and without a suffix",
    "json": "requests for a JSON format",
    "overflow": "a request whose prompt and limit exceed the context, beside a short one",
    "arms": "many requests under a low and a high value of the parameter",
    "tier": "a request for a service tier",
}
MOST: Final = 700  # characters of an example's body


def card(contract: Contract, row: Requirement) -> str:
    """Everything about one requirement, as Markdown."""
    return "\n".join(_card(contract, row))


def _card(contract: Contract, row: Requirement) -> Iterator[str]:
    check = load()[row.check]
    yield f"### {row.id}\n"
    yield f"**{row.level}** · {row.layer} ({LAYERS[row.layer]}) · check `{row.check}`\n"
    yield f"{row.promise}\n"
    yield f"- **Source**: {place(contract, row)}"
    yield f"- **Why it matters**: {check.why}"
    yield f"- **Exercised on**: {exercised(check, row)}"
    yield f"- **What is checked**: {check.holds}"
    yield f"- **How to mend a server**: {check.fix}"
    if row.params:
        yield "- **Parameters**: " + ", ".join(f"{name} = {value!r}" for name, value in row.params.items())


def place(contract: Contract, row: Requirement) -> str:
    """Where the promise stands: in the vendored document and on the provider's page, or in a standard."""
    at = f"`specs/{contract.provider}/openapi.yaml{row.source.at}`" if row.source.at.startswith("#") else row.source.at
    return at + (f" ({row.source.page})" if row.source.page else "")


def exercised(check: Check, row: Requirement) -> str:
    """Which exchanges the requirement is judged on."""
    if check.scope is Scope.GROUP:
        roles = ", ".join(f"`{role}`" for role in dict.fromkeys(role for one in check.good() for role in _roles(one)))
        return f"{KINDS[check.group]} (group `{check.group}`: {roles})"
    when = ", ".join(f"{name} = {value!r}" for name, value in row.when.items())
    return SCOPES[check.scope] + (f" with {when}" if when else "")


def _roles(one: Example) -> tuple[str, ...]:
    return tuple(one.subject.members) if isinstance(one.subject, Group) else ()


def examples(contract: Contract, row: Requirement) -> str:
    """A good and a bad exchange, as they go over the wire."""
    good, bad = exhibits(contract, row)
    shown = [_shown(contract, "Good" if bad else "For example", good)]
    if bad:
        shown.append(_shown(contract, "Bad", bad))
    else:
        shown.append("Whatever a target does here is recorded and judges nobody.")
    return "\n\n".join(shown)


def _shown(contract: Contract, title: str, one: Exhibit) -> str:
    also = "" if one.own else " (of a like requirement)"
    return f"**{title}**{also}\n\n```http\n{_wire(contract, one.subject)}\n```"


def _wire(contract: Contract, subject: Exchange | Group) -> str:
    if isinstance(subject, Exchange):
        return _exchange(contract, subject)
    told = []
    for role, members in subject.members.items():
        times = f" ({len(members)} times)" if len(members) > 1 else ""
        told.append(f"# {role}{times}\n{_exchange(contract, members[0])}")
    return "\n\n".join(told)


def _exchange(contract: Contract, x: Exchange) -> str:
    """Request and response, without what every request has in common; what came as events stays as events."""
    request = _cut(x.case.content.decode("utf-8", "backslashreplace"))
    content = _cut(x.content.decode("utf-8", "backslashreplace").rstrip("\n"))
    status = "(no response)" if x.status is None else f"HTTP/1.1 {x.status}"
    keys = {Credential.NONE: ["(without a key)"], Credential.WRONG: ["authorization: Bearer not-a-key"]}
    media = [f"{name}: {value}" for name, value in x.case.headers if value != "application/json"]
    head = [f"{x.case.method} {x.case.path or contract.path}", *keys.get(x.case.credential, []), *media]
    fields = [f"{name}: {value}" for name, value in x.headers]
    return "\n".join([*head, *([request] if request else []), "", status, *fields, "", content]).rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}…"
