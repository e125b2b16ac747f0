"""OpenAPI schemas as JSON Schema, and the validity of a body."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract import load
from conformance.contract.openapi import SchemaError, branches, json_schema, merge
from conformance.contract.validity import allows_null, any_of, validator, validity, without
from conformance.model import Validity
from conformance.model.json_text import dumps

DOCUMENT = {
    "components": {"schemas": {"Name": {"type": "string"}, "Loop": {"items": {"$ref": "#/components/schemas/Loop"}}}}
}
BASE = {"model": "m", "prompt": "x"}
OPENAI = load("openai")


def test_a_reference_is_replaced_by_what_it_names():
    assert json_schema(DOCUMENT, {"$ref": "#/components/schemas/Name"}) == {"type": "string"}


def test_a_reference_to_nowhere_names_the_place():
    with pytest.raises(SchemaError, match="there is no 'Nobody' here"):
        json_schema(DOCUMENT, {"$ref": "#/components/schemas/Nobody"})


def test_a_schema_that_contains_itself_is_refused():
    with pytest.raises(SchemaError, match="contains itself"):
        json_schema(DOCUMENT, {"$ref": "#/components/schemas/Loop"})


def test_nullable_beside_a_type_adds_null():
    assert json_schema({}, {"type": "integer", "nullable": True}) == {"type": ["integer", "null"]}


def test_nullable_beside_an_enum_adds_null_to_it():
    assert json_schema({}, {"type": "string", "enum": ["a"], "nullable": True})["enum"] == ["a", None]


def test_nullable_beside_one_of_is_taken_as_it_is_meant():
    assert allows_null(json_schema({}, {"nullable": True, "oneOf": [{"type": "string"}, {"type": "array"}]}))


def test_a_strict_bound_of_openapi_3_0_becomes_a_number():
    assert json_schema({}, {"minimum": 0, "exclusiveMinimum": True}) == {"exclusiveMinimum": 0}
    assert json_schema({}, {"minimum": 0, "exclusiveMinimum": False}) == {"minimum": 0}


def test_a_property_may_be_called_like_an_annotation():
    schema = {"properties": {"description": {"type": "string", "description": "words"}}}
    assert json_schema({}, schema) == {"properties": {"description": {"type": "string"}}}
    assert without({"properties": {"minimum": {"minimum": 1}}}, frozenset({"minimum"})) == {
        "properties": {"minimum": {}}
    }


def test_branches_of_nested_unions_are_flat_and_without_null():
    nested = {"anyOf": [{"oneOf": [{"type": "string"}, {"type": "array"}]}, {"type": "null"}]}
    assert [one["type"] for one in branches(nested)] == ["string", "array"]


def test_a_merge_patch_replaces_adds_and_removes():
    assert merge({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": None, "e": 4}, "f": [5]}) == {
        "a": 1,
        "b": {"d": 3, "e": 4},
        "f": [5],
    }


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(["model", "prompt", "n", "stop", "logit_bias", "seed", "temperature"]), json_values)
)
def test_the_fast_validator_and_the_readable_one_agree(body):
    schema = any_of(OPENAI.request)
    body = json.loads(dumps(body).encode("utf-8"))
    try:
        fast = validator(dumps(schema)).is_valid(body)
    except ValueError:
        return  # beyond what the fast one holds; the readable one decides there
    assert fast == jsonschema.Draft202012Validator(schema).is_valid(body)


@given(json_values)
def test_validity_is_total(body):
    assert validity(OPENAI, body) in Validity
    assert validity(OPENAI, {**BASE, "logit_bias": body, "n": body}) in Validity


@pytest.mark.parametrize(
    ("provider", "body", "expected"),
    [
        ("openai", {}, "valid"),
        ("openai", {"temperature": 2}, "valid"),
        ("openai", {"temperature": 2.0000001}, "invalid"),
        ("openai", {"n": 0}, "invalid"),
        ("openai", {"n": 1.0}, "unspecified"),
        ("openai", {"n": True}, "invalid"),
        ("openai", {"n": None}, "valid"),
        ("openai", {"prompt": []}, "valid"),
        ("openai", {"stop": []}, "invalid"),
        ("openai", {"stop": ["a", "b", "c", "d", "e"]}, "invalid"),
        ("openai", {"unheard": 1}, "unspecified"),
        ("openai", {"seed": 2**63}, "invalid"),
        ("nebius", {"unheard": 1}, "valid"),
        ("nebius", {"top_p": 7}, "unspecified"),
        ("fireworks", {"n": 128}, "unspecified"),
        ("fireworks", {"n": 129}, "invalid"),
        ("fireworks", {"max_tokens": 0}, "unspecified"),
        ("novita", {"top_p": 1}, "valid"),
        ("novita", {"top_p": 0}, "unspecified"),
        ("interactive", {"prompt": []}, "unspecified"),
        ("interactive", {"stream": None}, "invalid"),
    ],
)
def test_validity_is_computed_from_the_body(provider, body, expected):
    assert validity(load(provider), {**BASE, **body}) == expected
