"""Structured output: where the request is for JSON, the text is JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from conformance.contract.validity import validator
from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import attribute_to, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, group, plain
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Group
from conformance.model.json_text import dumps, loads
from conformance.model.request_view import RequestView

OBJECT: Final = {"response_format": {"type": "json_object"}}
NAMED: Final = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object", "required": ["name"]}},
    }
}
_DECODER: Final = json.JSONDecoder()


def requested_format(request: RequestView) -> tuple[bool, Mapping[str, Any] | None]:
    """Whether the request is for JSON, and the schema that it should be valid against, if there is one."""
    response_format = request.get("response_format")
    if not isinstance(response_format, Mapping) or response_format.get("type") not in ("json_object", "json_schema"):
        return False, None
    inner = response_format.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, Mapping) else response_format.get("schema")
    return True, schema if isinstance(schema, Mapping) else None


@check(
    "effects",
    Scope.GROUP,
    group="json",
    good=lambda: example(_probe(' {"name": "Ann"}', "stop", NAMED)) + example(_probe('{"name": "An', "length", OBJECT)),
    bad=lambda: (
        example(_probe(" Cameron, 28.", "stop", OBJECT))
        + example(_probe('{"age": 3}', "stop", NAMED))
        + example(_probe('{"a": 1} That is all', "length", OBJECT))
    ),
)
def json_is_valid(group: Group, context: CheckContext) -> Findings:
    """Where the request has a JSON format, the text is JSON of that shape, or a beginning of it where the limit cut it.

    Programs parse the text directly; prose where JSON was promised makes them fail.

    Fix: constrain the sampler by the format, or refuse formats that cannot be enforced.
    """
    problem = not_comparable(group, "probe")
    if problem:
        yield problem
        return
    for x in members(group, "probe"):
        request = context.request(x)
        is_json, schema = requested_format(request)
        for answer in x.choices.values() if is_json else ():
            text = generated_text(request, answer)
            complete = answer.finish_reason == context.stop and not request.stops
            if text is None or not text.strip():
                yield Inconclusive("the text is blank, so it shows no format")
            elif answer.finish_reason in {context.stop, context.length}:
                finding = _finding_on_text(text.strip(), schema, complete=complete, at=answer.at)
                yield attribute_to(finding, x.case.id)


def _finding_on_text(text: str, schema: Mapping[str, Any] | None, *, complete: bool, at: str) -> Finding:
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        if complete:
            return Violation(f"the text is {show(text)}; expected one JSON text", at)
        if not text.startswith("{") and _type(schema) == "object":
            return Violation(f"the text begins with {show(text[:40])}; expected a JSON object", at)
        return Satisfied(at)
    if end < len(text):
        return Violation(f"{show(text[end:])} follows the JSON text; expected nothing", at)
    if complete and not _is_strict_json(text):
        return Violation(f"the text is {show(text)}; expected JSON without NaN and Infinity", at)
    is_final = complete or not isinstance(value, (int, float))  # the limit may have cut a number
    if not isinstance(value, Mapping) and _type(schema) == "object" and is_final:
        return Violation(f"the text is {show(text)}; expected a JSON object", at)
    return _finding_on_value(value, schema, at) if complete and schema else Satisfied(at)


def _type(schema: Mapping[str, Any] | None) -> Any:
    """The type of the value that is expected: an object, unless a schema says otherwise."""
    return "object" if schema is None else schema.get("type")


def _is_strict_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _finding_on_value(value: Any, schema: Mapping[str, Any], at: str) -> Finding:
    if not _is_self_contained(schema):
        return Inconclusive("the schema of the request refers to another document")
    try:
        valid = validator(dumps(schema)).is_valid(value)
    except ValueError:
        return Inconclusive("the schema of the request is not a valid schema")
    if valid:
        return Satisfied(at)
    return Violation(f"the text is {show(value)}; expected it to be valid against {show(dict(schema))}", at)


def _is_self_contained(schema: Any) -> bool:
    """Whether all references stay inside the schema, so that a verdict never depends on the network."""
    if isinstance(schema, Mapping):
        references = (schema.get(name, "#") for name in ("$ref", "$dynamicRef", "$schema"))
        local = all(isinstance(ref, str) and (ref.startswith("#") or "json-schema.org" in ref) for ref in references)
        return local and all(map(_is_self_contained, schema.values()))
    return all(map(_is_self_contained, schema)) if isinstance(schema, list) else True


def _probe(text: str, finish: str, request: Mapping[str, Any]) -> Group:
    return group("json", probe=plain(completion(choice(text, finish=finish)), request))
