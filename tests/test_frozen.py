"""Sets of requirements: what was in force on a date counts, what came later is exercised and never gates."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from conformance.contract import ContractError, load, providers
from conformance.contract import requirement_sets as frozen
from conformance.model import Evidence, Level, Outcome, Verdict
from conformance.report import ctrf, junit, markdown, page, results, terminal
from conformance.report.tally import gates, shown_as
from conformance.run import Endpoint, Run
from tests.test_sixth_provider import written

DAY = "2026-11-20"


@pytest.fixture
def specs(tmp_path):
    """A provider of one's own, with a set of its own."""
    folder = written(tmp_path)
    frozen.write(frozen.freeze(load("madeup", [folder]), DAY), [folder])
    return folder


def edited(specs: Path, before: str, after: str) -> None:
    file = specs / "madeup" / "contract.yaml"
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after), "utf-8")


def without(found, name):
    return {one: level for one, level in found.levels.items() if one != name}


# The sets that are shipped


@pytest.mark.parametrize("provider", providers())
def test_a_contract_has_a_set_of_its_revision(provider):
    contract = load(provider)
    then = frozen.in_force(provider, contract.revision)
    assert then.date == contract.revision, "give the contract its set: conformance freeze"
    changed = list(frozen.differences(then, frozen.freeze(contract, contract.revision)))
    assert changed == [], "rows have changed: raise `revision` in contract.yaml, and freeze that date"


@pytest.mark.parametrize("provider", providers())
def test_a_set_of_today_leaves_the_contract_as_it_is(provider):
    contract = load(provider)
    found = frozen.pinned(contract, frozen.in_force(provider, contract.revision))
    assert found.requirements == contract.requirements
    assert found.frozen == {"date": contract.revision, "gone": []}


# Judging by a set


def test_a_set_is_written_and_read_again(specs):
    contract = load("madeup", [specs])
    assert frozen.in_force("madeup", DAY, [specs]) == frozen.freeze(contract, DAY)


def test_the_set_in_force_is_the_newest_that_is_not_younger(specs):
    contract = load("madeup", [specs])
    frozen.write(frozen.freeze(contract, "2027-02-01"), [specs])
    days = {
        day: frozen.in_force("madeup", day, [specs]).date for day in (DAY, "2027-01-31", "2027-02-01", "2030-01-01")
    }
    assert days == {DAY: DAY, "2027-01-31": DAY, "2027-02-01": "2027-02-01", "2030-01-01": "2027-02-01"}


def test_levels_are_those_of_then_and_what_is_newer_is_not_scored(specs):
    contract = load("madeup", [specs])
    now = frozen.freeze(contract, DAY)
    levels = {**now.levels, "usage.total": Level.MAY, "usage.old": Level.MUST}
    del levels["finish.enum"]
    found = frozen.pinned(contract, replace(now, levels=levels))
    rows = {row.id: row for row in found.requirements}
    assert rows["usage.total"].level is Level.MAY
    assert [row.id for row in found.requirements if not row.scored] == ["finish.enum"]
    assert found.frozen["gone"] == ["usage.old"]
    assert found.sha256 == contract.sha256


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.FLAKY, Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.NOT_RUN])
def test_what_is_newer_never_gates_and_is_not_counted(specs, outcome):
    contract = load("madeup", [specs])
    then = frozen.freeze(contract, DAY)
    then = replace(then, levels=without(then, "finish.enum"))
    document = results.document(run_of(frozen.pinned(contract, then), outcome))
    row = next(row for row in document["requirements"] if row["id"] == "finish.enum")
    assert (row["not_scored"], row["incomplete"]) == ("added later", False)
    assert not gates(row, strict=True)
    assert shown_as(row, strict=True) in {"expected", "skipped"}
    assert (document["verdict"], document["exit_code"]) == ("conformant", 0)
    assert document["index"] == {"verified": 1, "of": 1}
    assert document["score"] == {"passed": 1, "of": 1}
    unpinned = results.document(run_of(contract, outcome))
    assert unpinned["exit_code"] != 0, "the same outcomes are not conformant where all counts"


def test_what_is_newer_says_so_wherever_it_is_shown(specs):
    contract = load("madeup", [specs])
    then = frozen.freeze(contract, DAY)
    levels = without(then, "finish.enum") | {"usage.old": Level.MUST}
    document = results.document(run_of(frozen.pinned(contract, replace(then, levels=levels)), Outcome.FAIL))
    (block,) = terminal.blocks(document)
    assert "counts    not scored: added later" in block
    line = f"requirements of {DAY}: 1 newer one not scored, 1 of them broken; 1 older one no longer required"
    assert line in terminal.summary(document)
    html = page.render(document)
    assert "not scored: added later" in html
    assert f"{DAY}, 1 newer not scored" in html
    assert 'name="not scored" value="added later"' in junit.render(document)
    assert "not scored" in ctrf.render(document)
    assert "(MUST, not scored)" in markdown.render(document)
    Draft202012Validator(results.schema()).validate(document)
    assert document["requirement_set"] == {"date": DAY, "gone": ["usage.old"]}


def run_of(contract, outcome):
    """A run with two verdicts: a MUST that passes, and `finish.enum` as given."""
    rows = {row.id: row for row in contract.requirements}
    fails = outcome in {Outcome.FAIL, Outcome.FLAKY}
    evidence = (Evidence("base/1", "", "it is 3; expected 4"),) if fails else ()
    incomplete = outcome in {Outcome.INCONCLUSIVE, Outcome.NOT_RUN}
    verdicts = (
        Verdict(rows["usage.total"], Outcome.PASS, "", 3, 3),
        Verdict(rows["finish.enum"], outcome, "so it is", 2, 2, int(fails), evidence, incomplete=incomplete),
    )
    totals = {"requests": 2, "attempts": 2, "prompt_tokens": 3, "completion_tokens": 4}
    where = Endpoint("madeup", "http://127.0.0.1:1", "m")
    return Run(
        contract=contract, target=where, profile="gate", seed=0, plan_sha256="0" * 64, planned=(), exchanges=(),
        verdicts=verdicts, totals=totals, started_at=0.0, duration_s=1.0,
    )  # fmt: skip


def test_a_row_that_came_later_is_run_and_shown_but_not_scored(specs, conformance, tmp_path):
    added = (
        "  - id: usage.new\n    check: usage_counts_are_whole\n    level: MUST\n    layer: contract\n"
        "    promise: Counts are whole.\n    source: {at: '#/components/schemas/Reply', page: 'generate.html:58'}\n"
    )
    edited(specs, "without:\n", f"{added}\nwithout:\n")
    code, out, err = conformance("run", "madeup", "--specs", str(specs), "--requirements", "2026-12-24")
    assert code == 0, out + err
    document = json.loads((tmp_path / "reports" / "madeup" / "results.json").read_text("utf-8"))
    rows = {row["id"]: row for row in document["requirements"]}
    assert rows["usage.new"]["outcome"] == "pass"
    assert rows["usage.new"]["not_scored"] == "added later"
    assert rows["usage.total"]["not_scored"] is None
    assert f"requirements of {DAY}: 1 newer one not scored, 0 of them broken" in out
    assert document["requirement_set"] == {"date": DAY, "gone": []}


# What goes wrong


@pytest.mark.parametrize("day", ["today", "2026-13-01", "20-11-2026", ""])
def test_a_bad_date_is_told(specs, conformance, day):
    if day:
        code, _, err = conformance("run", "madeup", "--specs", str(specs), "--requirements", day)
        assert (code, err.count("\n")) == (2, 1)
        assert err == f"conformance: --requirements: is {day!r}; expected a date such as 2026-11-20\n"
    code, _, err = conformance("freeze", "madeup", "--specs", str(specs), "--date", day or "x")
    assert code == 2
    assert "--date: is " in err


def test_a_date_before_the_first_set_is_told(specs, conformance):
    code, _, err = conformance("run", "madeup", "--specs", str(specs), "--requirements", "2026-11-19")
    assert code == 2
    assert f"has no set that was in force on 2026-11-19; the first is of {DAY}" in err
    (specs / "madeup" / "frozen" / f"{DAY}.yaml").unlink()
    code, _, err = conformance("run", "madeup", "--specs", str(specs), "--requirements", DAY)
    assert code == 2
    assert "there is none; `conformance freeze madeup` makes one" in err


SET = f"provider: madeup\ndate: '{DAY}'\n"
SPOILT = (
    "",
    "- a",
    "provider: other\ndate: '2026-11-20'\nrequirements: {}",
    "provider: madeup\ndate: '2026-11-21'\nrequirements: {}",
    f"{SET}requirements: [a]",
    f"{SET}requirements: {{a.b: must}}",
    f"{SET}requirements: {{a.b: [MUST]}}",
)


@pytest.mark.parametrize("text", SPOILT)
def test_a_set_that_somebody_edited_is_told(specs, conformance, text):
    (specs / "madeup" / "frozen" / f"{DAY}.yaml").write_text(text, "utf-8")
    code, _, err = conformance("run", "madeup", "--specs", str(specs), "--requirements", DAY)
    assert code == 2, err
    assert "freeze it again" in err
    assert err.count("\n") == 1


# The commands


def test_a_set_is_frozen_once_and_never_changed(specs, conformance):
    code, out, _ = conformance("freeze", "madeup", "--specs", str(specs), "--date", DAY)
    assert code == 0, "the same set may be written again"
    assert out.endswith(f"{DAY}.yaml\n")
    edited(specs, "check: usage_adds_up\n    level: MUST", "check: usage_adds_up\n    level: SHOULD")
    code, _, err = conformance("freeze", "madeup", "--specs", str(specs), "--date", DAY)
    assert code == 2
    assert "exists already with other contents; freeze under another date" in err
    assert conformance("freeze", "madeup", "--specs", str(specs), "--date", "2027-01-01")[0] == 0
    assert frozen.dates("madeup", [specs]) == (DAY, "2027-01-01")


def test_a_set_is_dated_today_unless_told_otherwise(specs, conformance):
    (specs / "madeup" / "frozen" / f"{DAY}.yaml").unlink()
    before, code, after = (
        datetime.now(UTC),
        conformance("freeze", "madeup", "--specs", str(specs))[0],
        datetime.now(UTC),
    )
    assert code == 0
    assert frozen.dates("madeup", [specs])[0] in {before.date().isoformat(), after.date().isoformat()}


def test_what_changed_between_two_sets_is_printed(specs, conformance):
    assert conformance("frozen", "madeup", DAY, "--specs", str(specs))[:2] == (0, "")
    edited(specs, "check: usage_adds_up\n    level: MUST", "check: usage_adds_up\n    level: SHOULD")
    edited(specs, "- id: finish.enum", "- id: finish.known")
    frozen.write(frozen.freeze(load("madeup", [specs]), "2027-01-01"), [specs])
    for later in (["2027-01-01"], []):
        code, out, err = conformance("frozen", "madeup", DAY, *later, "--specs", str(specs))
        assert code == 1
        assert out.splitlines() == [
            "loosened: finish.enum, MUST → SHOULD",
            "added: finish.known (MUST)",
            "loosened: usage.total, MUST → SHOULD",
        ]
        assert "3 changes from the set of 2026-11-20" in err
    assert (
        "tightened: usage.total, SHOULD → MUST"
        in conformance("frozen", "madeup", "2027-01-01", DAY, "--specs", str(specs))[1]
    )
    listed = conformance("frozen", "madeup", "--specs", str(specs))[1].splitlines()
    assert [line.split()[0] for line in listed] == [DAY, "2027-01-01"]
    assert conformance("frozen", "madeup", "2020-01-01", "--specs", str(specs))[0] == 2


def test_an_unknown_provider_has_no_sets():
    with pytest.raises(ContractError, match="no such provider"):
        frozen.dates("nobody")
