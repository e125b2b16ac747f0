"""What changed between a vendored contract and a newer OpenAPI document of the same provider."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.contract.derived_rows import Field, fields, keywords
from conformance.contract.openapi import SchemaError, follow, json_schema, merge
from conformance.contract.yaml_file import ContractError, parse_yaml
from conformance.model import Contract, Requirement
from conformance.model.json_text import MISSING

FENCE: Final = re.compile(r"^(`{3,})[^\n`]*\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
TIGHTER_WHEN_GREATER: Final = frozenset({"minimum", "minItems", "exclusiveMinimum"})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `kind`: added, removed, tightened (fewer values than before), loosened or changed."""

    kind: str
    part: str
    path: str
    keyword: str
    before: Any
    after: Any
    requirements: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.kind}: {self.part} {self.path}".rstrip()
        if self.keyword:
            text += f", {self.keyword}: {_words(self.before)} before, {_words(self.after)} now"
        return text + (f" (affects {', '.join(self.requirements)})" if self.requirements else "")


def as_json(change: Change) -> dict[str, Any]:
    """The change for machines; `before` or `after` is left out where there is none."""
    common = {"kind": change.kind, "part": change.part, "path": change.path, "keyword": change.keyword}
    values = {"before": change.before, "after": change.after} if change.keyword else {}
    known = {name: value for name, value in values.items() if value is not MISSING}
    return {**common, **known, "requirements": list(change.requirements)}


def _words(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)


def read_document(path: Path) -> dict[str, Any]:
    """The OpenAPI document in a YAML or JSON file, or in a fenced block of a documentation page."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ContractError(path, "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ContractError(path, "", "is not UTF-8; save it as UTF-8") from None
    for candidate in (text, *(match.group(2) for match in FENCE.finditer(text))):
        if "openapi" not in candidate:
            continue
        try:
            document = parse_yaml(candidate, path)
        except ContractError:
            continue
        if isinstance(document, dict) and "openapi" in document:
            return document
    raise ContractError(
        path, "", "holds no OpenAPI document; expected YAML, JSON, or a page with one in a fenced block"
    )


def drift(contract: Contract, newer: Mapping[str, Any], file: Path) -> tuple[Change, ...]:
    """Every change by field and keyword, those of the request first, then what repairs and overlays have become."""
    operation = _operation(contract, newer, file)
    before = _operation(contract, contract.openapi, file)
    changes: list[Change] = []
    for part in ("request", "response"):
        old, new = _schema(contract.openapi, before, part), _schema(newer, operation, part)
        changes += _compared(contract, part, old, new)
    changes += _servers(contract, newer)
    changes += _statuses(before, operation)
    changes += _tripwires(contract, newer, operation)
    return tuple(changes)


def _operation(contract: Contract, document: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    paths = _inside(document, "paths")
    operation = _inside(paths, contract.path).get(contract.method.lower())
    if not isinstance(operation, Mapping):
        known = ", ".join(map(str, paths)) or "none"
        raise ContractError(file, "/paths", f"has {known}; expected {contract.method} {contract.path}")
    return operation


def _inside(holder: Any, *names: str) -> Mapping[str, Any]:
    """The object at the end of the names; an empty one where the document, which is not ours, has none."""
    for name in names:
        holder = holder.get(name) if isinstance(holder, Mapping) else None
    return holder if isinstance(holder, Mapping) else {}


def _schema(document: Mapping[str, Any], operation: Mapping[str, Any], part: str) -> dict[str, Any]:
    holder = ("requestBody",) if part == "request" else ("responses", "200")
    return json_schema(document, _inside(operation, *holder, "content", "application/json", "schema"))


def _flat(schema: Mapping[str, Any]) -> dict[str, tuple[Field, dict[str, Any]]]:
    by_path = {}
    for field in fields(schema):
        values = dict(keywords(field.schema))
        values["required"] = field.required
        values["default"] = field.schema.get("default", MISSING)
        by_path[field.path] = field, values
    of_body = {"additionalProperties": schema.get("additionalProperties", MISSING)}
    by_path[""] = Field("", schema, True, True, ""), of_body
    return by_path


def _compared(contract: Contract, part: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    before, after = _flat(old), _flat(new)
    for path in dict.fromkeys([*before, *after]):
        touched = _touched(contract, part, path)
        if path not in after:
            yield Change("removed", part, path, "", None, None, touched)
        elif path not in before:
            yield Change("added", part, path, "", None, None, touched)
        else:
            old_keywords, new_keywords = before[path][1], after[path][1]
            for keyword in dict.fromkeys([*old_keywords, *new_keywords]):
                a, b = old_keywords.get(keyword, MISSING), new_keywords.get(keyword, MISSING)
                if a != b:
                    words = _touched(contract, part, path, keyword)
                    yield Change(_kind(keyword, a, b), part, path, keyword, a, b, words)


def _kind(keyword: str, before: Any, after: Any) -> str:
    """Tightened: fewer values are allowed than before."""
    if keyword == "default":
        return "changed"
    if keyword == "required":
        return "tightened" if after else "loosened"
    if before is MISSING or after is MISSING:
        return "tightened" if before is MISSING else "loosened"
    if isinstance(before, list) and isinstance(after, list):
        old, new = {str(value) for value in before}, {str(value) for value in after}
        return "tightened" if new < old else "loosened" if old < new else "changed"
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        return "tightened" if (after > before) == (keyword in TIGHTER_WHEN_GREATER) else "loosened"
    return "changed"


def _touched(contract: Contract, part: str, path: str, keyword: str = "") -> tuple[str, ...]:
    def names(row: Requirement) -> bool:
        field_path = row.params.get("parameter") if part == "request" else row.params.get("path")
        inside = isinstance(field_path, str) and (field_path == path or field_path.startswith((f"{path}.", f"{path}[")))
        return bool(path) and inside and (not keyword or row.params.get("keyword") in {keyword, "accepts", "not_null"})

    return tuple(row.id for row in contract.requirements if names(row))


def _servers(contract: Contract, newer: Mapping[str, Any]) -> Iterator[Change]:
    servers = newer.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else {}
    now = str(_inside({"first": first}, "first").get("url", "/")).rstrip("/")
    if now != contract.server:
        yield Change("changed", "server", "", "url", contract.server, now)


def _statuses(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = ({str(status) for status in _inside(operation, "responses")} for operation in (before, after))
    yield from (Change("removed", "status", status, "", None, None) for status in sorted(old - new))
    yield from (Change("added", "status", status, "", None, None) for status in sorted(new - old))


def _tripwires(contract: Contract, newer: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[Change]:
    """A repair whose printed fault is gone, and an overlay that no longer adds anything."""
    for repair in contract.repairs:
        if repair.upstream is None:
            continue
        try:
            now = follow(newer, repair.at)
        except SchemaError:
            now = MISSING
        if now != repair.upstream:
            yield Change("changed", "repair no longer needed", repair.at, "printed value", repair.upstream, now)
    for part, patch in contract.overlays.items():
        schema = _schema(newer, operation, part)
        if merge(schema, patch) == schema:
            yield Change("changed", f"{part} overlay no longer needed", "", "", None, None)
