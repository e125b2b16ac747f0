"""JSON values are compared as JSON Schema compares them, not as Python does."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.json_text import json_equal

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 2), st.sampled_from([0.0, 1.0, 0.5]), st.sampled_from("a0")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("1", "1.0", True), ("true", "1", False), ("false", "0", False), ("false", "0.0", False),
        ("null", "false", False), ("[1]", "[true]", False), ("[1, [0]]", "[1.0, [0.0]]", True),
        ("[1]", "[1, 1]", False),
        ('{"a": 0}', '{"a": false}', False), ('{"a": 0, "b": 1}', '{"b": 1, "a": 0}', True), ('{"a": 0}', "{}", False),
        ('"1"', "1", False), ("[]", "{}", False), ("[]", "null", False), ('""', "[]", False),
    ],
)  # fmt: skip
def test_true_equals_no_number_and_1_equals_1_0_at_any_depth(first, second, equal):
    assert json_equal(json.loads(first), json.loads(second)) is equal
    assert json_equal(json.loads(second), json.loads(first)) is equal


@given(VALUES, VALUES)
def test_two_values_are_equal_where_jsonschema_says_that_one_is_the_constant_other(first, second):
    assert json_equal(first, second) is jsonschema.Draft202012Validator({"const": second}).is_valid(first)
    assert json_equal(first, first)
