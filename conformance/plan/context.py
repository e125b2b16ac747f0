"""What a plan is made for: a contract, a model, a profile, and what is known of the target by now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from conformance.contract.applicability import Trigger
from conformance.contract.parameters import traits
from conformance.contract.validity import combines, validity
from conformance.model import Contract, Membership, RequestCase, Requirement, Validity
from conformance.model.json_text import MISSING, dumps
from conformance.model.parameter_traits import ParameterTraits
from conformance.model.request_view import RequestView
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.parameter_values import inside, sample_levels

# Counting goes on by itself, so a model has something to say; its next token is a common one with a small id.
PROMPT: Final = "One, two, three, four"
STORY: Final = "Once upon a time,"  # a text that hardly any model ends by itself within a few dozen tokens
TOKENS_SHORT: Final = 5  # of the base request
TOKENS_LONG: Final = 12  # a text with several words, to be cut or compared
TOKENS_MANY: Final = (
    64  # tokens in which words come again and a small JSON text ends; a whole number of an engine's blocks
)
# Two tokens to force or to ban: each is a printable character in most vocabularies, whether these are ordered by bytes
# or by frequency, so that the text shows it.
BIAS_TOKENS: Final = ("72", "84")
FORCED: Final = {BIAS_TOKENS[0]: 100}
# The same bias as the last of many entries, which have no effect beside it.
FORCED_AMONG_MANY: Final = {**{str(token): -100 for token in range(100, 119)}, **FORCED}
TRACES: Final = ("refusal", "disconnect")  # what must not show in the reply to the next request
NEAR_ZERO_TEMPERATURE: Final = 0.01  # what stands in for temperature 0 where the target refuses 0


@dataclass(frozen=True)
class PlanContext:
    """What every generator of requests looks at. `without` are parameters that the target does not claim to have."""

    contract: Contract
    checks: Mapping[str, Trigger]
    model: str
    full: bool = False
    seed: int = 0
    without: frozenset[str] = frozenset()
    has_key: bool = False
    hostile: bool = True
    allow_large: bool = False
    known: LearnedTarget = field(default_factory=LearnedTarget)
    drawn: tuple[Mapping[str, Any], ...] | None = None
    _judged: dict[bytes, Validity] = field(default_factory=dict, repr=False, compare=False)

    @property
    def profile(self) -> str:
        return "full" if self.full else "gate"

    def has(self, *names: str) -> bool:
        """Whether all of these parameters are documented, claimed, and not rejected whatever their value is."""
        enough = 2 if self.full else 1  # rejected values that make a parameter unsupported
        return all(
            name in self.contract.parameters
            and name not in self.without
            and self.known.unsupported.get(name, 0) < enough
            for name in names
        )

    @cached_property
    def rows(self) -> Mapping[str, Requirement]:
        """The requirements by id."""
        return {row.id: row for row in self.contract.requirements}

    def rows_on(self, group: str) -> list[Requirement]:
        """The requirements whose checks look at groups of this kind."""
        return [row for row in self.contract.requirements if self.checks[row.check].group == group]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of groups that the checks of this contract look at."""
        return frozenset(self.checks[row.check].group for row in self.contract.requirements)

    def traits(self, name: str) -> ParameterTraits:
        """What is known about a parameter beyond its schema."""
        return traits(self.contract, name)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        return self.contract.defaults

    @cached_property
    def bare(self) -> dict[str, Any]:
        """The bare request: the required members, and a small limit of tokens."""
        body: dict[str, Any] = {"model": self.model, "prompt": PROMPT}
        for name, parameter in self.contract.parameters.items():
            if parameter.required and name not in body:
                body[name] = sample_levels(self.contract, name)[0].value
        return {**body, **({"max_tokens": TOKENS_SHORT} if self.has("max_tokens") else {})}

    @cached_property
    def base(self) -> dict[str, Any]:
        """The base request: the bare request at temperature 0, so that replies repeat; near 0 where 0 is rejected.

        Where the document leaves open whether 0 may be sent, it is tried: comparisons of replies depend on it.
        """
        if not self.has("temperature"):
            return self.bare
        wanted = (NEAR_ZERO_TEMPERATURE,) if self.known.rejects_temperature_zero else (0, NEAR_ZERO_TEMPERATURE)
        allowed = [value for value in wanted if self.validity_alone({"temperature": value}) is not Validity.INVALID]
        return {**self.bare, "temperature": allowed[0]} if allowed else self.bare

    @property
    def greedy(self) -> bool:
        """Whether the base request takes the likeliest token at each step."""
        return self.base.get("temperature") == 0

    def validity_of(self, body: Mapping[str, Any]) -> Validity:
        return self.validity(dumps(body).encode(), body)

    def validity_alone(self, patch: Mapping[str, Any]) -> Validity:
        """The validity of some members on the bare request."""
        body = {name: value for name, value in {**self.bare, **patch}.items() if value is not MISSING}
        return self.validity(dumps(body).encode(), body)

    def first_allowed(self, name: str, *forms: Any) -> dict[str, Any]:
        """The first form of a member that the contract does not forbid, as a patch; else an empty patch."""
        patches = ({name: form} for form in forms if self.has(name))
        return next((patch for patch in patches if self.validity_alone(patch) is not Validity.INVALID), {})

    def body(self, *changes: Mapping[str, Any]) -> dict[str, Any]:
        """The base request with members changed; MISSING removes one."""
        members: dict[str, Any] = dict(self.base)
        for change in changes:
            members.update(change)
        return {name: value for name, value in members.items() if value is not MISSING}

    def may_send(self, body: Mapping[str, Any]) -> bool:
        """Whether the contract does not forbid a body, and the target is not known to reject it."""
        return not self.barred(body) and self.validity_of(body) is not Validity.INVALID

    def validity(self, content: bytes, body: Any) -> Validity:
        """The validity of a body, computed once for each content."""
        judged = self._judged.get(content)
        if judged is None:
            judged = self._judged[content] = validity(self.contract, body)
        return judged

    def request(self, body: Mapping[str, Any]) -> RequestView:
        return RequestView(body, self.defaults)

    def clashes(self, body: Mapping[str, Any]) -> bool:
        """Whether a body holds members that must not be combined, or whose combination the contract leaves open."""
        return bool(self.broken_combinations(body))

    def broken_combinations(self, body: Mapping[str, Any]) -> frozenset[str]:
        """The combinations that a body holds and that the contract forbids or leaves open."""
        return frozenset(rule.id for rule in self.contract.combinations if combines(self.contract, rule, body))

    def barred(self, body: Mapping[str, Any]) -> bool:
        """Whether a body holds what must not be combined, by the contract or because this target rejected it."""
        content = dumps(body)
        barred: bool | None = self.memo.get(content)
        if barred is None:
            barred = self.memo[content] = self._bars(body)
        return barred

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What was computed already from this context."""
        return {}

    def _bars(self, body: Mapping[str, Any]) -> bool:
        return self.known.rejects(body) or any(
            combines(self.contract, rule, body)
            for rule in self.contract.combinations
            if rule.validity is Validity.INVALID or rule.id in self.known.refused
        )

    def case(self, origin: str, body: Mapping[str, Any] | bytes, *groups: Membership, **fields: Any) -> RequestCase:
        """A case with the validity of its body; `fields` overrides fields of the case."""
        content = body if isinstance(body, bytes) else dumps(body).encode()
        given: dict[str, Any] = {"groups": groups, **fields}
        if "validity" not in given:
            given["validity"] = Validity.INVALID if isinstance(body, bytes) else self.validity(content, body)
        case = RequestCase("", content, origin, **given)
        return rename(case, f"{case.origin}/{identity(case)}")

    def number(self, parameter: str, *wanted: float) -> float | None:
        """The first of these numbers that is surely in the documented range; else its middle; None if neither is."""
        return inside(self.contract.limit(parameter), wanted)


def identity(case: RequestCase, copy: int = 0) -> str:
    """A hash of everything that goes over the wire and of the copy's number: equal for cases that are one request."""
    wire = [case.method, case.path, case.headers, case.credential, case.hang_up_after, copy]
    return hashlib.sha256(dumps(wire).encode() + b"\n" + case.content).hexdigest()[:10]


def rename(case: RequestCase, name: str, groups: Iterable[Membership] | None = None) -> RequestCase:
    """The case under another id, and perhaps with other groups. (Faster than `dataclasses.replace`.)"""
    return RequestCase(
        id=name,
        content=case.content,
        origin=case.origin,
        validity=case.validity,
        breaks=case.breaks,
        groups=case.groups if groups is None else tuple(dict.fromkeys(groups)),
        method=case.method,
        path=case.path,
        headers=case.headers,
        credential=case.credential,
        hang_up_after=case.hang_up_after,
        hostile=case.hostile,
        repeats=case.repeats,
        note=case.note,
    )


def part(kind: str, key: str, role: str) -> Membership:
    """A case's role in a group."""
    return Membership(kind, key, role)


__all__ = [
    "BIAS_TOKENS", "FORCED", "FORCED_AMONG_MANY", "PROMPT", "STORY", "TOKENS_LONG", "TOKENS_MANY", "TOKENS_SHORT",
    "TRACES", "PlanContext", "identity", "part", "rename",
]  # fmt: skip
