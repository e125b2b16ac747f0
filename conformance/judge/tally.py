"""The findings of one requirement, counted: what was examined, what was violated, and the first evidence of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from conformance.model import Evidence, Finding, Inconclusive, Observation, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

MOST_EVIDENCE: Final = 20
MOST_OBSERVATIONS: Final = 100


@dataclass
class Tally:
    """The counted findings of one requirement.

    `counts_observations`: each observation is an occurrence, because a MAY requires nothing else. `violations` include
    those that are not `reproducible`. `unproved` are the reasons of inconclusive findings.
    """

    counts_observations: bool
    examined: int = 0
    exchanges: int = 0
    violations: int = 0
    reproducible: int = 0
    evidence: list[Evidence] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)
    unconfirmed: list[str] = field(default_factory=list)
    repeat: list[tuple[str, ...]] = field(default_factory=list)
    observations: dict[tuple[str, str], Observation] = field(default_factory=dict)
    broke: dict[tuple[str, ...], None] = field(default_factory=dict)
    kept: list[Exchange | Group] = field(default_factory=list)

    def add(self, subject: Exchange | Group, findings: Iterable[Finding]) -> None:
        """Count the findings on one subject; a violation is attributed to the last of its exchanges."""
        before, broken_before = self.examined, self.violations
        cases = cases_of(subject)
        for finding in findings:
            if isinstance(finding, Observation):
                self.examined += self.counts_observations
                if len(self.observations) < MOST_OBSERVATIONS:
                    self.observations.setdefault((finding.subject, finding.value), finding)
            elif isinstance(finding, Inconclusive):
                self.unproved.append(finding.reason)
                if finding.repeat:
                    self.unconfirmed.append(finding.reason)
                    self.repeat.append(finding.cases or tuple(cases))
            else:
                self.examined += finding.count if isinstance(finding, Satisfied) else 1
                if isinstance(finding, Violation):
                    self._add_violation(finding, cases)
        self.exchanges += self.examined > before
        if self.examined > before and self.violations == broken_before:
            self.kept.append(subject)

    def add_satisfied(self, subject: Exchange | Group, count: int) -> None:
        """Count a subject all of whose occurrences, if any, keep the promise."""
        self.examined += count
        self.exchanges += count > 0
        if count:
            self.kept.append(subject)

    def _add_violation(self, violation: Violation, cases: Sequence[str]) -> None:
        case = violation.case or cases[-1]
        self.broke[tuple(dict.fromkeys((case, *cases)))] = None
        self.violations += 1
        self.reproducible += not violation.flaky
        if len(self.evidence) < MOST_EVIDENCE:
            self.evidence.append(Evidence(case=case, at=violation.at, message=violation.message))


def cases_of(subject: Exchange | Group) -> list[str]:
    """The ids of the cases of a subject; a violation that names none is attributed to the last."""
    if isinstance(subject, Group):
        return [x.case.id for members in subject.members.values() for x in members]
    return [subject.case.id]
