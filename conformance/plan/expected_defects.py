"""How many defects a case group is expected to find that those chosen before it do not.

Some promises are broken more often than others, and in some contexts more often than in others: how often is counted
over public defects, see `priors.yaml`. A case group is worth the promises that it shows in contexts in which nothing
has shown them yet, each with its share of the defects that its check would have detected in that context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from conformance.contract.yaml_file import read_yaml
from conformance.model import Level, RequestCase, Requirement
from conformance.plan.case_group import CaseGroup
from conformance.plan.requirement_coverage import RequirementCoverage

FILE: Final = Path(__file__).with_name("priors.yaml")
ANYWHERE: Final = "any"
FROM_ELSEWHERE: Final = 10  # defects of other areas that count as much as those of the same area, where these are few
FEW: Final = 3  # reports of a check that count as much as those of its area
KINDS: Final = 20  # about as many kinds of values or requests share the defects of a check
SHOULD: Final = 0.5  # what a broken SHOULD counts for: it only warns
ORDINARY: Final = frozenset({"model", "prompt", "max_tokens", "temperature", "stream", "stream_options"})
Shown = Mapping[str, int]  # by context, the promises shown in it, as the bits of a number


@dataclass
class ExpectedDefects:
    """What case groups are worth, given what was shown before; a promise is a bit of a number.

    `only`: the requirements that count; None where all do.
    """

    coverage: RequirementCoverage
    only: frozenset[str] | None = None
    before: dict[str, int] = field(default_factory=dict)
    _bits: dict[str, int] = field(default_factory=dict)
    _by_bit: list[tuple[str, float]] = field(default_factory=list)
    _gains: dict[tuple[str, int], float] = field(default_factory=dict)
    _weights: dict[tuple[str, str], float] = field(default_factory=dict)
    _contexts: dict[bytes, tuple[str, ...]] = field(default_factory=dict)
    _shown: dict[int, tuple[CaseGroup, Shown]] = field(default_factory=dict)  # by identity: hashing a group is slow

    def of(self, case_group: CaseGroup) -> Shown:
        """By context, the promises that a case group shows."""
        if id(case_group) not in self._shown:
            shown: dict[str, int] = {}
            later = case_group.then.cases if case_group.then else ()
            for case in (*case_group.cases, *later):
                self._add(shown, case, case_group.kinds)
            self._shown[id(case_group)] = case_group, shown
        return self._shown[id(case_group)][1]

    def count(self, chosen: Iterable[CaseGroup]) -> None:
        """Count what chosen case groups show."""
        for case_group in chosen:
            for context, promises in self.of(case_group).items():
                self.before[context] = self.before.get(context, 0) | promises

    def gain(self, shown: Shown, already: Shown) -> float:
        """The defects that promises in contexts are expected to reveal beyond those shown already."""
        total = 0.0
        for context, promises in shown.items():
            if new := promises & ~already.get(context, 0):
                gained = self._gains.get((context, new))
                if gained is None:
                    gained = sum(self._weight(check, context) * part for check, part in self._checks(new))
                    self._gains[context, new] = gained
                total += gained
        return total

    def _add(self, promises_by_context: dict[str, int], case: RequestCase, kinds: tuple[str, ...]) -> None:
        promises = 0
        for name in (*self.coverage.of(case), *kinds):
            promises |= self._bit(name)
        if promises:
            for context in self._contexts_of(case):
                promises_by_context[context] = promises_by_context.get(context, 0) | promises

    def _bit(self, name: str) -> int:
        bit = self._bits.get(name)
        if bit is None:
            row = self._rows.get(name)
            judged = (row is None or row.level is not Level.MAY) and self._counts(name)
            bit = self._bits[name] = 1 << len(self._by_bit) if judged else 0
            if judged:
                check = row.check if row else name.partition(" ")[0]
                part = 1 / self._sizes[check] if row else (1 + parsers(name.partition(" ")[2])) / KINDS
                self._by_bit.append((check, part if row is None or row.level is Level.MUST else part * SHOULD))
        return bit

    def _counts(self, name: str) -> bool:
        """Whether a requirement, or a kind of values that a check is tried with, counts."""
        if self.only is None or name in self.only:
            return True
        return name not in self._rows and any(
            self._rows[row].check == name.partition(" ")[0] for row in self.only if row in self._rows
        )

    def _checks(self, promises: int) -> Iterator[tuple[str, float]]:
        """The check of each promise in a number, and the part of its defects that the promise has."""
        while promises:
            lowest = promises & -promises
            yield self._by_bit[lowest.bit_length() - 1]
            promises ^= lowest

    @cached_property
    def _rows(self) -> Mapping[str, Requirement]:
        return {row.id: row for row in self.coverage.contract.requirements}

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        """The number of judged requirements of each check, which share its defects."""
        return Counter(row.check for row in self._rows.values() if row.level is not Level.MAY)

    def _weight(self, check: str, context: str) -> float:
        weight = self._weights.get((check, context))
        if weight is None:
            weight = self._weights[check, context] = defects(check, self.coverage.checks[check].area, context)
        return weight

    def _contexts_of(self, case: RequestCase) -> tuple[str, ...]:
        of_body = self._contexts.get(case.content)
        if of_body is None:
            of_body = self._contexts[case.content] = tuple(contexts(case.body))
        burst = any(part.kind == "burst" and part.role.startswith("burst") for part in case.groups)
        return (*of_body, "at the same time") if burst else of_body


def contexts(body: Any) -> Iterator[str]:
    """The contexts of a request, as `priors.yaml` names them."""
    yield ANYWHERE
    members = body if isinstance(body, Mapping) else {}
    yield "streamed" if members.get("stream") is True else "plain"
    if members.get("stream_options"):
        yield "with usage"
    prompt = members.get("prompt")
    items = prompt if isinstance(prompt, list) else [prompt]
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) and len(prompt) > 1:
        yield "batch"
    if any(isinstance(item, (int, list)) for item in items):
        yield "token ids"
    if any(isinstance(item, str) and not item.isascii() for item in items):
        yield "not ASCII"
    if members.get("max_tokens") == 0:
        yield "nothing generated"
    if members.get("temperature", 1) != 0:
        yield "sampled"
    yield from (name for name, value in members.items() if name not in ORDINARY and value is not None)


@cache
def defects(check: str, area: str, context: str) -> float:
    """How many public defects a check would have detected in this context, and one that nobody has reported yet."""
    counts = _counts()
    of_area = [check_counts for check_counts in counts.values() if check_counts["area"] == area]
    everywhere = list(counts.values())
    # reports show a defect by the smallest request that has it, whatever else has it as well
    likely = _sum(of_area, context) + FROM_ELSEWHERE * _share(everywhere, context)
    share = likely / (_sum(of_area, ANYWHERE) + FROM_ELSEWHERE)
    reported = counts.get(check, {}).get("contexts", {})
    known = reported.get(ANYWHERE, 0)
    in_context = (reported.get(context, 0) + FEW * share) / (known + FEW)
    return float((known + 1) * in_context)


def _share(counts: Sequence[Mapping[str, Any]], context: str) -> float:
    return (_sum(counts, context) + 1) / (_sum(counts, ANYWHERE) + 1)


def _sum(counts: Sequence[Mapping[str, Any]], context: str) -> int:
    return sum(row["contexts"].get(context, 0) for row in counts)


def parsers(kind: str) -> int:
    """The number of common parsers that are known to convert a look-alike of this kind."""
    return len(_priors()["conversions"].get(kind, ()))


@cache
def _counts() -> Mapping[str, Mapping[str, Any]]:
    """By check: its area, and the number of public defects by context."""
    checks = _priors()["checks"]
    return {
        check: {
            "area": row["area"],
            "contexts": {name: counted["defects"] for name, counted in row["contexts"].items()},
        }
        for check, row in checks.items()
    }


@cache
def _priors() -> Mapping[str, Mapping[str, Any]]:
    priors: Mapping[str, Mapping[str, Any]] = read_yaml(FILE)
    return priors


__all__ = ["ExpectedDefects", "Shown", "contexts", "defects", "parsers"]
