"""What a set of verdicts amounts to."""

import pytest

from conformance.report import tally


def row(outcome="pass", level="MUST", **more):
    return {"id": "a.b", "area": "a", "outcome": outcome, "level": level, "incomplete": False, "waiver": None, **more}


def results(rows, reasons=(), *, strict=False, **target):
    verdict = tally.VERDICTS[tally.exit_code(rows, reasons, strict=strict)]
    return {"requirements": rows, "incomplete": list(reasons), "verdict": verdict, "target": target}


@pytest.mark.parametrize(
    ("rows", "reasons", "strict", "code"),
    [
        ([row()], (), False, 0),
        ([row(), row("not_applicable")], (), False, 0),
        ([row("fail")], (), False, 1),
        ([row("flaky")], (), False, 1),
        ([row("warn", "SHOULD")], (), False, 0),
        ([row("warn", "SHOULD")], (), True, 1),
        ([row("flaky", "SHOULD")], (), False, 0),
        ([row("fail", waiver={"reason": "known"})], (), False, 0),
        ([row("inconclusive", incomplete=True)], (), False, 3),
        ([row("inconclusive", "SHOULD")], (), False, 0),
        ([row()], ("the budget ended",), False, 3),
        ([row("error")], (), False, 4),
        ([row("error"), row("inconclusive", incomplete=True)], (), False, 4),
        ([row("fail"), row("error")], ("the budget ended",), False, 1),
    ],
)
def test_the_exit_code_says_the_worst_that_is_certain(rows, reasons, strict, code):
    assert tally.exit_code(rows, reasons, strict=strict) == code


def test_index_counts_what_was_verified_and_score_what_of_that_passed():
    rows = [row(), row("fail"), row("inconclusive"), row("not_run"), row("not_applicable"), row("pass", "SHOULD")]
    assert tally.index(rows) == {"verified": 2, "of": 4}
    assert tally.score(rows) == {"passed": 1, "of": 2}


def test_nothing_verified_is_no_full_score():
    assert tally.score([row("not_run")]) == {"passed": 0, "of": 0}
    assert tally.index([row("not_run")]) == {"verified": 0, "of": 1}


@pytest.mark.parametrize(
    ("found", "says", "because"),
    [
        (results([row()]), "Conforms", "Every MUST that applies was verified and holds."),
        (results([row(), row("warn", "SHOULD")]), "Conforms", "1 SHOULD is broken."),
        (results([row("fail"), row("flaky")]), "Does not conform", "2 MUSTs are broken."),
        (results([row("warn", "SHOULD")], strict=True), "Does not conform", "1 SHOULD is broken."),
        (results([row("fail")], ["spent"]), "Does not conform", "The run is also incomplete."),
        (results([row()], ["spent"]), "Incomplete", "not everything was verified"),
        (results([row("error")]), "Suite fault", "a fault of the suite"),
        (results([row()], kind="embedded reference"), "The embedded reference conforms", "Every MUST"),
        (results([row("fail")], kind="embedded reference"), "The embedded reference does not conform", "1 MUST"),
    ],
)
def test_the_headline_answers_in_a_few_words(found, says, because):
    verdict, sentence = tally.headline(found)
    assert verdict == says
    assert because in sentence


def test_the_most_urgent_rows_come_first():
    rows = [row(), row("warn", "SHOULD"), row("fail"), row("not_run"), row("error")]
    assert [one["outcome"] for one in sorted(rows, key=tally.urgency)] == [
        "fail",
        "warn",
        "error",
        "not_run",
        "pass",
    ]


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ([(True, False)], "1 of 1 target conforms"),
        ([(True, False), (False, False)], "1 of 2 targets conform"),
        ([(True, True)] * 5, "The embedded reference keeps 5 of 5 contracts; no target was judged"),
        ([(True, True), (False, False)], "0 of 1 target conforms; the embedded reference keeps 1 of 1 contract"),
    ],
)
def test_the_embedded_reference_is_not_counted_as_a_target(targets, says):
    assert tally.targets_conform(targets) == says
