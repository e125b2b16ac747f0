"""What a contract promises: levels, limits, requirements, parameters, and what is left open. Frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from conformance.model.cases import Validity
from conformance.model.json_text import MISSING, dumps
from conformance.model.parameter_traits import ParameterTraits, Role


class Level(StrEnum):
    """How strongly a promise binds, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Layer(StrEnum):
    """Who promised it: the provider's document, the standards it invokes, or what common clients rely on."""

    CONTRACT = "contract"
    STANDARD = "standard"
    ECOSYSTEM = "ecosystem"


class Edge(StrEnum):
    """Whether the end point of a documented range belongs to it."""

    OPEN = "open"
    CLOSED = "closed"
    UNSPECIFIED = "unspecified"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a promise stands.

    `at` is a JSON pointer into openapi.yaml, or names the section of a standard or the clients that rely on it; `page`
    is the file and the lines of the provider's document; `quote` holds the words that the promise rests on.
    """

    at: str
    page: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The document that a provider publishes, and where its content stands in the contract's folder."""

    file: str
    form: str
    title: str = ""
    url: str = ""  # as the document prints it; empty where it prints none
    index: str = ""  # the provider's list of pages, as the document prints it
    retrieved: str = ""
    sha256: str = ""
    vendored: str = "openapi.yaml"
    note: str = ""

    def __str__(self) -> str:
        """One line by which a reader finds the document and can tell whether it is the same."""
        address = self.url or (f"listed in {self.index}" if self.index else "")
        parts = (self.form, address, f"retrieved {self.retrieved}" if self.retrieved else "", self.hash_prefix)
        details = ", ".join(part for part in parts if part)
        return f"“{self.title}” ({details})" if self.title else f"{self.file} ({details})"

    @property
    def hash_prefix(self) -> str:
        return f"sha256 {self.sha256[:12]}" if self.sha256 else ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A range of a request parameter.

    `parameter` is a top-level name, or `name.*` for the values of a map, or `name[]` for the length of a list.
    `binding` is False for the common envelope: outside of it nothing is promised, neither acceptance nor refusal.
    """

    parameter: str
    low: float | None = None
    high: float | None = None
    low_edge: Edge = Edge.CLOSED
    high_edge: Edge = Edge.CLOSED
    level: Level = Level.MUST
    binding: bool = True
    source: Source = Source("")

    def classify(self, value: float) -> Validity:
        """The validity of a value: UNSPECIFIED on an unclear edge, and outside where the limit does not bind."""
        outside = Validity.INVALID if self.binding else Validity.UNSPECIFIED
        for bound, edge, beyond in (
            (self.low, self.low_edge, self.low is not None and value < self.low),
            (self.high, self.high_edge, self.high is not None and value > self.high),
        ):
            if beyond or value != value:  # NaN is in no range
                return outside
            if bound is not None and value == bound and edge is not Edge.CLOSED:
                return outside if edge is Edge.OPEN else Validity.UNSPECIFIED
        return Validity.VALID


@dataclass(frozen=True, slots=True)
class Requirement:
    """One promise: a check bound to parameters, a level and a source. Data, never code.

    `fix` says how to fix a server that breaks it, where the advice of its check is too general.
    """

    id: str
    check: str
    level: Level
    layer: Layer
    promise: str
    source: Source
    when: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    fix: str = ""
    scored: bool = True  # False: added after the set of requirements that is to count

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A promise that a client cannot observe: what was tried, and why it failed."""

    promise: str
    source: Source
    reason: str


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A point that the document leaves open: both readings, and what is observed instead of judged."""

    id: str
    point: str
    readings: tuple[str, ...]
    observed: str
    source: Source


@dataclass(frozen=True, slots=True)
class Repair:
    """A place where openapi.yaml departs from the printed document; `upstream` is what is printed, as a tripwire."""

    at: str
    upstream: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or schema entry of the source document that binds the endpoint, and what became of it."""

    page: str
    says: str
    bound: tuple[str, ...]


@dataclass(frozen=True)
class Combination:
    """Members that do not go together: where all of `where` holds and the comparison does, the request is `validity`.

    `where` maps names to the values (one, or a list) that they count as; `given` are members that must be sent;
    `compare` is (member, `lt` | `eq` | `gt`, member or number); `shape` maps members to a JSON Schema they fit.
    """

    id: str
    validity: Validity
    where: Mapping[str, Any] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    compare: tuple[str, str, str | float] | None = None
    shape: Mapping[str, Any] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def schemas(self) -> Mapping[str, str]:
        """`shape` as JSON text."""
        return {name: dumps(schema) for name, schema in self.shape.items()}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A documented member of the request body, as JSON Schema 2020-12 with references resolved."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    nullable: bool
    default: Any
    source: Source

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that the schema allows, `null` left out; empty when it does not say."""
        return frozenset(json_types(self.schema)) - {"null"}


def json_types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema names, those of its branches included; empty where it names none."""
    types = schema.get("type", ())
    inside = (branch for word in ("anyOf", "oneOf", "allOf") for branch in schema.get(word, ()))
    return {types} if isinstance(types, str) else set(types).union(*map(json_types, inside))


class UsagePlacement(StrEnum):
    """Where a stream reports usage when a request asks for it."""

    OWN_CHUNK = "own-chunk"  # after the last choice, with an empty list of choices
    LAST_CHUNK = "last-chunk"  # in the last chunk, whatever else that one holds
    UNSPECIFIED = "unspecified"


class StopText(StrEnum):
    """Whether the text of a choice contains the stop sequence that ended it."""

    INCLUDED = "included"
    EXCLUDED = "excluded"
    EITHER = "either"


class ContextOverflow(StrEnum):
    """What happens to a request whose prompt and `max_tokens` exceed the context of the model."""

    REFUSE = "refuse"
    TRUNCATE = "truncate"
    EITHER = "either"


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """What a provider's replies mean where providers differ; the defaults hold where a contract is silent."""

    sends_done: bool = True  # a stream ends with `data: [DONE]`
    usage_placement: UsagePlacement = UsagePlacement.OWN_CHUNK
    usage_unasked: bool = False  # streams report usage without `include_usage`
    usage_in_last_chunk: bool = False  # the contract promises usage in the last chunk
    length_reason: str = "length"  # the finish reason at the token limit
    stop_reason: str = "stop"  # the finish reason at a stop sequence or a natural end
    stop_text: StopText = StopText.EITHER
    context_overflow: ContextOverflow = ContextOverflow.EITHER
    logprobs_shape_is_free: bool = False  # log probabilities need not come as parallel lists
    automatic_tiers: tuple[Any, ...] = ()  # the service tiers that `auto` may be answered with


@dataclass(frozen=True)
class Contract:
    """What one provider promises about the operation: schemas, limits, requirements, and what is left open."""

    provider: str
    title: str
    revision: str
    document: Document
    sha256: str
    openapi: Mapping[str, Any]
    server: str
    path: str
    method: str
    operation_at: str
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    chunk: Mapping[str, Any]
    errors: Mapping[str, Mapping[str, Any]]
    parameters: Mapping[str, Parameter]
    limits: tuple[Limit, ...]
    requirements: tuple[Requirement, ...]
    semantics: Semantics = Semantics()
    exclusions: tuple[Exclusion, ...] = ()
    ambiguities: tuple[Ambiguity, ...] = ()
    repairs: tuple[Repair, ...] = ()
    overlays: Mapping[str, Any] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    combinations: tuple[Combination, ...] = ()
    examples: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    unknown_fields: Validity = Validity.UNSPECIFIED
    described: Mapping[str, ParameterTraits] = field(default_factory=dict)  # parameters that others do not have
    frozen: Mapping[str, Any] = field(default_factory=dict)  # the set that counts: its date, and what is gone since

    def binding(self, check: str) -> Requirement | None:
        """The first requirement that binds `check`; None where none does."""
        return self._by_check.get(check)

    def by_role(self, role: Role) -> str:
        """The name of the parameter with this role; empty where this provider documents none."""
        return next((name for name, traits in self.described.items() if traits.role is role), "")

    def limit(self, parameter: str) -> Limit | None:
        return self._by_parameter.get(parameter)

    def default(self, parameter: str) -> Any:
        return self.defaults.get(parameter)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """What each parameter counts as where it is absent or null."""
        return {
            name: None if parameter.default is MISSING else parameter.default
            for name, parameter in self.parameters.items()
        }

    @cached_property
    def request_json(self) -> str:
        """The request schema as JSON text."""
        return dumps(self.request)

    @cached_property
    def _by_check(self) -> dict[str, Requirement]:
        return {row.check: row for row in reversed(self.requirements)}

    @cached_property
    def _by_parameter(self) -> dict[str, Limit]:
        return {limit.parameter: limit for limit in reversed(self.limits)}
