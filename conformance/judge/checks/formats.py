"""Structured output: where JSON is asked for, the text is JSON."""

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
from conformance.model.json_text import MISSING, dumps, loads
from conformance.model.request_view import RequestView

OBJECT: Final = {"response_format": {"type": "json_object"}}
NAMED: Final = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object", "required": ["name"]}},
    }
}
_DECODER: Final = json.JSONDecoder()


def wanted(request: RequestView) -> tuple[bool, Mapping[str, Any] | None]:
    """Whether JSON is asked for, and the schema that it should fit, if one is named."""
    told = request.get("response_format")
    if not isinstance(told, Mapping) or told.get("type") not in ("json_object", "json_schema"):
        return False, None
    inner = told.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, Mapping) else told.get("schema")
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
    """Where a JSON format is asked for, the text is JSON of that shape, or the beginning of it where the limit cut it.

    Programs parse the text at once; prose where JSON was promised stops them.

    Fix: constrain the sampler by the format, or refuse formats that cannot be enforced.
    """
    problem = not_comparable(group, "probe")
    if problem:
        yield problem
        return
    for x in members(group, "probe"):
        request = context.request(x)
        expected_when, schema = wanted(request)
        for found in x.choices.values() if expected_when else ():
            text = generated_text(request, found)
            whole = found.finish_reason == context.stop and not request.stops
            if text is None or not text.strip():
                yield Inconclusive("the text is blank, so it shows no format")
            elif found.finish_reason in {context.stop, context.length}:
                yield attribute_to(_judged(text.strip(), schema, whole=whole, at=found.at), x.case.id)


def _judged(text: str, schema: Mapping[str, Any] | None, *, whole: bool, at: str) -> Finding:
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        if whole:
            return Violation(f"the text is {show(text)}; expected one JSON text", at)
        if not text.startswith("{") and _type(schema) == "object":
            return Violation(f"the text begins with {show(text[:40])}; expected a JSON object", at)
        return Satisfied(at)
    if end < len(text):
        return Violation(f"{show(text[end:])} follows the JSON text; expected nothing", at)
    if whole and _strict(text) is MISSING:
        return Violation(f"the text is {show(text)}; expected JSON without NaN and Infinity", at)
    if not isinstance(value, Mapping) and _type(schema) == "object" and (whole or not isinstance(value, (int, float))):
        return Violation(f"the text is {show(text)}; expected a JSON object", at)
    return _fits(value, schema, at) if whole and schema else Satisfied(at)


def _type(schema: Mapping[str, Any] | None) -> Any:
    """JSON mode means objects unless a schema says otherwise."""
    return "object" if schema is None else schema.get("type")


def _strict(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return MISSING


def _fits(value: Any, schema: Mapping[str, Any], at: str) -> Finding:
    if not _local(schema):
        return Inconclusive("the schema that was asked for refers to another document")
    try:
        valid = validator(dumps(schema)).is_valid(value)
    except ValueError:
        return Inconclusive("the schema that was asked for cannot be read")
    if valid:
        return Satisfied(at)
    return Violation(f"the text is {show(value)}; expected it to fit the schema {show(dict(schema))}", at)


def _local(schema: Any) -> bool:
    """Whether all references stay in the schema: a verdict never depends on the network."""
    if isinstance(schema, Mapping):
        refers = (schema.get(name, "#") for name in ("$ref", "$dynamicRef", "$schema"))
        own = all(isinstance(one, str) and (one.startswith("#") or "json-schema.org" in one) for one in refers)
        return own and all(map(_local, schema.values()))
    return all(map(_local, schema)) if isinstance(schema, list) else True


def _probe(text: str, finish: str, request: Mapping[str, Any]) -> Group:
    return group("json", probe=plain(completion(choice(text, finish=finish)), request))
