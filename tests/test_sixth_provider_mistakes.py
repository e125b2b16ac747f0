"""Each kind of mistake in a provider's folder is one line that names file, place and remedy, and exit code 2."""

from __future__ import annotations

import pytest

from conformance.cli import _guarded
from tests.test_sixth_provider import files

OPENAPI, CONTRACT = "openapi.yaml", "contract.yaml"
TOTAL = "check: usage_adds_up\n    level: MUST"
USAGE = "{at: '#/components/schemas/Reply/properties/usage', page: 'generate.html:62'}"
LIMIT = "{parameter: temperature, low: 0, high: 1.5, high_edge: open,"
MISTAKES = {
    # the file as a whole
    "no YAML": (OPENAPI, "openapi: 3.1.0", "openapi: [3.1.0", "openapi.yaml: line 2, column"),
    "not an object": (OPENAPI, None, "- openapi\n", "is not an object; expected an OpenAPI document"),
    "empty document": (OPENAPI, None, "", "is not an object"),
    "empty contract": (CONTRACT, None, "", "is not of type 'object'; see "),
    "a contract of a name alone": (
        CONTRACT,
        None,
        "provider: madeup",
        "'title' is a required property; 'revision' is a required property; 'document' is a required property; see ",
    ),
    "a tab": (CONTRACT, "document:\n", "document:\n\tform: x\n", "contract.yaml: line"),
    "not UTF-8": (CONTRACT, None, b"provider: \xff", "is not UTF-8; save it as UTF-8"),
    "a key that stands twice": (
        CONTRACT,
        "title: Made-up",
        "title: Made-up\ntitle: Other",
        "the key 'title' occurs twice",
    ),
    "a key that is a list": (CONTRACT, "title: Made-up", "title: Made-up\n? [a]\n: b", "expected a name"),
    "another folder's name": (CONTRACT, "provider: madeup", "provider: other", "expected the folder's name 'madeup'"),
    # the document
    "no paths": (OPENAPI, "paths:", "x-paths:", "/paths: found none; expected the one operation with a request body"),
    "paths without an operation": (OPENAPI, "    post:", "    x-post:", "/paths: found none"),
    "two operations": (
        OPENAPI,
        "components:\n  s",
        "  /other: {post: {requestBody: {}}}\ncomponents:\n  s",
        "post /other; expected the one operation with a request body; name it as `operation`",
    ),
    "an operation that is not there": (
        CONTRACT,
        "title: Made-up",
        "title: Made-up\noperation: post /v1",
        "found none; expected `operation: post /v1`",
    ),
    "no 200": (OPENAPI, "'200':", "'201':", "responses: has no 200; expected the completion's schema there"),
    "no schema of the request": (
        OPENAPI,
        "content: {application/json: {schema: {$ref: '#/components/schemas/Request'}}}",
        "content: {}",
        "requestBody: has no schema under content/application~1json",
    ),
    "another media type": (
        OPENAPI,
        "application/json: {schema: {$ref: '#/components/schemas/Reply'}}",
        "text/plain: {}",
        "responses/200: has no schema under content/application~1json",
    ),
    "a reference to nothing": (
        OPENAPI,
        "schemas/Reply'",
        "schemas/Replay'",
        "#/components/schemas/Replay: there is no 'Replay' here",
    ),
    "a schema that contains itself": (
        OPENAPI,
        "n: {type: integer, minimum: 1, maximum: 4, default: 1}",
        "n: {$ref: '#/components/schemas/Request'}",
        "#/components/schemas/Request: a schema that contains itself is not supported",
    ),
    "a schema that is none": (
        OPENAPI,
        "model: {type: string}\n        prompt",
        "model: string\n        prompt",
        "a schema is an object, not str",
    ),
    "properties that are a list": (
        OPENAPI,
        "            properties:\n              index",
        "            properties: [index]\n            x:\n              index",
        "is list; expected an object that names members",
    ),
    "a type that there is not": (OPENAPI, "seed: {type: integer", "seed: {type: whole", "is no JSON Schema: 'whole'"),
    "an enum that is no list": (OPENAPI, "enum: [north, south]", "enum: north", "is no JSON Schema: 'north'"),
    # the rows
    "an unknown member": (CONTRACT, "limits:", "limit: []\nlimits:", "'limit' was unexpected"),
    "a row without a level": (
        CONTRACT,
        "    check: usage_adds_up\n    level: MUST\n",
        "    check: usage_adds_up\n",
        "/requirements/1: 'level' is a required property",
    ),
    "a level that there is not": (
        CONTRACT,
        TOTAL,
        TOTAL.lower(),
        "/requirements/1/level: 'must' is not one of ['MUST', 'SHOULD', 'MAY']",
    ),
    "a check that there is not": (
        CONTRACT,
        "check: usage_adds_up",
        "check: usage_adds_upp",
        "/requirements/1/check: there is no check 'usage_adds_upp'; did you mean usage_adds_up?",
    ),
    "an id twice": (
        CONTRACT,
        "- id: usage.total",
        "- id: usage.last-chunk",
        "/requirements/1/id: 'usage.last-chunk' occurs twice",
    ),
    "an id without an area": (
        CONTRACT,
        "- id: usage.total",
        "- id: total",
        "/requirements/1/id: 'total' does not match",
    ),
    "habit as a duty": (
        CONTRACT,
        TOTAL + "\n    layer: contract",
        TOTAL + "\n    layer: ecosystem",
        "/requirements/1/level: 'MUST' is not one of ['SHOULD', 'MAY']",
    ),
    "a promise without a source": (
        CONTRACT,
        f"    source: {USAGE}\n",
        "",
        "/requirements/0: 'source' is a required property",
    ),
    "a source that leads nowhere": (
        CONTRACT,
        USAGE,
        USAGE.replace("usage", "use"),
        "Reply/properties/use does not exist in openapi.yaml: there is no 'use' here",
    ),
    "a date that is none": (CONTRACT, "revision: '2026-11-20'", "revision: today", "/revision: 'today' does not match"),
    # the bounds
    "a limit on what there is not": (
        CONTRACT,
        "parameter: temperature",
        "parameter: temprature",
        "/limits/0/parameter: 'temprature' is no parameter of openapi.yaml; expected one of model, prompt",
    ),
    "a limit without a bound": (CONTRACT, LIMIT, "{parameter: temperature, high_edge: open,", "/limits/0: "),
    "a bound that is a word": (CONTRACT, "high: 1.5", "high: lots", "/limits/0/high: 'lots' is not of type 'number'"),
    "bounds the wrong way round": (
        CONTRACT,
        "low: 0, high: 1.5",
        "low: 2, high: 1.5",
        "/limits/0: low is 2 and high 1.5; expected low to be below high",
    ),
    "an edge with a slip": (
        CONTRACT,
        "high_edge: open",
        "high_edge: opened",
        "/limits/0/high_edge: 'opened' is not one of ['open', 'closed', 'unspecified']",
    ),
    "an edge without its bound": (
        CONTRACT,
        "high: 1.5, high_edge: open",
        "high: 1.5, low_edge: open, hihg_edge: open",
        "'hihg_edge' was unexpected",
    ),
    # what refers to other rows
    "a change of nothing": (
        CONTRACT,
        "without:",
        "derived:\n  - {id: request.nn.*, level: MAY, reason: so}\nwithout:",
        "/derived/0/id: 'request.nn.*' matches no derived or common row",
    ),
    "a row taken away that there is not": (
        CONTRACT,
        "  errors.envelope:",
        "  errors.envelop:",
        "/without/errors.envelop: matches no common row",
    ),
    "an example of what there is not": (
        CONTRACT,
        "without:",
        "examples: {suffix: [end]}\nwithout:",
        "/examples/suffix: 'suffix' is no parameter of openapi.yaml",
    ),
    "an overlay without a reason": (
        CONTRACT,
        "without:",
        "request: {patch: {}}\nwithout:",
        "/request: 'reason' is a required property",
    ),
}


@pytest.fixture
def planted(tmp_path):
    """Write the walk-through's folder with one thing changed."""

    def write(name, before, after):
        folder = tmp_path / "specs" / "madeup"
        folder.mkdir(parents=True)
        for each, text in files().items():
            if each == name and before is not None:
                assert text.count(before) == 1, f"{before!r} stands {text.count(before)} times"
                text = text.replace(before, after)
            elif each == name:
                text = after
            (folder / each).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder.parent

    return write


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("command", [["list"], ["run"]], ids=" ".join)
def test_a_mistake_is_one_line_with_its_place(planted, capsys, monkeypatch, tmp_path, command, mistake):
    monkeypatch.chdir(tmp_path)
    name, before, after, says = MISTAKES[mistake]
    specs = planted(name, before, after)
    code = _guarded([*command, "madeup", "--specs", str(specs)], debug=False)
    told = capsys.readouterr()
    assert code == 2, told.err
    assert says in told.err
    assert told.err.startswith(f"conformance: {specs}/madeup/")
    assert told.err.count("\n") == 1
    assert len(told.err) < 700
    assert told.out == ""
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("missing", [OPENAPI, CONTRACT])
def test_a_file_that_is_missing_is_told(planted, capsys, missing):
    specs = planted(None, None, None)
    (specs / "madeup" / missing).unlink()
    assert _guarded(["list", "madeup", "--specs", str(specs)], debug=False) == 2
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize("there", ["nowhere", "file"])
def test_a_specs_folder_that_is_none_is_told(tmp_path, capsys, there):
    (tmp_path / "file").write_text("", "utf-8")
    assert _guarded(["list", "openai", "--specs", str(tmp_path / there)], debug=False) == 2
    assert "is no folder" in capsys.readouterr().err
