"""Requests answered by the reference in this process, without a socket, as the network sender would record them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.model import GONE_AFTER, Contract, Ending, Phase, RequestCase
from conformance.model.budget import Account
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.reference.core import Reference, respond
from conformance.reference.messages import Request, Response
from conformance.send.rate_limits import RETRIED, TimeoutPolicy, in_outage

SECONDS_PER_PIECE = 0.0005
IDLE_TIMEOUT = 30.0


@dataclass
class InProcessSender:
    """Sends phases to a reference as `send.Sender` sends them to a target; replies come at once, so nothing waits.

    As there, nothing more is sent once a number of requests in a row got no response, until `resume` is called.

    Attempts are charged to the account, tokens are not. `known` are exchanges by case: where a reply is the same again,
    the known exchange is returned, which is parsed already.
    """

    reference: Reference
    account: Account
    finished: Callable[[Exchange], object]
    known: Mapping[str, Exchange] = field(default_factory=dict)
    unsent: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    unanswered: int = 0

    def resume(self) -> None:
        """Send again; one more exchange without an answer, and the target has stopped answering."""
        self.silent, self.unanswered = False, GONE_AFTER - 1

    async def send(self, phase: Phase) -> tuple[Exchange, ...]:
        """The exchanges of a phase in its order; the cases of its burst are in flight together."""
        requests = [request(self.reference.contract, case, self.reference.key) for case in phase.cases]
        in_flight = self.reference.memory.in_flight
        in_flight[:] = requests[: phase.burst]
        exchanges = []
        for index, (case, prepared) in enumerate(zip(phase.cases, requests, strict=True)):
            if index == phase.burst:
                in_flight.clear()
            if reason := "the target stopped answering" if self.silent else self.account.refuses():
                self.unsent[case.id] = reason
                continue
            answered = _answered(self.reference, case, prepared, once=in_outage(self.unanswered))
            self.account.attempts += len(answered.attempts)
            no_answer = answered.status is None or answered.last.ending is Ending.TIMED_OUT
            self.unanswered = self.unanswered + 1 if no_answer else 0
            self.silent = self.unanswered >= GONE_AFTER
            recorded = self.known.get(case.id)
            exchange = recorded if recorded == answered and recorded is not None else answered
            exchanges.append(exchange)
            self.finished(exchange)
        in_flight.clear()
        return tuple(exchanges)


def exchange(reference: Reference, case: RequestCase) -> Exchange:
    """One case, answered. Delays become arrival times; a client that hangs up keeps what has arrived by then."""
    return _answered(reference, case, request(reference.contract, case, reference.key))


def request(contract: Contract, case: RequestCase, key: str | None) -> Request:
    """The request that the case describes, with its credential filled in."""
    values = case.credential.authorization(key or "", "wrong-key-on-purpose")
    headers = (*case.headers, *(("authorization", value) for value in values))
    return Request(case.method, case.path or contract.path, "", headers, case.content)


def _answered(reference: Reference, case: RequestCase, prepared: Request, *, once: bool = False) -> Exchange:
    """Attempts until there is a reply that the network sender would not retry, or it would give up.

    `once`: it does not try again without a response.
    """
    attempts = [_attempt(reference, case, respond(reference, prepared))]
    retried = RETRIED if once else {None, *RETRIED}
    while attempts[-1].status in retried and len(attempts) <= TimeoutPolicy().retries:
        attempts.append(_attempt(reference, case, respond(reference, prepared)))
    return Exchange(case, tuple(attempts))


def _attempt(reference: Reference, case: RequestCase, response: Response) -> Attempt:
    elapsed, pieces = reference.settings.latency, []
    for portion in response.portions:
        elapsed += portion.delay + SECONDS_PER_PIECE
        if portion.data:
            pieces.append(Piece(elapsed, portion.data))
    ending, error = response.ending, ""
    if case.hang_up_after is not None and len(pieces) > case.hang_up_after:
        ending, pieces = Ending.ABANDONED, pieces[: case.hang_up_after]
        reference.memory.last_left = reference.memory.calls
    elif ending is Ending.TIMED_OUT:
        elapsed, error = elapsed + IDLE_TIMEOUT, f"no data for {IDLE_TIMEOUT:g} s"
    elif ending is Ending.TRUNCATED:
        error = "the connection was closed before the content was complete"
    return Attempt(reference.now(), response.status, response.headers, tuple(pieces), ending, error, elapsed)
