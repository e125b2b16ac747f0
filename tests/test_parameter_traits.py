"""What a single provider documents is described in its contract.yaml, and code knows it by its role only."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from planned import PROVIDERS, bodies, contract, plan

from conformance.contract.parameters import TRAITS, bends, common_traits, described, traits
from conformance.judge.fixtures import contract as small
from conformance.model.parameter_traits import NO_TRAITS, Bends, ParameterTraits, Role
from conformance.model.request_view import RequestView

PACKAGE = Path(__file__).parents[1] / "conformance"
NOT_ABOUT_REQUESTS = ("config/", "cli/", "certificate/", "pytest_plugin/")  # their own options and file formats
DOCUMENTED = Counter(name for provider in PROVIDERS for name in contract(provider).parameters)
OWN = sorted(name for name, count in DOCUMENTED.items() if count == 1)


def literals(path):
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_code_names_what_a_single_provider_documents():
    assert OWN
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(NOT_ABOUT_REQUESTS):
            assert not literals(path) & set(OWN), name


@pytest.mark.parametrize("name", OWN)
def test_what_a_single_provider_documents_is_sent_all_the_same(name):
    (provider,) = (provider for provider in PROVIDERS if name in contract(provider).parameters)
    assert any(name in body for body in bodies(plan(provider, "full").cases))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_role_is_played_by_one_parameter_at_most(provider):
    roles = Counter(known.role for known in contract(provider).described.values() if known.role)
    assert not roles or max(roles.values()) == 1


def test_each_role_is_played_by_some_parameter():
    assert {role for role in Role if any(contract(provider).by_role(role) for provider in PROVIDERS)} == set(Role)


def test_the_table_describes_what_several_providers_document():
    assert {name for name in TRAITS if DOCUMENTED[name] < 2} == set()


def test_a_contract_describes_its_own_parameters_and_overrides_the_table():
    known = small(described={"seed": ParameterTraits(sample=1)})
    assert traits(known, "seed") == ParameterTraits(sample=1)
    assert traits(known, "n") == common_traits("n")
    assert traits(known, "unheard-of") == NO_TRAITS
    assert known.by_role(Role.REPORTED) == ""


def test_yaml_becomes_traits():
    row = {"role": "probability-floor", "bends": "filter", "narrowing": [1], "ends": [[0], [1, 0.99]]}
    assert described({"floor": row}) == {
        "floor": ParameterTraits(
            role=Role.PROBABILITY_FLOOR, bends=Bends.FILTER, narrowing=(1,), ends=((0,), (1, 0.99))
        )
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, set()),
        ({"logit_bias": {}, "suffix": "", "presence_penalty": 0, "repetition_penalty": 1, "top_p": 1}, set()),
        ({"logit_bias": {"1": 1}}, {Bends.LOGITS}),
        ({"suffix": "x", "floor": 0.5}, {Bends.CONTEXT, Bends.FILTER}),
        ({"response_format": {"type": "json_object"}, "repetition_penalty": 1.2}, {Bends.GRAMMAR, Bends.LOGITS}),
    ],
)
def test_a_parameter_bends_the_choice_unless_it_is_neutral(body, expected):
    request = RequestView(body, small().defaults)
    assert {place for place in Bends if bends(small(), request, place)} == expected
