"""What was concluded about each exchange and each group, so that growing traffic is not judged from the start again.

A check is a pure function of its subject and of the requirement, so a conclusion holds while the subject is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from conformance.model import Finding, Satisfied
from conformance.model.exchange import Exchange, Group
from conformance.model.request_view import RequestView

Packed: TypeAlias = int | tuple[Finding, ...]
"""Findings; a number stands for that many occurrences, all satisfied."""


def packed(findings: Iterable[Finding]) -> Packed:
    """Findings in the form in which they are kept."""
    all_findings = tuple(findings)
    count = 0
    for finding in all_findings:
        if type(finding) is not Satisfied:
            return all_findings
        count += finding.count
    return count


@dataclass(frozen=True, slots=True)
class Conclusions:
    """What is known of one subject, by the requirement's id: its findings, and whether it is expected to show it."""

    subject: Exchange | Group
    findings: dict[str, Packed] = field(default_factory=dict)
    expected: dict[str, bool] = field(default_factory=dict)


@dataclass
class FindingCache:
    """The conclusions of one contract, by case id or by group, and its request views by content."""

    views: dict[bytes, RequestView] = field(default_factory=dict, repr=False)
    _conclusions: dict[str | tuple[str, str], Conclusions] = field(default_factory=dict, repr=False)

    def of(self, subject: Exchange | Group) -> Conclusions:
        """The conclusions about a subject; none yet where it is new, or differs from the one that was known."""
        key = subject.case.id if isinstance(subject, Exchange) else (subject.kind, subject.key)
        known = self._conclusions.get(key)
        if known is None or (known.subject is not subject and known.subject != subject):
            known = self._conclusions[key] = Conclusions(subject)
        return known

    def copy(self) -> FindingCache:
        """A cache that starts with these conclusions. New conclusions are not added to the original."""
        return FindingCache(self.views, dict(self._conclusions))
