"""Prompts that a target answers in several ways at temperature 0: there, a difference shows nothing but that.

Two unlike replicas, or kernels that round by what else runs, answer one request now so, now so. Three replies that are
alike on each of two sides then come by luck once in some dozen comparisons. What the run says elsewhere tells it.
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


def unsteady(exchanges: Iterable[Exchange]) -> frozenset[str]:
    """The prompts, as JSON, of which the very same request at temperature 0 gave different texts."""
    found: dict[bytes, set[Texts]] = defaultdict(set)
    for x in exchanges:
        case = x.case
        whole = x.successful and x.ending is Ending.COMPLETE and not x.filtered
        if whole and case.credential is Credential.KEY and _cold(case.body):
            found[case.content].add(tuple((place, one.text.rstrip(REPLACEMENT)) for place, one in x.choices.items()))
    odd = {content for content, texts in found.items() if len(texts) > 1}
    return frozenset(prompt for x in exchanges if x.case.content in odd for prompt in prompts(x.case.body))


def prompts(body: Any) -> Iterator[str]:
    """The prompts of a request, each as JSON, and all of them together."""
    told = body.get("prompt") if isinstance(body, Mapping) else None
    if told is not None:
        yield dumps(told)
        yield from map(dumps, told if isinstance(told, list) else ())


def excused(finding: Finding, group: Group, odd: frozenset[str]) -> Finding:
    """The finding; a doubt in place of a difference that only counts where replies are the same each time."""
    if isinstance(finding, Violation) and finding.steady:
        request = {prompt for members in group.members.values() for x in members for prompt in prompts(x.case.body)}
        if request & odd:
            told = "the very same request to this prompt was answered in several ways"
            return Inconclusive(f"the target is not deterministic: {told}; {finding.message}")
    return finding


def _cold(body: Any) -> bool:
    return isinstance(body, Mapping) and body.get("temperature") == 0


__all__ = ["excused", "prompts", "unsteady"]
