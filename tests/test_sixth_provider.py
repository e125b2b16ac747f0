"""A provider is a folder: one made of the walk-through's own example is served, judged, and found whole."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from conformance import plan as planning
from conformance.cli import _guarded
from conformance.contract import load
from conformance.judge.catalogue import load as checks
from conformance.model import BROKEN, Ending, Level, Outcome
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS
from conformance.selftest.in_process_run import run_in_process

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-provider.md"
KEY = "sk-reference"


@cache
def files() -> dict[str, str]:
    """The files that the walk-through prints, by name."""
    found = re.findall(
        r"^`madeup/([a-z.]+)`:\n\n```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return dict(found)


def written(folder: Path) -> Path:
    """The walk-through's folder, below another."""
    (folder / "madeup").mkdir()
    for name, text in files().items():
        (folder / "madeup" / name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def specs(tmp_path_factory):
    return written(tmp_path_factory.mktemp("specs"))


@pytest.fixture(scope="module")
def contract(specs):
    return load("madeup", [specs])


def rehearsed(contract, *faults, profile="gate"):
    reference = altered_reference(contract, key=KEY, faults=tuple(FAULTS[name] for name in faults))
    options = planning.PlanOptions(model="reference", profile=profile, has_key=True)
    return run_in_process(reference, planning.phases(contract, checks(), options))


@pytest.fixture(scope="module")
def run(contract):
    return rehearsed(contract, profile="full")


def test_the_page_prints_both_files():
    assert files().keys() == {"openapi.yaml", "contract.yaml"}


def test_a_provider_that_keeps_its_contract_breaks_nothing(run):
    broken = [(one.requirement.id, one.reason) for one in run.verdicts if one.outcome in BROKEN]
    assert broken == []


def test_nothing_that_is_due_is_left_unseen(run):
    open_ = [(one.requirement.id, one.outcome, one.reason) for one in run.verdicts if one.incomplete]
    assert open_ == []
    assert [one.reason for one in run.verdicts if one.outcome is Outcome.ERROR] == []


def test_the_report_is_about_this_provider_and_not_about_nothing(run, contract):
    musts = [one for one in run.verdicts if one.requirement.level is Level.MUST]
    passed = {one.requirement.id for one in run.verdicts if one.outcome is Outcome.PASS}
    assert sum(one.outcome is Outcome.PASS for one in musts) >= 0.9 * len(musts) >= 60
    assert {one.area for one in contract.requirements} >= {"framing", "usage", "finish", "error", "request", "stop"}
    assert passed >= {
        "finish.enum",
        "finish.length",
        "stop.finish",
        "stop.text",
        "usage.last-chunk",
        "request.max_tokens.maximum",
        "request.temperature.maximum",
        "request.stop.max-items",
        "error.4XX.fault.field.type",
        "response.object.const",
        "chunk.choices[].finish_reason.enum",
        "errors.names-field",
        "errors.names-sent",
        "error.4XX.fault.reason.required",
    }


def test_the_reference_speaks_the_words_of_the_folder(run):
    plain = next(x for x in run.exchanges if x.successful and not x.streamed)
    refusal = next(x for x in run.exchanges if x.status == 400)
    assert {x.case.path or "/v9/generate/text" for x in run.exchanges} == {"/v9/generate/text"}
    assert plain.json["object"] == "generated_text"
    assert plain.json["region"] == "north"
    whole = [x for x in run.exchanges if x.successful and x.ending is Ending.COMPLETE]
    reasons = {one.finish_reason for x in whole for one in x.choices.values()}
    assert reasons == {"end", "limit"}
    assert all(x.usage and not x.done for x in whole if x.streamed)
    assert refusal.json.keys() == {"fault"}
    assert refusal.json["fault"].keys() == {"reason", "field"}
    assert len(refusal.json["fault"]["reason"].split()) > 2, "a reason is a sentence"


BROKEN_BY = (
    "usage_leaves_the_last_chunk",
    "total_is_one_too_many_when_streamed",
    "limit_is_called_stop_when_plain",
    "stop_is_called_length_when_plain",
    "finish_reason_is_the_engines_own_when_plain",
    "stops_are_ignored_when_plain",
    "errors_are_plain_text",
    "errors_name_nothing",
    "errors_come_with_200",
    "too_high_is_accepted_n",
    "object_is_that_of_chat",
    "last_chunk_is_not_closed",
)


@pytest.mark.parametrize("name", BROKEN_BY)
def test_the_primary_check_of_each_fault_fails(contract, name):
    assert FAULTS[name].applies(contract)
    assert FAULTS[name].check in rehearsed(contract, name).checks


def test_a_document_may_say_it_in_other_words(tmp_path):
    """Errors under `default`, and a request body and responses that stand in components."""
    folder = written(tmp_path)
    file = folder / "madeup" / "openapi.yaml"
    text = file.read_text("utf-8")
    schema = "{schema: {$ref: '#/components/schemas/Request'}}"
    body = f"        required: true\n        content: {{application/json: {schema}}}\n"
    refusal = text[text.index("        4XX:\n") : text.index("components:\n")]
    words = "".join(line[8:] + "\n" for line in refusal.splitlines()[1:])
    text = text.replace(body, "        $ref: '#/components/requestBodies/Generate'\n")
    text = text.replace(refusal, "        default: {$ref: '#/components/responses/Wrong'}\n")
    text = text.replace(
        "components:\n", f"components:\n  requestBodies:\n    Generate:\n{body}  responses:\n    Wrong:\n@\n"
    )
    file.write_text(text.replace("@\n", "".join(f"    {line}\n" for line in words.splitlines())), "utf-8")
    contract = load("madeup", [folder])
    run = rehearsed(contract)
    assert run.broken == frozenset()
    passed = {one.requirement.id for one in run.verdicts if one.outcome is Outcome.PASS}
    assert {"error.default.fault.reason.required", "request.n.maximum"} <= passed
    assert contract.parameters["n"].source.at == "#/components/schemas/Request/properties/n"


def test_the_command_line_judges_it_on_a_socket(specs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = _guarded(["run", "madeup", "--specs", str(specs)], debug=False)
    told = capsys.readouterr()
    assert code == 0, told.out + told.err
    results = json.loads((tmp_path / "reports" / "madeup" / "results.json").read_text("utf-8"))
    assert results["verdict"] == "conformant"
    assert results["incomplete"] == []
    assert results["target"]["path"] == "/v9/generate/text"
    assert results["index"]["verified"] == results["index"]["of"] >= 60
    assert results["score"]["passed"] == results["score"]["of"]
    assert {row["outcome"] for row in results["requirements"]} <= {"pass", "not_applicable"}
    assert (tmp_path / "reports" / "madeup" / "report.html").stat().st_size > 10_000
