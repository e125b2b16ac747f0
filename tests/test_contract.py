"""Contracts as data: what is derived, how rows are adjusted, and what each mistake says."""

import shutil
from pathlib import Path

import pytest
import yaml

from conformance.contract import ContractError, folders, load, providers
from conformance.contract.bounds import format_bound
from conformance.contract.validity import validity
from conformance.judge.catalogue import load as load_checks
from conformance.model import Edge, Layer, Level, Semantics, StopText, UsagePlacement, Validity

OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Made up", "version": "1"},
    "servers": [{"url": "http://127.0.0.1/v9/"}],
    "paths": {
        "/text": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}},
                "responses": {
                    "200": {
                        "description": "",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}},
                    }
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Ask": {
                "type": "object",
                "required": ["model", "prompt"],
                "properties": {
                    "model": {"type": "string"},
                    "prompt": {"type": "string"},
                    "heat": {"type": ["number", "null"], "minimum": 0, "exclusiveMaximum": 3, "default": 1},
                    "mode": {"type": "string", "enum": ["calm", "wild"]},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                },
            },
            "Answer": {
                "type": "object",
                "required": ["choices"],
                "properties": {
                    "choices": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["text"],
                            "properties": {"text": {"type": "string"}, "note": {"type": "string"}},
                        },
                    }
                },
            },
        }
    },
}
CONTRACT = {"provider": "madeup", "title": "Made up", "revision": "2026-01-01", "document": {"file": "x", "form": "y"}}


@pytest.fixture
def folder(tmp_path):
    """A provider that nobody has, in a folder of its own."""

    def write(openapi=OPENAPI, **contract):
        home = tmp_path / "madeup"
        home.mkdir(exist_ok=True)
        (home / "openapi.yaml").write_text(yaml.safe_dump(openapi), "utf-8")
        (home / "contract.yaml").write_text(yaml.safe_dump({**CONTRACT, **contract}), "utf-8")
        return tmp_path

    return write


def rows(specs, **contract):
    return {row.id: row for row in load("madeup", [specs(**contract)]).requirements}


def test_all_five_providers_are_known():
    assert providers() == ("fireworks", "interactive", "nebius", "novita", "openai")


def test_each_keyword_of_each_parameter_is_a_row(folder):
    found = rows(folder)
    assert {one for one in found if one.startswith("request.heat.")} == {
        "request.heat.accepts", "request.heat.null", "request.heat.type", "request.heat.coercion",
        "request.heat.minimum", "request.heat.maximum",
    }  # fmt: skip
    assert {
        "request.mode.enum",
        "request.mode.nullable",
        "request.tags.max-items",
        "request.tags[].type",
    } <= found.keys()
    assert found["request.model.required"].level is Level.MUST
    assert found["request.mode.nullable"].level is Level.SHOULD


def test_each_keyword_of_each_response_field_is_a_row_on_both_channels(folder):
    found = rows(folder)
    assert found["response.choices[].text.required"].params["due"] is True
    assert found["response.choices[].note.nullable"].level is Level.SHOULD
    assert found["chunk.choices[].text.type"].layer is Layer.ECOSYSTEM


@pytest.mark.parametrize(
    ("bound", "written"),
    [(2**63 - 1, "9223372036854775807"), (-(2.0**63), "-9223372036854775808"), (20, "20"), (2.0, "2"), (0.5, "0.5"),
     (1e308, "1e+308"), (-2, "-2"), (float("inf"), "inf")],
)  # fmt: skip
def test_a_bound_is_written_with_all_its_digits(bound, written):
    assert format_bound(bound) == written


def test_the_largest_seed_is_not_rounded():
    promises = [row.promise for row in load("openai").requirements if row.id == "request.seed.maximum"]
    assert promises == ["`seed` above 9223372036854775807 is refused."]


def test_bounds_of_the_schema_are_limits_with_their_edges(folder):
    limit = load("madeup", [folder()]).limit("heat")
    assert (limit.low, limit.low_edge, limit.high, limit.high_edge) == (0, Edge.CLOSED, 3, Edge.OPEN)


def test_a_stated_limit_wins_over_the_schema(folder):
    specs = folder(
        limits=[{"parameter": "heat", "low": 0, "high": 3, "low_edge": "unspecified", "high_edge": "closed"}]
    )
    contract = load("madeup", [specs])
    judged = {heat: validity(contract, {"model": "m", "prompt": "p", "heat": heat}) for heat in (0, 1, 3, 3.5)}
    assert judged == {
        0: Validity.UNSPECIFIED, 1: Validity.VALID, 3: Validity.VALID, 3.5: Validity.INVALID,
    }  # fmt: skip


def test_a_derived_row_can_be_softened_or_dropped(folder):
    changes = [
        {"id": "request.heat.maximum", "level": "MAY", "reason": "why not"},
        {"id": "request.tags*", "drop": True, "reason": "why"},
    ]
    found = rows(folder, derived=changes)
    assert found["request.heat.maximum"].level is Level.MAY
    assert not any(one.startswith("request.tags") for one in found)


def test_a_chunk_differs_from_the_body_by_a_merge_patch(folder):
    patch = {"properties": {"choices": {"items": {"properties": {"text": {"type": ["string", "null"]}}}}}}
    found = rows(folder, chunk={"patch": patch, "level": "MUST", "layer": "contract", "reason": "partial"})
    assert found["chunk.choices[].text.type"].params["expected"] == ["null", "string"]
    assert found["response.choices[].text.type"].params["expected"] == ["string"]


def test_a_combination_makes_a_request_invalid_and_a_row(folder):
    combination = {
        "id": "request.heat.not-when-calm",
        "validity": "invalid",
        "where": {"mode": "calm"},
        "given": ["heat"],
    }
    specs = folder(combinations=[combination])
    contract = load("madeup", [specs])
    assert validity(contract, {"model": "m", "prompt": "p", "mode": "calm", "heat": 1}) is Validity.INVALID
    assert validity(contract, {"model": "m", "prompt": "p", "mode": "calm"}) is Validity.VALID
    assert "request.heat.not-when-calm" in {row.id for row in contract.requirements}


def without_200():
    broken = {**OPENAPI, "paths": {"/text": {"post": {**OPENAPI["paths"]["/text"]["post"], "responses": {}}}}}
    return {"openapi": broken}


ROW = {
    "id": "usage.sum", "check": "usage_adds_up", "level": "MUST", "layer": "contract", "promise": "It adds up.",
    "source": {"at": "#/x"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "at", "says"),
    [
        ({"provider": "other"}, "/provider", "expected the folder's name 'madeup'"),
        ({"colour": "red"}, "contract.yaml", "colour"),
        ({"limits": [{"parameter": "cold", "low": 1}]}, "/limits/0/parameter", "'cold' is no parameter"),
        ({"limits": [{"parameter": "heat", "low": "warm"}]}, "/limits/0/low", "'warm' is not of type 'number'"),
        (
            {"requirements": [{**ROW, "check": "no_such_check"}]},
            "/requirements/0/check",
            "there is no check 'no_such_check'",
        ),
        ({"requirements": [{**ROW, "level": "must"}]}, "/requirements/0/level", "'must' is not one of"),
        ({"requirements": [{**ROW, "layer": "ecosystem"}]}, "/requirements/0/level", "'MUST' is not one of"),
        ({"requirements": [ROW, ROW]}, "/requirements/1/id", "occurs twice"),
        (
            {
                "requirements": [
                    {**ROW, "source": {"at": "#/paths"}, "check": "context_overflow", "params": {"behaviour": "cut"}}
                ]
            },
            "/requirements",
            "behaviour is 'cut'; expected one of refuse, truncate, either",
        ),
        (
            {"derived": [{"id": "request.cold.*", "drop": True, "reason": "r"}]},
            "/derived/0/id",
            "matches no derived or common row",
        ),
        (without_200(), "#/paths/~1text/post/responses", "has no 200"),
        ({"openapi": {"openapi": "3.1.0", "paths": {}}}, "/paths", "found none"),
    ],
)
def test_a_mistake_is_told_with_its_file_its_place_and_the_way_out(folder, change, at, says):
    with pytest.raises(ContractError) as raised:
        load("madeup", [folder(**change)], load_checks())
    assert str(raised.value).count("\n") == 0
    assert f"{at}: " in str(raised.value)
    assert says in str(raised.value)


def test_a_key_that_stands_twice_is_told_with_its_line(folder, tmp_path):
    specs = folder()
    with (tmp_path / "madeup/contract.yaml").open("a") as file:
        file.write("title: again\n")
    with pytest.raises(ContractError, match=r"contract.yaml: line \d+, column 1: .*'title' occurs twice"):
        load("madeup", [specs])


def test_an_unknown_provider_is_told_which_there_are():
    with pytest.raises(ContractError, match="expected one of fireworks, interactive"):
        load("nobody")


def test_what_replies_mean_is_read_from_the_rows_and_defaults_where_they_are_silent(folder):
    assert load("madeup", [folder()]).semantics == Semantics(sends_done=False)
    row = {**ROW, "source": {"at": "#/paths"}}
    rows = [
        {**row, "id": "test.done", "check": "done_is_sent"},
        {**row, "id": "test.usage", "check": "usage_is_in_last_chunk", "params": {"unasked": True}},
        {**row, "id": "test.stop", "check": "stop_text_is_as_promised", "params": {"text": "included"}},
        {**row, "id": "test.length", "check": "length_means_the_limit", "params": {"reason": "full"}},
    ]
    assert load("madeup", [folder(requirements=rows)]).semantics == Semantics(
        usage_placement=UsagePlacement.LAST_CHUNK,
        usage_unasked=True,
        usage_in_last_chunk=True,
        stop_text=StopText.INCLUDED,
        length_reason="full",
    )


def test_the_same_data_has_the_same_hash_and_other_data_another(folder):
    first, second = load("madeup", [folder()]), load("madeup", [folder()])
    assert first.sha256 == second.sha256
    assert load("madeup", [folder(title="Another")]).sha256 != first.sha256


def test_a_folder_of_the_caller_replaces_a_shipped_provider(tmp_path):
    shutil.copytree(folders()[-1] / "openai", tmp_path / "openai")
    path = tmp_path / "openai/contract.yaml"
    path.write_text(path.read_text("utf-8").replace("title: OpenAI", "title: Replaced"), "utf-8")
    assert load("openai", [Path(tmp_path)]).title == "Replaced"


# Composed schemas: what stands behind allOf, anyOf or oneOf is not lost


def composed(name, *parts, word="allOf", **beside):
    """OPENAPI with one of its schemas written as a composition."""
    schemas = OPENAPI["components"]["schemas"]
    return {**OPENAPI, "components": {"schemas": {**schemas, name: {word: list(parts), **beside}}}}


def halves(name):
    """An object schema as two parts, each with half of its members."""
    whole = OPENAPI["components"]["schemas"][name]
    members = list(whole["properties"].items())
    parts = []
    for half in (members[: len(members) // 2], members[len(members) // 2 :]):
        required = [member for member, _ in half if member in whole["required"]]
        parts.append({"type": "object", "properties": dict(half), "required": required})
    return parts


@pytest.mark.parametrize("name", ["Ask", "Answer"])
@pytest.mark.parametrize("beside", [False, True], ids=["parts only", "a part beside allOf"])
def test_the_parts_of_all_of_give_the_same_rows_as_one_object(folder, name, beside):
    first, second = halves(name)
    openapi = composed(name, first, **second) if beside else composed(name, first, second)
    assert rows(folder, openapi=openapi).keys() == rows(folder).keys()


def test_parts_that_are_referred_to_and_nested_are_merged_too(folder):
    first, second = halves("Ask")
    openapi = composed("Ask", {"$ref": "#/components/schemas/First"}, {"allOf": [second, {"type": "object"}]})
    openapi["components"]["schemas"]["First"] = first
    contract = load("madeup", [folder(openapi=openapi)])
    assert contract.parameters.keys() == OPENAPI["components"]["schemas"]["Ask"]["properties"].keys()
    row = next(row for row in contract.requirements if row.id == "request.mode.enum")
    assert row.source.at == "#/components/schemas/Ask/allOf/1/allOf/0/properties/mode"


def test_the_narrower_of_two_rules_holds_for_a_member_that_two_parts_have(folder):
    ask = OPENAPI["components"]["schemas"]["Ask"]
    openapi = composed("Ask", ask, {"properties": {"heat": {"type": "number", "minimum": 1}}})
    contract = load("madeup", [folder(openapi=openapi)])
    assert contract.limit("heat").low == 1
    assert contract.limit("heat").high_edge is Edge.OPEN
    assert not contract.parameters["heat"].nullable


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ({"properties": {"mode": {"type": "integer"}}}, 'no value is of type "string" and of type "integer"'),
        ({"properties": {"mode": {"enum": ["hot"]}}}, "two enums have no value in common"),
        ({"properties": {"x": {}}, "additionalProperties": False}, "forbids 'heat' of another part"),
        ({"properties": {"x": {}}, "not": {"required": ["y"]}}, "not differs"),
    ],
)
def test_parts_that_cannot_be_merged_are_refused_with_their_place(folder, second, says):
    openapi = composed("Ask", {**OPENAPI["components"]["schemas"]["Ask"], "not": {"required": ["z"]}}, second)
    with pytest.raises(ContractError) as raised:
        load("madeup", [folder(openapi=openapi)])
    assert "#/components/schemas/Ask/allOf: cannot be merged into one object" in str(raised.value)
    assert says in str(raised.value)


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_the_members_of_each_branch_of_a_choice_are_parameters(folder, word):
    ask = OPENAPI["components"]["schemas"]["Ask"]
    other = {**ask, "properties": {**ask["properties"], "prompt": {"type": "array"}, "extra": {"type": "integer"}}}
    contract = load("madeup", [folder(openapi=composed("Ask", ask, other, word=word))])
    assert contract.parameters.keys() == {*ask["properties"], "extra"}
    assert contract.parameters["prompt"].types == {"string", "array"}
    assert contract.parameters["prompt"].required
    assert validity(contract, {"model": "m", "prompt": "p"}) is Validity.VALID
    assert validity(contract, {"model": "m", "prompt": "p", "heat": -1}) is Validity.INVALID
    assert validity(contract, {"model": "m", "prompt": 5}) is Validity.INVALID


def test_a_reply_that_has_one_of_several_shapes_has_a_row_for_its_whole(folder):
    answer = OPENAPI["components"]["schemas"]["Answer"]
    other = {"type": "object", "properties": {"choices": answer["properties"]["choices"], "note": {"type": "string"}}}
    found = rows(folder, openapi=composed("Answer", answer, other, word="oneOf"))
    assert {"response.schema", "response.choices.type", "response.note.type"} <= found.keys()
    assert "response.choices.required" not in found


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object"}, "gives no member of a request"),
        (
            {"oneOf": [{"type": "object", "required": [n], "properties": {n: {}}} for n in ("prompt", "messages")]},
            "branches that each require other members",
        ),
        ({"oneOf": [{"type": "string"}, {"properties": {"prompt": {}}}]}, "some branches are objects"),
        (
            {"type": "object", "properties": {"prompt": {"$ref": "#/components/schemas/Ask"}}},
            "a schema that contains itself",
        ),
    ],
)
def test_a_request_whose_members_cannot_be_known_is_refused(folder, schema, says):
    openapi = {**OPENAPI, "components": {"schemas": {**OPENAPI["components"]["schemas"], "Ask": schema}}}
    with pytest.raises(ContractError, match=says) as raised:
        load("madeup", [folder(openapi=openapi)])
    assert "#/components/schemas/Ask" in str(raised.value)


def test_a_bound_beside_a_union_holds_for_each_of_its_branches(folder):
    ask = OPENAPI["components"]["schemas"]["Ask"]
    heat = {"anyOf": [{"type": "number"}, {"type": "null"}], "maximum": 4}
    openapi = composed("Ask", {**ask, "properties": {**ask["properties"], "heat": heat}})
    assert load("madeup", [folder(openapi=openapi)]).limit("heat").high == 4
