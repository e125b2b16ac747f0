"""The result of a run, which reports are written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.model import Contract, RequestCase, Verdict
from conformance.model.budget import Cost, reported
from conformance.model.exchange import Exchange

EMBEDDED: Final = "embedded reference"
"""The `kind` of an endpoint that is the reference of this suite and no target."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What was judged, under the name that reports give it. `embedded`: the reference of the suite, not a target.

    `headers` and `query` are what every request had besides its case, with None for a secret value; `key_variable` is
    the environment variable of the key: empty where no key was sent, None where that is not known.
    """

    name: str
    base_url: str
    model: str
    embedded: bool = False
    headers: tuple[tuple[str, str | None], ...] = ()
    query: tuple[tuple[str, str | None], ...] = ()
    key_variable: str | None = None

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Endpoint:
        """The endpoint that recordings or results describe."""
        headers, query = (
            tuple((name, value) for name, value in described.get(pairs, ())) for pairs in ("headers", "query")
        )
        return cls(
            described["name"],
            described["base_url"],
            described["model"],
            described.get("kind") == EMBEDDED,
            headers,
            query,
            described.get("key_variable"),
        )

    def described(self) -> dict[str, Any]:
        """The endpoint as recordings and results name it, without what does not apply."""
        pairs = {"headers": [list(pair) for pair in self.headers], "query": [list(pair) for pair in self.query]}
        return {
            "name": self.name,
            "base_url": self.base_url,
            "model": self.model,
            **({"kind": EMBEDDED} if self.embedded else {}),
            **{name: value for name, value in pairs.items() if value},
            **({"key_variable": self.key_variable} if self.key_variable is not None else {}),
        }


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of one contract. `incomplete` says why verdicts are missing or unconfirmed; empty where none is.

    `unsent` has the reason by the id of each case that was not sent, `smallest` the id of the smallest case that shows
    a broken requirement, by the requirement's id.
    """

    contract: Contract
    target: Endpoint
    profile: str
    seed: int
    plan_sha256: str
    planned: tuple[RequestCase, ...]
    exchanges: tuple[Exchange, ...]
    verdicts: tuple[Verdict, ...]
    totals: Mapping[str, int]
    started_at: float
    duration_s: float
    incomplete: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    unsent: Mapping[str, str] = field(default_factory=dict)
    smallest: Mapping[str, str] = field(default_factory=dict)
    recorded: Mapping[str, Any] | None = None  # traffic of others: how many exchanges, how many judged, why not all


def totals(exchanges: Iterable[Exchange]) -> dict[str, int]:
    """Requests, attempts, and the tokens that the target says it charged."""
    counts = {"requests": 0, "attempts": 0, "prompt_tokens": 0, "completion_tokens": 0}
    for exchange in exchanges:
        cost = (reported(exchange.usage) if exchange.successful else None) or Cost()
        counts["requests"] += 1
        counts["attempts"] += len(exchange.attempts)
        counts["prompt_tokens"] += cost.prompt
        counts["completion_tokens"] += cost.completion
    return counts
