"""JSON as a report shows it: on several lines, and otherwise what was sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.report.json_layout import WIDTH, laid_out

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_the_value_is_the_same(value):
    assert json.loads(laid_out(json.dumps(value))) == value


@given(VALUES)
def test_it_is_laid_out_the_same_however_it_was_sent(value):
    assert laid_out(json.dumps(value, indent=3)) == laid_out(json.dumps(value, separators=(",", ":")))


def test_what_fits_stays_on_one_line_and_what_does_not_has_a_line_for_each_member():
    assert laid_out('{"a":1,"b":[true,null]}') == '{"a": 1, "b": [true, null]}'
    long = "x" * WIDTH
    assert laid_out(f'{{"a":1,"b":["{long}",{{"c":2}}]}}').splitlines() == [
        "{",
        '  "a": 1,',
        '  "b": [',
        f'    "{long}",',
        '    {"c": 2}',
        "  ]",
        "}",
    ]


def test_numbers_escapes_and_members_that_are_named_twice_stay_as_they_were_sent():
    assert laid_out('{"a":1.50,"a":1e2,"b":"\\u0041"}') == '{"a": 1.50, "a": 1e2, "b": "\\u0041"}'


@pytest.mark.parametrize("text", ["", "no JSON", '{"a":', "data: {}", "[" * 100_000, "NaN"])
def test_what_is_no_json_stays_as_it_is(text):
    assert laid_out(text) == text
