"""specs/<provider>/ → Contract. An error in the data names the file, the place in it, and the correction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import jsonschema

from conformance.contract import bounds as limits
from conformance.contract import derived_rows as derive
from conformance.contract.composition import needs_a_branch
from conformance.contract.lint import mistakes
from conformance.contract.openapi import SchemaError, check_schema, follow, locate, merge, object_schema
from conformance.contract.parameters import described
from conformance.contract.quotes import WrittenDocument
from conformance.contract.semantics import semantics
from conformance.contract.validity import allows_null
from conformance.contract.yaml_file import ContractError as ContractError
from conformance.contract.yaml_file import parse_yaml as parse_yaml
from conformance.contract.yaml_file import read_yaml as read_yaml
from conformance.model import (
    Ambiguity,
    Combination,
    Contract,
    Document,
    Exclusion,
    Layer,
    Level,
    Parameter,
    Repair,
    Requirement,
    Source,
    Statement,
    Validity,
)
from conformance.model.json_text import MISSING, dumps

HERE: Final = Path(__file__).resolve().parent
PACKAGE: Final = HERE.parent
FILES: Final = ("openapi.yaml", "contract.yaml")
METHODS: Final = frozenset({"get", "put", "post", "delete", "patch"})


def folders(specs: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Where contracts are looked for, the caller's folders first, then those that came with the suite."""
    shipped = next((path for path in (PACKAGE / "specs", PACKAGE.parent / "specs") if path.is_dir()), PACKAGE / "specs")
    return (*map(Path, specs), shipped)


def providers(specs: Sequence[Path] = ()) -> tuple[str, ...]:
    """The names of all providers, in alphabetical order; `load` reports a folder that lacks one of its files."""
    return tuple(
        sorted({file.parent.name for folder in folders(specs) for name in FILES for file in folder.glob(f"*/{name}")})
    )


def home(provider: str, specs: Sequence[Path] = ()) -> Path:
    """The folder of a provider; a ContractError names those there are."""
    for folder in folders(specs):
        if any((folder / provider / name).is_file() for name in FILES):
            return folder / provider
    known = ", ".join(providers(specs)) or "none"
    raise ContractError(
        "specs",
        f"/{provider}",
        f"there is no such provider; expected one of {known}; add a folder of your own with --specs DIR",
    )


def load(provider: str, specs: Sequence[Path] = (), checks: Collection[str] = ()) -> Contract:
    """The contract of a provider; a ContractError says what to correct in its folder.

    `checks` are the names that a requirement may bind; where none are given, any name is accepted.
    """
    folder = home(provider, specs)
    files = (folder / FILES[0], folder / FILES[1], _common(specs))
    return _loaded(provider, files, tuple(map(_stamp, files)), frozenset(checks))


def _common(specs: Sequence[Path]) -> Path:
    return folders(specs)[-1] / "common.yaml"


def _stamp(file: Path) -> tuple[int, int]:
    """The time of change and the size of a file: another value means that it has to be read again."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=32)
def _loaded(
    provider: str, files: tuple[Path, Path, Path], stamps: tuple[tuple[int, int], ...], checks: frozenset[str]
) -> Contract:
    return _contract(provider, *files, checks)


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((HERE / "contract.schema.json").read_text("utf-8"))
    return schema


def _conforming(path: Path, schema: Mapping[str, Any]) -> dict[str, Any]:
    data = read_yaml(path)
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(data))
    error = jsonschema.exceptions.best_match(errors)
    if error is not None:
        at = "".join(f"/{part}" for part in error.absolute_path) or "/"
        same_place = [other for other in errors if other.absolute_path == error.absolute_path]
        # all that the same place lacks, so that a new file is not written one error at a time
        absent = [other.message for other in same_place if other.validator == "required"]
        messages = absent if error.validator == "required" and error.message in absent else [error.message]
        raise ContractError(path, at, f"{'; '.join(messages)[:300]}; see {HERE / 'contract.schema.json'}")
    return data if isinstance(data, dict) else {}


def _contract(provider: str, at: Path, file: Path, common_file: Path, checks: frozenset[str]) -> Contract:
    openapi = read_yaml(at)
    if not isinstance(openapi, dict):
        raise ContractError(at, "", "is not an object; expected an OpenAPI document, which begins with `openapi: 3.x`")
    if not str(openapi.get("openapi", "")).startswith("3."):
        raise ContractError(at, "/openapi", f"is {openapi.get('openapi')!r}; expected OpenAPI 3.0 or 3.1")
    data = _conforming(file, _schema())
    common = _conforming(common_file, {"$defs": _schema()["$defs"], "$ref": "#/$defs/common"})
    if data["provider"] != provider:
        raise ContractError(file, "/provider", f"is {data['provider']!r}; expected the folder's name {provider!r}")
    try:
        return _assemble(openapi, data, common, at, file, checks)
    except SchemaError as error:
        raise ContractError(at, error.at, error.message) from None


def _operation(openapi: Mapping[str, Any], data: Mapping[str, Any], at: Path) -> tuple[str, str, Mapping[str, Any]]:
    paths = openapi.get("paths")
    declared = data.get("operation")
    candidates = [
        (method, path, operation)
        for path, item in (paths.items() if isinstance(paths, Mapping) else ())
        for method, operation in (item.items() if isinstance(item, Mapping) else ())
        if method in METHODS
        and isinstance(operation, Mapping)
        and (f"{method} {path}" == declared if declared else "requestBody" in operation)
    ]
    if len(candidates) != 1:
        expected = f"`operation: {declared}` of contract.yaml" if declared else "the one operation with a request body"
        names = ", ".join(f"{method} {path}" for method, path, _ in candidates) or "none"
        raise ContractError(
            at, "/paths", f"found {names}; expected {expected}; name it as `operation` in contract.yaml"
        )
    return candidates[0]


def _pointer(*tokens: str) -> str:
    return "#" + "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def _referred(openapi: Mapping[str, Any], holder: Any) -> Mapping[str, Any]:
    """A request body or response, taken from `components` where it stands there; empty where it is no object."""
    body = follow(openapi, str(holder["$ref"])) if isinstance(holder, Mapping) and "$ref" in holder else holder
    return body if isinstance(body, Mapping) else {}


def _media(openapi: Mapping[str, Any], holder: Any, at: Path, pointer: str) -> tuple[Mapping[str, Any], str]:
    schema: Any = _referred(openapi, holder)
    pointer = holder["$ref"] if schema is not holder and isinstance(holder, Mapping) else pointer
    for name in ("content", "application/json", "schema"):
        schema = schema.get(name) if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping):
        raise ContractError(at, pointer, "has no schema under content/application~1json; expected one")
    ref = schema.get("$ref")
    return schema, str(ref) if ref else f"{pointer}/content/application~1json/schema"


def _server(openapi: Mapping[str, Any], operation: Mapping[str, Any], at: Path) -> str:
    servers = operation.get("servers") or openapi.get("servers") or [{"url": "/"}]
    url = servers[0].get("url") if isinstance(servers, list) and isinstance(servers[0], Mapping) else None
    if not isinstance(url, str):
        raise ContractError(at, "/servers", "has no address in its first entry; expected a list with a `url`")
    return url.rstrip("/")


def _overlaid(schema: dict[str, Any], data: Mapping[str, Any], part: str) -> dict[str, Any]:
    merged: dict[str, Any] = merge(schema, data.get(part, {}).get("patch", {}))
    return merged


def _assemble(
    openapi: dict[str, Any], data: dict[str, Any], common: dict[str, Any], at: Path, file: Path, checks: frozenset[str]
) -> Contract:
    method, path, operation = _operation(openapi, data, at)
    root = _pointer("paths", path, method)
    printed_request, request_at = _media(openapi, operation["requestBody"], at, f"{root}/requestBody")
    request = _overlaid(object_schema(openapi, printed_request, request_at), data, "request")
    documented = operation.get("responses")
    entries = documented.items() if isinstance(documented, Mapping) else ()
    responses = {str(status).replace("x", "X"): value for status, value in entries}
    if "200" not in responses:
        raise ContractError(at, f"{root}/responses", "has no 200; expected the completion's schema there")
    printed_response, response_at = _media(openapi, responses["200"], at, f"{root}/responses/200")
    response = _overlaid(object_schema(openapi, printed_response, response_at), data, "response")
    errors = {
        status: (object_schema(openapi, schema, schema_at), schema_at)
        for status, value in responses.items()
        if (status[:1] in "45" or status == "default") and _referred(openapi, value).get("content")
        for schema, schema_at in [_media(openapi, value, at, f"{root}/responses/{status}")]
    }
    for schema, schema_at in ((request, request_at), (response, response_at), *errors.values()):
        check_schema(schema, schema_at)
    parameters = _parameters(request, request_at)
    if not parameters:
        raise ContractError(at, request_at, "gives no member of a request; expected an object with properties")
    if needs_a_branch(request):
        raise ContractError(
            at, request_at, "has branches that each require other members; write the one that this operation takes"
        )
    for schema_at, message in mistakes(data, common, openapi, parameters, checks):
        raise ContractError(file, schema_at, message)
    chunk = data.get("chunk") or {"level": "SHOULD", "layer": "ecosystem"}
    contract = Contract(
        provider=data["provider"],
        title=data["title"],
        revision=data["revision"],
        document=Document(**data["document"]),
        sha256=hashlib.sha256(dumps([openapi, data, common]).encode()).hexdigest(),
        openapi=openapi,
        server=_server(openapi, operation, at),
        path=path,
        method=method.upper(),
        operation_at=root,
        request=request,
        response=response,
        chunk=merge(response, chunk.get("patch", {})),
        errors={status: schema for status, (schema, _) in errors.items()},
        parameters=parameters,
        limits=limits.gather(parameters, data.get("limits", ()), common.get("envelope", ())),
        requirements=(),
        exclusions=tuple(Exclusion(row["promise"], _source(row), row["reason"]) for row in data.get("exclusions", ())),
        ambiguities=tuple(
            Ambiguity(row["id"], row["point"], tuple(row["readings"]), row["observed"], _source(row))
            for row in data.get("ambiguities", ())
        ),
        repairs=tuple(Repair(row["at"], row.get("upstream"), row["reason"]) for row in data.get("repairs", ())),
        overlays={part: data[part]["patch"] for part in ("request", "response") if part in data},
        statements=tuple(
            Statement(row["page"], row["says"], tuple(row["bound"])) for row in data.get("statements", ())
        ),
        combinations=tuple(_combination(row) for row in data.get("combinations", ())),
        examples={name: tuple(values) for name, values in data.get("examples", {}).items()},
        described=described(data.get("parameters", {})),
        unknown_fields=Validity(data.get("unknown_fields", "unspecified")),
    )
    derived = [
        *derive.request_rows(parameters.values(), contract.limits, request_at),
        *_combination_rows(contract, data),
        *derive.response_rows(
            response, "plain", "plain_field_conforms", Level.MUST, Layer.CONTRACT, Source(response_at)
        ),
        *derive.response_rows(
            contract.chunk,
            "chunk",
            "chunk_field_conforms",
            Level(chunk["level"]),
            Layer(chunk["layer"]),
            _source(chunk) if "source" in chunk else Source(response_at),
        ),
        *(
            row
            for status, (schema, schema_at) in errors.items()
            for row in derive.response_rows(
                schema, "error", "error_field_conforms", Level.MUST, Layer.CONTRACT, Source(schema_at), status
            )
        ),
    ]
    written = WrittenDocument.of(at.read_text("utf-8"))
    placed = [replace(row, source=_placed(row, openapi, written)) for row in derived]
    requirements = _requirements(contract, placed, data, common, file)
    try:
        meaning = semantics(requirements)
    except ValueError as error:
        raise ContractError(file, "/requirements", str(error)) from None
    return replace(contract, requirements=requirements, semantics=meaning)


def _placed(row: Requirement, openapi: Mapping[str, Any], written: WrittenDocument) -> Source:
    """The source of a derived row with the pointer to where openapi.yaml has it, and the words that stand there."""
    if not row.source.at.startswith("#"):
        return row.source
    at = locate(openapi, row.source.at)
    return replace(row.source, at=at, quote=row.source.quote or written.quote(at, str(row.params.get("keyword", ""))))


def _source(row: Mapping[str, Any]) -> Source:
    source = row.get("source", {})
    return Source(source.get("at", ""), source.get("page", ""), source.get("quote", ""))


def _parameters(request: Mapping[str, Any], at: str) -> dict[str, Parameter]:
    required = request.get("required", ())
    return {
        name: Parameter(
            name,
            schema,
            name in required,
            allows_null(schema),
            schema.get("default", MISSING),
            Source(f"{at}/properties/{name}"),
        )
        for name, schema in request.get("properties", {}).items()
    }


def _combination(row: Mapping[str, Any]) -> Combination:
    compare = tuple(row["compare"]) if "compare" in row else None
    return Combination(
        row["id"],
        Validity(row["validity"]),
        row.get("where", {}),
        tuple(row.get("given", ())),
        compare,
        row.get("shape", {}),
        row.get("example", {}),
    )


def _combination_rows(contract: Contract, data: Mapping[str, Any]) -> Iterator[Requirement]:
    for combination, row in zip(contract.combinations, data.get("combinations", ()), strict=True):
        left_open = combination.validity is Validity.UNSPECIFIED
        default = (
            "Whether these go together is left open." if left_open else "Members that do not go together are refused."
        )
        promise = row.get("promise", default)
        level, layer = Level(row.get("level", "SHOULD")), Layer(row.get("layer", "contract"))
        yield derive.combination_row(combination, level, layer, promise, _source(row))


def _requirements(
    contract: Contract,
    derived: Sequence[Requirement],
    data: Mapping[str, Any],
    common: Mapping[str, Any],
    file: Path,
) -> tuple[Requirement, ...]:
    """Own rows, common rows that hold here, and derived rows as adjusted; an own row replaces others of its id."""
    advice = {row["id"]: row["fix"] for row in common.get("requirements", ()) if "fix" in row}
    rows = {row["id"]: _row({"fix": advice.get(row["id"], ""), **row}) for row in data.get("requirements", ())}
    shared: list[Requirement] = []
    dropped = data.get("without", {})
    for common_row in common.get("requirements", ()):
        applies = set(common_row.get("needs", ())) <= contract.parameters.keys()
        if applies and not any(fnmatchcase(common_row["id"], glob) for glob in dropped):
            shared.append(_row(common_row))
    changes = data.get("derived", ())
    _all_used([*shared, *derived], changes, file)
    derived_ids = {row.id for row in derived}
    overruled = {row["id"] for row in common.get("requirements", ()) if row.get("yields_to") in derived_ids}
    for row in (*shared, *derived):
        row = replace(row, level=Level.MAY) if row.id in overruled else row
        adjusted = _adjusted(row, changes)
        if adjusted is not None:
            rows.setdefault(adjusted.id, adjusted)
    return tuple(rows.values())


def _row(row: Mapping[str, Any]) -> Requirement:
    return Requirement(
        row["id"],
        row["check"],
        Level(row["level"]),
        Layer(row["layer"]),
        row["promise"],
        _source(row),
        row.get("when", {}),
        row.get("params", {}),
        row.get("fix", ""),
    )


def _glob(pattern: str) -> str:
    """An id as a glob in which only `*` at the end of a segment matches more than itself: brackets are names here."""
    return pattern.replace("[", "[[]")


def _adjusted(row: Requirement, changes: Sequence[Mapping[str, Any]]) -> Requirement | None:
    for change in changes:
        if fnmatchcase(row.id, _glob(change["id"])):
            if change.get("drop"):
                return None
            level, layer = Level(change.get("level", row.level)), Layer(change.get("layer", row.layer))
            return replace(row, level=level, layer=layer)
    return row


def _all_used(rows: Iterable[Requirement], changes: Sequence[Mapping[str, Any]], file: Path) -> None:
    ids = [row.id for row in rows]
    for index, change in enumerate(changes):
        if not any(fnmatchcase(identity, _glob(change["id"])) for identity in ids):
            message = f"{change['id']!r} matches no derived or common row; `conformance list` shows their ids"
            raise ContractError(file, f"/derived/{index}/id", message)
