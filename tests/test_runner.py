"""A plan is sent, judged, and told about, whatever happens on the way."""

from __future__ import annotations

import asyncio
import base64
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import recording
from conformance.judge import Traffic, judge_all
from conformance.judge.catalogue import CATALOGUE, Scope, check, load
from conformance.judge.fixtures import case, contract, error, example, group, plain
from conformance.model import (
    Credential,
    Ending,
    Inconclusive,
    Layer,
    Level,
    Membership,
    Outcome,
    Phase,
    RequestCase,
    Requirement,
    Satisfied,
    Source,
    Validity,
    Violation,
)
from conformance.model.budget import Budget
from conformance.model.exchange import Attempt, Exchange
from conformance.report import outputs
from conformance.run import run
from conformance.run.confirm import confirmation_phases
from conformance.run.preflight import first_case, obstacle
from conformance.send import RateLimits, Target, TimeoutPolicy, Watcher
from tests import hostile
from tests.hostile import BODY, says, serving

HURRIED = TimeoutPolicy(connect=0.3, first_byte=0.5, idle=0.5, total=1, retries=1, first_wait=0.01)
KEY = "sk-canary-0123456789abcdef"
ADDS_UP = Requirement(
    "usage.total.adds-up", "usage_adds_up", Level.MUST, Layer.CONTRACT, "Totals add up.", Source("#/usage")
)
TERMS = contract(requirements=(ADDS_UP,))
WRONG = BODY.replace(b'"total_tokens":5', b'"total_tokens":9')


def numbered(count: int, prefix: str = "t", **more: object) -> tuple[RequestCase, ...]:
    return tuple(
        replace(case({"max_tokens": 1, "seed": place}, **more), id=f"{prefix}/{place}") for place in range(count)
    )


def one_wave(*cases: RequestCase, **more: bool) -> Generator[Phase, tuple[Exchange, ...], None]:
    yield Phase("only", cases or numbered(3), **more)


def go(answer, plan=None, *, context=TERMS, key=KEY, **more):
    with serving(answer) as server:
        target = Target(server.base_url, "/completions", key)
        made = run(context, target, plan or one_wave(), timeouts=HURRIED, model="m", **{"shrink": False, **more})
    return made, server


def by_seed(**answers):
    """An answer by the request's seed."""

    async def answer(request, writer):
        seed = request.body.rpartition(b'"seed":')[2].rstrip(b"}").decode()
        await answers.get(f"s{seed}", says())(request, writer)

    return answer


# The whole way


def test_a_plan_is_sent_judged_and_counted():
    made, _ = go(says(), profile="full", seed=7, name="mine", claims=("no echo",))
    assert [x.case.id for x in made.exchanges] == ["t/0", "t/1", "t/2"]
    assert [verdict.outcome for verdict in made.verdicts] == [Outcome.PASS]
    assert made.totals == {"requests": 3, "attempts": 3, "prompt_tokens": 12, "completion_tokens": 3}
    assert made.incomplete == ()
    assert (made.profile, made.seed, made.target.name, made.target.model) == ("full", 7, "mine", "m")
    assert made.claims == ("no echo",)
    assert made.duration_s > 0


def test_a_broken_promise_is_found():
    made, _ = go(by_seed(s1=says(body=WRONG)))
    assert made.verdicts[0].outcome is Outcome.FAIL
    assert made.verdicts[0].evidence[0].case == "t/1"


@pytest.mark.parametrize(("stop_after", "sent"), [(0, 6), (1, 3), (2, 6)])
def test_a_run_stops_after_as_many_failures_as_asked_for(stop_after, sent):
    def two_phases():
        yield Phase("one", numbered(3, "one"))
        yield Phase("two", numbered(3, "two"))

    made, _ = go(by_seed(s1=says(body=WRONG)), two_phases(), stop_after=stop_after)
    assert len(made.exchanges) == sent
    assert made.verdicts[0].outcome is Outcome.FAIL
    assert made.incomplete == (("stopped after 1 failure, as asked for",) if sent == 3 else ())


def test_a_plan_learns_from_what_came_back():
    heard = []

    def plan():
        heard.append((yield Phase("first", numbered(2))))
        heard.append((yield Phase("second", numbered(1, "u"))))

    made, _ = go(says(), plan())
    assert [[x.case.id for x in phase] for phase in heard] == [["t/0", "t/1"], ["u/0"]]
    assert heard[0][0].content == BODY
    assert len(made.exchanges) == 3


def test_the_same_plan_has_the_same_hash_and_another_one_another():
    hashes = [go(says(), one_wave(*numbered(count)))[0].plan_sha256 for count in (2, 2, 3)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_exchanges_stand_in_the_order_of_the_plan():
    made, _ = go(by_seed(s0=hostile.slow(0.05, says())), one_wave(*numbered(5)))
    assert [x.case.id for x in made.exchanges] == [f"t/{place}" for place in range(5)]


def test_an_empty_plan_is_no_error():
    def nothing():
        return
        yield

    made, _ = go(says(), nothing())
    assert made.exchanges == ()
    assert made.verdicts[0].outcome is Outcome.NOT_APPLICABLE


def test_two_cases_of_one_id_are_the_planner_s_fault_and_named():
    with pytest.raises(ValueError, match="two cases with the id t/0"):
        go(says(), one_wave(*numbered(1), *numbered(1)))


def test_a_watcher_hears_of_the_plan_and_of_each_exchange():
    heard = []
    go(
        says(),
        watcher=Watcher(finished=lambda x: heard.append(x.case.id), planned=lambda phase: heard.append(phase.name)),
    )
    assert heard == ["only", "t/0", "t/1", "t/2"] or sorted(heard) == ["only", "t/0", "t/1", "t/2"]


# The first request


@pytest.fixture
def expectant():
    """A contract of which every success must show an occasion."""
    load()

    @check("test", Scope.SUCCESS, good=lambda: example(plain({})), bad=lambda: example(plain({})))
    def shows_up(x, context):
        """It shows up.

        Why.

        Fix: it.
        """
        yield Satisfied()

    yield contract(requirements=(replace(ADDS_UP, id="test.y", check="shows_up"),))
    del CATALOGUE["shows_up"]


@pytest.mark.parametrize(
    ("answer", "says_so"),
    [
        (
            says("401 Unauthorized", body=b'{"error":{"message":"bad key"}}'),
            'although a key was sent, saying "bad key"',
        ),
        (says("403 Forbidden", body=b""), "HTTP 403"),
        (says("200 OK", body=b"<!doctype html>", media="text/html"), "HTML"),
        (says("200 OK", body=b"\n <html>", media="text/plain"), "HTML"),
        (says("404 Not Found", body=b'{"detail":"Not Found"}'), "--model"),
        (says("308 Moved", "location: https://elsewhere.example/"), 'redirect to "https://elsewhere.example/"'),
        (says("503 Busy", body=b""), "after 2 attempts"),
        (hostile.raw(b""), "gave no reply in 2 attempts"),
        (hostile.falls_silent(b""), "no response head"),
    ],
)
def test_a_target_that_is_no_api_is_told_in_one_line_after_one_request(answer, says_so, expectant):
    made, server = go(answer, context=expectant)
    assert len({request.body for request in server.requests}) <= 1
    assert len(made.incomplete) == 1
    assert says_so in made.incomplete[0]
    assert "\n" not in made.incomplete[0]
    assert KEY not in made.incomplete[0]
    assert made.verdicts[0].incomplete
    assert made.unsent.keys() == {"t/0", "t/1", "t/2"}
    assert made.exchanges == ()


def test_a_server_that_is_not_there_is_told_in_one_line():
    made = run(TERMS, Target("http://127.0.0.1:9", "/completions"), one_wave(), timeouts=HURRIED)
    assert "http://127.0.0.1:9 gave no reply in 2 attempts" in made.incomplete[0]
    assert "connection refused" in made.incomplete[0]


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate", "SSL_CERT_FILE"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "begin with http://"),
        ("no connection within 10 s", "check that it runs"),
    ],
)
def test_a_connection_that_came_to_nothing_is_told_with_what_to_do(error, advice):
    failed = Exchange(case({}), (Attempt(0.0, None, error=error, ending=Ending.TRUNCATED),))
    assert advice in obstacle(failed, Target("https://h", "/completions"))


def test_the_line_masks_secrets_in_the_query():
    target = Target("http://h", "/completions", query=(("api_key", "canary-123456"),))
    assert "canary" not in obstacle(error(status=401), target)
    assert "no key was sent" in obstacle(error(status=401), target)


def test_an_ordinary_refusal_of_the_first_request_stops_nothing():
    made, _ = go(by_seed(s0=says("400 No", body=b"{}")))
    assert len(made.exchanges) == 3
    assert made.incomplete == ()


def test_the_first_request_goes_alone_and_is_a_valid_one():
    invalid = replace(numbered(1)[0], id="invalid", validity=Validity.INVALID)
    keyless = replace(numbered(1)[0], id="keyless", credential=Credential.NONE)
    made, server = go(says(), one_wave(invalid, keyless, *numbered(2)))
    assert b'"seed":0' in server.requests[0].body
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert [x.case.id for x in made.exchanges] == ["invalid", "keyless", "t/0", "t/1"]
    assert first_case(Phase("none", (invalid, keyless))) is None


def test_what_is_planned_later_is_known_though_nothing_is_sent():
    def plan():
        assert (yield Phase("first", numbered(1))) == ()
        assert (yield Phase("second", numbered(2, "u"))) == ()

    made, _ = go(says("401 No", body=b"{}"), plan())
    assert [one.id for one in made.planned] == ["t/0", "u/0", "u/1"]
    assert set(made.unsent) == {"t/0", "u/0", "u/1"}


# Budgets and interruption


def test_a_budget_that_ends_makes_the_run_incomplete_and_says_why():
    made, _ = go(says(), one_wave(*numbered(9)), budget=Budget(requests=4))
    assert len(made.exchanges) == 4
    assert made.incomplete == ("the budget of 4 attempts is spent (--max-requests): 5 of 9 requests were not sent",)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_what_there_is(tmp_path, number):
    path = tmp_path / "exchanges.ndjson"

    async def interrupts(request, writer):
        os.kill(os.getpid(), number)
        await hostile.falls_silent(b"")(request, writer)

    answer = hostile.in_turn(says(), says(), interrupts)
    made, _ = go(answer, one_wave(*numbered(30), serial=True), record=path, budget=Budget(seconds=20))
    assert len(made.exchanges) == 2
    assert made.verdicts[0].outcome is Outcome.PASS
    assert made.incomplete[0].startswith("interrupted before the end: ")
    found = recording.read(path)
    assert found.footer is not None
    assert found.footer["incomplete"] == list(made.incomplete)
    assert found.exchanges == made.exchanges


# Doubts


@pytest.fixture
def doubtful(monkeypatch):
    """A check that is in doubt until it has seen three texts of each role, and then says whether all are alike."""
    load()

    @check("test", Scope.GROUP, group="repeat", good=lambda: example(pair), bad=lambda: example(pair))
    def texts_agree_in_the_end(g, context):
        """Texts agree.

        Why.

        Fix: it.
        """
        roles = [g.all("first"), g.all("second")]
        if any(len(members) < 3 for members in roles):
            yield Inconclusive("few", repeat=True)
            return
        texts = {x.choices[0].text for members in roles for x in members}
        yield Violation(f"{len(texts)} texts")

    pair = group("repeat", first=plain({}), second=plain({}))
    yield contract(
        requirements=(
            Requirement("test.x", "texts_agree_in_the_end", Level.SHOULD, Layer.CONTRACT, "They agree.", Source("#")),
        )
    )
    del CATALOGUE["texts_agree_in_the_end"]


def pair_of(phase: str = "pair", *, burst: int = 0):
    cases = numbered(2)
    roles = ("first", "second")
    yield Phase(
        phase,
        tuple(replace(one, groups=(Membership("repeat", "k", role),)) for one, role in zip(cases, roles, strict=True)),
        burst=burst,
    )


def test_doubts_are_settled_by_sending_the_same_again(doubtful):
    made, server = go(says(), pair_of(), context=doubtful)
    assert len(server.requests) == 6
    assert {x.case.id: x.case.repeats for x in made.exchanges} == {
        "t/0": "", "t/1": "", "t/0~1": "t/0", "t/1~1": "t/1", "t/0~2": "t/0", "t/1~2": "t/1",
    }  # fmt: skip
    assert made.verdicts[0].reason == "1 texts"
    assert made.incomplete == ()


def test_repeats_do_not_change_the_hash_of_the_plan(doubtful):
    assert go(says(), pair_of(), context=doubtful)[0].plan_sha256 == go(says(), pair_of())[0].plan_sha256


def test_doubts_stay_where_the_budget_has_no_room(doubtful):
    made, server = go(says(), pair_of(), context=doubtful, budget=Budget(requests=3))
    assert len(server.requests) == 2, "a half of what settles a doubt is not worth its price"
    assert made.verdicts[0].outcome is Outcome.INCONCLUSIVE
    assert not made.incomplete, "a SHOULD in doubt is owed to nobody"
    binding = tuple(replace(one, level=Level.MUST) for one in doubtful.requirements)
    made, _ = go(says(), pair_of(), context=replace(doubtful, requirements=binding), budget=Budget(requests=3))
    assert "no room for confirmation (--max-requests): 1 verdicts" in made.incomplete[0]


def test_what_went_out_together_is_repeated_together(doubtful):
    made, _ = go(says(), pair_of(burst=2), context=doubtful)
    verdict = replace(made.verdicts[0], repeat=(("t/0", "t/1"),))
    phases = confirmation_phases(
        [verdict], [Phase("b", tuple(x.case for x in made.exchanges[:2]), burst=2)], made.exchanges[:2]
    )
    assert [(phase.burst, [one.id for one in phase.cases]) for phase in phases] == [
        (2, ["t/0~1", "t/1~1"]),
        (2, ["t/0~2", "t/1~2"]),
    ]


def test_repeats_are_bounded():
    xs = tuple(Exchange(one, plain({}).attempts) for one in numbered(50))
    verdict = judge_all(TERMS, Traffic(xs))[0]
    phases = confirmation_phases([replace(verdict, repeat=tuple((x.case.id,) for x in xs))], [], xs, room=60)
    assert sum(len(phase.cases) for phase in phases) == 60


# Recording and resuming


def test_a_run_is_judged_again_from_its_recording_with_the_same_verdicts(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    made, _ = go(hostile.in_turn(says("503 Busy"), says(), says(body=WRONG)), record=path, seed=3)
    found = recording.read(path)
    assert found.exchanges == made.exchanges
    assert judge_all(TERMS, Traffic(found.exchanges, found.planned)) == made.verdicts
    assert made.verdicts[0].outcome is Outcome.FAIL
    assert found.header["seed"] == 3
    assert found.header["contract"]["sha256"] == TERMS.sha256
    assert (found.footer or {})["plan_sha256"] == made.plan_sha256
    assert (found.footer or {})["totals"] == made.totals


def test_a_key_never_reaches_the_disk(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    echo = b'{"error":"unknown key ' + KEY.encode() + b" or " + base64.b64encode(KEY.encode()) + b'"}'
    go(by_seed(s1=says("401 No", f"x-key: {KEY}", body=echo)), record=path)
    kept = path.read_bytes()
    assert b"unknown key xxxxxxxx" in kept
    for form in (KEY.encode(), base64.b64encode(KEY.encode()), KEY.encode().hex().encode()):
        assert form not in kept


def test_an_interrupted_run_is_resumed_without_sending_anything_twice(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    answer = by_seed(s4=says(body=WRONG))
    whole, _ = go(answer, one_wave(*numbered(6), serial=True), record=path)
    lines = path.read_bytes().splitlines(keepends=True)
    # killed after the start of the fourth case was written
    started = [place for place, line in enumerate(lines) if b'"record":"start"' in line]
    path.write_bytes(b"".join(lines[: started[3] + 1]) + b'{"record":"att')
    again, server = go(answer, one_wave(*numbered(6), serial=True), record=path, resume=True)
    assert len(server.requests) == 3
    assert [v.outcome for v in again.verdicts] == [v.outcome for v in whole.verdicts]
    assert again.plan_sha256 == whole.plan_sha256
    found = recording.read(path)
    assert [x.case.id for x in found.exchanges] == [x.case.id for x in whole.exchanges]
    assert found.footer is not None
    assert len(found.phases) == 1
    assert found.exchanges == again.exchanges
    assert found.lost == {}
    first, second = again.exchanges[3].attempts
    assert (first.status, first.error, second.status) == (None, "the run was cut off before the reply", 200)
    assert 0 < first.started_at < second.started_at


@pytest.mark.parametrize("lost", [0, 1, 3, 5])
def test_a_run_that_is_resumed_late_has_the_same_verdicts_within_the_same_budget(tmp_path, doubtful, lost):
    path, budget = tmp_path / "exchanges.ndjson", Budget(requests=6)
    whole, server = go(says(), pair_of(), context=doubtful, record=path, budget=budget)
    assert len(server.requests) == 6, "the budget is spent, four attempts of it on repeats"
    lines = path.read_bytes().splitlines(keepends=True)
    attempts = [place for place, line in enumerate(lines) if b'"record":"attempt"' in line]
    path.write_bytes(b"".join(lines[: attempts[-lost - 1] + 1] if lost else lines))
    again, server = go(says(), pair_of(), context=doubtful, record=path, budget=budget, resume=True)
    assert [v.outcome for v in again.verdicts] == [v.outcome for v in whole.verdicts]
    assert (again.incomplete, again.totals["requests"]) == (whole.incomplete, 6)
    assert len(server.requests) == lost


def test_what_was_in_flight_counts_as_an_attempt_of_its_own(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    go(by_seed(s2=hostile.in_turn(says("503 Busy"), says())), record=path)
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(place for place, line in enumerate(lines) if b'"status":503' in line)
    path.write_bytes(b"".join(lines[: cut + 1]))
    again, _ = go(says(), record=path, resume=True, pace=RateLimits(concurrency=1))
    tried = {x.case.id: [attempt.status for attempt in x.attempts] for x in again.exchanges}
    assert tried["t/2"] == [503, 200]


def test_a_run_that_met_no_api_is_resumed_when_there_is_one(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    go(says("503 Busy", body=b""), record=path)
    assert recording.read(path).exchanges == ()
    again, _ = go(says(), record=path, resume=True)
    assert again.incomplete == ()
    assert [attempt.status for attempt in again.exchanges[0].attempts] == [503, 503, 200]
    assert recording.read(path).exchanges == again.exchanges


def test_a_recording_of_another_run_is_not_resumed(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    go(says(), record=path, seed=1)
    with pytest.raises(ValueError, match="cannot be resumed: seed is 1 there and 2 now"):
        go(says(), record=path, seed=2, resume=True)
    with pytest.raises(ValueError, match="cannot be resumed: target is"):
        run(TERMS, Target("http://elsewhere", "/"), one_wave(), seed=1, model="m", record=path, resume=True)


# A target that stops answering


def test_a_run_goes_on_once_a_silent_target_answers_again():
    silent = {f"s{seed}": hostile.falls_silent(b"") for seed in range(1, 11)}
    made, _ = go(by_seed(**silent), one_wave(*numbered(30)))
    assert {x.case.id for x in made.exchanges} >= {f"t/{number}" for number in range(30)}
    assert made.incomplete == ()
    probes = [x for x in made.exchanges if x.case.repeats]
    assert [(x.case.repeats, x.status) for x in probes] == [("t/0", 200)]


def test_a_target_that_is_gone_is_probed_three_times_and_given_up():
    made, _ = go(hostile.in_turn(says(), hostile.raw(b"")), one_wave(*numbered(30)))
    assert sum(bool(x.case.repeats) for x in made.exchanges) == 3
    assert len(made.exchanges) < 25
    assert "the target stopped answering" in made.incomplete[0]


# Replies that break off beside others

COMPLETE, BESIDE = (
    Requirement(f"robustness.{name}", check, Level.MUST, Layer.STANDARD, "It arrives completely.", Source("RFC 9112"))
    for name, check in (("complete", "response_is_complete"), ("beside", "complete_beside_others"))
)


def one_at_a_time(whole, cut, alone_too=False):
    """A server that breaks a reply off when another request is in progress, or when it has broken one off before."""
    busy = set()

    async def answer(request, writer):
        mark = object()
        busy.add(mark)
        await asyncio.sleep(0.02)
        beside = len(busy) > 1
        busy.discard(mark)
        await (cut if beside or (alone_too and b'"seed":1}' in request.body) else whole)(request, writer)

    return answer


def test_what_breaks_off_beside_others_is_sent_alone_and_so_is_all_that_follows():
    def plan():
        yield Phase("first", numbered(8))
        yield Phase("second", numbered(8, "u"))

    answer = one_at_a_time(says(), hostile.raw(hostile.head("200 OK", length=50) + b"{"))
    made, _ = go(answer, plan(), context=contract(requirements=(COMPLETE, BESIDE)))
    complete, beside = made.verdicts
    assert complete.outcome is Outcome.PASS
    assert beside.outcome is Outcome.FAIL
    assert "beside other requests" in beside.reason
    assert all(x.ending is Ending.COMPLETE for x in made.exchanges if x.case.id.startswith("u/"))


def test_what_breaks_off_alone_as_well_is_not_blamed_on_the_others():
    answer = one_at_a_time(says(), hostile.raw(hostile.head("200 OK", length=50) + b"{"), alone_too=True)
    made, _ = go(answer, one_wave(*numbered(8)), context=contract(requirements=(COMPLETE, BESIDE)))
    assert [verdict.outcome for verdict in made.verdicts] == [Outcome.FAIL, Outcome.NOT_APPLICABLE]


# A full disk


def test_a_disk_that_is_full_is_named_and_the_run_can_be_resumed(tmp_path):
    def with_limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # no file grows beyond, as on a full disk

    words = [sys.executable, "-m", "conformance", "run", "openai", "-q", "--out", str(tmp_path)]
    full = subprocess.run(words, preexec_fn=with_limit, capture_output=True, text=True, check=False)
    (message,) = full.stderr.splitlines()
    assert full.returncode == 3
    assert "exchanges.ndjson: No space left on device; make room, and continue with --resume" in message
    again = subprocess.run([*words, "--resume"], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (0, "")


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text("before")

    def fails(self, data, *_):
        with self.open("wb") as file:
            file.write(data[:3].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises(OSError, match="No space"):
        outputs._write(tmp_path / "results.json", "after")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("results.json", b"before")]
