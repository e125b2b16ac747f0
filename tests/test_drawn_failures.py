"""Drawn bodies that failed are counted and reported, kept beside the reports, and sent first by the next run."""

from __future__ import annotations

import json
from dataclasses import replace

import fake_runs
import pytest

from conformance import recording
from conformance.config.settings import SettingsError, settings
from conformance.contract import load as contract_of
from conformance.model.budget import usual
from conformance.recording import drawn_failures
from conformance.reference import serve
from conformance.report import drawn, history, outputs, page, results, terminal
from conformance.run.launch import failed_bodies, launch
from conformance.run.locked_run import make_lock
from conformance.run.replan import agrees
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS

FAULT = FAULTS["rare_alphabets_are_refused"]


def failure(body='{"prompt":"a","model":""}', control="", seen="2026-01-01"):
    return drawn_failures.DrawnFailure(body, control, ("request.drawn.accepts",), seen, seen)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run against a server that refuses rare alphabets, and another one after it, with another seed."""
    folder = tmp_path_factory.mktemp("drawn")
    documents = []
    with serve(altered_reference(contract_of("openai"), faults=(FAULT,), models=("m",))) as address:
        for seed in (0, 1):
            chosen = settings("openai", {"base_url": address, "model": "m", "seed": seed, "out": str(folder)})
            chosen.folder.mkdir(exist_ok=True)
            made = launch(chosen)
            documents.append((made, results.document(made)))
            outputs.write(chosen.folder, documents[-1][1], made.exchanges)
    return chosen, documents


class TestTwoRuns:
    def test_what_failed_is_counted_with_what_was_sent_and_judged(self, runs):
        _, ((_, first), _) = runs
        assert first["drawn"]["valid"] >= 1
        assert first["drawn"]["invalid"] >= 1
        assert first["drawn"]["judged"] >= 2
        assert any("request.drawn.accepts" in one["broke"] for one in first["drawn"]["failed"])

    def test_the_next_run_sends_it_first_whatever_its_seed(self, runs):
        _, ((_, first), (second, _)) = runs
        failed = next(one["body"] for one in first["drawn"]["failed"] if "request.drawn.accepts" in one["broke"])
        sent = [case.body for case in second.planned if case.origin == "sample"]
        assert drawn_failures.without_model(sent[0]) in {one["body"] for one in first["drawn"]["failed"]}
        assert failed in map(drawn_failures.without_model, sent)

    def test_the_file_keeps_what_failed_in_either_without_the_model_and_since_when(self, runs):
        chosen, ((_, first), (_, second)) = runs
        kept = {one.body: one for one in drawn_failures.read(chosen.folder / drawn_failures.NAME)}
        both = [one["body"] for document in (first, second) for one in document["drawn"]["failed"]]
        assert kept.keys() == set(both)
        again = next(body for body in both if both.count(body) == 2)
        assert (kept[again].first_seen, kept[again].last_seen) == (first["started_at"], second["started_at"])
        assert {json.loads(body)["model"] for body in kept} == {""}

    def test_the_file_is_canonical(self, runs):
        chosen, _ = runs
        content = (chosen.folder / drawn_failures.NAME).read_bytes()
        drawn_failures.write(chosen.folder / "again.json", drawn_failures.read(chosen.folder / drawn_failures.NAME))
        assert (chosen.folder / "again.json").read_bytes() == content

    def test_the_history_shows_it_with_its_runs(self, runs):
        _, ((_, first), (_, second)) = runs
        shown = history.render([("", first), ("", second)])
        both = {one["body"] for one in first["drawn"]["failed"]} & {one["body"] for one in second["drawn"]["failed"]}
        assert both
        assert "Drawn bodies that were ever seen to fail" in shown
        assert "<td>2</td>" in shown

    def test_a_finished_run_that_is_resumed_plans_what_it_planned(self, runs):
        chosen, (_, (second, _)) = runs
        known = failed_bodies(chosen, "m")
        began = recording.read(chosen.folder / "exchanges.ndjson").header["started_at"]
        resumed = settings(
            "openai", {"base_url": "http://127.0.0.1:1", "model": "m", "resume": True, "out": str(chosen.out)}
        )
        assert began == pytest.approx(second.started_at, abs=1)
        assert len(failed_bodies(resumed, "m")) < len(known)


def test_a_locked_plan_follows_from_its_nonce_alone_whatever_failed_before(tmp_path):
    chosen = replace(settings("nebius", {"out": str(tmp_path)}), budget=usual("gate"))
    chosen.folder.mkdir()
    failed = failure('{"prompt":"it failed","model":"","max_tokens":1}')
    before = make_lock(chosen, contract_of("nebius"), nonce="a" * 16, seeded=True, has_key=True)
    drawn_failures.write(chosen.folder / drawn_failures.NAME, [failed])
    lock = make_lock(chosen, contract_of("nebius"), nonce="a" * 16, seeded=True, has_key=True)
    assert lock.drawn == before.drawn
    assert agrees(lock, contract_of("nebius"))


class TestTold:
    def document(self, **counts):
        found = results.document(fake_runs.failing())
        found["drawn"] = {"valid": 4, "invalid": 8, "judged": 12, "failed": [], **counts}
        return found

    def test_the_numbers_stand_in_the_summary_and_on_the_page(self):
        said = "rawn bodies: 4 valid and 8 invalid sent, 12 judged"
        assert f"  d{said}\n" in terminal.summary(self.document()) + "\n"
        assert f"D{said}" in page.render(self.document())

    def test_zero_is_reported_as_zero_with_a_warning(self):
        lines = terminal.summary(self.document(valid=0, invalid=0, judged=0)).splitlines()
        assert "  drawn bodies: 0 valid and 0 invalid sent, 0 judged" in lines
        assert f"  warning: {drawn.NONE_SENT}" in lines
        lines = terminal.summary(self.document(invalid=0)).splitlines()
        assert "  warning: no drawn body that is invalid was sent" in lines

    def test_results_of_an_older_version_are_read_without_them(self):
        found = self.document()
        del found["drawn"]
        assert "drawn" not in terminal.summary(found)
        assert drawn.failures(found) == []


class TestFile:
    def test_no_file_holds_nothing_and_nothing_writes_no_file(self, tmp_path):
        path = tmp_path / drawn_failures.NAME
        drawn_failures.write(path, ())
        assert not path.exists()
        assert drawn_failures.read(path) == ()

    @pytest.mark.parametrize(
        "content", ["", "[]", "{}", '{"format": "conformance-drawn-failures/1", "failures": [{}]}']
    )
    def test_another_file_is_refused_in_one_line(self, tmp_path, content):
        folder = tmp_path / "openai"
        folder.mkdir()
        (folder / drawn_failures.NAME).write_text(content, "utf-8")
        with pytest.raises(SettingsError, match="delete it, or bring it back"):
            failed_bodies(settings("openai", {"out": str(tmp_path)}), "m")

    def test_an_invalid_body_follows_its_control(self):
        invalid = failure('{"prompt":1,"model":""}', '{"prompt":"a","model":""}')
        assert drawn_failures.bodies([invalid, failure()], "m") == (
            {"prompt": "a", "model": "m"},
            {"prompt": 1, "model": "m"},
        )

    def test_those_first_seen_last_come_first_and_too_many_are_dropped(self):
        old, new = failure(seen="2026-01-01"), failure('{"prompt":"b","model":""}', seen="2026-01-02")
        assert drawn_failures.merged([old], [new]) == (new, old)
        many = [failure(json.dumps({"prompt": str(number)})) for number in range(drawn_failures.MOST + 9)]
        assert len(drawn_failures.merged([], many)) == drawn_failures.MOST

    def test_a_lone_surrogate_comes_back_as_it_was(self, tmp_path):
        body = drawn_failures.without_model({"prompt": "\ud800", "model": "m"})
        drawn_failures.write(tmp_path / "f.json", [failure(body)])
        assert drawn_failures.bodies(drawn_failures.read(tmp_path / "f.json"), "m") == (
            {"prompt": "\ud800", "model": "m"},
        )
