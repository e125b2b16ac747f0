"""Our keyword rules and `jsonschema` agree on every reply that the tests have, and on replies changed at random.

The rules exist because each keyword of each field is a requirement with a verdict of its own, and because the judge
reads hundreds of replies. `jsonschema` finds the places by itself: only a row's path, keyword and value are shared.
"""

import json
from functools import cache
from random import Random

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_checks import JUNK

from conformance.contract import load, providers
from conformance.judge.catalogue import CheckContext
from conformance.judge.catalogue import load as catalogue
from conformance.judge.checks.schema import RULES, json_type
from conformance.judge.fixtures import response
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange
from conformance.selftest.json_mutations import CHANGES, changed, walk
from conformance.selftest.mutation_testing import baseline

CHECKS = ("plain_field_conforms", "chunk_field_conforms", "error_field_conforms")
MUTANTS = 150  # for each contract, a choice: each kind of change occurs some 25 times, in a few seconds


contract_of = cache(load)


@cache
def rows(provider):
    return [row for row in contract_of(provider).requirements if row.check in CHECKS]


def keyword_schema(keyword, expected):
    """What a row says of the value at its path, as a JSON Schema."""
    if keyword == "not_null":
        return {"not": {"type": "null"}}
    return {"not": {"not": expected}} if keyword == "schema" else {keyword: expected}


@cache
def oracle(provider, row_id):
    """A validator of whole documents that has the row's keyword at the row's path, and nothing else."""
    (row,) = [row for row in rows(provider) if row.id == row_id]
    steps = row.params["path"].replace("[]", ".[]").split(".")
    schema = (
        {"required": [steps.pop()]}
        if row.params["keyword"] == "required"
        else keyword_schema(row.params["keyword"], row.params["expected"])
    )
    for step in reversed(steps):
        if step == "[]":
            schema = {"items": schema}
        else:
            schema = {"additionalProperties": schema} if step == "*" else {"properties": {step: schema}}
    return jsonschema.Draft202012Validator(schema)


def errors(provider, row, x):
    """The JSON pointers at which jsonschema finds the row's keyword broken."""
    # An error in the middle of a stream is no chunk: it has requirements of its own.
    documents = [one for one in x.documents if not (x.streamed and one.failed and not one.choices)]
    for document in documents:
        for error in oracle(provider, row.id).iter_errors(document.value):
            if not excepted(row, error.instance):
                yield "/".join([document.at, *map(str, error.absolute_path)])


def excepted(row, value):
    """The two deliberate differences between a row and the bare keyword.

    An enum leaves a value of another JSON type to the row on the type, lest one slip counts twice. A row with `unless`
    is about objects without that member: a log probabilities object as in chat completions has its own shape.
    """
    if row.params["keyword"] == "enum":
        return left_to_the_type(value, row.params["expected"])
    return row.params.get("unless") in value if isinstance(value, dict) else False


def left_to_the_type(value, options):
    return all(json_type(value) != json_type(option) for option in options)


def rule_findings(provider, row, x):
    return list(catalogue()[row.check].function(x, CheckContext(contract_of(provider), row.params)))


def disagreements(provider, x):
    """The rows of a contract on which the rule and jsonschema do not name the same places."""
    for row in rows(provider):
        findings = rule_findings(provider, row, x)
        if row.check == ("plain_field_conforms" if x.streamed else "chunk_field_conforms"):
            assert not findings
        elif findings or row.check != "error_field_conforms":  # it is about the errors of one status
            ours = sorted(one.at for one in findings if isinstance(one, Violation))
            theirs = sorted(errors(provider, row, x))
            if ours != theirs:
                yield row.id, ours, theirs
            assert bool(findings) or not theirs
        assert all(isinstance(one, (Violation, Satisfied)) for one in findings)


@cache
def replies(provider):
    """Distinct replies of the reference in a whole run of the gate."""
    exchanges = baseline(provider, "gate").plain.exchanges
    return tuple({(x.status, x.content): x for x in exchanges if x.documents}.values())


@cache
def examples():
    """Distinct replies of the examples beside all checks."""
    subjects = [example.subject for check in catalogue().values() for example in (*check.good(), *check.bad())]
    groups = [[one] if isinstance(one, Exchange) else sum(one.members.values(), ()) for one in subjects]
    return tuple({(x.status, x.streamed, x.content): x for group in groups for x in group}.values())


@cache
def mutants(provider):
    """Successful replies of the reference with one change each."""
    random = Random(1)
    whole = [(x, one) for x in replies(provider) if x.successful for one in x.documents if isinstance(one.value, dict)]
    drawn = [
        (x, document, random.choice(list(walk(document.value)))) for x, document in random.choices(whole, k=MUTANTS)
    ]
    return tuple(
        resent(x, changed(document.value, path, random.choice(list(CHANGES)))) for x, document, (path, _) in drawn
    )


def resent(x, value):
    """The exchange with another value in place of one of its documents."""
    text = json.dumps(value).encode()
    if x.streamed:
        text = b"data: " + text + b"\n\n"
    return response(text, x.case.content, status=x.status, media_type=x.media_type)


@pytest.mark.parametrize("provider", providers())
def test_they_agree_on_the_examples_beside_all_checks(provider):
    for x in examples():
        assert list(disagreements(provider, x)) == []


@pytest.mark.parametrize("provider", providers())
def test_they_agree_on_the_replies_of_the_reference(provider):
    for x in replies(provider):
        assert list(disagreements(provider, x)) == []


@pytest.mark.parametrize("provider", providers())
def test_they_agree_on_replies_that_are_changed_at_one_place(provider):
    for x in mutants(provider):
        assert list(disagreements(provider, x)) == []


@pytest.mark.parametrize("provider", providers())
def test_what_the_schema_of_the_whole_reply_refuses_breaks_a_row(provider):
    """No keyword of the documented schema is without a row; rows that the document's prose adds may refuse more."""
    contract = contract_of(provider)
    for x in mutants(provider):
        whole = jsonschema.Draft202012Validator(contract.chunk if x.streamed else contract.response)
        judged = [rule_findings(provider, row, x) for row in rows(provider)]
        broken = any(isinstance(finding, Violation) for findings in judged for finding in findings)
        unlike_a_chunk = x.streamed and any(document.failed for document in x.documents)
        assert broken or unlike_a_chunk or all(whole.is_valid(document.value) for document in x.documents)


@pytest.mark.parametrize("provider", providers())
@given(data=st.data())
def test_they_agree_on_replies_with_anything_at_one_place(provider, data):
    x = data.draw(st.sampled_from(replies(provider)))
    document = data.draw(st.sampled_from(x.documents))
    whole = json.loads(json.dumps(document.value))
    path = data.draw(st.sampled_from([path for path, _ in walk(whole)]))
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = data.draw(JUNK)
    assert list(disagreements(provider, resent(x, whole))) == []


KEYWORDS = [
    ("type", ["integer"]), ("type", ["number", "null"]), ("type", ["boolean"]), ("type", ["array", "object", "string"]),
    ("enum", [0, 1]), ("enum", [True, "stop", None]), ("enum", [[1], {"a": False}]), ("const", 1), ("const", False),
    ("const", [0, {"a": 1}]), ("minimum", 0), ("maximum", 1.5), ("minItems", 1), ("maxItems", 2),
    ("pattern", "^[a-z]+$"), ("not_null", True),
    ("schema", {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
]  # fmt: skip
VALUES = st.one_of(JUNK, st.sampled_from([0, 1, 0.0, 1.0, True, False, [1], [True], [1.0], {"a": 0}, {"a": False}]))


@pytest.mark.parametrize(("keyword", "expected"), KEYWORDS)
@given(value=VALUES)
def test_they_agree_on_every_keyword_whatever_the_value(keyword, expected, value):
    if not (keyword == "enum" and left_to_the_type(value, expected)):
        valid = jsonschema.Draft202012Validator(keyword_schema(keyword, expected)).is_valid(value)
        assert RULES[keyword](value, expected) is valid


def test_every_rule_is_compared():
    assert {keyword for keyword, _ in KEYWORDS} == RULES.keys()


@pytest.mark.parametrize("provider", providers())
def test_each_enum_stands_beside_a_row_on_the_type(provider):
    """Otherwise a value of another type would be judged by no row."""
    named = {
        (row.params["channel"], row.params.get("status"), row.params["path"], row.params["keyword"])
        for row in rows(provider)
    }
    for channel, status, path, keyword in named:
        assert keyword != "enum" or (channel, status, path, "type") in named
