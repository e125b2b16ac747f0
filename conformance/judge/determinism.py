"""Prompts that a target answers in several ways at temperature 0, where a difference proves nothing else.

Two replicas that differ, or kernels whose rounding depends on the batch, return different outputs for the same
request. Three equal replies on each of two sides then occur by chance in one of some dozen comparisons. Whether a
prompt is non-deterministic shows in the run itself, wherever a request was sent again unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from conformance.judge.token_text import REPLACEMENT
from conformance.model import Credential, Ending, Finding, Inconclusive, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps

Texts = tuple[tuple[int, str], ...]


def nondeterministic_prompts(exchanges: Iterable[Exchange]) -> frozenset[str]:
    """The prompts, as JSON, for which the same request at temperature 0 returned different texts."""
    texts_by_request: dict[bytes, set[Texts]] = defaultdict(set)
    for x in exchanges:
        case = x.case
        complete = x.successful and x.ending is Ending.COMPLETE and not x.filtered
        if complete and case.credential is Credential.KEY and _is_greedy(case.body):
            texts = tuple((index, choice.text.rstrip(REPLACEMENT)) for index, choice in x.choices.items())
            texts_by_request[case.content].add(texts)
    varying = {content for content, texts in texts_by_request.items() if len(texts) > 1}
    return frozenset(prompt for x in exchanges if x.case.content in varying for prompt in prompts(x.case.body))


def prompts(body: Any) -> Iterator[str]:
    """The prompts of a request, each as JSON, and the whole batch as one."""
    prompt = body.get("prompt") if isinstance(body, Mapping) else None
    if prompt is not None:
        yield dumps(prompt)
        yield from map(dumps, prompt if isinstance(prompt, list) else ())


def discount_nondeterminism(finding: Finding, group: Group, nondeterministic: frozenset[str]) -> Finding:
    """The finding; a violation that assumes deterministic prompts is inconclusive if one in the group is not."""
    if isinstance(finding, Violation) and finding.steady:
        sent = {prompt for members in group.members.values() for x in members for prompt in prompts(x.case.body)}
        if sent & nondeterministic:
            reason = "the same request with this prompt returned different texts elsewhere in the run"
            return Inconclusive(f"the target is not deterministic: {reason}; {finding.message}")
    return finding


def _is_greedy(body: Any) -> bool:
    return isinstance(body, Mapping) and body.get("temperature") == 0


__all__ = ["discount_nondeterminism", "nondeterministic_prompts", "prompts"]
