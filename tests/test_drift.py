"""Drift: what a newer document of the same provider changes, and which requirements that touches."""

import copy
import json
import os
from pathlib import Path

import pytest

from conformance.contract import ContractError, load
from conformance.contract.drift import drift, read_document

SEEDS = os.environ.get("CONFORMANCE_SEEDS")


@pytest.fixture
def newer():
    """A copy of the vendored document, to be edited."""
    return copy.deepcopy(dict(load("openai").openapi))


def told(newer):
    return [str(change) for change in drift(load("openai"), newer, Path("newer.yaml"))]


def properties(document, name="CreateCompletionRequest"):
    return document["components"]["schemas"][name]["properties"]


def test_the_vendored_document_has_not_drifted_from_itself(newer):
    assert told(newer) == []


def test_a_lower_maximum_is_tightened_and_names_its_requirement(newer):
    properties(newer)["temperature"]["maximum"] = 1
    assert told(newer) == [
        (
            "tightened: request temperature, maximum: 2 before, 1 now"
            " (affects request.temperature.accepts, request.temperature.maximum)"
        )
    ]


def test_a_lower_minimum_is_loosened(newer):
    properties(newer)["n"]["minimum"] = 0
    assert told(newer)[0].startswith("loosened: request n, minimum: 1 before, 0 now")


def test_a_new_parameter_is_added_and_a_lost_one_removed(newer):
    properties(newer)["top_k"] = {"type": "integer"}
    del properties(newer)["suffix"]
    found = told(newer)
    assert "added: request top_k" in found
    assert any(one.startswith("removed: request suffix (affects request.suffix.accepts") for one in found)


def test_a_finish_reason_more_is_loosened(newer):
    choice = properties(newer, "CreateCompletionResponse")["choices"]["items"]["properties"]
    choice["finish_reason"]["enum"].append("tool")
    assert told(newer)[0].startswith("loosened: response choices[].finish_reason, enum")


def test_a_default_is_changed(newer):
    properties(newer)["max_tokens"]["default"] = 64
    assert told(newer)[0].startswith("changed: request max_tokens, default: 16 before, 64 now")


def test_a_status_more_and_another_server_are_told(newer):
    newer["servers"][0]["url"] = "https://elsewhere.example/v2"
    newer["paths"]["/completions"]["post"]["responses"]["429"] = {"description": ""}
    assert "added: status 429" in told(newer)
    assert any("elsewhere.example" in one for one in told(newer))


def test_a_page_with_a_fenced_block_is_read(tmp_path, newer):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nWords on openapi.\n\n````json\n{json.dumps(newer)}\n````\nMore words.\n", "utf-8")
    assert read_document(page) == newer


@pytest.mark.parametrize("text", ["", "only words", "```yaml\nopenapi: [\n```", "swagger: '2.0'"])
def test_a_file_without_a_document_says_what_was_expected(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    with pytest.raises(ContractError, match=r"holds no OpenAPI document; expected YAML, JSON, or a page"):
        read_document(page)


def test_a_document_of_another_operation_is_told(newer):
    newer["paths"] = {"/chat/completions": newer["paths"]["/completions"]}
    with pytest.raises(ContractError, match=r"has /chat/completions; expected POST /completions"):
        drift(load("openai"), newer, Path("newer.yaml"))


@pytest.mark.skipif(not SEEDS, reason="CONFORMANCE_SEEDS names no folder with the source documents")
@pytest.mark.parametrize("provider", ["openai", "nebius", "interactive"])
def test_the_vendored_document_says_what_its_source_says(provider):
    contract = load(provider)
    (page,) = Path(SEEDS).glob(contract.document.file)
    assert [str(change) for change in drift(contract, read_document(page), page)] == []
