"""What a terminal and a CI system show."""

import xml.etree.ElementTree as ElementTree

import fake_runs
import pytest

from conformance.model import Level, Outcome
from conformance.report import junit, results, terminal


def document(name="failing", **more):
    return results.document(getattr(fake_runs, name)(), **more)


def test_a_failure_is_told_in_few_lines_below_its_cause():
    lines = next(terminal.blocks(document())).splitlines()
    assert lines[:3] == [
        "CAUSE 1 of 2 example (MUST): streams do not report usage as promised",
        "  means     A client misses the token counts, counts twice, or takes them for text.",
        "  also      1 requirement broken with it: stream.id.one",
    ]
    assert lines[3:] == [
        "FAIL example usage.chunk.empty-choices (MUST)",
        "  promised  The chunk that reports usage has an empty choices list.",
        "            [specs/example/openapi.yaml#/components/schemas/StreamOptions/properties/include_usage]",
        "  observed  scenario/3f9a1c, event 6 /choices: choices is [{'index': 0}] beside usage; expected []",
        "  examined  2 of 6 occurrences in 6 exchanges broke the promise",
        (
            "  matters   Clients recognise this chunk by its empty choices;"
            " a choice beside usage is counted or shown twice."
        ),
        "  repeat    conformance send example shrink/5ma11e57 --base-url http://127.0.0.1:8080/v1 --model m",
        "  note      not by this request alone: its reply is judged beside other replies",
        (
            "  curl      curl -sSNi http://127.0.0.1:8080/v1/completions"
            " -H \"Authorization: Bearer $CONFORMANCE_API_KEY\" -H 'content-type: application/json'"
            """ --data-raw '{"model":"m","prompt":"1, 2, 3,","stream":true}'"""
        ),
        (
            '  python    import os; from openai import OpenAI; client = OpenAI(base_url="http://127.0.0.1:8080/v1",'
            ' api_key=os.environ.get("CONFORMANCE_API_KEY", "none"), max_retries=0);'
            ' print(*client.completions.create(model="m", prompt="1, 2, 3,", stream=True), sep="\\n")'
        ),
    ]


def test_results_that_know_no_smallest_request_are_told_by_their_evidence():
    found = document()
    row = next(one for one in found["requirements"] if one["smallest"])
    del row["smallest"]
    lines = terminal.block(row, found).splitlines()
    assert lines[6].startswith("  repeat    conformance send example scenario/3f9a1c --base-url ")


def test_a_target_with_a_name_of_its_own_is_told_by_it_and_asked_again_where_it_is():
    found = document()
    found["target"] = {**found["target"], "name": "gateway", "model": "org/a b"}
    lines = next(terminal.blocks(found)).splitlines()
    assert "FAIL gateway usage.chunk.empty-choices (MUST)" in lines
    (repeat,) = (line for line in lines if line.startswith("  repeat"))
    assert repeat.endswith("--base-url http://127.0.0.1:8080/v1 --model 'org/a b' --name gateway")
    found["target"]["base_url"] = "recorded"
    assert "--base-url" not in next(terminal.blocks(found))


def test_blocks_begin_with_the_most_urgent_and_leave_out_what_is_well():
    heads = [block.splitlines()[0] for block in terminal.blocks(document())]
    assert [head.split()[0] for head in heads] == ["CAUSE", "CAUSE", "ERROR", "INCONCLUSIVE", "NOT"]
    assert not any("usage.total" in head or "echo.prefix" in head for head in heads)


def test_the_summary_keeps_index_and_score_apart():
    lines = terminal.summary(document()).splitlines()
    assert lines[0].startswith("example: Does not conform. 2 MUSTs are broken.")
    assert lines[1] == "  3 of 6 MUSTs verified, 1 of these passed"
    assert lines[-1] == "  incomplete: the budget ended before 4 planned requests"


def test_target_text_cannot_move_the_cursor():
    told = terminal.summary(document("hostile")) + "\n".join(terminal.blocks(document("hostile")))
    assert all(char.isprintable() or char == "\n" for char in told)


def test_a_quiet_run_has_no_blocks():
    assert list(terminal.blocks(results.document(fake_runs.run(fake_runs.verdict())))) == []


def cases_of(name="failing", **more):
    root = ElementTree.fromstring(junit.render(document(name, **more)))
    return root, {case.get("name"): case for case in root.iter("testcase")}


def test_junit_has_one_testcase_for_each_requirement():
    root, cases = cases_of()
    assert set(cases) == {row["id"] for row in document()["requirements"]}
    suite = root.find("testsuite")
    assert suite.get("tests") == "8"
    assert suite.get("failures") == "2"  # fail and flaky, as many as MUSTs are broken
    assert suite.get("errors") == "2"  # the fault of the suite, and the MUST that the run owes
    assert suite.get("skipped") == "3"


@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("usage.chunk.empty-choices", "failure"),
        ("stream.id.one", "failure"),
        ("stop.text", "error"),
        ("framing.utf8", "error"),
        ("logprobs.parallel", "skipped"),
        ("echo.prefix", "skipped"),
        ("errors.envelope.members", "skipped system-out"),
    ],
)
def test_junit_shows_each_outcome_in_its_own_way(name, tags):
    _, cases = cases_of()
    assert [child.tag for child in cases[name]] == ["properties", *tags.split()]


def test_a_warning_is_a_failure_for_the_strict():
    _, cases = cases_of(strict=True)
    assert cases["errors.envelope.members"].find("failure") is not None


def test_a_skip_says_why():
    _, cases = cases_of()
    assert cases["echo.prefix"].find("skipped").get("message") == "not applicable: no request that was sent asks for it"


def test_junit_is_well_formed_whatever_a_target_says():
    root, _ = cases_of("hostile")
    assert root.find("testsuite/properties/property[@name='verdict']").get("value") == "broken"


def test_a_flaky_should_does_not_gate():
    flaky = fake_runs.verdict(
        Outcome.FLAKY, fake_runs.requirement(level=Level.SHOULD), violations=1, reason="not each time"
    )
    root = ElementTree.fromstring(junit.render(results.document(fake_runs.run(flaky))))
    assert root.find("testsuite").get("failures") == "0"


def test_junit_says_in_the_message_of_a_failure_what_its_text_says():
    found = document()
    for case in ElementTree.fromstring(junit.render(found)).iter("testcase"):
        failure = case.find("failure")
        row = next(row for row in found["requirements"] if row["id"] == case.get("name"))
        if failure is not None and row["evidence"]:
            assert failure.get("message") in " ".join(failure.text.split())
