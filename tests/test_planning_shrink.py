"""Failing requests are made smaller, within their budget, and only as long as the failure still shows."""

import pytest
from planned import contract

from conformance.examples import choice, completion, plain
from conformance.exchange import Exchange
from conformance.judge import Traffic, judge_all
from conformance.model import BROKEN, Validity
from conformance.planning.scene import Scene
from conformance.planning.shrink import PER_FAILURE, PER_RUN, shrink, shrinking

CONTRACT = contract("openai")
WIDE = {
    "model": "m", "prompt": ["Liebe Grüße aus 東京", "b"], "max_tokens": 5, "temperature": 0, "n": 2, "echo": True,
    "user": "somebody", "stop": ["x", "y"], "top_p": 0.5,
}  # fmt: skip


def case(body):
    return Scene(CONTRACT, "m").case("row", body)


def search(body, fails):
    """The smallest request and the number of tries, where `fails` says of a body whether the failure shows."""
    found, tries = shrink(CONTRACT, case(body)), 0
    try:
        candidate = next(found)
        while True:
            tries += 1
            candidate = found.send(fails(candidate.body))
    except StopIteration as end:
        return end.value, tries


class TestOneFailure:
    def test_what_has_nothing_to_do_with_the_failure_goes(self):
        smallest, _ = search(WIDE, lambda body: body.get("echo") is True)
        assert smallest.body.keys() == {"model", "prompt", "echo"}

    def test_two_members_that_only_fail_together_both_stay(self):
        smallest, _ = search(WIDE, lambda body: body.get("echo") is True and body.get("n") == 2)
        assert {"echo", "n"} <= smallest.body.keys()
        assert len(smallest.body) < len(WIDE)

    def test_values_become_simpler(self):
        smallest, _ = search({"model": "m", "prompt": "a long prompt"}, lambda _: True)
        assert smallest.body == {"model": "m", "prompt": "a"}

    def test_the_search_ends_after_a_dozen_tries(self):
        assert search(WIDE, lambda _: False)[1] == PER_FAILURE
        assert search(WIDE, lambda body: len(body) > 3)[1] <= PER_FAILURE

    def test_a_request_that_fails_only_as_it_is_stays_as_it_is(self):
        assert search(WIDE, lambda _: False)[0].body == WIDE

    @pytest.mark.parametrize("body", [WIDE, {"model": "m", "prompt": "p", "best_of": 3, "n": 2}])
    def test_what_is_required_and_what_is_valid_stay_so(self, body):
        found = shrink(CONTRACT, case(body))
        candidate = next(found)
        seen = [candidate]
        for _ in range(PER_FAILURE - 1):
            try:
                seen.append(found.send(True))
            except StopIteration:
                break
        assert all({"model", "prompt"} <= one.body.keys() for one in seen)
        assert {one.validity for one in seen} == {Validity.VALID}


class TestARun:
    def reply(self, case):
        """A target that miscounts as soon as it echoes."""
        wrong = case.body.get("echo") is True
        usage = {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 99 if wrong else 9}
        return Exchange(case, plain(completion(choice(" 4, 5"), usage=usage), case.content).attempts)

    def drive(self, exchanges, reply):
        waves = []
        found = shrinking(CONTRACT, judge_all(CONTRACT, Traffic(exchanges)), exchanges)
        try:
            waves.append(next(found))
            while True:
                waves.append(found.send(tuple(reply(case) for case in waves[-1].cases)))
        except StopIteration as end:
            return waves, end.value

    def test_each_failure_of_one_reply_gets_its_smallest_request(self):
        _, found = self.drive([self.reply(case(WIDE))], self.reply)
        assert found["usage.total"].body.keys() == {"model", "prompt", "echo"}

    def test_several_failures_are_shrunk_side_by_side_and_a_run_has_its_ceiling(self):
        broken = lambda one: Exchange(one, plain({"choices": 3}, one.content).attempts)  # noqa: E731
        exchanges = [broken(case(WIDE))]
        failing = [v for v in judge_all(CONTRACT, Traffic(exchanges)) if v.outcome in BROKEN]
        waves, found = self.drive(exchanges, broken)
        sent = [one for wave in waves for one in wave.cases]
        assert len(failing) > len(found) == PER_RUN // PER_FAILURE
        assert len(sent) <= PER_RUN
        assert len({one.id for one in sent}) == len(sent)

    def test_nothing_is_sent_where_nothing_failed(self):
        healthy = [self.reply(case({"model": "m", "prompt": "p"}))]
        verdicts = [v for v in judge_all(CONTRACT, Traffic(healthy)) if v.outcome not in BROKEN]
        assert list(shrinking(CONTRACT, verdicts, healthy)) == []

    def test_replies_that_do_not_come_end_the_search(self):
        exchanges = [self.reply(case(WIDE))]
        found = shrinking(CONTRACT, judge_all(CONTRACT, Traffic(exchanges)), exchanges)
        next(found)
        for _ in range(PER_FAILURE - 1):
            found.send(())
        with pytest.raises(StopIteration) as end:
            found.send(())
        assert end.value.value["usage.total"].body == WIDE
