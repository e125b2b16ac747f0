"""What fails is sent in smaller forms, last of all, and no verdict changes by it."""

from __future__ import annotations

import json

import pytest

from conformance import recording
from conformance.config.settings import settings
from conformance.contract import load as contract_of
from conformance.judge.fixtures import case
from conformance.model import Outcome, Phase
from conformance.model.budget import Budget
from conformance.recording.load import load
from conformance.reference import serve
from conformance.run.launch import launch, selected_requirements
from conformance.run.recorded import audit
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS
from tests.hostile import BODY, says
from tests.test_runner import WRONG, go, numbered, one_wave

FULL = {"max_tokens": 1, "n": 1, "echo": True, "user": "u", "seed": 1, "top_p": 0.5, "temperature": 0}
ROW = "usage.total.adds-up"


def when(member):
    """An answer that miscounts as soon as a request has that member."""

    async def answer(request, writer):
        await says(body=WRONG if member in json.loads(request.body) else BODY)(request, writer)

    return answer


def wide(**more):
    return case(FULL | more, id="t/0")


def shrunk(exchanges):
    return [x for x in exchanges if x.case.origin == "shrink"]


def smallest(made):
    return next(one for one in made.planned if one.id == made.smallest[ROW])


def test_what_fails_is_made_smaller_after_everything_else():
    made, server = go(when("echo"), one_wave(wide(), *numbered(2, "u")), shrink=True)
    assert smallest(made).body.keys() == {"model", "prompt", "echo"}
    assert 0 < len(shrunk(made.exchanges)) <= 12
    assert len(server.requests) == 3 + len(shrunk(made.exchanges)) == made.totals["requests"]
    assert [x.case.origin for x in made.exchanges[3:]] == ["shrink"] * (len(made.exchanges) - 3)


def test_no_verdict_changes_by_it():
    more, less = (go(when("echo"), one_wave(wide()), shrink=one)[0] for one in (True, False))
    assert more.verdicts == less.verdicts
    assert more.verdicts[0].examined == 1
    assert more.plan_sha256 == less.plan_sha256
    assert shrunk(more.exchanges)
    assert not shrunk(less.exchanges)
    assert less.smallest == {ROW: "t/0"}


def test_where_nothing_fails_nothing_more_is_sent():
    made, server = go(says(), shrink=True)
    assert len(server.requests) == 3
    assert made.smallest == {}


def test_a_budget_that_ends_there_leaves_nothing_incomplete():
    made, server = go(when("echo"), one_wave(wide()), shrink=True, budget=Budget(requests=6))
    assert len(server.requests) == 6
    assert made.incomplete == ()
    assert made.unsent == {}
    assert smallest(made).body.keys() < wide().body.keys()


def test_what_the_plan_could_not_send_is_still_told_with_its_own_numbers():
    made, _ = go(when("echo"), one_wave(wide(), *numbered(3, "u")), shrink=True, budget=Budget(requests=2))
    assert made.incomplete == ("the budget of 2 attempts is spent (--max-requests): 2 of 4 requests were not sent",)


def test_a_target_that_does_not_fail_twice_keeps_its_request():
    turn = iter([True])

    async def answer(request, writer):
        await says(body=WRONG if next(turn, False) else BODY)(request, writer)

    made, _ = go(answer, one_wave(wide()), shrink=True)
    assert made.verdicts[0].outcome is Outcome.FAIL
    assert made.smallest == {ROW: "t/0"}


def test_a_run_that_was_cut_off_while_shrinking_goes_on_where_it_was(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    whole, _ = go(when("echo"), one_wave(wide()), shrink=True, record=path)
    lines = path.read_bytes().splitlines(keepends=True)
    ended = [place for place, line in enumerate(lines) if b'"record":"attempt"' in line]
    path.write_bytes(b"".join(lines[: ended[3] + 1]))
    again, server = go(when("echo"), one_wave(wide()), shrink=True, record=path, resume=True)
    assert len(server.requests) == len(whole.exchanges) - 4
    assert [x.case for x in again.exchanges] == [x.case for x in whole.exchanges]
    assert (again.verdicts, again.smallest) == (whole.verdicts, whole.smallest)
    assert again.plan_sha256 == whole.plan_sha256


def test_what_nobody_selected_is_neither_settled_nor_made_smaller():
    made, server = go(when("echo"), one_wave(wide()), shrink=True, select=("another.row",))
    assert len(server.requests) == 1
    assert made.verdicts[0].outcome is Outcome.FAIL
    more, _ = go(when("echo"), one_wave(wide()), shrink=True, select=(ROW,))
    assert shrunk(more.exchanges)


def test_repeats_come_before_it():
    def plan():
        yield Phase("only", (wide(),))

    made, _ = go(when("echo"), plan(), shrink=True)
    phases = [x.case.origin for x in made.exchanges]
    assert phases == sorted(phases, key="shrink".__eq__)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """A whole run against a provider with faults of several kinds."""
    contract = contract_of("openai")
    names = ("gateway_adds_a_member", "highest_value_is_refused_temperature")
    broken = altered_reference(contract, faults=tuple(FAULTS[name] for name in names))
    out = tmp_path_factory.mktemp("faulty")
    with serve(broken) as base_url:
        # the rows that it breaks share the search, which needs more than the plan of `gate` leaves of its requests
        given = {"base_url": base_url, "model": "reference", "out": str(out), "max_requests": 150}
        yield contract, settings("openai", given), launch(settings("openai", given))


def test_the_audit_of_a_recording_says_what_the_run_said(faulty):
    contract, chosen, made = faulty
    (again,) = audit(
        contract,
        load([chosen.folder / "exchanges.ndjson"], contract),
        chosen.name,
        selected_requirements(chosen, contract),
    ).runs
    assert shrunk(made.exchanges)
    assert again.verdicts == made.verdicts
    assert again.smallest == made.smallest
    assert again.totals == made.totals
    assert again.plan_sha256 == made.plan_sha256


def test_refusals_shrink_to_the_member_that_is_refused(faulty):
    _, _, made = faulty
    cases = {one.id: one for one in made.planned}
    refused = cases[made.smallest["request.temperature.accepts"]].body
    assert refused == {"model": "reference", "prompt": refused["prompt"], "temperature": 2}


def test_a_run_stays_within_its_budget(faulty):
    _, chosen, made = faulty
    assert made.totals["attempts"] <= chosen.budget.requests
    assert made.totals["completion_tokens"] <= chosen.budget.completion_tokens


def test_the_recording_is_whole(faulty):
    _, chosen, made = faulty
    found = recording.read(chosen.folder / "exchanges.ndjson")
    assert [x.case.id for x in found.exchanges] == [x.case.id for x in made.exchanges]
    assert not found.torn
