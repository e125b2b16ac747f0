"""The ranges of request parameters: those that contract.yaml states, those of the schema, and the common envelope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from conformance.contract.openapi import BOUNDS, COUNTS, branches
from conformance.model import Edge, Level, Limit, Parameter, Source

INT64: Final = (-(2**63), 2**63 - 1)
MEANT: Final = 1e21


def gather(
    parameters: Mapping[str, Parameter], stated: Iterable[Mapping[str, Any]], envelope: Iterable[Mapping[str, Any]]
) -> tuple[Limit, ...]:
    """Stated limits, then those of the schema, then the envelope; the first for a name counts."""
    limits = {row["parameter"]: _stated(row) for row in stated}
    for parameter in parameters.values():
        for limit in _of_schema(parameter):
            limits.setdefault(limit.parameter, limit)
    for row in envelope:
        if top(row["parameter"]) in parameters:
            limits.setdefault(row["parameter"], Limit(row["parameter"], row.get("low"), row.get("high"), binding=False))
    return tuple(limits.values())


def top(parameter: str) -> str:
    """The member that a limit's parameter belongs to: `stop` for `stop[]`."""
    return parameter.partition("[")[0].partition(".")[0]


def format_bound(value: float) -> str:
    """A bound as people write it: a whole number with all its digits, a very large one in powers of ten."""
    return str(int(value)) if abs(value) < MEANT and value == int(value) else f"{value:g}"


def _stated(row: Mapping[str, Any]) -> Limit:
    source = row.get("source", {})
    return Limit(
        row["parameter"],
        row.get("low"),
        row.get("high"),
        Edge(row.get("low_edge", "closed")),
        Edge(row.get("high_edge", "closed")),
        Level(row.get("level", "MUST")),
        source=Source(source.get("at", ""), source.get("page", ""), source.get("quote", "")),
    )


def _of_schema(parameter: Parameter) -> Iterator[Limit]:
    name, source = parameter.name, parameter.source
    unions = branches(parameter.schema)
    arrays = [branch for branch in unions if "items" in branch]
    if len(arrays) == 1 and COUNTS & arrays[0].keys():
        yield Limit(f"{name}[]", arrays[0].get("minItems"), arrays[0].get("maxItems"), source=source)
    for branch in unions:
        if BOUNDS & branch.keys():
            yield Limit(
                name,
                branch.get("exclusiveMinimum", branch.get("minimum")),
                branch.get("exclusiveMaximum", branch.get("maximum")),
                Edge.OPEN if "exclusiveMinimum" in branch else Edge.CLOSED,
                Edge.OPEN if "exclusiveMaximum" in branch else Edge.CLOSED,
                source=source,
            )
        elif branch.get("format") == "int64":
            # a format describes and does not forbid
            yield Limit(name, *INT64, level=Level.SHOULD, source=source)
        values = branch.get("additionalProperties")
        if isinstance(values, Mapping) and BOUNDS & values.keys():
            yield Limit(f"{name}.*", values.get("minimum"), values.get("maximum"), source=source)
