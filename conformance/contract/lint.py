"""What a JSON Schema cannot see in a contract's files: names that lead nowhere, bounds the wrong way round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from conformance.contract.bounds import top
from conformance.contract.openapi import SchemaError, follow

Mistake: TypeAlias = tuple[str, str]
"""A JSON pointer into contract.yaml, and what is wrong there, with the way to mend it."""


def mistakes(
    data: Mapping[str, Any],
    common: Mapping[str, Any],
    openapi: Mapping[str, Any],
    parameters: Collection[str],
    checks: Collection[str],
) -> Iterator[Mistake]:
    """Everything in contract.yaml that refers to what is not there."""
    yield from _limits(data, parameters)
    yield from _checks(data, checks)
    yield from _sources(data, openapi)
    yield from _names(data, parameters)
    ids = [row["id"] for row in common.get("requirements", ())]
    for glob in data.get("without", {}):
        if not any(fnmatchcase(one, glob) for one in ids):
            yield f"/without/{glob}", f"matches no common row; {meant(glob, ids) or 'specs/common.yaml has their ids'}"


def meant(name: str, known: Iterable[str]) -> str:
    """A question for whoever misspelt a name; empty where nothing is near."""
    near = get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else ""


def _limits(data: Mapping[str, Any], parameters: Collection[str]) -> Iterator[Mistake]:
    for place, row in enumerate(data.get("limits", ())):
        if top(row["parameter"]) not in parameters:
            told = f"{row['parameter']!r} is no parameter of openapi.yaml; expected one of {', '.join(parameters)}"
            yield f"/limits/{place}/parameter", told
        if row.get("low", 0) >= row.get("high", float("inf")):
            yield f"/limits/{place}", f"low is {row['low']} and high {row['high']}; expected low to be below high"


def _checks(data: Mapping[str, Any], checks: Collection[str]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for place, row in enumerate(data.get("requirements", ())):
        if row["id"] in seen:
            yield f"/requirements/{place}/id", f"{row['id']!r} stands twice; give each row its own id"
        seen.add(row["id"])
        if checks and row["check"] not in checks:
            hint = meant(row["check"], checks) or "`conformance list --checks` names them all"
            yield f"/requirements/{place}/check", f"there is no check {row['check']!r}; {hint}"


def _sources(data: Mapping[str, Any], openapi: Mapping[str, Any]) -> Iterator[Mistake]:
    parts = [(f"/{name}", data[name]) for name in ("request", "response", "chunk") if name in data]
    for name in ("limits", "combinations", "derived", "requirements", "ambiguities", "exclusions"):
        parts += [(f"/{name}/{place}", row) for place, row in enumerate(data.get(name, ()))]
    for at, row in parts:
        pointer = row.get("source", {}).get("at", "")
        try:
            follow(openapi, pointer if pointer.startswith("#/") else "#")
        except SchemaError as error:
            yield f"{at}/source/at", f"{pointer} leads nowhere in openapi.yaml: {error.message}"


def _names(data: Mapping[str, Any], parameters: Collection[str]) -> Iterator[Mistake]:
    """Members of the request that are spoken of in passing."""
    known = {*parameters, "include_usage"}
    named = [(f"/{key}/{name}", name) for key in ("examples", "parameters") for name in data.get(key, {})]
    for place, row in enumerate(data.get("requirements", ())):
        named += [(f"/requirements/{place}/when/{name}", name) for name in row.get("when", {})]
    for place, row in enumerate(data.get("combinations", ())):
        compared = [one for one in row.get("compare", ())[::2] if isinstance(one, str)]
        names = dict.fromkeys([*row.get("given", ()), *row.get("where", {}), *row.get("shape", {}), *compared])
        named += [(f"/combinations/{place}", name) for name in names]
    for at, name in named:
        if name not in known:
            yield at, f"{name!r} is no parameter of openapi.yaml; expected one of {', '.join(parameters)}"
