"""What was found before on the same replies, so that only what changed is judged again.

A check is a function of its subject and its terms alone: what it once said of an exchange stays true. Kept are the
findings by requirement and subject. A subject is known by being the same object; a group by having the same members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from conformance.model import Finding, Satisfied
from conformance.model.exchange import Exchange, Group
from conformance.model.request_view import RequestView

Found: TypeAlias = int | tuple[Finding, ...]  # a number: so many occurrences, and each kept the promise


def packed(findings: Iterable[Finding]) -> Found:
    """Findings in the form in which they are kept."""
    listed = tuple(findings)
    count = 0
    for one in listed:
        if type(one) is not Satisfied:
            return listed
        count += one.count
    return count


@dataclass
class Recall:
    """The findings of one contract's requirements. `above` is asked first, and never changed.

    Subjects are held on to, so that no other object can take the place that they are known by.
    """

    above: Recall | None = None
    readings: dict[bytes, RequestView] = field(default_factory=dict, repr=False)
    _found: dict[str, dict[int, Found]] = field(default_factory=dict, repr=False)
    _due: dict[str, dict[int, bool]] = field(default_factory=dict, repr=False)
    _groups: dict[tuple[object, ...], Group] = field(default_factory=dict, repr=False)
    _held: dict[int, Exchange] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.above is not None:
            self.readings = self.above.readings

    def hold(self, exchanges: Iterable[Exchange]) -> None:
        """Keep these, for what they will be asked about."""
        known = self.above._held if self.above else {}
        self._held.update((id(x), x) for x in exchanges if id(x) not in known)

    def group(self, kind: str, key: str, members: Mapping[str, tuple[Exchange, ...]]) -> Group:
        """The group with these members; the one that was there before, where it had the same."""
        named = (kind, key, *((role, *map(id, some)) for role, some in members.items()))
        found = self.above._groups.get(named) if self.above else None
        return found or self._groups.setdefault(named, Group(kind, key, members))

    def of(self, requirement: str) -> tuple[Mapping[int, Found], dict[int, Found]]:
        """What was found for a requirement before, by subject, and where to put what is found now."""
        before = self.above._found.get(requirement, {}) if self.above else {}
        return before, self._found.setdefault(requirement, {})

    def expected_when(self, requirement: str) -> tuple[Mapping[int, bool], dict[int, bool]]:
        """The same for whether an exchange was due to show a requirement."""
        before = self.above._due.get(requirement, {}) if self.above else {}
        return before, self._due.setdefault(requirement, {})
