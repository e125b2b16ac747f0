"""The coverage phase of schemathesis as a second source of classes: what it enumerates, our input model has too."""

from functools import cache

import pytest
from planned import PROVIDERS, context, contract, plan

from conformance.contract.bounds import top
from conformance.contract.openapi import branches
from conformance.model import json_types
from conformance.model.json_text import MISSING
from conformance.plan.drawn_requests import ORIGIN
from conformance.plan.input_model import inputs, invalid_classes, valid_classes
from conformance.plan.samples import coverage_classes

# Classes of the request as a whole by their scenario: the rows, or the part of the plan, that has them.
OF_THE_WHOLE = {
    "valid_object": "the request that all other values are put into",
    "object_only_required": "the bare request",
    "object_required_and_optional": "rows of covering arrays: each parameter present and absent, in all pairs",
    "incorrect_type": "protocol.array-body, protocol.scalar-body, protocol.null-body",
    "missing_parameter": "protocol.empty-body",
    "malformed_content_type": "protocol.wrong-content-type: a form is another media type",
    "unsupported_content_type": "protocol.wrong-content-type",
    "unspecified_http_method": "protocol.wrong-method",
}
# Features of values that our model leaves out, with the reason.
UNDOCUMENTED, NULL = "a member that no document names", "null inside"
DEEP, NO_MODEL = "inside of a member of a member", "no model"
EXCLUDED = {
    UNDOCUMENTED: "what becomes of it is each provider's own rule",
    NULL: "most servers read it as absent; that is asked of the members of a request",
    DEEP: "what a document says of such values is a sketch",
    NO_MODEL: "where the document makes it optional: a run is about the model that it names",
}
KINDS = ((type(None), "null"), (bool, "boolean"), (str, "string"), (list, "array"), (dict, "object"))


def json_type(value):
    return next((name for kind, name in KINDS if isinstance(value, kind)), "number")


def features(provider, name, value):
    """What distinguishes the class of a member's value from others: its type, where it lies in it, what it holds."""
    if value is MISSING:
        return {NO_MODEL if name == "model" and not contract(provider).parameters[name].required else "absent"}
    parameter = contract(provider).parameters[name]
    types, found = json_types(parameter.schema), json_type(value)
    if found == "number" and types & {"integer", "number"}:
        return {number(value, contract(provider).limit(name))}
    if found not in types:
        return {found}
    if found == "array":
        return {("items", min(len(value), 2))} | {kind for item in value for kind in inner(item, ("items",))}
    if found == "object":
        known = {key for branch in branches(parameter.schema) for key in branch.get("properties", ())}
        inside = {kind for key, item in value.items() if key in known for kind in inner(item, (key,))}
        return {"object", *inside, *({UNDOCUMENTED} if value.keys() - known else ())}
    if found == "string":
        allowed = [word for branch in branches(parameter.schema) for word in branch.get("enum", ())]
        return {(value if value in allowed else "another word") if allowed else "text" if value else "empty text"}
    return {value}


def inner(value, path):
    """The types inside of a list, down to lists in it, or of an object."""
    if value is None:
        return {NULL}
    if isinstance(value, (list, dict)) and (len(path) > 1 or path != ("items",)):
        return {DEEP}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {(*path, json_type(value))}.union(*(inner(part, (*path, json_type(value))) for part in parts))


def number(value, limit):
    """Where a number lies between the ends of its range."""
    low, high = (limit.low, limit.high) if limit and limit.binding else (None, None)
    if low is not None and value <= low:
        return "the lowest" if value == low else "too low"
    if high is not None and value >= high:
        return "the highest" if value == high else "too high"
    return "a number"


@cache
def ours(provider, name):
    """The features of our classes of a member, and of the values that `full` sends, drawn bodies left out."""
    paths = {path: schema for path, schema in inputs(contract(provider)).items() if top(path) == name}
    values = [one.value for path, schema in paths.items() for one in invalid_classes(contract(provider), path, schema)]
    values += [one.value for one in valid_classes(contract(provider), name)]
    cases = [case for case in plan(provider, "full").cases if case.origin != ORIGIN and isinstance(case.body, dict)]
    values += [case.body.get(name, MISSING) for case in cases]
    return set().union(*(features(provider, name, value) for value in values))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_schemathesis_enumerates_our_model_has(provider):
    enumerated = coverage_classes(context(provider, "full"))
    missing = {}
    for one in enumerated:
        if one.member in contract(provider).parameters:
            found = features(provider, one.member, one.value) - ours(provider, one.member) - EXCLUDED.keys()
            missing.update({f"{one.member} {one.value!r}": sorted(map(str, found))} if found else {})
    assert missing == {}
    assert len({one.member for one in enumerated}) > len(contract(provider).parameters)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_it_enumerates_of_the_whole_request_has_a_place_in_the_plan(provider):
    whole = {one.scenario for one in coverage_classes(context(provider, "full")) if not one.member}
    assert whole <= OF_THE_WHOLE.keys()


def test_each_excluded_feature_occurs_and_is_not_ours():
    seen = {
        feature
        for provider in PROVIDERS
        for one in coverage_classes(context(provider, "full"))
        if one.member in contract(provider).parameters
        for feature in features(provider, one.member, one.value)
    }
    assert EXCLUDED.keys() <= seen


def test_it_enumerates_valid_and_invalid_classes_of_every_kind():
    enumerated = coverage_classes(context("openai", "full"))
    assert sum(one.positive for one in enumerated) > 50
    assert sum(not one.positive for one in enumerated) > 100
