"""Every check of the catalogue: satisfied by good examples, violated by bad ones, explained, and never raises."""

import ast
import inspect
import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.judge import Traffic, checks, judge
from conformance.judge.catalogue import CheckContext, Scope, load
from conformance.judge.fixtures import (
    choice,
    completion,
    contract,
    logprobs,
    response,
    usage,
)
from conformance.model import Ending, Layer, Level, Membership, Observation, Outcome, Requirement, Source, Violation
from conformance.model.exchange import Group, Piece


def words(text):
    return re.findall(r"\w+", text)


CATALOGUE = load()
CONTRACT = contract()
AREAS = words(
    "schema framing stream usage finish limits errors logprobs choices stop echo tokens effects relations unicode "
    "protocol headers concurrency robustness timing"
)
ALL = pytest.mark.parametrize("check", CATALOGUE.values(), ids=CATALOGUE)


def findings(check, example):
    return list(check.function(example.subject, CheckContext(CONTRACT, example.params)))


@ALL
def test_a_good_example_has_an_occurrence_and_no_violation(check):
    for example in check.good():
        listed = findings(check, example)
        assert listed
        assert not [finding for finding in listed if isinstance(finding, Violation)]


@ALL
def test_a_bad_example_is_a_violation(check):
    assert check.bad()
    for example in check.bad():
        listed = findings(check, example)
        only_observations = bool(listed) and all(isinstance(finding, Observation) for finding in listed)
        assert any(isinstance(finding, Violation) for finding in listed) or only_observations


PYTHON_VALUE = re.compile(
    r"\b(?:None|True|False|NoneType|Missing|MISSING)\b"  # constants
    r"|(?<!\w)b['\"]|[\[{(]'|(?:^|[ =])'[^']*'(?:[ ,:;.]|$)"  # the representations of bytes, collections, strings
    r"|\(\(|,\)|<[\w.]+ object"  # of tuples and of objects
)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
ONE_OF_SEVERAL = re.compile(r"(?<!of )\b1 (?!is\b|has\b)[a-z]+s\b")


@ALL
def test_a_message_states_observed_and_expected_values_and_shows_no_python(check):
    for example in check.bad():
        for finding in findings(check, example):
            if isinstance(finding, Violation):
                assert re.search(r".; expected .", finding.message), finding.message
                assert finding.message.isprintable()
                ours = QUOTED.sub('"…"', finding.message)
                assert not PYTHON_VALUE.search(ours), finding.message
                assert not ONE_OF_SEVERAL.search(ours), finding.message


@ALL
def test_the_docstring_states_what_holds_why_a_client_cares_and_how_to_fix_it(check):
    paragraphs = inspect.cleandoc(check.function.__doc__).split("\n\n")
    assert len(paragraphs) == 3
    assert all(paragraph.rstrip().endswith(".") for paragraph in paragraphs)
    assert paragraphs[2].startswith("Fix: ")
    assert "\n" not in paragraphs[0], "the first paragraph is one sentence on one line"


@ALL
def test_name_and_area_are_well_formed(check):
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", check.name)
    assert check.area in AREAS


@pytest.mark.parametrize("path", sorted(Path(checks.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_a_module_of_checks_states_its_topic(path):
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@ALL
def test_the_judge_shows_the_examples_to_their_check(check):
    """The examples are in the scope of the check, so that they prove what happens in a run."""
    for examples, expected in ((check.good(), {Outcome.PASS, Outcome.INCONCLUSIVE}), (check.bad(), {Outcome.FAIL})):
        for example in examples:
            verdict = judge(_row(check, example), _traffic(example.subject, check), CONTRACT)
            observed = bool(verdict.observations) and verdict.violations == 0
            assert verdict.outcome in expected or verdict.outcome is Outcome.FLAKY or observed, verdict.reason


def _row(check, example):
    key = example.subject.key.partition(" ")[0] if check.keyed else f"{check.area}.example"
    return Requirement(key, check.name, Level.MUST, Layer.CONTRACT, "It holds.", Source("#"), {}, example.params)


def _traffic(subject, check):
    if not isinstance(subject, Group):
        return Traffic([subject])
    exchanges = []
    for role, members in subject.members.items():
        for number, x in enumerate(members):
            part = Membership(subject.kind, subject.key, role)
            exchanges.append(replace(x, case=replace(x.case, id=f"{role}/{number}", groups=(part,))))
    return Traffic(exchanges)


# What a target may send: documents with anything anywhere in them, as bytes cut anywhere, under any header.

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([10**400, -(10**400), 1e308, -0.0, 0.5, float(2**53), 1e-320]),
    st.text(max_size=6),
    st.sampled_from(["", "stop", "length", "[DONE]", "\ud800", "\x00", "\u202e", "�", "data: x", "1, 2, 3,", " 4, 5"]),
)
NAMES = st.sampled_from(
    words(
        "choices text index finish_reason logprobs tokens token_logprobs top_logprobs text_offset usage prompt_tokens "
        "completion_tokens total_tokens prompt_tokens_details cached_tokens id created model object error message "
        "param code detail loc service_tier prompt n best_of stop stream stream_options include_usage echo suffix seed "
        "max_tokens temperature logit_bias response_format json_schema schema"
    )
)
JUNK = st.recursive(
    ODD, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)), max_leaves=8
)
WHOLE = [
    completion(choice(), usage=usage()),
    completion(choice(logprobs=logprobs([" 4", ",", " 5"])), choice(index=1, finish="stop"), usage=usage()),
    completion(choice("1, 2, 3, 4", logprobs=logprobs(["1", ",", " 2"], [None, -0.5, -0.1])), usage=usage()),
    completion(usage=usage(4, 4, prompt_tokens_details={"cached_tokens": 2})),
    completion(choice(finish=None), usage=None),
    {"error": {"message": "no", "type": "invalid_request_error", "param": "n", "code": None}},
    {"detail": [{"loc": ["body", "n"], "msg": "too small", "type": "value_error"}]},
]
BODIES = [
    {"model": "m", "prompt": "1, 2, 3,", "max_tokens": 4, "temperature": 0, "logprobs": 2, "echo": True},
    {"model": "m", "prompt": ["a", "b"], "n": 2, "stop": [" 5", "x"], "stream": True},
    {"model": "m", "prompt": [[5, 6], [7]], "stream": True, "stream_options": {"include_usage": True}},
    {"model": "m", "prompt": "x", "logit_bias": {"5": 100}, "response_format": {"type": "json_object"}, "suffix": "y"},
]


@st.composite
def bent(draw, documents):
    """A document in which up to three places hold something else, or nothing."""
    document = json.loads(json.dumps(draw(st.sampled_from(documents))))
    for _ in range(draw(st.integers(0, 3))):
        place = document
        while isinstance(place, (dict, list)) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if draw(st.booleans()) or not isinstance(place[key], (dict, list)):
                if isinstance(place, dict) and draw(st.booleans()):
                    del place[key]
                else:
                    place[key] = draw(JUNK)
                break
            place = place[key]
    return document


TEXTS = st.one_of(bent(WHOLE), JUNK).map(lambda value: json.dumps(value).encode())
RAW = st.sampled_from(
    [
        b"NaN",
        b"1e999",
        b"[" * 5000,
        b'{"a":' * 2000,
        b"\xff\xfe",
        b"",
        b"{",
        b'{"choices": [{"index": 1e999, "text": "x"}]}',
    ]
)
EVENTS = st.one_of(
    TEXTS.map(lambda text: b"data: " + text + b"\n\n"),
    TEXTS.map(lambda text: b"data:" + text + b"\r\n\r\n"),
    RAW.map(lambda raw: b"data: " + raw + b"\n\n"),
    st.sampled_from(
        [
            b"data: [DONE]\n\n",
            b"data: [DONE]\n",
            b": ping\n\n",
            b"event: error\n",
            b"\xef\xbb\xbf",
            b"data\n\n",
            b"\r",
            b"id: 7\n",
        ]
    ),
    st.binary(max_size=12),
)
CONTENTS = st.one_of(TEXTS, RAW, st.lists(EVENTS, max_size=6).map(b"".join), st.binary(max_size=40))
REQUESTS = st.one_of(bent(BODIES), JUNK).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=20)
MEDIA = st.sampled_from(
    [
        None,
        "application/json",
        "text/event-stream",
        "text/event-stream; charset=latin-1",
        "text/html",
        ";;charset=",
        "é",
    ]
)
STATUSES = st.sampled_from([None, 100, 200, 200, 200, 204, 301, 400, 401, 404, 418, 422, 429, 500, 503, 999])
CODINGS = st.sampled_from(
    [{}, {}, {"content-encoding": "gzip"}, {"content-encoding": "br"}, {"Cache-Control": "max-age=1"}]
)


@st.composite
def exchanges(draw):
    return response(
        draw(CONTENTS),
        draw(REQUESTS),
        status=draw(STATUSES),
        media_type=draw(MEDIA),
        headers=draw(CODINGS),
        ending=draw(st.sampled_from([Ending.COMPLETE, Ending.COMPLETE, *Ending])),
        error=draw(st.sampled_from(["", "connection reset"])),
    )


@cache
def roles_of(check):
    """The roles that a group check knows, from its examples."""
    return sorted({role for example in (*check.good(), *check.bad()) for role in example.subject.members})


PER_EXCHANGE = [one for one in CATALOGUE.values() if one.scope is not Scope.GROUP]
PER_GROUP = [one for one in CATALOGUE.values() if one.scope is Scope.GROUP]


@cache
def params_of(check):
    return [example.params for example in (*check.good()[:1], *check.bad())]


@cache
def keys_of(check):
    return [example.subject.key for example in (*check.good(), *check.bad())]


CALM = settings(
    max_examples=120, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@CALM
@given(x=exchanges())
def test_no_check_raises_whatever_one_exchange_holds(x):
    for check in PER_EXCHANGE:
        for params in params_of(check):
            list(check.function(x, CheckContext(CONTRACT, params)))
        if check.expected_when is not None:
            context = CheckContext(CONTRACT, params_of(check)[0])
            check.expected_when(context.request(x), context)


@CALM
@given(xs=st.lists(exchanges(), min_size=2, max_size=4), data=st.data())
def test_no_check_raises_whatever_a_group_holds(xs, data):
    for check in PER_GROUP:
        members = {role: tuple(xs[place % len(xs) :]) for place, role in enumerate(roles_of(check))}
        absent = data.draw(st.sampled_from([None, *members]))
        members = {role: found for role, found in members.items() if role != absent}
        for key in keys_of(check):
            group = Group(check.group, key, members)
            for params in params_of(check):
                list(check.function(group, CheckContext(CONTRACT, params)))


@CALM
@given(x=exchanges(), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_findings_do_not_depend_on_how_the_bytes_were_split(x, cuts):
    whole = x.pieces[0].data
    edges = [0, *sorted(cut for cut in cuts if cut <= len(whole)), len(whole)]
    pieces = tuple(Piece(0.01, whole[low:high]) for low, high in pairwise(edges))
    split = replace(x, attempts=(replace(x.last, pieces=pieces),))
    for check in PER_EXCHANGE:
        if check.area != "timing":
            context = CheckContext(CONTRACT, params_of(check)[0])
            assert list(check.function(x, context)) == list(check.function(split, context)), check.name
