"""What changed from one run to another: broken, fixed, changed, new, gone; and when that must stop somebody."""

import json
from dataclasses import replace

import fake_runs
import pytest

from conformance.cli import _guarded
from conformance.model import Evidence, Level, Outcome
from conformance.report import diff as difference
from conformance.report import outputs, results
from conformance.report.diff import BROKEN, CHANGED, FIXED, FLAKY, GONE, NEW, UNSETTLED, compare, normalised
from conformance.report.diff_formats import FORMATS, as_json, as_markdown, headline, html, terminal
from tests.test_report_outputs import seen
from tests.test_report_page import Tree

PASS, FAIL, WARN, LOOSE = Outcome.PASS, Outcome.FAIL, Outcome.WARN, Outcome.FLAKY
UNSEEN = (Outcome.INCONCLUSIVE, Outcome.NOT_RUN, Outcome.ERROR, Outcome.NOT_APPLICABLE)


def made(*verdicts, **more):
    return results.document(fake_runs.run(*verdicts, **more))


def verdict(outcome, id="usage.a", level=Level.MUST, *messages):  # noqa: A002
    if outcome in {FAIL, WARN, LOOSE}:
        evidence = tuple(Evidence("case/1", "body", message) for message in messages or ("total is 9; expected 5",))
        more = {"violations": 1, "evidence": evidence, "reason": evidence[0].message}
    else:
        more = {"reason": "" if outcome is PASS else "why not"}
    return fake_runs.verdict(outcome, fake_runs.requirement(id, level), **more)


def difference_of(before, after, level=Level.MUST):
    return compare(made(verdict(before, level=level)), made(verdict(after, level=level)))


def kind_of(before, after):
    found = difference_of(before, after).changes
    return found[0].kind if found else ""


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (PASS, PASS, ""),
        (PASS, FAIL, BROKEN),
        (PASS, LOOSE, BROKEN),
        (FAIL, PASS, FIXED),
        (FAIL, FAIL, ""),
        (FAIL, LOOSE, FLAKY),
        (LOOSE, FAIL, FLAKY),
        (LOOSE, LOOSE, FLAKY),
        (LOOSE, PASS, FLAKY),
        *((one, FAIL, BROKEN) for one in UNSEEN),
        *((FAIL, one, UNSETTLED) for one in UNSEEN),
        *((PASS, one, UNSETTLED) for one in UNSEEN),
        *((one, PASS, "") for one in UNSEEN),
        *((one, one, "") for one in UNSEEN),
    ],
)
def test_each_pair_of_outcomes_has_its_kind(before, after, kind):
    assert kind_of(before, after) == kind


def test_what_was_not_seen_again_is_not_fixed():
    assert not difference_of(FAIL, Outcome.NOT_RUN).of(FIXED)


def test_a_new_requirement_is_no_regression_and_one_that_is_gone_is_told():
    found = compare(made(verdict(FAIL, "usage.old")), made(verdict(FAIL, "usage.new")))
    assert [(change.kind, change.id) for change in found.changes] == [(NEW, "usage.new"), (GONE, "usage.old")]
    assert found.exit_code(strict=True) == 0
    assert "the runs have no requirement in common" in found.notes


@pytest.mark.parametrize(
    ("level", "outcome", "code", "strict"),
    [(Level.MUST, FAIL, 1, 1), (Level.MUST, LOOSE, 1, 1), (Level.SHOULD, WARN, 0, 1), (Level.MAY, WARN, 0, 0)],
)
def test_a_new_failure_of_a_must_stops_and_of_a_should_where_strict(level, outcome, code, strict):
    found = difference_of(PASS, outcome, level)
    assert (found.exit_code(), found.exit_code(strict=True)) == (code, strict)


def test_an_old_failure_stops_nobody():
    assert difference_of(FAIL, FAIL).exit_code() == 0
    assert difference_of(FAIL, LOOSE).exit_code() == 0


def test_a_waived_failure_is_shown_and_stops_nobody():
    after = made(verdict(FAIL))
    after["requirements"][0]["waiver"] = {
        "requirement": "usage.*", "reason": "known", "owner": "us", "link": "https://x/1", "expires": "2999-01-01"
    }  # fmt: skip
    found = compare(made(verdict(PASS)), after)
    assert found.of(BROKEN)
    assert found.exit_code() == 0
    assert "usage.a (MUST): pass → fail, waived" in terminal(found)


def test_a_failure_that_shows_another_thing_is_changed_evidence():
    said = ("total is 9; expected 5", "total is 'nine'; expected a number")
    before, after = (
        made(verdict(FAIL, "usage.a", Level.MUST, said[0])),
        made(verdict(FAIL, "usage.a", Level.MUST, *said)),
    )
    (change,) = compare(before, after).changes
    assert (change.kind, change.appeared, change.vanished) == (CHANGED, (said[1],), ())
    (back,) = compare(after, before).changes
    assert (back.kind, back.appeared, back.vanished) == (CHANGED, (), (said[1],))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("total is 9; expected 5", "total is 123,456.7; expected -1e-5"),
        ("id is 'cmpl-9f3a77b2' then 'cmpl-00ab1234'", "id is 'cmpl-11111111' then 'cmpl-2222222x'"),
        ("text is 'Paris is a city'; expected ' London'", "text is ' I am'; expected 'well, so'"),
        ("request 4f9a11c2d3 came late", "request 88b0e1f2aa came late"),
        ("text is 'it\\'s \"so\"'", 'text is "x y"'),
    ],
)
def test_the_same_fault_in_other_words_is_the_same_fault(one, other):
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no member 'param'; expected it", "no member 'code'; expected it"),
        ("usage is null", "usage is absent"),
        ("finish_reason is 'stop'", "finish_reason is 'length'"),
        ("usage.prompt_tokens is a string", "usage.total_tokens is a string"),
    ],
)
def test_another_fault_is_another_fault(one, other):
    assert normalised(one) != normalised(other)


def test_the_same_message_of_two_requirements_is_two_faults():
    rows = made(verdict(FAIL, "usage.a"), verdict(FAIL, "usage.b"))["requirements"]
    assert not set(difference.fingerprints(rows[0])) & set(difference.fingerprints(rows[1]))


def test_what_makes_two_runs_less_comparable_is_said():
    before = made(verdict(PASS), started_at=1_770_000_000.0)
    after = {**made(verdict(PASS), incomplete=("the budget ended",)), "contract_sha256": "9" * 64, "profile": "full"}
    notes = compare(before, after).notes
    assert "the contract changed" in notes
    assert "different profiles (gate, then full)" in notes
    assert "the second run is incomplete: the budget ended" in notes
    assert "the second run is the older one" in notes
    assert compare(before, before).notes == ()


def both():
    rows = {"usage.a": (PASS, FAIL), "usage.b": (FAIL, PASS), "usage.c": (PASS, PASS), "usage.d": (LOOSE, PASS)}
    before, after = (made(*(verdict(pair[side], name) for name, pair in rows.items())) for side in (0, 1))
    return compare(before, after)


def test_the_headline_counts_each_kind():
    assert headline(both()) == "1 new failure: 1 newly broken, 1 fixed, 1 flaky, 1 unchanged"
    assert headline(difference_of(PASS, PASS)) == "No new failure: 1 unchanged"
    should = difference_of(PASS, WARN, Level.SHOULD)
    assert headline(should) == "No new failure that gates: 1 newly broken, 0 unchanged"
    assert headline(should, strict=True) == "1 new failure: 1 newly broken, 0 unchanged"


def test_a_terminal_shows_what_broke_with_its_evidence():
    told = terminal(both())
    assert "NEWLY BROKEN (broken now, and not seen broken before)\n  usage.a (MUST): pass → fail\n" in told
    assert "observed  case/1, body: total is 9; expected 5" in told
    assert told.index("NEWLY BROKEN") < told.index("FIXED") < told.index("FLAKY")
    assert "usage.c" not in told


def test_markdown_shows_a_table_for_each_kind():
    found = seen(as_markdown(both()))
    assert "Newly broken: 1" in found.text
    assert "total is 9; expected 5" in found.text
    assert found.rows == [3, 3] * 3


def test_json_says_the_same_to_machines():
    told = json.loads(as_json(both()))
    assert told["schema"] == "conformance-diff/1"
    assert told["exit_code"] == 1
    assert [(one["id"], one["kind"], one["gates"]) for one in told["changes"]] == [
        ("usage.a", "newly_broken", True),
        ("usage.b", "fixed", False),
        ("usage.d", "flaky", False),
    ]
    assert told["changes"][0]["appeared"] == ["total is 9; expected 5"]
    assert (told["unchanged"], told["before"]["verdict"], told["after"]["verdict"]) == (1, "broken", "broken")


def test_the_page_stands_alone_and_names_every_change():
    page = html(both())
    tree = Tree(page)
    for told in ("1 new failure", "usage.a", "usage.b", "usage.d", "total is 9; expected 5"):
        assert told in tree.text.replace(". ", ".")
    assert not [value for name, value in tree.attributes if name in {"src", "href"} and not value.startswith("#")]


def test_hostile_text_stays_text_in_every_format():
    whole = results.document(fake_runs.hostile())
    before = {**whole, "requirements": [{**whole["requirements"][0], "outcome": "pass", "evidence": []}]}
    found = compare(before, whole)
    tree = Tree(html(found))
    assert not {"img"} & set(tree.tags)
    assert tree.tags.count("script") == 1
    assert "<img" not in as_markdown(found)
    assert "\x1b" not in terminal(found) + as_markdown(found) + html(found)
    assert "\u202e" not in terminal(found) + as_markdown(found) + html(found)
    assert json.loads(as_json(found))["changes"]


# The command


@pytest.fixture
def conformance(capsys):
    def call(*arguments):
        code = _guarded([str(one) for one in arguments], debug=False)
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out, told.err

    return call


@pytest.fixture
def folders(tmp_path):
    for name, outcome in (("fine", PASS), ("wrong", FAIL)):
        outputs.write(tmp_path / name, made(verdict(outcome)), ())
    return tmp_path


def test_runs_are_compared_by_folder_or_by_file(conformance, folders):
    assert conformance("diff", folders / "fine", folders / "wrong")[0] == 1
    code, out, _ = conformance("diff", folders / "wrong/results.json", folders / "fine")
    assert code == 0
    assert "FIXED" in out


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_the_exit_code_of_the_difference(conformance, folders, name):
    code, out, err = conformance("diff", folders / "fine", folders / "wrong", "--format", name)
    assert (code, err) == (1, "")
    assert "usage.a" in out.replace("<wbr>", "")


def test_strict_is_asked_for(conformance, folders):
    outputs.write(folders / "should", made(verdict(WARN, level=Level.SHOULD)), ())
    outputs.write(folders / "kept", made(verdict(PASS, level=Level.SHOULD)), ())
    assert conformance("diff", folders / "kept", folders / "should")[0] == 0
    assert conformance("diff", folders / "kept", folders / "should", "--strict")[0] == 1


def broken_files():
    good = made(verdict(PASS))
    yield "", "cannot be read"
    yield "[]", "schema is missing"
    yield json.dumps({**good, "schema": "x/1"}), 'schema is "x/1"'
    yield json.dumps({**good, "requirements": 3}), "is not a list of objects"
    yield json.dumps({**good, "requirements": ["a"]}), "is not a list of objects"
    yield json.dumps({**good, "requirements": [{**good["requirements"][0], "outcome": "fine"}]}), "'fine' is not one of"
    yield json.dumps({**good, "target": "x"}), "$.target"
    yield json.dumps({name: value for name, value in good.items() if name != "seed"}), "lacks seed"


@pytest.mark.parametrize(("text", "says"), list(broken_files()))
def test_what_is_no_result_is_one_line_and_exit_code_2(conformance, folders, text, says):
    (folders / "odd.json").write_text(text)
    code, out, err = conformance("diff", folders / "fine", folders / "odd.json")
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_folder_without_results_is_exit_code_2(conformance, folders):
    assert conformance("diff", folders / "fine", folders)[0] == 2
    assert conformance("diff", folders / "fine", folders / "none")[0] == 2


def test_a_change_is_one_of_the_kinds_that_are_explained():
    assert all(change.kind in difference.MEANING for change in both().changes)
    assert replace(both(), changes=()).exit_code() == 0


def test_a_waiver_that_no_longer_fits_is_told_though_no_promise_is_newly_broken():
    before, after = made(verdict(FAIL)), made(verdict(FAIL))
    after["waiver_faults"] = ["the waiver of usage.a expired on 2026-11-19"]
    assert compare(before, after).notes == ("the waiver of usage.a expired on 2026-11-19",)
    assert compare(after, after).notes == ()
    assert "expired on" in as_markdown(compare(before, after))


def test_several_differences_in_one_file_bear_the_names_of_their_targets():
    found = compare(made(verdict(PASS)), made(verdict(PASS)))
    assert as_markdown(found).startswith("## example: no new failure: 1 unchanged\n")
