"""A requirement in words: what it promises, why a client cares, what good and bad look like, how to mend a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.catalogue import Check, Example, Scope, load
from conformance.exchange import Exchange, Group
from conformance.model import Contract, Requirement

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
MOST: Final = 700  # characters of an example's body


def card(contract: Contract, row: Requirement) -> str:
    """Everything about one requirement, as Markdown."""
    return "\n".join(_card(contract, row))


def _card(contract: Contract, row: Requirement) -> Iterator[str]:
    check = load()[row.check]
    yield f"### {row.id}\n"
    yield f"**{row.level}** · {row.layer} ({LAYERS[row.layer]}) · check `{row.check}`\n"
    yield f"{row.promise}\n"
    yield f"- **Source**: {row.source.at}" + (f" ({row.source.page})" if row.source.page else "")
    yield f"- **Why it matters**: {check.why}"
    yield f"- **Exercised on**: {exercised(check, row)}"
    yield f"- **How to mend a server**: {check.fix}"
    if row.params:
        yield "- **Parameters**: " + ", ".join(f"{name} = {value!r}" for name, value in row.params.items())


def exercised(check: Check, row: Requirement) -> str:
    """Which exchanges the requirement is judged on."""
    if check.scope is not Scope.GROUP:
        when = ", ".join(f"{name} = {value!r}" for name, value in row.when.items())
        return SCOPES[check.scope] + (f" with {when}" if when else "")
    roles = " and ".join(dict.fromkeys(role for one in check.good() for role in _roles(one)))
    return f"groups of requests of the kind `{check.group}`" + (f": {roles}" if roles else "")


def _roles(one: Example) -> tuple[str, ...]:
    return tuple(one.subject.members) if isinstance(one.subject, Group) else ()


def examples(row: Requirement) -> str:
    """A good and a bad exchange, as they go over the wire."""
    check = load()[row.check]
    parts = []
    for title, found in (("Good", check.good()), ("Bad", check.bad())):
        if found:
            parts.append(f"**{title}**\n\n```http\n{_wire(found[0])}\n```")
    return "\n\n".join(parts)


def _wire(one: Example) -> str:
    if isinstance(one.subject, Exchange):
        return _exchange(one.subject)
    told = []
    for role, members in one.subject.members.items():
        told += [f"# {role}", _exchange(members[0])]
    return "\n".join(told)


def _exchange(x: Exchange) -> str:
    request = x.case.content.decode("utf-8", "backslashreplace")
    content = x.content.decode("utf-8", "backslashreplace").rstrip("\n")
    status = "(no response)" if x.status is None else f"HTTP/1.1 {x.status}"
    shown = content if len(content) <= MOST else f"{content[:MOST]}…"
    lines = [
        f"POST /completions  {request[:MOST]}",
        status,
        *(f"{name}: {value}" for name, value in x.headers),
        "",
        shown,
    ]
    return "\n".join(lines)
