"""Rows that follow from a schema: one requirement, with its own verdict, for each field and keyword of openapi.yaml."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.contract.bounds import format_bound, top
from conformance.contract.levels import of_keyword
from conformance.contract.openapi import branches
from conformance.contract.parameters import common_traits
from conformance.contract.validity import allows_null
from conformance.model import (
    Combination,
    Edge,
    Layer,
    Level,
    Limit,
    Parameter,
    Requirement,
    Source,
    Validity,
    json_types,
)
from conformance.model.json_text import MISSING

KEYWORDS: Final = ("type", "enum", "const", "minimum", "maximum", "minItems", "maxItems", "pattern")
NUMERIC: Final = frozenset({"integer", "number"})


@dataclass(frozen=True, slots=True)
class Field:
    """A place in a schema. `path`: `choices[].text`, `logit_bias.*`; `sure`: every instance of the whole has it."""

    path: str
    schema: Mapping[str, Any]
    required: bool
    sure: bool
    at: str


def fields(schema: Mapping[str, Any], path: str = "", sure: bool = True, at: str = "") -> Iterator[Field]:
    """Every field of an object schema, parents first; unions are entered where one branch alone is not null."""
    body = _only_branch(schema)
    required = body.get("required", ())
    for name, child in body.get("properties", {}).items():
        field_path, field_at = f"{path}.{name}" if path else name, f"{at}/properties/{name}"
        is_required = name in required
        certain = sure and is_required
        yield Field(field_path, child, is_required, certain, field_at)
        yield from fields(child, field_path, certain and not allows_null(child), field_at)
    if isinstance(items := body.get("items"), Mapping):
        yield Field(f"{path}[]", items, False, False, f"{at}/items")
        yield from fields(items, f"{path}[]", sure and path == "choices", f"{at}/items")
    if isinstance(values := body.get("additionalProperties"), Mapping) and values:
        yield Field(f"{path}.*", values, False, False, f"{at}/additionalProperties")
        yield from fields(values, f"{path}.*", False, f"{at}/additionalProperties")


def _only_branch(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    alternatives = branches(schema)
    return alternatives[0] if len(alternatives) == 1 else schema


def keywords(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keywords of a field with what they demand; a union of several shapes is one `type`, its schema whole."""
    narrow = _only_branch(schema)
    nullable = allows_null(schema)
    if "type" in narrow:
        types = [narrow["type"]] if isinstance(narrow["type"], str) else list(narrow["type"])
        yield "type", sorted({*types, "null"} if nullable else types)
    elif "enum" not in narrow and any(word in narrow for word in ("anyOf", "oneOf", "allOf")):
        yield "schema", dict(schema)
    for word in KEYWORDS[1:]:
        if word in narrow:
            value = narrow[word]
            yield word, [*value, None] if word == "enum" and nullable and None not in value else value


def response_rows(
    schema: Mapping[str, Any], channel: str, check: str, level: Level, layer: Layer, source: Source, status: str = ""
) -> Iterator[Requirement]:
    """One row for each keyword of each field of a response, a chunk, or an error of one status."""
    prefix = f"error.{status}" if status else channel
    subject = {"plain": "the body", "chunk": "each chunk", "error": _refusal(status)}[channel]
    base = {"channel": channel, **({"status": status} if status else {})}
    if "anyOf" in schema:
        params = {**base, "path": "", "keyword": "schema", "expected": dict(schema), "due": not status}
        promise = f"{subject[:1].upper()}{subject[1:]} {_says('schema', schema)}."
        name = prefix.replace("plain", "response", 1)
        yield Requirement(f"{name}.schema", check, level, layer, promise, source, params=params)
    for field in fields(schema):
        due = field.sure and not status  # a client cannot choose the status of a refusal
        name = f"{prefix}.{field.path}".replace("plain.", "response.", 1)
        field_source = Source(source.at + field.at if source.at.startswith("#") else source.at, source.page)
        if field.required:
            params = {**base, "path": field.path, "keyword": "required", "expected": True, "due": due}
            promise = f"In {subject}, `{field.path}` is there."
            yield Requirement(f"{name}.required", check, level, layer, promise, field_source, params=params)
        for keyword, expected in keywords(field.schema):
            if keyword == "type" and not field.required and "null" not in expected and field.path[-1] not in "]*":
                # null in place of an optional member is a slip that most clients take for its absence
                params = {**base, "path": field.path, "keyword": "not_null", "expected": True, "due": False}
                promise = f"In {subject}, `{field.path}` is left out rather than null."
                mild = of_keyword("not_null") if level is Level.MUST else level
                yield Requirement(f"{name}.nullable", check, mild, layer, promise, field_source, params=params)
                expected = sorted({*expected, "null"})
            params = {**base, "path": field.path, "keyword": keyword, "expected": expected, "due": due}
            promise = f"In {subject}, `{field.path}` {_says(keyword, expected)}."
            yield Requirement(f"{name}.{keyword.lower()}", check, level, layer, promise, field_source, params=params)


def _refusal(status: str) -> str:
    return "the body of any other error" if status == "default" else f"the body of a {status}"


def _says(keyword: str, expected: Any) -> str:
    values = [str(value) if value is not None else "null" for value in expected] if isinstance(expected, list) else []
    return {
        "type": f"is of type {' or '.join(values)}",
        "enum": f"is one of {', '.join(values)}",
        "const": f"is {expected!r}",
        "minimum": f"is at least {expected}",
        "maximum": f"is at most {expected}",
        "minItems": f"has at least {expected} items",
        "maxItems": f"has at most {expected} items",
        "pattern": f"matches {expected}",
        "schema": "has one of its documented shapes",
    }[keyword]


def request_rows(parameters: Iterable[Parameter], limits: Iterable[Limit], at: str) -> Iterator[Requirement]:
    """Rows on what a target accepts and refuses, one for each parameter and keyword."""
    known = {parameter.name: parameter for parameter in parameters}
    promise = "Documented values are accepted together, and whatever is not required may be left out."
    together = Requirement(
        "request.together.accepts",
        "combination_is_accepted",
        Level.MUST,
        Layer.CONTRACT,
        promise,
        Source(at),
        params={"keyword": "required"},
    )
    yield together
    for parameter in known.values():
        yield from _parameter_rows(parameter)
    for limit in limits:
        owner = top(limit.parameter)
        if limit.binding and owner in known:
            yield from _limit_rows(limit, known[owner].source)
            yield from _edge_rows(limit, known[owner].source)


def _parameter_rows(parameter: Parameter) -> Iterator[Requirement]:
    name, where = parameter.name, parameter.source

    def row(word: str, check: str, level: Level, promise: str, **params: Any) -> Requirement:
        bound = {"parameter": name, "keyword": word, **params}
        return Requirement(f"request.{name}.{word}", check, level, Layer.CONTRACT, promise, where, params=bound)

    yield row("accepts", "valid_is_accepted", Level.MUST, f"Documented values of `{name}` are accepted.")
    if parameter.nullable:
        yield row("null", "valid_is_accepted", Level.MUST, f"`{name}` may be null.")
    elif parameter.types or "enum" in parameter.schema:
        level = of_keyword("nullable", required=parameter.required)
        yield row("nullable", "invalid_is_refused", level, f"`{name}` may not be null.")
    if parameter.required:
        yield row("required", "invalid_is_refused", Level.MUST, f"A request without `{name}` is refused.")
    if parameter.types:
        type_names = " or ".join(sorted(parameter.types))
        yield row("type", "invalid_is_refused", Level.MUST, f"`{name}` is {type_names}: other types are refused.")
    if _has_look_alikes(parameter.types):
        yield row("coercion", "invalid_is_refused", of_keyword("coercion"), _not_converted(name))
    if "enum" in _only_branch(parameter.schema):
        yield row("enum", "invalid_is_refused", Level.MUST, f"`{name}` outside its documented values is refused.")
    if parameter.default not in (MISSING, None) and common_traits(name).visible_default:
        promise = f"A request without `{name}` is answered as with its default {parameter.default!r}."
        yield row("default", "default_is_explicit", Level.MUST, promise)
    yield from _nested_rows(parameter)


def _has_look_alikes(types: Collection[str]) -> bool:
    """Whether lenient parsers convert values of other types into one of these, so that a row of its own says so."""
    return bool(types) and (len(types) == 1 or NUMERIC.issuperset(types))


def _not_converted(path: str) -> str:
    return f"`{path}` is not converted from a look-alike of another type, such as a number in quotes."


def _nested_rows(parameter: Parameter) -> Iterator[Requirement]:
    """Rows on the types of members, map values and list items; a list item only where one kind of list is allowed."""
    for field in _nested_fields(parameter):
        if field.path.count("[") > 1 or not json_types(field.schema):
            continue
        source = Source(parameter.source.at + field.at, parameter.source.page)
        type_names = " or ".join(sorted(json_types(field.schema)))
        promises = {"type": f"`{field.path}` is {type_names}: other types are refused."}
        if _has_look_alikes(json_types(field.schema) - {"null"}):
            promises["coercion"] = _not_converted(field.path)
        for keyword, promise in promises.items():
            params = {"parameter": field.path, "keyword": keyword}
            identity, level = f"request.{field.path}.{keyword}", of_keyword(keyword)
            yield Requirement(identity, "invalid_is_refused", level, Layer.CONTRACT, promise, source, params=params)


def _nested_fields(parameter: Parameter) -> Iterator[Field]:
    """The fields inside a member; of a union, those of its list, and those that one of its objects alone has."""
    alternatives = branches(parameter.schema)
    arrays = [branch for branch in alternatives if "items" in branch]
    only = _only_branch(parameter.schema)
    if len(arrays) == 1 and "items" not in only:
        only = arrays[0]
    yield from (field for field in fields(only, parameter.name) if field.path != parameter.name)
    if len(alternatives) > 1:
        inner = [field for branch in alternatives if "properties" in branch for field in fields(branch, parameter.name)]
        paths = Counter(field.path for field in inner)
        yield from (field for field in inner if paths[field.path] == 1)


def _limit_rows(limit: Limit, parameter_source: Source) -> Iterator[Requirement]:
    counts = limit.parameter.endswith("[]")
    source = limit.source if limit.source.at else parameter_source
    for bound, words, direction in (
        (limit.low, ("minimum", "min-items"), "below"),
        (limit.high, ("maximum", "max-items"), "above"),
    ):
        if bound is None:
            continue
        word = words[counts]
        name = limit.parameter.removesuffix("[]") if counts else limit.parameter
        subject = f"the number of items in `{name}`" if counts else f"`{name}`"
        params = {"parameter": limit.parameter, "keyword": word, "value": bound}
        promise = f"{subject[:1].upper()}{subject[1:]} {direction} {format_bound(bound)} is refused."
        identity = f"request.{name}.{word}"
        yield Requirement(identity, "invalid_is_refused", limit.level, Layer.CONTRACT, promise, source, params=params)


def _edge_rows(limit: Limit, parameter_source: Source) -> Iterator[Requirement]:
    """The row on an end point that the document leaves open: observed, never judged."""
    unclear = [
        bound
        for bound, edge in ((limit.low, limit.low_edge), (limit.high, limit.high_edge))
        if bound is not None and edge is Edge.UNSPECIFIED
    ]
    if unclear:
        params = {"parameter": limit.parameter, "keyword": "edge", "values": unclear}
        values = " and ".join(map(format_bound, unclear))
        promise = f"Whether `{limit.parameter}` may be {values} is left open."
        source = limit.source if limit.source.at else parameter_source
        identity = f"request.{limit.parameter}.edge"
        yield Requirement(identity, "edge_is_observed", Level.MAY, Layer.CONTRACT, promise, source, params=params)


def combination_row(combination: Combination, level: Level, layer: Layer, promise: str, source: Source) -> Requirement:
    """The row on a combination: refused where it is invalid, observed where the contract leaves it open."""
    params = {"combination": combination.id}
    if combination.validity is Validity.INVALID:
        return Requirement(combination.id, "invalid_is_refused", level, layer, promise, source, params=params)
    return Requirement(combination.id, "edge_is_observed", Level.MAY, layer, promise, source, params=params)
