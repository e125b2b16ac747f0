"""Builders of small exchanges, for the good and bad examples beside each check, and for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.contract.semantics import semantics
from conformance.judge.catalogue import Example
from conformance.model import (
    Contract,
    Credential,
    Document,
    Ending,
    Membership,
    Parameter,
    RequestCase,
    Source,
    Validity,
)
from conformance.model.exchange import Attempt, Exchange, Group, Piece
from conformance.model.json_text import MISSING, dumps
from conformance.model.parameter_traits import Bends, ParameterTraits, Role

CREATED = 1_700_000_000
# Parameters of the small contract that no provider has, each with a role that some provider's parameter has.
ROLES = {
    "endless": ParameterTraits(role=Role.IGNORES_END, breaks_format=True),
    "floor": ParameterTraits(role=Role.PROBABILITY_FLOOR, bends=Bends.FILTER, neutral=0),
    "tier": ParameterTraits(role=Role.REPORTED),
}


def case(request: Mapping[str, Any] | bytes | None = None, **fields: Any) -> RequestCase:
    """A case for the example model; `request` overrides or adds members of its body, or is the body as bytes."""
    content = (
        request
        if isinstance(request, bytes)
        else dumps({"model": "m", "prompt": "1, 2, 3,", **(request or {})}).encode()
    )
    return RequestCase(**{"id": "example/0", "content": content, "origin": "example", **fields})


def logprobs(tokens: Sequence[str], values: Sequence[float | None] | None = None, start: int = 0, top: int = 1) -> Any:
    """A log probabilities object in which all four lists agree."""
    chosen = [-0.25] * len(tokens) if values is None else list(values)
    offsets = [start + len("".join(tokens[:index])) for index in range(len(tokens))]
    tops = [
        None if value is None else {token: value, **{f"~{rank}": value - rank for rank in range(1, top)}}
        for token, value in zip(tokens, chosen, strict=True)
    ]
    return {"tokens": list(tokens), "token_logprobs": chosen, "top_logprobs": tops, "text_offset": offsets}


def choice(
    text: str = " 4, 5", index: int = 0, finish: Any = "length", logprobs: Any = None, **others: Any
) -> dict[str, Any]:
    """A choice; pass MISSING to leave a member out."""
    members = {"text": text, "index": index, "logprobs": logprobs, "finish_reason": finish, **others}
    return {name: value for name, value in members.items() if value is not MISSING}


def usage(prompt: Any = 4, completion: Any = 4, total: Any = None, **members: Any) -> dict[str, Any]:
    """A usage object; its total is the sum unless given."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion if total is None else total,
        **members,
    }


def completion(*choices: Mapping[str, Any], usage: Any = MISSING, **others: Any) -> dict[str, Any]:
    """A completion or chunk; pass MISSING to leave a member out."""
    members = {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": CREATED,
        "model": "m",
        "choices": list(choices),
        "usage": usage,
        **others,
    }
    return {name: value for name, value in members.items() if value is not MISSING}


def response(
    content: bytes | Sequence[bytes],
    request: Mapping[str, Any] | bytes | None = None,
    *,
    status: int | None = 200,
    media_type: str | None = "application/json",
    headers: Mapping[str, str] | None = None,
    ending: Ending = Ending.COMPLETE,
    error: str = "",
    **about: Any,
) -> Exchange:
    """An exchange with exactly these bytes; `about` goes to the case."""
    pieces = [content] if isinstance(content, bytes) else list(content)
    content_type = {} if media_type is None else {"content-type": media_type}
    attempt = Attempt(
        started_at=float(CREATED),
        status=status,
        headers=tuple({**content_type, **(headers or {})}.items()),
        pieces=tuple(Piece(0.01 * number, piece) for number, piece in enumerate(pieces, 1)),
        ending=ending,
        error=error,
        elapsed=0.01 * (len(pieces) + 1),
    )
    return Exchange(case(request, **about), (attempt,))


def plain(body: Any, request: Mapping[str, Any] | bytes | None = None, **fields: Any) -> Exchange:
    """A reply with one JSON body."""
    return response(dumps(body).encode(), request, **fields)


def stream(*chunks: Any, request: Mapping[str, Any] | None = None, done: bool = True, **fields: Any) -> Exchange:
    """A streamed reply, one event for each chunk (bytes are sent unchanged), ended by `[DONE]` if `done`."""
    events = [chunk if isinstance(chunk, bytes) else f"data: {dumps(chunk)}\n\n".encode() for chunk in chunks]
    if done:
        events.append(b"data: [DONE]\n\n")
    return response(events, {"stream": True, **(request or {})}, **{"media_type": "text/event-stream", **fields})


def error(
    message: str = "temperature must be at most 2", status: int = 400, request: Any = None, **fields: Any
) -> Exchange:
    """A refusal with the common error envelope."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": "temperature", "code": None}}
    return plain(body, request, status=status, **fields)


def group(kind: str, key: str = "example", /, **members: Exchange | Sequence[Exchange]) -> Group:
    """A group with one or several exchanges for each role; underscores in a role stand for hyphens."""
    by_role = {
        role.replace("_", "-"): (replies,) if isinstance(replies, Exchange) else tuple(replies)
        for role, replies in members.items()
    }
    return Group(kind, key, by_role)


def example(subject: Exchange | Group, **params: Any) -> tuple[Example, ...]:
    """One example, in the form that `@check` expects; several are joined with `+`."""
    return (Example(subject, params),)


def contract(**changes: Any) -> Contract:
    """A small contract with the common defaults, for judging examples."""
    defaults = {"max_tokens": 16, "n": 1, "echo": False, "stream": False, "temperature": 1, "top_p": 1, "best_of": 1}
    names = ("model", "prompt", "logprobs", "stop", "stream_options", "logit_bias", "seed", "suffix", "user", *ROLES)
    parameters = {
        name: Parameter(name, {}, name in {"model", "prompt"}, True, defaults.get(name, MISSING), Source(f"#/{name}"))
        for name in (*defaults, *names)
    }
    members: dict[str, Any] = {
        "provider": "example", "title": "Example", "revision": "2026-01-01",
        "document": Document(file="example.txt", form="prose"),
        "sha256": "0" * 64, "openapi": {},
        "server": "http://127.0.0.1", "path": "/completions", "method": "POST", "operation_at": "#", "request": {},
        "response": {}, "chunk": {}, "errors": {}, "parameters": parameters, "limits": (), "requirements": (),
        "described": ROLES,
    }  # fmt: skip
    return Contract(**{**members, "semantics": semantics(changes.get("requirements", ())), **changes})


__all__ = [
    "Credential", "Membership", "Validity", "case", "choice", "completion", "contract", "error", "example", "group",
    "logprobs", "plain", "response", "stream", "usage",
]  # fmt: skip
