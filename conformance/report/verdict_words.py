"""The words for verdicts and run results: one set for terminal, pages, summaries, badges and differences."""

from __future__ import annotations

from typing import Final

MEANINGS: Final = {
    "fail": "a MUST is broken, every time it was tested",
    "flaky": "broken in some replies to the same request and kept in others",
    "warn": "a SHOULD is broken",
    "error": "a check of this suite crashed: a fault of the suite, never of the target",
    "inconclusive": "a request was expected to show it, and no reply did",
    "not_run": "planned, but the budget or the run ended first",
    "pass": "kept in every occurrence that was examined, at least one",
    "not_applicable": "not promised for this target, or a client cannot trigger it",
}
"""What each verdict on a requirement means, the most urgent first: the order of every table and legend."""
OUTCOMES: Final = tuple(MEANINGS)
HEADLINES: Final = {
    "conformant": "Conforms",
    "broken": "Does not conform",
    "incomplete": "Incomplete",
    "suite_fault": "Suite fault",
}
"""The result of a run, by the `verdict` of results.json."""
REFERENCE_HEADLINES: Final = {
    "conformant": "The embedded reference conforms",
    "broken": "The embedded reference does not conform",
    "incomplete": "The embedded reference: incomplete",
    "suite_fault": "The embedded reference: suite fault",
}
"""The same where no target was judged, but the reference that this suite serves itself."""
UNJUDGED_HEADLINE: Final = "Not judged"
"""The result of a run in which nothing came back that could be judged."""
RECORDED_HEADLINE: Final = "Nothing broken"
"""The result of recordings that this suite did not make: they never show everything."""
INVALID_WAIVERS: Final = "Invalid waivers"
"""The result of a run that fails only because a waiver is no longer valid."""


AREAS: Final = {
    "auth": "keys and the Authorization header",
    "choices": "number, order and indices of choices",
    "chunk": "members of each chunk of a stream",
    "concurrency": "requests in flight at the same time",
    "echo": "the prompt repeated before the completion",
    "effects": "what parameters change in the text",
    "error": "documented members of error bodies",
    "errors": "status, shape and wording of refusals",
    "finish": "finish_reason",
    "framing": "bytes on the wire: event streams, JSON, UTF-8",
    "headers": "header fields of responses",
    "logprobs": "log probabilities",
    "protocol": "unusual and malformed HTTP and JSON",
    "relations": "replies to related requests, which must agree",
    "request": "which values of parameters are accepted and refused",
    "response": "members of plain bodies",
    "robustness": "server errors, and what comes after adversarial requests",
    "stop": "stop sequences",
    "stream": "what the chunks of a stream have in common",
    "timing": "when chunks arrive",
    "tokens": "token limits and their defaults",
    "unicode": "characters across token and chunk borders",
    "usage": "token counts",
}
"""What the first part of a requirement's id says: what the requirement is about."""
ORIGINS: Final = {
    "base": "a base request, from which others differ in one respect",
    "value": "a request that tries one value of a parameter",
    "edge": "a request that tries a value at a documented limit",
    "row": "a request that combines several parameters",
    "relation": "one of several requests whose replies are compared",
    "cut": "a request repeated with a stop sequence from its own reply",
    "burst": "one of several requests sent at the same moment",
    "invalid": "a request that breaks one rule of the document",
    "protocol": "a request that is unusual in HTTP or JSON, or has another key",
    "hostile": "an adversarial request: unusual or oversized",
    "alive": "a plain request after an adversarial one",
    "sample": "a request drawn at random from the document",
    "shrink": "a smaller form of a request that failed",
}
"""What the first part of a case id says: why the request was sent. The second part is a hash of its bytes."""


def word(outcome: str) -> str:
    """A verdict as people read it: `not_run` → `not run`."""
    return outcome.replace("_", " ")
