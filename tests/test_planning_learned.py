"""What replies teach, what is made of it, and what a budget buys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planned import PROVIDERS, TEXT, checks, contract, obedient, plan, planner

from conformance.judge.fixtures import choice, completion, error, logprobs, plain, stream, usage
from conformance.model import Membership, RequestCase, Requirement, Validity
from conformance.model.budget import Budget, Cost
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Sent
from conformance.plan.context import PROMPT, STORY, PlanContext, identity
from conformance.plan.follow_ups import BEYOND, LARGEST_CONTEXT, ROOM, TABLE, nearly, pieces
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.requirement_coverage import RequirementCoverage, cost, must
from conformance.plan.set_cover import RemainingBudget, Selection, choose


def accept(row, label, role, body, status=200):
    groups = (Membership("accept", f"{row} {label}", role),)
    made = plain(completion(choice()), body) if status == 200 else error(status=status)
    case = RequestCase("x", dumps(body).encode(), "value", groups=groups)
    return Exchange(case, made.attempts)


class TestKnown:
    def test_a_value_that_is_refused_alone_is_refused(self):
        known = LearnedTarget()
        known.learn([accept("request.suffix.accepts", "suffix", "probe", {"suffix": "x", "n": 1}, 400)])
        assert known.refused == {"suffix": {"suffix": "x"}}
        assert known.rejects({"suffix": "x", "echo": True})
        assert not known.rejects({"suffix": "y"})

    def test_a_value_that_is_refused_in_company_is_suspect(self):
        known = LearnedTarget()
        known.learn([accept("request.n.accepts", "n=2", "joint", {"n": 2}, 400)])
        assert (known.in_doubt, known.refused) == ({"n=2"}, {})
        known.learn([accept("request.n.accepts", "n=2", "joint", {"n": 2})])
        assert known.in_doubt == set()

    @pytest.mark.parametrize("status", [401, 403, 408, 429])
    def test_an_answer_that_is_no_refusal_teaches_nothing(self, status):
        known = LearnedTarget()
        known.learn([accept("request.n.accepts", "n=2", "probe", {"n": 2}, status)])
        assert not known.refused

    def test_a_server_error_keeps_a_value_out_as_well(self):
        known = LearnedTarget()
        known.learn([accept("request.n.accepts", "n=2", "probe", {"n": 2}, 500)])
        assert "n=2" in known.refused

    @pytest.mark.parametrize(
        ("message", "length"),
        [
            ("This model's maximum context length is 4097 tokens, however you requested 9000004", 4097),
            ("max_tokens too large: the context holds 8192", 8192),
            ("no", None),
        ],
    )
    def test_the_context_is_read_from_a_refusal(self, message, length):
        known, groups = LearnedTarget(), (Membership("overflow", "x", "probe"),)
        known.learn([Exchange(RequestCase("x", b"{}", "relation", groups=groups), error(message).attempts)])
        assert known.context() == length


class TestStops:
    def test_both_sequences_occur_and_the_second_one_later(self):
        early, late = pieces(TEXT)
        assert -1 < TEXT.find(early) < TEXT.find(late)

    def test_each_spans_the_beginning_of_a_word(self):
        assert all(" " in piece.strip("x") and piece.strip() for piece in pieces(TEXT))

    @given(st.text())
    def test_any_text_gives_sequences_that_occur_in_it_or_none(self, text):
        found = pieces(text)
        assert found is None or all(piece in text and piece.strip() for piece in found)

    @pytest.mark.parametrize("text", ["", "      ", "abc"])
    def test_a_text_with_nothing_to_cut_is_left(self, text):
        assert pieces(text) is None

    def test_a_stop_is_cut_out_plain_and_streamed(self):
        cuts = [case for phase in planner("openai") for case in phase.cases if case.origin == "cut"]
        assert {case.body.get("stream") for case in cuts} == {None, True}

    def test_what_nearly_matches_begins_in_the_text_and_does_not_occur(self):
        assert TEXT.find(nearly(TEXT)[:-1]) == 1
        assert nearly(TEXT) not in TEXT
        sent = [case for phase in planner("openai", profile="full") for case in phase.cases]
        parts = {p.role for case in sent for p in case.groups if p.kind == "never" and p.key == "stop nearly plain"}
        assert parts == {"without", "with"}

    def test_a_model_that_says_nothing_gives_no_cut(self):
        silent = lambda case: plain(completion(choice("")), case.content)  # noqa: E731
        assert not [case for phase in planner("openai", silent) for case in phase.cases if case.origin == "cut"]


class TestLimits:
    """A target without a default limit would spend the tokens of a run on two replies."""

    @staticmethod
    def endless(case):
        body = case.body if isinstance(case.body, dict) else {"max_tokens": 5}
        if case.validity is Validity.INVALID or body.get("max_tokens") is not None:
            return obedient(case)
        whole = completion(choice(TEXT), usage=usage(9, 1000))
        return stream(whole, request=body) if body.get("stream") is True else plain(whole, case.content)

    @staticmethod
    def whole(phases):
        found = [case for phase in phases for case in phase.cases if case.validity is Validity.VALID]
        return [case for case in found if case.body.get("max_tokens") is None and case.hang_up_after is None]

    def test_no_second_reply_without_a_limit_is_read_to_its_end_where_the_first_ran_on(self):
        assert [case.body.get("max_tokens", "absent") for case in self.whole(planner("openai", self.endless))] == [
            "absent"
        ]
        assert {case.body.get("max_tokens", "absent") for case in self.whole(planner("openai"))} == {"absent", None}

    def test_null_is_hung_up_on_instead(self):
        found = [case for phase in planner("openai", self.endless) for case in phase.cases if case.hang_up_after == 2]
        assert [(case.body["max_tokens"], case.body["stream"]) for case in found] == [(None, True)]

    def test_null_and_absence_are_compared_on_a_text_that_does_not_end_by_itself(self):
        found = [case for phase in planner("openai", profile="full") for case in phase.cases]
        limits = {part.role: case.body for case in found for part in case.groups if part.key == "max_tokens plain"
                  and part.kind == "null"}  # fmt: skip
        assert {role: body["prompt"] for role, body in limits.items()} == {"absent": STORY, "null": STORY}
        assert limits["null"]["max_tokens"] is None


class TestOverflow:
    """A prompt that is longer than the context: of a known length, or of many contexts where none is named."""

    def longest(self, message):
        def answer(case):
            body = case.body if isinstance(case.body, dict) else {}
            beyond = isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 1_000_000
            return error(message, request=case.content) if beyond else obedient(case)

        found = [case for phase in planner("openai", answer, "full") for case in phase.cases]
        sizes = [(len(case.body["prompt"]), part.role, part.key) for case in found for part in case.groups
                 if part.kind == "overflow" and isinstance(case.body["prompt"], list)]  # fmt: skip
        return max(sizes)

    def test_it_exceeds_the_context_that_a_refusal_names(self):
        longest = self.longest("the context length is 2048 tokens")
        assert longest == (2048 + ROOM, "probe", "tokens.overflow longer filled")

    def test_the_escapes_of_a_refusal_are_no_context_length(self):
        escaped = self.longest("the context length is \u00e9\u00e9 2048 \N{ROCKET} tokens")
        assert escaped == (2048 + ROOM, "probe", "tokens.overflow longer filled")

    def test_it_exceeds_many_contexts_where_no_refusal_names_one(self):
        assert self.longest("too much") == (LARGEST_CONTEXT + ROOM, "long", "tokens.overflow unknown")


class TestOpenPoints:
    def test_a_key_that_is_a_word_is_observed_by_itself(self):
        found = [case for phase in planner("openai", profile="full") for case in phase.cases]
        observed = [case.body["logit_bias"] for case in found for part in case.groups
                    if part.role == "probe" and part.key.startswith("request.logit_bias.foreign")]  # fmt: skip
        assert observed == [{"9999999": 1}, {"one": 1}]


class TestBans:
    def spelling(self, case):
        """A target that tells how each id is spelled, and whose text has the token 42."""
        body = case.body if isinstance(case.body, dict) else {}
        if case.validity is Validity.INVALID:
            return error()
        prompt = body.get("prompt")
        if isinstance(prompt, list) and len(prompt) == TABLE + BEYOND:
            tokens = [f"<{number}>" for number in prompt] + [" next"]
        else:
            tokens = [" a", "<42>", " b"]
        lists = logprobs(tokens) if body.get("logprobs") is not None else None
        return plain(completion(choice("".join(tokens), logprobs=lists)), case.content)

    def test_a_token_that_comes_by_itself_is_forced_and_banned_by_its_id(self):
        phases = planner("openai", self.spelling, "full")
        bans = [(part.role, case.body) for phase in phases for case in phase.cases for part in case.groups
                if part.kind == "ban"]  # fmt: skip
        told = {role: body.get("logit_bias") for role, body in bans}
        assert told == {"without": None, "forced": {"42": 100}, "with": {"42": -100}}

    def test_without_a_spelling_one_of_two_forced_tokens_is_banned(self):
        told = [(part.role, case.body.get("logit_bias")) for phase in planner("openai", profile="full")
                for case in phase.cases for part in case.groups
                if part.kind == "ban" and part.key.endswith(("natural", " pair"))]  # fmt: skip
        assert told == [
            ("without", None),
            ("forced", {"72": 100, "84": 100}),
            ("with", {"72": -100, "84": 100}),
            ("forced", {"84": 100, "72": 100}),
            ("with", {"84": -100, "72": 100}),
        ]

    def test_a_part_of_a_character_is_not_banned(self):
        def in_parts(case):
            body = case.body if isinstance(case.body, dict) else {}
            if case.validity is Validity.INVALID or not body or isinstance(body.get("prompt"), list):
                return self.spelling(case)
            return plain(completion(choice(" a\ufffd", logprobs=logprobs([" a", "<42>"]))), case.content)

        banned = {token for phase in planner("openai", in_parts, "full") for case in phase.cases for part in case.groups
                  if part.kind == "ban" and part.role == "with" for token in case.body["logit_bias"]}  # fmt: skip
        assert banned == {"72", "84"}


class TestScoredEchoes:
    TOKENS = (" a", "<42>", " b")

    def echoed(self, provider="openai"):
        """The bodies of the requests that echo the text of this target."""

        def answer(case):
            body = case.body if isinstance(case.body, dict) else {}
            lists = logprobs(self.TOKENS) if body.get("logprobs") is not None else None
            reply = plain(completion(choice("".join(self.TOKENS), logprobs=lists)), case.content)
            return error() if case.validity is Validity.INVALID else reply

        phases = planner(provider, answer, "full")
        return [case.body for phase in phases for case in phase.cases for part in case.groups
                if part.kind == "scored" and part.role == "echoed"]  # fmt: skip

    def test_the_text_of_the_target_is_echoed_alone_and_behind_another_prompt(self):
        alone, behind = self.echoed()
        assert alone["prompt"] == PROMPT + "".join(self.TOKENS)
        assert behind["prompt"] == [PROMPT, alone["prompt"]]
        assert {body["echo"] for body in (alone, behind)} == {True}
        assert {body["max_tokens"] for body in (alone, behind)} == {0}

    def test_a_token_is_generated_where_none_may_not_be(self):
        assert {body["max_tokens"] for body in self.echoed("nebius")} == {1}


class TestSharing:
    def case(self, body, *groups):
        return PlanContext(contract("openai"), checks(), "m").case("relation", body, *groups)

    def test_bundles_that_want_the_same_request_share_it(self):
        one, other = (Membership(kind, "k", "without") for kind in ("echo", "logprobs"))
        body = {"model": "m", "prompt": "p"}
        (case,) = Sent().assemble([CaseGroup("values", 1, (self.case(body, part),)) for part in (one, other)])
        assert case.groups == (one, other)

    def test_a_copy_is_another_exchange(self):
        body = {"model": "m", "prompt": "p"}
        cases = Sent().assemble([CaseGroup("values", 1, (self.case(body), self.case(body)), (0, 1))])
        assert len({case.id for case in cases}) == 2
        assert len({case.content for case in cases}) == 1

    def test_a_request_of_an_earlier_wave_is_sent_again_under_a_new_id(self):
        sent, bundle = Sent(), CaseGroup("values", 1, (self.case({"model": "m", "prompt": "p"}),))
        first, second = sent.assemble([bundle]), sent.assemble([bundle])
        assert first[0].id != second[0].id

    def test_identity_is_everything_that_goes_over_the_wire(self):
        case = self.case({"model": "m", "prompt": "p"})
        changes = [{"method": "GET"}, {"headers": ()}, {"hang_up_after": 1}, {"content": b"{}"}]
        from dataclasses import replace

        assert len({identity(replace(case, **change)) for change in [{}, *changes]}) == len(changes) + 1


class TestSelection:
    CONTRACT = contract("openai")

    def bundle(self, number, rank=3, *rows, tokens=1):
        body = {"model": "m", "prompt": f"p{number}", "max_tokens": tokens}
        groups = [Membership("accept", f"{row} x", "probe") for row in rows]
        return CaseGroup("values", rank, (PlanContext(self.CONTRACT, checks(), "m").case("value", body, *groups),))

    def chosen(self, bundles, budget, wanted=()):
        return choose(bundles, RemainingBudget(budget), RequirementCoverage(self.CONTRACT, checks()), (), wanted)

    def test_what_must_be_shown_goes_before_what_is_dear(self):
        dear, needed = self.bundle(1, 1), self.bundle(2, 9, "request.n.accepts")
        assert self.chosen([dear, needed], Budget(requests=1), {"request.n.accepts"}) == [needed]

    def test_one_that_covers_two_goes_before_two_that_cover_one(self):
        both = self.bundle(1, 5, "request.n.accepts", "request.echo.accepts")
        single = [self.bundle(2, 5, "request.n.accepts"), self.bundle(3, 5, "request.echo.accepts")]
        wanted = {"request.n.accepts", "request.echo.accepts"}
        assert self.chosen([*single, both], Budget(requests=1), wanted) == [both]

    def test_the_cheaper_of_two_goes_first(self):
        cheap, costly = self.bundle(1, 5, "request.n.accepts"), self.bundle(2, 5, "request.n.accepts", tokens=500)
        assert self.chosen([costly, cheap], Budget(requests=1), {"request.n.accepts"}) == [cheap]

    @pytest.mark.parametrize("budget", [Budget(requests=3), Budget(completion_tokens=30), Budget(prompt_tokens=3)])
    def test_no_ceiling_is_passed(self, budget):
        found = self.chosen([self.bundle(number, 2, tokens=10) for number in range(9)], budget)
        costs = [cost(case, {}) for bundle in found for case in bundle.cases]
        assert 0 < len(found) <= 3
        assert sum(one.completion for one in costs) <= (budget.completion_tokens or 99)

    def test_what_follows_is_paid_for_together_with_what_it_rests_on(self):
        later = self.bundle(2)
        first = CaseGroup("values", 1, self.bundle(1).cases, then=CaseGroup("learned", 1, later.cases))
        assert Selection(RemainingBudget(Budget()), RequirementCoverage(self.CONTRACT, checks())).added_cost(first) == (
            2,
            Cost(2, 2),
        )
        assert self.chosen([first], Budget(requests=1)) == []

    def test_a_request_that_must_be_refused_costs_no_tokens(self):
        case = PlanContext(self.CONTRACT, checks(), "m").case(
            "invalid", {"model": "m", "prompt": "p", "n": 0, "max_tokens": 90}
        )
        assert cost(case, {}) == Cost(0, 0)

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_serving_agrees_with_the_judge_about_every_row_of_one_reply(self, provider):
        from conformance.judge.catalogue import CheckContext, Scope, load
        from conformance.judge.verdicts import serves

        found = plan(provider)
        serving = RequirementCoverage(found.contract, checks())
        rows = [row for row in found.contract.requirements if load()[row.check].scope is not Scope.GROUP]
        for case in found.cases[::9]:
            told = {row.id for row in rows if serves(row, case, CheckContext(found.contract, row.params))}
            assert {row.id for row in rows} & serving.of(case) == told

    def test_musts_are_the_rows_that_a_run_owes(self):
        assert must(self.CONTRACT) == {row.id for row in self.CONTRACT.requirements if row.level == "MUST"}
        assert all(isinstance(row, Requirement) for row in self.CONTRACT.requirements)
