"""`conformance drift`: what a newer document changes, in words or JSON, and an exit code that a nightly job can use."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
import yaml

from conformance.cli import _guarded
from conformance.contract import load

POSTING = (
    "openapi: 3.0.0\n"
    "paths: {/completions: {post: {requestBody: {content: {application/json: {schema: {%s}}}}}}}"
)  # fmt: skip


@pytest.fixture
def drift(capsys):
    def call(provider, file, *more):
        code = _guarded(["drift", provider, "--against", str(file), *more], debug=False)
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out, told.err

    return call


@pytest.fixture
def newer(tmp_path):
    """Write a copy of a provider's document, edited, and say where it is."""

    def write(provider, edit=None, name="newer.yaml"):
        document = copy.deepcopy(dict(load(provider).openapi))
        if edit is not None:
            edit(document)
        file = tmp_path / name
        text = json.dumps(document) if name.endswith(".json") else yaml.safe_dump(document, sort_keys=False)
        file.write_text(text, "utf-8")
        return file

    return write


def request_of(document, name="CreateCompletionRequest"):
    return document["components"]["schemas"][name]["properties"]


@pytest.mark.parametrize("name", ["same.yaml", "same.json"])
def test_the_same_document_is_no_drift(drift, newer, name):
    code, out, err = drift("openai", newer("openai", name=name))
    assert (code, out) == (0, "")
    assert err.startswith("no change between OpenAI (")


def test_each_change_is_a_line_and_the_exit_code_is_1(drift, newer):
    def edit(document):
        request_of(document)["temperature"]["maximum"] = 1
        del request_of(document)["suffix"]

    code, out, err = drift("openai", newer("openai", edit))
    assert code == 1
    assert out.splitlines()[0].startswith("removed: request suffix (affects request.suffix.accepts")
    assert "tightened: request temperature, maximum: 2 before, 1 now (affects " in out
    assert len(out.splitlines()) == 2
    assert err.startswith("2 changes between")


def test_a_bound_that_is_new_had_nothing_before(drift, newer):
    file = newer("openai", lambda document: request_of(document)["seed"].update(multipleOf=2, pattern="x"))
    assert "tightened: request seed, pattern: nothing before, 'x' now" in drift("openai", file)[1]


def test_changes_are_read_by_machines(drift, newer):
    file = newer("openai", lambda document: request_of(document)["n"].update(maximum=8))
    code, out, _ = drift("openai", file, "--json")
    assert code == 1
    told = json.loads(out)
    assert (told["provider"], told["against"]) == ("openai", str(file))
    (change,) = told["changes"]
    requirements = change.pop("requirements")
    assert "request.n.maximum" in requirements
    assert change == {
        "kind": "tightened", "part": "request", "path": "n", "keyword": "maximum", "before": 128, "after": 8
    }  # fmt: skip
    assert json.loads(drift("openai", newer("openai"), "--json")[1])["changes"] == []


def test_a_value_that_is_gone_is_left_out_of_the_json(drift, newer):
    file = newer("openai", lambda document: request_of(document)["n"].pop("maximum"))
    (change,) = json.loads(drift("openai", file, "--json")[1])["changes"]
    assert change["before"] == 128
    assert "after" not in change


def test_a_document_that_mended_its_fault_needs_no_repair(drift, newer):
    """Our copy of the document is the mended one, so drift says that the repair has nothing to do in it."""
    code, out, _ = drift("interactive", newer("interactive"))
    assert code == 1
    (line,) = out.splitlines()
    assert line.startswith("changed: repair no longer needed #/paths/~1completions/post/tags, printed value: [[")


def test_a_document_that_still_has_its_fault_is_no_drift(drift, newer):
    def edit(document):
        post = document["paths"]["/completions"]["post"]
        post["tags"] = [post["tags"]]

    assert drift("interactive", newer("interactive", edit))[:2] == (0, "")


def test_a_document_that_says_what_an_overlay_added_needs_no_overlay(drift, newer):
    def edit(document):
        choice = document["components"]["schemas"]["CreateCompletionResponse"]["properties"]["choices"]["items"]
        logprobs = choice["properties"]["logprobs"]["properties"]
        logprobs["token_logprobs"]["items"]["nullable"] = True
        logprobs["top_logprobs"]["items"]["nullable"] = True

    assert "changed: response overlay no longer needed" in drift("openai", newer("openai", edit))[1]
    assert "overlay" not in drift("openai", newer("openai"))[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no OpenAPI document; expected YAML, JSON, or a page"),
        ("openapi: [", "holds no OpenAPI document"),
        ("openapi: 3.0.0", "has none; expected POST /completions"),
        ("openapi: 3.0.0\npaths: 7", "has none; expected POST /completions"),
        ("openapi: 3.0.0\npaths: {/completions: {post: }}", "has /completions; expected POST /completions"),
        (POSTING % "$ref: '#/nowhere'", "#/nowhere: there is no 'nowhere' here"),
        (POSTING % "properties: [a]", "expected an object that names members"),
    ],
)
def test_a_file_without_the_operation_is_one_line_and_exit_code_2(drift, tmp_path, text, says):
    file = tmp_path / "bad.yaml"
    file.write_text(text, "utf-8")
    code, out, err = drift("openai", file)
    assert code == 2, err
    assert says in err
    assert out == ""
    assert err.count("\n") == 1


@pytest.mark.parametrize("more", ["servers: []", "servers: [{}]", "servers: x", "components: 3"])
def test_a_document_with_odd_parts_is_compared_all_the_same(drift, tmp_path, more):
    file = tmp_path / "odd.yaml"
    file.write_text(f"openapi: 3.0.0\n{more}\npaths: {{/completions: {{post: {{responses: 4}}}}}}", "utf-8")
    code, out, err = drift("openai", file)
    assert code == 1, err
    assert re.search(r"^removed: request model", out, re.MULTILINE)


def test_a_file_that_is_not_there_is_told(drift):
    code, _, err = drift("openai", Path("none.yaml"))
    assert code == 2
    assert "none.yaml" in err
