"""results.json: its schema, its one-line rows, and how a file that is none is refused."""

import copy
import json
from dataclasses import replace

import fake_runs
import jsonschema
import pytest

from conformance.judge import fixtures as ex
from conformance.model import Evidence
from conformance.report import page, results, terminal
from conformance.run.reproducer import smallest_in_evidence


def valid(document):
    schema = results.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)


@pytest.mark.parametrize("name", ["failing", "hostile"])
def test_a_run_becomes_a_document_that_its_schema_allows(name):
    document = results.document(getattr(fake_runs, name)())
    valid(document)
    valid(json.loads(results.dumps(document)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("index"), "index"),
        (lambda d: d.update(schema="conformance-results/2"), "conformance-results/1"),
        (lambda d: d["requirements"][0].update(outcome="FAIL"), "FAIL"),
        (lambda d: d["requirements"][0].update(violations=0), "0"),
        (lambda d: d["requirements"][6].update(examined=0), "0"),
        (lambda d: d["requirements"][0].pop("reason"), "reason"),
    ],
    ids=["index", "schema", "outcome", "violations", "green by absence", "reason"],
)
def test_the_schema_refuses_what_is_wrong(change, said):
    document = copy.deepcopy(results.document(fake_runs.failing()))
    change(document)
    with pytest.raises(jsonschema.ValidationError, match=said):
        valid(document)


def test_the_document_is_ascii_with_one_requirement_a_line():
    document = results.document(fake_runs.hostile())
    text = results.dumps(document)
    assert text.isascii()
    assert json.loads(text) == document
    lines = [line for line in text.splitlines() if '"promise": ' in line]
    assert len(lines) == len(document["requirements"])


def test_a_row_tells_what_its_check_knows_and_how_to_ask_again():
    row = results.document(fake_runs.failing())["requirements"][0]
    assert row["id"] == "usage.chunk.empty-choices"
    assert row["outcome"] == "fail"
    assert row["why"].startswith("Clients recognise")
    assert row["fix"].startswith("send usage in a chunk of its own")
    assert row["evidence"][0]["curl"].startswith("curl -sSNi http://127.0.0.1:8080/v1/completions")


def test_evidence_of_an_exchange_that_is_not_there_has_no_curl():
    run = fake_runs.run(fake_runs.broken())
    assert results.document(run)["requirements"][0]["evidence"][0]["curl"] == ""


def test_strict_is_written_down_with_the_code_it_led_to():
    warned = fake_runs.failing().verdicts[1]
    assert results.document(fake_runs.run(warned))["exit_code"] == 0
    strict = results.document(fake_runs.run(warned), strict=True)
    assert (strict["strict"], strict["exit_code"], strict["verdict"]) == (True, 1, "broken")


def test_a_document_is_read_back_as_it_was_written(tmp_path):
    document = results.document(fake_runs.failing())
    path = tmp_path / "results.json"
    path.write_text(results.dumps(document), "utf-8")
    assert results.read(path) == document


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "other/1"}', "\x00"])
def test_a_file_that_is_no_result_is_refused_by_name(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"results\.json"):
        results.read(path)


def test_evidence_begins_with_the_smallest_request():
    wide = ex.plain(ex.completion(ex.choice()), {"n": 2, "echo": True}, id="wide")
    narrow = ex.plain(ex.completion(ex.choice()), {"n": 2}, id="narrow")
    found = tuple(Evidence(name, "", f"message of {name}") for name in ("absent", "wide", "narrow"))
    run = fake_runs.run(fake_runs.broken(evidence=found, violations=3), exchanges=[wide, narrow])
    row = results.document(run)["requirements"][0]
    assert [one["case"] for one in row["evidence"]] == ["narrow", "wide", "absent"]


def test_evidence_that_is_no_json_comes_after_what_is():
    nan = ex.error(status=500, request=b'{"temperature":NaN}', id="nan")
    wide = ex.error(status=500, request={"temperature": 10.0**300, "n": 2}, id="wide")
    found = tuple(Evidence(name, "", f"message of {name}") for name in ("nan", "wide"))
    verdict = fake_runs.broken(evidence=found, violations=2)
    row = results.document(fake_runs.run(verdict, exchanges=[nan, wide]))["requirements"][0]
    assert [one["case"] for one in row["evidence"]] == ["wide", "nan"]
    hostile = replace(wide, case=replace(wide.case, hostile=True))
    assert smallest_in_evidence(verdict, {"nan": nan, "wide": hostile}) is hostile


def test_what_is_observed_is_what_the_smallest_request_shows():
    wide, least = (
        ex.plain(ex.completion(ex.choice(), usage=ex.usage(4, 4, total)), {"n": total}, id=f"x/{total}", origin=origin)
        for total, origin in ((11, "grid"), (9, "shrink"))
    )
    evidence = (Evidence("x/11", "body /usage", "total_tokens is 11; expected 4 + 4"),)
    verdict = fake_runs.broken(evidence=evidence, violations=1)
    verdict = replace(verdict, requirement=fake_runs.requirement("usage.total.adds-up", check="usage_adds_up"))
    made = fake_runs.run(verdict, exchanges=[wide, least], smallest={"usage.total.adds-up": "x/9"})
    document = results.document(made)
    valid(document)
    told = document["requirements"][0]["smallest"]
    assert (told["at"], told["message"]) == ("body /usage", "total_tokens is 9; expected 4 + 4")
    lines = next(terminal.blocks(document)).splitlines()
    assert any(line.startswith("  observed  x/9, body /usage: total_tokens is 9;") for line in lines)
    assert any(line.startswith("  curl") and '"n":9' in line for line in lines)
    assert "total_tokens is 9" in page.render(document)
    assert "total_tokens is 11" in page.render(document)


def test_the_smallest_request_of_a_failure_is_ready_to_be_pasted():
    rows = {row["id"]: row["smallest"] for row in results.document(fake_runs.failing())["requirements"]}
    least = rows["usage.chunk.empty-choices"]
    assert least["case"] == "shrink/5ma11e57"
    assert least["curl"].startswith("curl -sSNi http://127.0.0.1:8080/v1/completions")
    assert 'OpenAI(base_url="http://127.0.0.1:8080/v1"' in least["python"]
    assert rows["usage.total.adds-up"] is None
