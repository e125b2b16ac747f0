"""Failing requests are made smaller, within their budget, and only as long as the failure still shows."""

import pytest
from planned import checks, contract

from conformance.judge import Traffic, judge_all
from conformance.judge.fixtures import choice, completion, error, plain
from conformance.model import BROKEN, Credential, Ending, Membership, Outcome, Validity
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.plan.context import PlanContext
from conformance.run.reproducer import breaks_same_rules, evidence_of_reproducer, fits, smallest, traffic
from conformance.run.shrink import PER_FAILURE, PER_RUN, shrinking

CONTRACT = contract("openai")
WIDE = {
    "model": "m", "prompt": ["Liebe Grüße aus 東京", "b"], "max_tokens": 5, "temperature": 0, "n": 2, "echo": True,
    "user": "somebody", "stop": ["x", "y"], "top_p": 0.5,
}  # fmt: skip
ID = "usage.total"


def case(body, *groups, origin="row", context=CONTRACT):
    return PlanContext(context, checks(), "m").case(origin, body, *groups)


def miscounts(when, finish="length"):
    """A target whose totals are wrong on the bodies that `when` picks."""

    def reply(one):
        usage = {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 99 if when(one.body) else 9}
        return Exchange(one, plain(completion(choice(" 4, 5", finish=finish), usage=usage), one.content).attempts)

    return reply


def refuses(when):
    """A target that turns down the bodies that `when` picks."""

    def reply(one):
        answer = error("no") if when(one.body) else plain(completion(choice(" 4, 5")), one.content)
        return Exchange(one, answer.attempts)

    return reply


def drive(exchanges, reply, context=CONTRACT, verdicts=None):
    """The waves, and the smallest request that is found for each requirement."""
    exchanges = list(exchanges)
    if verdicts is None:
        verdicts = judge_all(context, Traffic(exchanges))
    found, phases = shrinking(context, verdicts, tuple(exchanges)), []
    try:
        phases.append(next(found))
        while True:
            back = tuple(reply(one) for one in phases[-1].cases)
            exchanges += back
            phases.append(found.send(back))
    except StopIteration:
        by_id = {x.case.id: x.case for x in exchanges}
        return phases, {row: by_id[one] for row, one in smallest(context, verdicts, exchanges).items()}


def search(body, fails):
    """The smallest request and the number of tries, where `fails` says of a body whether the failure shows."""
    reply = miscounts(lambda one: one == body or fails(one))
    verdicts = [v for v in judge_all(CONTRACT, Traffic([reply(case(body))])) if v.requirement.id == ID]
    phases, found = drive([reply(case(body))], reply, verdicts=verdicts)
    return found[ID], sum(len(phase.cases) for phase in phases)


OUTSIDE = {
    "no key": {"credential": Credential.NONE},
    "wrong key": {"credential": Credential.WRONG},
    "scheme": {"credential": Credential.LOWERCASE_SCHEME},
    "method": {"method": "PUT"},
    "path": {"path": "/elsewhere"},
    "header": {"headers": (("content-type", "text/plain"),)},
    "no header": {"headers": ()},
    "bytes": {"spelled": lambda content: content.replace(b'"temperature":0', b'"temperature":NaN')},
    "twice": {"spelled": lambda content: content[:-1] + b',"n":1,"n":2}'},
}


class TestOneFailure:
    def test_what_has_nothing_to_do_with_the_failure_goes(self):
        assert search(WIDE, lambda body: body.get("echo") is True)[0].body.keys() == {"model", "prompt", "echo"}

    def test_one_of_many_members_is_found_within_a_dozen_requests(self):
        _, tries = search(WIDE, lambda body: body.get("echo") is True)
        assert tries <= PER_FAILURE

    def test_two_members_that_only_fail_together_both_stay(self):
        smaller, _ = search(WIDE, lambda body: body.get("echo") is True and body.get("n") == 2)
        assert {"echo", "n"} <= smaller.body.keys()
        assert len(smaller.body) < len(WIDE)

    def test_a_prompt_of_any_form_is_cut_to_one_letter_where_it_does_not_matter(self):
        for prompt in ("One, two", ["One", "two"], [100, 101], [[100], [101]]):
            assert search({**WIDE, "prompt": prompt}, lambda body: "echo" in body)[0].body["prompt"] == "a"
            kept = search({**WIDE, "prompt": prompt}, lambda body: type(body["prompt"]) is type(WIDE["prompt"]))[0]
            assert isinstance(kept.body["prompt"], type(prompt))

    def test_values_become_simpler(self):
        smaller, _ = search({"model": "m", "prompt": "a long prompt"}, lambda _: True)
        assert smaller.body == {"model": "m", "prompt": "a"}

    def test_the_search_ends_after_a_dozen_tries(self):
        assert search(WIDE, lambda _: False)[1] == PER_FAILURE
        assert search(WIDE, lambda body: len(body) > 3)[1] <= PER_FAILURE

    def test_a_request_that_fails_only_as_it_is_stays_as_it_is(self):
        assert search(WIDE, lambda _: False)[0].body == WIDE

    @pytest.mark.parametrize("body", [WIDE, {"model": "m", "prompt": "p", "best_of": 3, "n": 2}])
    def test_what_is_required_and_what_is_valid_stay_so(self, body):
        reply = miscounts(lambda _: True)
        phases, _ = drive([reply(case(body))], reply)
        seen = [one for phase in phases for one in phase.cases]
        assert seen
        assert all({"model", "prompt"} <= one.body.keys() for one in seen)
        assert {one.validity for one in seen} == {Validity.VALID}

    def test_a_limit_stays_where_nothing_would_take_its_place(self):
        context = contract("nebius")
        assert context.default("max_tokens") is None
        reply = miscounts(lambda _: True)
        phases, _ = drive([reply(case({**WIDE, "n": 1}, context=context))], reply, context)
        seen = [one for phase in phases for one in phase.cases]
        assert seen
        assert all("max_tokens" in one.body for one in seen)


class TestRefusals:
    def test_the_member_that_is_refused_is_found_among_many(self):
        reply = refuses(lambda body: "top_p" in body and "echo" in body)
        verdicts = judge_all(CONTRACT, Traffic([reply(case(WIDE))]))
        broken = [v for v in verdicts if v.requirement.check == "combination_is_accepted"]
        _, found = drive([reply(case(WIDE))], reply, verdicts=broken)
        assert found["request.together.accepts"].body.keys() == {"model", "prompt", "echo", "top_p"}

    def test_a_value_that_is_refused_alone_keeps_what_its_control_lacks(self):
        row, key = "request.n.accepts", "request.n.accepts n=2"
        reply = refuses(lambda body: body.get("n") == 2)
        base = {"model": "m", "prompt": "One, two", "max_tokens": 5, "temperature": 0}
        pair = [
            reply(case(base, Membership("accept", key, "control"))),
            reply(case({**base, "n": 2}, Membership("accept", key, "probe"))),
        ]
        verdicts = [v for v in judge_all(CONTRACT, Traffic(pair)) if v.requirement.id == row]
        assert verdicts[0].outcome is Outcome.FAIL
        phases, found = drive(pair, reply, verdicts=verdicts)
        assert found[row].body == {"model": "m", "prompt": "a", "n": 2}
        assert all(one.body["n"] == 2 for phase in phases for one in phase.cases)

    def test_a_refusal_without_an_accepted_control_proves_nothing_and_is_left(self):
        reply = refuses(lambda body: "n" in body)
        alone = reply(
            case({"model": "m", "prompt": "p", "n": 2}, Membership("accept", "request.n.accepts n=2", "probe"))
        )
        verdicts = [v for v in judge_all(CONTRACT, Traffic([alone])) if v.requirement.id == "request.n.accepts"]
        assert drive([alone], reply, verdicts=verdicts) == ([], {})

    def let_in(self, base, broken, row):
        key = f"{row} example"
        reply = refuses(lambda _: False)
        pair = [
            reply(case(base, Membership("refuse", key, "control"))),
            reply(case({**base, **broken}, Membership("refuse", key, "probe"))),
        ]
        verdicts = [v for v in judge_all(CONTRACT, Traffic(pair)) if v.requirement.id == row]
        assert verdicts[0].outcome is Outcome.FAIL
        phases, found = drive(pair, reply, verdicts=verdicts)
        seen = [one for phase in phases for one in phase.cases]
        assert {one.validity for one in seen} == {Validity.INVALID}
        return seen, found[row]

    def test_an_invalid_request_that_is_let_in_keeps_what_is_wrong_with_it(self):
        base = {"model": "m", "prompt": "One, two", "max_tokens": 5, "temperature": 0}
        seen, least = self.let_in(base, {"n": 0}, "request.n.minimum")
        assert least.body == {"model": "m", "prompt": "a", "n": 0}
        assert all(one.body["n"] == 0 for one in seen)

    @pytest.mark.parametrize("breach", OUTSIDE.values(), ids=OUTSIDE)
    def test_what_lies_outside_of_the_body_is_in_each_smaller_request(self, breach):
        fields = dict(breach)
        row, key = "auth.no-key", "auth.no-key example"
        base = {"model": "m", "prompt": "One, two", "max_tokens": 5, "temperature": 0}
        content = fields.pop("spelled", lambda written: written)(dumps(base).encode())
        control = case(base, Membership("refuse", key, "control"))
        probe = PlanContext(CONTRACT, checks(), "m").case(
            "protocol", content, Membership("refuse", key, "probe"), validity=Validity.INVALID, breaks=(row,), **fields
        )
        reply = refuses(lambda _: False)
        other = case({"model": "m", "prompt": "a"}, origin="shrink")  # of another failure; with the key it is accepted
        exchanges = [reply(control), reply(probe), reply(other)]
        verdicts = [v for v in judge_all(CONTRACT, Traffic(exchanges)) if v.requirement.id == row]
        assert verdicts[0].outcome is Outcome.FAIL
        phases, found = drive(exchanges, reply, verdicts=verdicts)
        assert all(breaks_same_rules(one, probe) for phase in phases for one in phase.cases)
        assert breaks_same_rules(found[row], probe)
        if "spelled" in breach:
            assert found[row].content == content

    def test_the_evidence_in_a_smaller_request_says_what_it_tries(self):
        key = "request.n.minimum n=0"
        base = {"model": "m", "prompt": "One, two", "max_tokens": 5, "temperature": 0}
        reply = refuses(lambda _: False)
        small = reply(case({"model": "m", "prompt": "a", "n": 0}, origin="shrink"))
        pair = [
            reply(case(base, Membership("refuse", key, "control"))),
            reply(case({**base, "n": 0}, Membership("refuse", key, "probe"))),
        ]
        (verdict,) = (v for v in judge_all(CONTRACT, Traffic(pair)) if v.requirement.id == "request.n.minimum")
        by_id = {x.case.id: x for x in (*pair, small)}
        evidence = evidence_of_reproducer(CONTRACT, verdict, small.case.id, by_id)
        assert evidence.message == "n = 0: HTTP 200; expected a 4xx that says why"

    def test_members_that_exclude_each_other_stay_together(self):
        base = {"model": "m", "prompt": "One, two", "max_tokens": 5, "echo": True, "n": 3}
        _, least = self.let_in(base, {"best_of": 2}, "request.best_of.above-n")
        assert least.body == {"model": "m", "prompt": "a", "n": 3, "best_of": 2}


class TestARun:
    echoes = staticmethod(miscounts(lambda body: body.get("echo") is True))

    def test_each_failure_of_one_reply_gets_its_smallest_request(self):
        _, found = drive([self.echoes(case(WIDE))], self.echoes)
        assert found[ID].body.keys() == {"model", "prompt", "echo"}

    def test_several_failures_are_shrunk_side_by_side_and_a_run_has_its_ceiling(self):
        def broken(one):
            return Exchange(one, plain({"choices": 3, "usage": len(one.body)}, one.content).attempts)

        phases, found = drive([broken(case(WIDE))], broken)
        sent = [one for phase in phases for one in phase.cases]
        assert len(found) > 5
        assert len(sent) <= PER_RUN
        assert len({one.id for one in sent}) == len(sent)

    def test_failures_share_what_they_ask(self):
        def broken(one):
            return Exchange(one, plain({"choices": 3}, one.content).attempts)

        phases, found = drive([broken(case(WIDE))], broken)
        sent = [one for phase in phases for one in phase.cases]
        assert len({one.content for one in sent}) == len(sent) <= PER_FAILURE
        assert {one.id for one in found.values()} == {sent[-1].id}

    def test_what_the_run_has_sent_already_is_not_sent_again(self):
        wide, least = {**WIDE, "prompt": "p"}, {"model": "m", "prompt": "p"}
        reply = miscounts(lambda body: body.get("echo") is True, finish="stop")  # nothing else fails
        phases, _ = drive([reply(case(wide)), reply(case(least, origin="base"))], reply)
        assert least not in [one.body for phase in phases for one in phase.cases]

    def test_a_failure_for_another_reason_is_not_taken_for_a_smaller_one(self):
        reply = miscounts(lambda body: body.get("echo") is True or body.get("n") == 2)
        wide = reply(case({"model": "m", "prompt": "p", "echo": True, "user": "u", "seed": 1}))
        stranger = reply(case({"model": "m", "prompt": "p", "n": 2}, origin="shrink"))
        verdicts = judge_all(CONTRACT, Traffic([wide]))
        assert smallest(CONTRACT, verdicts, [wide, stranger])[ID] == wide.case.id

    def test_nothing_is_sent_where_nothing_failed(self):
        healthy = [self.echoes(case({"model": "m", "prompt": "p"}))]
        verdicts = [v for v in judge_all(CONTRACT, Traffic(healthy)) if v.outcome not in BROKEN]
        assert list(shrinking(CONTRACT, verdicts, healthy)) == []
        assert smallest(CONTRACT, verdicts, healthy) == {}

    def test_replies_that_do_not_come_end_the_search(self):
        exchanges = [self.echoes(case(WIDE))]
        verdicts = judge_all(CONTRACT, Traffic(exchanges))
        found = shrinking(CONTRACT, verdicts, exchanges)
        next(found)
        with pytest.raises(StopIteration):
            found.send(())
        assert smallest(CONTRACT, verdicts, exchanges)[ID] == exchanges[0].case.id

    def test_what_was_waited_for_in_vain_is_not_sent_again(self):
        late = plain(completion(choice()), ending=Ending.TIMED_OUT, error="silent for 30 s")
        late = Exchange(case(WIDE), late.attempts)
        assert not fits(late)
        verdicts = judge_all(CONTRACT, Traffic([late]))
        assert any(v.outcome is Outcome.FAIL for v in verdicts)
        assert list(shrinking(CONTRACT, verdicts, [late])) == []

    def test_what_brought_a_long_reply_is_not_asked_for_again_and_again(self):
        usage = {"prompt_tokens": 4, "completion_tokens": 5_000, "total_tokens": 99}
        long = Exchange(case(WIDE), plain(completion(choice(" 4, 5"), usage=usage)).attempts)
        assert not fits(long)
        silent = plain(completion(choice(" 4, 5" * 20_000), usage=None))
        assert not fits(Exchange(case(WIDE), silent.attempts))
        assert fits(self.echoes(case(WIDE)))

    def test_verdicts_rest_on_nothing_that_was_made_smaller(self):
        wide, smaller = self.echoes(case(WIDE)), self.echoes(case(WIDE, origin="shrink"))
        judged = traffic([wide, smaller], [wide.case, smaller.case])
        assert (judged.exchanges, judged.planned) == ((wide,), (wide.case,))
