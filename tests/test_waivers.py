"""A waived failure is shown and does not gate; a waiver that is no longer valid fails the run."""

import json
import re
import tomllib
from dataclasses import replace
from datetime import date

import fake_runs
import pytest

from conformance.cli import _guarded
from conformance.config import waivers
from conformance.config.settings import SettingsError
from conformance.model import Evidence, Level, Outcome
from conformance.report import ctrf, index, junit, markdown, page, results, terminal
from conformance.report.waivers import marks

DAY = date(2030, 1, 31)
FAILING = "usage.chunk.empty-choices"


def waiver(**more):
    known = {
        "requirement": FAILING,
        "target": "example",
        "reason": "known since May",
        "owner": "ana",
        "link": "https://example.org/7",
        "expires": DAY,
    }
    return waivers.Waiver(**{**known, **more})


def judged(*verdicts, accepted=(), **more):
    run = fake_runs.run(*(verdicts or (fake_runs.broken(),)))
    return results.document(run, waivers=accepted, **{"day": DAY, **more})


def kept(id="stream.id.one"):  # noqa: A002
    return fake_runs.verdict(row=fake_runs.requirement(id))


# Holding


@pytest.mark.parametrize("requirement", [FAILING, "usage.*"])
def test_a_waived_failure_does_not_gate_and_says_by_what(requirement):
    document = judged(fake_runs.broken(), kept(), accepted=[waiver(requirement=requirement)])
    assert (document["exit_code"], document["verdict"], document["waiver_faults"]) == (0, "conformant", [])
    failed, passed = document["requirements"]
    assert failed["outcome"] == "fail"
    assert failed["waiver"] == {
        "requirement": requirement,
        "reason": "known since May",
        "owner": "ana",
        "link": "https://example.org/7",
        "expires": "2030-01-31",
    }
    assert passed["waiver"] is None
    assert document["score"] == {"passed": 1, "of": 2}


def test_a_waiver_of_another_target_or_requirement_changes_nothing():
    for other in (waiver(target="elsewhere"), waiver(requirement="usage.chunk")):
        document = judged(accepted=[other])
        assert (document["exit_code"], document["requirements"][0]["waiver"]) == (1, None)
        assert document["waiver_faults"] == []


def test_a_waived_failure_shows_as_waived_everywhere():
    document = judged(accepted=[waiver()])
    block = "\n".join(terminal.blocks(document))
    assert re.search(rf"(?m)^WAIVED \S+ {FAILING} \(MUST\)\n", block)
    assert "waived    known since May (ana, until 2030-01-31, https://example.org/7)" in block
    assert "1 MUST that is waived" in terminal.summary(document)
    assert "; 1 of these waived" in terminal.summary(document)
    assert "waived until 2030" in markdown.render(document)
    assert '<property name="waiver" value="known since May' in junit.render(document)
    assert "<failure" not in junit.render(document)
    assert "waived" in ctrf.document(document)["results"]["tests"][0]["tags"]
    for html in (page.render(document), index.render({"example": document})):
        assert '<span class="tag">waived</span>' in html
    assert "known since May" in page.render(document)
    assert "1 waived" in index.render({"example": document})


def test_a_waiver_can_say_anything_and_is_shown_as_text():
    document = judged(accepted=[waiver(reason=fake_runs.HOSTILE, link=fake_runs.HOSTILE)])
    assert "<img" not in page.render(document) + index.render({"a": document}) + markdown.render(document)
    assert "\x1b" not in "\n".join([*terminal.blocks(document), terminal.summary(document), junit.render(document)])


def test_an_incomplete_run_stays_incomplete_beside_a_waiver():
    unsettled = fake_runs.verdict(
        Outcome.INCONCLUSIVE, fake_runs.requirement("stop.text"), reason="none did", incomplete=True
    )
    assert judged(fake_runs.broken(), unsettled, accepted=[waiver()])["exit_code"] == 3


# No longer fitting


def test_a_waiver_holds_on_its_last_day_and_not_on_the_next():
    assert judged(accepted=[waiver()], day=DAY)["exit_code"] == 0
    document = judged(accepted=[waiver()], day=date(2030, 2, 1))
    assert (document["exit_code"], document["requirements"][0]["waiver"]) == (1, None)
    (fault,) = document["waiver_faults"]
    assert fault == (
        f"the waiver of {FAILING} for example (ana) expired on 2030-01-31; "
        "fix the target, or renew the waiver: https://example.org/7"
    )


def test_a_waiver_of_what_passes_is_stale_and_fails_the_run():
    document = judged(kept(), accepted=[waiver(requirement="stream.id.one")])
    assert (document["exit_code"], document["verdict"]) == (1, "broken")
    assert "is stale: what it waives passes, with 6 examined; delete the waiver" in document["waiver_faults"][0]
    for told in (terminal.summary(document), markdown.render(document), junit.render(document)):
        assert "is stale" in told
    assert "is stale" in page.render(document)
    assert "is stale" in index.render({"example": document})
    assert '<failure message="the waiver of stream.id.one' in junit.render(document)
    assert "Invalid waivers. 1 waiver is no longer valid. No MUST was seen broken." in terminal.summary(document)


def test_a_glob_is_stale_only_when_everything_it_covers_passes():
    other = kept("usage.total")
    assert judged(fake_runs.broken(), other, accepted=[waiver(requirement="usage.*")])["waiver_faults"] == []
    assert judged(kept("usage.other"), other, accepted=[waiver(requirement="usage.*")])["exit_code"] == 1


@pytest.mark.parametrize("outcome", [Outcome.INCONCLUSIVE, Outcome.NOT_RUN, Outcome.NOT_APPLICABLE, Outcome.ERROR])
def test_what_was_not_seen_makes_no_waiver_stale(outcome):
    unseen = fake_runs.verdict(outcome, reason="nothing came up")
    assert judged(unseen, accepted=[waiver()])["waiver_faults"] == []


def test_other_evidence_than_was_accepted_is_another_failure():
    (mark,) = marks(judged()["requirements"][0])
    assert judged(accepted=[waiver(fingerprint=(mark,))])["exit_code"] == 0
    more = Evidence("scenario/000001", "event 2 /usage", "usage is null; expected an object")
    document = judged(fake_runs.broken(evidence=(more,)), accepted=[waiver(fingerprint=(mark,))])
    assert (document["exit_code"], document["requirements"][0]["waiver"]) == (1, None)
    assert f"{FAILING} fails in another way, usage is null" in document["waiver_faults"][0]


def test_numbers_and_texts_of_the_evidence_may_differ():
    def saying(text):
        return fake_runs.broken(evidence=(Evidence("a/1", "event 1", f"{text}; expected 'length'"),))

    (mark,) = marks(judged(saying("index 3 has 'some words'"))["requirements"][0])
    assert judged(saying("index 14 has 'two others'"), accepted=[waiver(fingerprint=(mark,))])["exit_code"] == 0


def test_a_document_with_waivers_keeps_its_schema(tmp_path):
    for accepted in ([waiver()], [waiver(expires=date(2020, 1, 1))]):
        path = tmp_path / "results.json"
        path.write_text(results.dumps(judged(accepted=accepted)), "utf-8")
        assert results.checked(path)["waiver_faults"] == judged(accepted=accepted)["waiver_faults"]


# The file

GOOD = """
[[waiver]]
requirement = "usage.*"
target = "example"
reason = "known"
owner = "ana"
link = "https://example.org/7"
expires = 2030-01-31
"""


def file(tmp_path, text):
    path = tmp_path / "waivers.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("expires", ["2030-01-31", '"2030-01-31"'])
def test_a_day_may_be_written_with_and_without_quotes(tmp_path, expires):
    (found,) = waivers.read(file(tmp_path, GOOD.replace("2030-01-31", expires)))
    assert found == waiver(requirement="usage.*", reason="known")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[waiver]", "is not TOML"),
        ("waivers = 1", "has 'waivers'; expected only waiver"),
        (GOOD.replace('owner = "ana"\n', ""), 'waiver 1 "usage.*" lacks owner; add it'),
        (GOOD.replace('"ana"', '""'), 'waiver 1 "usage.*", owner is empty; expected who is responsible for it'),
        (GOOD.replace("2030-01-31", "2030-02-31"), "is not TOML"),
        (GOOD.replace("2030-01-31", '"2030-02-31"'), "waiver 1 expires 2030-02-31; expected a date that exists"),
        (GOOD.replace("2030-01-31", '"soon"'), 'expires is "soon"; expected the last day on which it is valid'),
        (GOOD.replace("2030-01-31", "2030-01-31T10:00:00"), "expected the last day on which it is valid"),
        (GOOD + 'fingerprint = ["x"]', 'fingerprint.0 is "x"; expected 12 hexadecimal digits'),
        (GOOD + "colour = 1", "has 'colour'; expected only expires, fingerprint, link"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path, capsys, text, says):
    path = file(tmp_path, text)
    code = _guarded(["run", "openai", "--waivers", str(path)], debug=False)
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1)
    assert says in told
    assert str(path) in told


def test_a_file_that_is_not_there_is_one_line_and_exit_code_2(tmp_path, capsys):
    assert _guarded(["run", "openai", "--waivers", str(tmp_path / "none.toml")], debug=False) == 2
    assert "none.toml cannot be read: No such file" in capsys.readouterr().err


def test_a_waiver_that_matches_no_requirement_is_refused(tmp_path, capsys):
    path = file(tmp_path, GOOD.replace("usage.*", "usge.*").replace('"example"', '"openai"'))
    assert _guarded(["run", "openai", "--waivers", str(path)], debug=False) == 2
    assert "the waiver of 'usge.*' for openai matches none of" in capsys.readouterr().err


def test_a_waiver_for_a_target_that_nobody_judges_is_a_slip():
    waivers.check_targets([waiver()], {"example"})
    with pytest.raises(SettingsError, match="is for 'example'; expected one of a, b"):
        waivers.check_targets([waiver()], {"b", "a"})


# Drafts


def written(tmp_path, document, name="results.json"):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(results.dumps(document), "utf-8")
    return path


def drafted(capsys, *arguments):
    code = _guarded(["waivers", *map(str, arguments)], debug=False)
    return code, capsys.readouterr().out


def test_drafts_are_refused_until_somebody_answers_for_them_and_hold_then(tmp_path, capsys):
    document = judged(fake_runs.broken(), kept())
    code, text = drafted(capsys, "--from", written(tmp_path, document))
    assert code == 0
    (draft,) = tomllib.loads(text)["waiver"]
    assert (draft["requirement"], draft["target"]) == (FAILING, "example")
    with pytest.raises(SettingsError, match="is empty; expected"):
        waivers.read(file(tmp_path, text))
    filled = file(tmp_path, text.replace('""', '"words"'))
    again = results.document(fake_runs.run(fake_runs.broken(), kept()), waivers=waivers.read(filled))
    assert (again["exit_code"], again["waiver_faults"]) == (0, [])


def test_only_what_gates_is_drafted(tmp_path, capsys):
    warned = replace(fake_runs.broken(), outcome=Outcome.WARN, requirement=fake_runs.requirement("a.b", Level.SHOULD))
    path = written(tmp_path, judged(fake_runs.broken(), warned, accepted=[waiver()]))
    assert "[[waiver]]" not in drafted(capsys, "--from", path)[1]
    _, text = drafted(capsys, "--from", path, "--strict")
    assert [one["requirement"] for one in tomllib.loads(text)["waiver"]] == ["a.b"]


def test_a_folder_of_targets_is_drafted_from_whole(tmp_path, capsys):
    for name in ("a", "b"):
        written(tmp_path, judged(), f"{name}/results.json")
    _, text = drafted(capsys, "--from", tmp_path)
    assert len(tomllib.loads(text)["waiver"]) == 2


def test_hostile_words_cannot_leave_their_comment_or_string(tmp_path, capsys):
    document = results.document(fake_runs.hostile())
    _, text = drafted(capsys, "--from", written(tmp_path, document))
    assert len(tomllib.loads(text)["waiver"]) == 1
    assert "\x1b" not in text


def test_what_is_no_results_file_is_one_line_and_exit_code_2(tmp_path, capsys):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({}), "utf-8")
    assert _guarded(["waivers", "--from", str(path)], debug=False) == 2
    assert capsys.readouterr().err.count("\n") == 1
