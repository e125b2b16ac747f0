"""A case played against the reference in process, without a socket: what the transport would have recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.model import Contract, Credential, Ending, Phase, RequestCase
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.reference.core import Reference, respond
from conformance.reference.messages import Request, Response
from conformance.send.rate_limits import RETRIED, TimeoutPolicy

OVERHEAD = 0.0005
PATIENCE = 30.0


def request(contract: Contract, case: RequestCase, key: str | None) -> Request:
    """The request that the case describes, with its credential filled in."""
    authorization = {
        Credential.KEY: f"Bearer {key}" if key is not None else None,
        Credential.NONE: None,
        Credential.WRONG: "Bearer wrong-key-on-purpose",
        Credential.LOWERCASE_SCHEME: f"bearer {key}" if key is not None else None,
    }[case.credential]
    headers = case.headers if authorization is None else (*case.headers, ("authorization", authorization))
    return Request(case.method, case.path or contract.path, "", headers, case.content)


def exchange(provider: Reference, case: RequestCase) -> Exchange:
    """One case, answered. Delays become arrival times; a client that hangs up keeps what it had by then."""
    return _asked(provider, case, request(provider.contract, case, provider.key))


def play(provider: Reference, phases: Iterable[Phase]) -> Iterator[Exchange]:
    """All cases of all waves in order; the cases of a burst are under way together."""
    for phase in phases:
        asked = [request(provider.contract, case, provider.key) for case in phase.cases]
        provider.memory.in_flight[:] = asked[: phase.burst]
        for place, (case, one) in enumerate(zip(phase.cases, asked, strict=True)):
            if place == phase.burst:
                provider.memory.in_flight.clear()
            yield _asked(provider, case, one)
        provider.memory.in_flight.clear()


def _asked(provider: Reference, case: RequestCase, one: Request) -> Exchange:
    """Ask until there is an answer that the transport would not try again for, or its patience is at an end."""
    attempts = [_attempt(provider, case, respond(provider, one))]
    while attempts[-1].status in {None, *RETRIED} and len(attempts) <= TimeoutPolicy().retries:
        attempts.append(_attempt(provider, case, respond(provider, one)))
    return Exchange(case, tuple(attempts))


def _attempt(provider: Reference, case: RequestCase, response: Response) -> Attempt:
    at, pieces = provider.settings.latency, []
    for portion in response.portions:
        at += portion.delay + OVERHEAD
        if portion.data:
            pieces.append(Piece(at, portion.data))
    ending, error = response.ending, ""
    if case.hang_up_after is not None and len(pieces) > case.hang_up_after:
        ending, pieces = Ending.ABANDONED, pieces[: case.hang_up_after]
    elif ending is Ending.TIMED_OUT:
        at, error = at + PATIENCE, f"nothing came for {PATIENCE:g} s"
    elif ending is Ending.TRUNCATED:
        error = "the connection was closed before the content was complete"
    return Attempt(provider.now(), response.status, response.headers, tuple(pieces), ending, error, at)
