"""Mistakes in a contract's files that a JSON Schema cannot detect: unknown names, broken pointers, reversed bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from conformance.contract.bounds import top
from conformance.contract.openapi import SchemaError, follow

Mistake: TypeAlias = tuple[str, str]
"""A JSON pointer into contract.yaml, and what is wrong there and how to correct it."""


def mistakes(
    data: Mapping[str, Any],
    common: Mapping[str, Any],
    openapi: Mapping[str, Any],
    parameters: Collection[str],
    checks: Collection[str],
) -> Iterator[Mistake]:
    """Every reference in contract.yaml to something that does not exist, and every reversed bound."""
    yield from _limits(data, parameters)
    yield from _checks(data, checks)
    yield from _sources(data, openapi)
    yield from _names(data, parameters)
    ids = [row["id"] for row in common.get("requirements", ())]
    for glob in data.get("without", {}):
        if not any(fnmatchcase(known, glob) for known in ids):
            yield (
                f"/without/{glob}",
                f"matches no common row; {suggestion(glob, ids) or 'specs/common.yaml has their ids'}",
            )


def suggestion(name: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt name; empty where no known name is similar."""
    near = get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else ""


def _limits(data: Mapping[str, Any], parameters: Collection[str]) -> Iterator[Mistake]:
    for index, row in enumerate(data.get("limits", ())):
        if top(row["parameter"]) not in parameters:
            message = f"{row['parameter']!r} is no parameter of openapi.yaml; expected one of {', '.join(parameters)}"
            yield f"/limits/{index}/parameter", message
        if row.get("low", 0) >= row.get("high", float("inf")):
            yield f"/limits/{index}", f"low is {row['low']} and high {row['high']}; expected low to be below high"


def _checks(data: Mapping[str, Any], checks: Collection[str]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, row in enumerate(data.get("requirements", ())):
        if row["id"] in seen:
            yield f"/requirements/{index}/id", f"{row['id']!r} occurs twice; give each row its own id"
        seen.add(row["id"])
        if checks and row["check"] not in checks:
            hint = suggestion(row["check"], checks) or "`conformance list --checks` names them all"
            yield f"/requirements/{index}/check", f"there is no check {row['check']!r}; {hint}"


def _sources(data: Mapping[str, Any], openapi: Mapping[str, Any]) -> Iterator[Mistake]:
    parts = [(f"/{name}", data[name]) for name in ("request", "response", "chunk") if name in data]
    for name in ("limits", "combinations", "derived", "requirements", "ambiguities", "exclusions"):
        parts += [(f"/{name}/{index}", row) for index, row in enumerate(data.get(name, ()))]
    for at, row in parts:
        pointer = row.get("source", {}).get("at", "")
        try:
            follow(openapi, pointer if pointer.startswith("#/") else "#")
        except SchemaError as error:
            yield f"{at}/source/at", f"{pointer} does not exist in openapi.yaml: {error.message}"


def _names(data: Mapping[str, Any], parameters: Collection[str]) -> Iterator[Mistake]:
    """Names of request members in examples, conditions and combinations."""
    known = {*parameters, "include_usage"}
    mentioned = [(f"/{key}/{name}", name) for key in ("examples", "parameters") for name in data.get(key, {})]
    for index, row in enumerate(data.get("requirements", ())):
        mentioned += [(f"/requirements/{index}/when/{name}", name) for name in row.get("when", {})]
    for index, row in enumerate(data.get("combinations", ())):
        compared = [operand for operand in row.get("compare", ())[::2] if isinstance(operand, str)]
        names = dict.fromkeys([*row.get("given", ()), *row.get("where", {}), *row.get("shape", {}), *compared])
        mentioned += [(f"/combinations/{index}", name) for name in names]
    for at, name in mentioned:
        if name not in known:
            yield at, f"{name!r} is no parameter of openapi.yaml; expected one of {', '.join(parameters)}"
