"""What a plan is made for: one contract, one model, how thorough, and what the target has taught so far."""

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
TOKENS_SHORT: Final = 5
TOKENS_LONG: Final = 12
TOKENS_MANY: Final = (
    64  # tokens in which words come again and a small JSON text ends; a whole number of an engine's blocks
)
PAIR: Final = ("100", "70")  # tokens that are set against one another, which any vocabulary has
NEAR_ZERO_TEMPERATURE: Final = 0.01  # what stands in for temperature 0 where the target refuses 0


@dataclass(frozen=True)
class PlanContext:
    """The setting of one plan. `without` are parameters that the target does not claim to have."""

    contract: Contract
    checks: Mapping[str, Trigger]
    model: str
    full: bool = False
    seed: int = 0
    without: frozenset[str] = frozenset()
    has_key: bool = False
    hostile: bool = True
    known: LearnedTarget = field(default_factory=LearnedTarget)
    drawn: tuple[Mapping[str, Any], ...] | None = None
    _judged: dict[bytes, Validity] = field(default_factory=dict, repr=False, compare=False)

    def has(self, *names: str) -> bool:
        """Whether all of these parameters are documented, claimed, and not refused whatever their value is."""
        there, gone, enough = self.contract.parameters, self.known.unsupported, 2 if self.full else 1
        return all(name in there and name not in self.without and gone.get(name, 0) < enough for name in names)

    @cached_property
    def rows(self) -> Mapping[str, Requirement]:
        """The requirements by id."""
        return {row.id: row for row in self.contract.requirements}

    def rows_on(self, group: str) -> list[Requirement]:
        """The requirements whose checks look at groups of this kind."""
        return [row for row in self.contract.requirements if self.checks[row.check].group == group]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of groups that some requirement of this contract looks at."""
        return frozenset(self.checks[row.check].group for row in self.contract.requirements)

    def traits(self, name: str) -> ParameterTraits:
        """What is known about a parameter beyond its schema."""
        return traits(self.contract, name)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        return self.contract.defaults

    @cached_property
    def bare(self) -> dict[str, Any]:
        """The least that the contract demands, with a small token budget: the base of everything."""
        body: dict[str, Any] = {"model": self.model, "prompt": PROMPT}
        for name, parameter in self.contract.parameters.items():
            if parameter.required and name not in body:
                body[name] = sample_levels(self.contract, name)[0].value
        return {**body, **({"max_tokens": TOKENS_SHORT} if self.has("max_tokens") else {})}

    @cached_property
    def base(self) -> dict[str, Any]:
        """The bare request at temperature 0, so that replies repeat; at nearly 0 where the target refuses that.

        Where the document leaves open whether 0 may be sent, it is tried: relations between replies rest on it.
        """
        if not self.has("temperature"):
            return self.bare
        wanted = (NEAR_ZERO_TEMPERATURE,) if self.known.rejects_temperature_zero else (0, NEAR_ZERO_TEMPERATURE)
        found = [one for one in wanted if self.validity_alone({"temperature": one}) is not Validity.INVALID]
        return {**self.bare, "temperature": found[0]} if found else self.bare

    @property
    def greedy(self) -> bool:
        """Whether the base asks for the likeliest token each time."""
        return self.base.get("temperature") == 0

    def validity_of(self, body: Mapping[str, Any]) -> Validity:
        return self.validity(dumps(body).encode(), body)

    def validity_alone(self, patch: Mapping[str, Any]) -> Validity:
        """The validity of some members by themselves: on the bare request."""
        body = {name: value for name, value in {**self.bare, **patch}.items() if value is not MISSING}
        return self.validity(dumps(body).encode(), body)

    def fitting(self, name: str, *forms: Any) -> dict[str, Any]:
        """The first form of a member that its document allows, as a patch; an empty one where there is none."""
        patches = ({name: form} for form in forms if self.has(name))
        return next((one for one in patches if self.validity_alone(one) is not Validity.INVALID), {})

    def body(self, *changes: Mapping[str, Any]) -> dict[str, Any]:
        """The base with members changed; MISSING takes one out."""
        whole: dict[str, Any] = dict(self.base)
        for change in changes:
            whole.update(change)
        return {name: value for name, value in whole.items() if value is not MISSING}

    def validity(self, content: bytes, body: Any) -> Validity:
        """The validity of a body, computed once for each content."""
        found = self._judged.get(content)
        if found is None:
            found = self._judged[content] = validity(self.contract, body)
        return found

    def request(self, body: Mapping[str, Any]) -> RequestView:
        return RequestView(body, self.defaults)

    def clashes(self, body: Mapping[str, Any]) -> bool:
        """Whether a body holds members that do not go together, or of which the contract leaves that open."""
        return any(combines(self.contract, one, body) for one in self.contract.combinations)

    def barred(self, body: Mapping[str, Any]) -> bool:
        """Whether a body holds what may not be combined, by the contract or by what this target refused."""
        content = dumps(body)
        found: bool | None = self.memo.get(content)
        if found is None:
            found = self.memo[content] = self._bars(body)
        return found

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What was computed already of this scene."""
        return {}

    def _bars(self, body: Mapping[str, Any]) -> bool:
        return self.known.rejects(body) or any(
            combines(self.contract, one, body)
            for one in self.contract.combinations
            if one.validity is Validity.INVALID or one.id in self.known.refused
        )

    def case(self, origin: str, body: Mapping[str, Any] | bytes, *groups: Membership, **more: Any) -> RequestCase:
        """A case with the validity that its body has; `more` overrides fields of the case."""
        content = body if isinstance(body, bytes) else dumps(body).encode()
        told: dict[str, Any] = {"groups": groups, **more}
        if "validity" not in told:
            told["validity"] = Validity.INVALID if isinstance(body, bytes) else self.validity(content, body)
        case = RequestCase("", content, origin, **told)
        return _named(case, 0)

    def number(self, parameter: str, *wanted: float) -> float | None:
        """The first of some numbers that is surely inside the documented range."""
        return inside(self.contract.limit(parameter), wanted)


def identity(case: RequestCase, copy: int = 0) -> str:
    """What makes two cases the same request: everything that goes over the wire, and which copy of it this is."""
    wire = [case.method, case.path, case.headers, case.credential, case.hang_up_after, copy]
    return hashlib.sha256(dumps(wire).encode() + b"\n" + case.content).hexdigest()[:10]


def _named(case: RequestCase, copy: int) -> RequestCase:
    return rename(case, f"{case.origin}/{identity(case, copy)}")


def rename(case: RequestCase, name: str, groups: Iterable[Membership] | None = None) -> RequestCase:
    """The case under another id, and perhaps with other groups. (Faster than `dataclasses.replace`.)"""
    return RequestCase(
        name, case.content, case.origin, case.validity, case.breaks,
        case.groups if groups is None else tuple(dict.fromkeys(groups)),
        case.method, case.path, case.headers, case.credential, case.hang_up_after, case.hostile, case.repeats,
        case.note,
    )  # fmt: skip


def part(kind: str, key: str, role: str) -> Membership:
    """A case's part in a group."""
    return Membership(kind, key, role)


__all__ = ["PAIR", "PROMPT", "TOKENS_LONG", "TOKENS_MANY", "TOKENS_SHORT", "PlanContext", "identity", "part", "rename"]
