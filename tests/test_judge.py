"""From findings to verdicts: broken, satisfied, inconclusive, and not shown."""

from dataclasses import replace

import pytest

from conformance.contract import load as load_contract
from conformance.judge import Traffic, judge, judge_all
from conformance.judge.catalogue import CATALOGUE, Check, CheckContext, Scope, always, expect, load, show
from conformance.judge.fixtures import case, choice, completion, contract, error, plain, response, stream
from conformance.judge.tally import MOST_EVIDENCE
from conformance.judge.verdicts import serves
from conformance.model import (
    Credential,
    Ending,
    Inconclusive,
    Layer,
    Level,
    Membership,
    Observation,
    Outcome,
    Requirement,
    Satisfied,
    Source,
    Validity,
    Violation,
)
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING

load()
CONTRACT = contract()
FINE = completion(choice())


def row(check="toy", level=Level.MUST, when=None, at="toy.row", **params):
    return Requirement(at, check, level, Layer.CONTRACT, "It holds.", Source("#"), when or {}, params)


@pytest.fixture
def toy(monkeypatch):
    """A check that yields what the test wants; gives back a function that judges by it."""

    def install(*findings, scope=Scope.SUCCESS, due=always, group="", keyed=False):
        function = findings[0] if findings and callable(findings[0]) else lambda *_: iter(findings)
        check = Check("toy", "toy", scope, function, tuple, tuple, due, group, keyed)
        monkeypatch.setitem(CATALOGUE, "toy", check)
        return lambda *exchanges, planned=(), **about: judge(row(**about), Traffic(exchanges, planned), CONTRACT)

    return install


def numbered(x, number, **about):
    return replace(x, case=replace(x.case, id=f"case/{number}", **about))


class TestOutcomes:
    @pytest.mark.parametrize(
        ("level", "outcome"), [(Level.MUST, Outcome.FAIL), (Level.SHOULD, Outcome.WARN), (Level.MAY, Outcome.PASS)]
    )
    def test_a_violation_weighs_as_much_as_its_level(self, toy, level, outcome):
        verdict = toy(Satisfied(), Violation("2; expected 1", "/n"))(plain(FINE), level=level)
        assert verdict.outcome is outcome
        assert (verdict.examined, verdict.violations) == (2, 1)
        assert "/n: 2; expected 1" in verdict.reason
        assert verdict.evidence[0].case == "example/0"

    def test_satisfied_occurrences_pass(self, toy):
        verdict = toy(Satisfied(), Satisfied(count=3))(plain(FINE))
        assert (verdict.outcome, verdict.examined, verdict.exchanges) == (Outcome.PASS, 4, 1)
        assert not verdict.incomplete

    def test_nothing_seen_is_never_a_pass(self, toy):
        verdict = toy()(plain(FINE))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.incomplete
        assert verdict.examined == 0

    def test_an_inconclusive_should_leaves_the_run_complete(self, toy):
        assert not toy()(plain(FINE), level=Level.SHOULD).incomplete

    def test_one_reproducible_violation_outweighs_flaky_ones(self, toy):
        flaky = Violation("a; expected b", flaky=True)
        assert toy(flaky)(plain(FINE)).outcome is Outcome.FLAKY
        assert toy(flaky, Violation("a; expected b"))(plain(FINE)).outcome is Outcome.FAIL

    def test_a_finding_that_needs_confirmation_is_no_pass(self, toy):
        verdict = toy(Satisfied(), Inconclusive("other"), Inconclusive("once", repeat=True))(plain(FINE))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.repeat == (("example/0",),)
        assert verdict.reason == "needs confirmation: once"

    def test_an_inconclusive_finding_beside_satisfied_ones_passes(self, toy):
        assert toy(Satisfied(), Inconclusive("one of many"))(plain(FINE)).outcome is Outcome.PASS

    def test_the_only_inconclusive_finding_is_the_reason(self, toy):
        assert toy(Inconclusive("too short to tell"))(plain(FINE)).reason == "too short to tell"

    def test_evidence_is_capped_and_violations_are_counted_on(self, toy):
        verdict = toy(*[Violation("a; expected b")] * 50)(plain(FINE))
        assert verdict.violations == 50
        assert len(verdict.evidence) == MOST_EVIDENCE

    def test_a_violation_may_name_another_exchange(self, toy):
        assert toy(Violation("a; expected b", case="case/9"))(plain(FINE)).evidence[0].case == "case/9"


class TestObservations:
    def test_they_are_all_that_a_may_requires(self, toy):
        verdict = toy(Observation("edge", "accepted"))(plain(FINE), level=Level.MAY)
        assert (verdict.outcome, verdict.examined) == (Outcome.PASS, 1)

    def test_they_prove_no_must(self, toy):
        verdict = toy(Observation("edge", "accepted"))(plain(FINE))
        assert (verdict.outcome, verdict.examined) == (Outcome.INCONCLUSIVE, 0)
        assert verdict.observations

    def test_the_same_one_is_kept_once(self, toy):
        verdict = toy(Observation("edge", "accepted"))(*[plain(FINE)] * 5, level=Level.MAY)
        assert len(verdict.observations) == 1
        assert verdict.examined == 5


class TestScopes:
    @pytest.mark.parametrize(
        ("scope", "seen"),
        [
            (Scope.ANY, {"plain", "stream", "invalid", "refused", "failed", "cut", "open", "forged"}),
            (Scope.SUCCESS, {"plain", "stream", "open"}),
            (Scope.PLAIN, {"plain", "open"}),
            (Scope.STREAM, {"stream"}),
            (Scope.ERROR, {"refused", "failed"}),
        ],
    )
    def test_a_check_is_shown_its_exchanges_only(self, toy, scope, seen):
        exchanges = {
            "plain": plain(FINE),
            "stream": stream(FINE),
            "invalid": plain(FINE, {"n": 0}, validity=Validity.INVALID),
            "refused": error(),
            "failed": error(status=500),
            "cut": response(b"{", ending=Ending.TRUNCATED),
            "open": plain(FINE, validity=Validity.UNSPECIFIED),
            "forged": plain(FINE, credential=Credential.WRONG),
        }
        shown = []
        run = toy(lambda x, _: iter([shown.append(x.case.id) or Satisfied()]), scope=scope)
        run(*(replace(x, case=replace(x.case, id=name)) for name, x in exchanges.items()))
        assert set(shown) == seen

    def test_when_names_the_requests_that_a_requirement_applies_to(self, toy):
        run = toy(Satisfied())
        asks, not_ = stream(FINE, request={"stream_options": {"include_usage": True}}), stream(FINE)
        assert run(asks, not_, when={"include_usage": True}).exchanges == 1
        assert run(asks, not_, when={"include_usage": False}).exchanges == 1
        assert run(plain(FINE), plain(FINE, {"n": 2}), plain(FINE, {"n": 3}), when={"n": [1, 2]}).exchanges == 2


class TestNothingSeen:
    def test_a_planned_case_that_was_never_sent_is_not_run(self, toy):
        verdict = toy()(planned=[case({"n": 2})])
        assert verdict.outcome is Outcome.NOT_RUN
        assert verdict.incomplete
        assert "1 of the planned requests" in verdict.reason

    def test_without_a_request_that_triggers_it_a_requirement_is_not_applicable(self, toy):
        verdict = toy(due=lambda asked, _: asked.echo)(plain(FINE))
        assert (verdict.outcome, verdict.incomplete) == (Outcome.NOT_APPLICABLE, False)

    def test_what_no_client_can_trigger_is_not_applicable(self, toy):
        verdict = toy(due=None)(plain(FINE))
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "cannot trigger it" in verdict.reason

    def test_requests_that_the_target_all_refuses_are_not_applicable(self, toy):
        verdict = toy(due=lambda asked, _: asked.echo)(error(request={"echo": True}), plain(FINE))
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "refused all 1 requests that trigger it (HTTP 400)" in verdict.reason

    def test_refusals_of_invalid_requests_make_nothing_not_applicable(self, toy):
        verdict = toy(scope=Scope.ERROR)(error(validity=Validity.INVALID))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        group = toy(scope=Scope.GROUP, group="refuse")
        alone = error(validity=Validity.INVALID, groups=(Membership("refuse", "a", "probe"),))
        assert group(alone).outcome is Outcome.INCONCLUSIVE

    def test_a_group_that_cannot_show_a_requirement_is_not_expected_to(self, toy):
        pair = [
            plain(FINE, groups=(Membership("twin", "a", role),), id=f"example/{role}") for role in ("plain", "stream")
        ]
        verdict = toy(scope=Scope.GROUP, group="twin", due=lambda asked, _: asked.echo)(*pair)
        assert verdict.outcome is Outcome.NOT_APPLICABLE

    def test_requests_that_all_failed_are_inconclusive(self, toy):
        assert toy()(error(status=503)).outcome is Outcome.INCONCLUSIVE

    def test_half_a_group_was_not_run(self, toy):
        plain_part, stream_part = (Membership("twin", "a", role) for role in ("plain", "stream"))
        run = toy(scope=Scope.GROUP, group="twin")
        verdict = run(plain(FINE, groups=(plain_part,)), planned=[case(id="example/1", groups=(stream_part,))])
        assert verdict.outcome is Outcome.NOT_RUN


class TestGroups:
    def shown(self, toy, *exchanges, **about):
        groups = []
        toy(lambda group, _: iter([groups.append(group) or Satisfied()]), scope=Scope.GROUP, group="twin", **about)(
            *exchanges
        )
        return groups

    def member(self, number, role, key="a", **about):
        return numbered(plain(FINE), number, groups=(Membership("twin", key, role),), **about)

    def test_members_are_gathered_by_key_and_role(self, toy):
        groups = self.shown(toy, *(self.member(n, role, key) for n, (role, key) in enumerate(["xa", "ya", "xb"])))
        assert [(group.key, sorted(group.members)) for group in groups] == [("a", ["x", "y"]), ("b", ["x"])]

    def test_a_repeat_has_the_roles_of_the_case_that_it_repeats(self, toy):
        again = numbered(plain(FINE), 7, repeats="case/0")
        (group,) = self.shown(toy, self.member(0, "x"), self.member(1, "y"), again)
        assert [x.case.id for x in group.all("x")] == ["case/0", "case/7"]
        assert [x.case.id for x in group.all("y")] == ["case/1"]

    def test_a_keyed_group_belongs_to_the_requirement_that_its_key_begins_with(self, toy):
        mine, other = self.member(0, "x", "toy.row n=1"), self.member(1, "x", "toy.row-2 n=1")
        assert [group.key for group in self.shown(toy, mine, other, keyed=True)] == ["toy.row n=1"]

    def test_all_members_of_a_group_that_needs_confirmation_are_repeated(self, toy):
        run = toy(Inconclusive("once", repeat=True), scope=Scope.GROUP, group="twin")
        assert run(self.member(0, "x"), self.member(1, "y")).repeat == (("case/0", "case/1"),)

    def test_a_group_with_a_refused_role_is_not_applicable(self, toy):
        run = toy(Inconclusive("nothing to compare"), scope=Scope.GROUP, group="twin")
        refused = numbered(error(), 1, groups=(Membership("twin", "a", "y"),))
        assert run(self.member(0, "x"), refused).outcome is Outcome.NOT_APPLICABLE
        assert run(self.member(0, "x"), self.member(1, "y")).outcome is Outcome.INCONCLUSIVE


class TestFaultsOfOurOwn:
    def test_a_check_that_raises_is_our_error_and_says_where(self, toy):
        def broken(x, context):
            yield Satisfied()
            raise KeyError("usage")

        verdict = toy(broken)(plain(FINE))
        assert verdict.outcome is Outcome.ERROR
        assert "toy raised KeyError: 'usage'" in verdict.reason
        assert "broken:" in verdict.reason


class TestServing:
    def serves(self, check, asked, **about):
        return serves(row(check), case(asked, **about), CheckContext(CONTRACT))

    def test_a_case_serves_the_requirements_that_it_is_expected_to_show(self):
        assert self.serves("done_is_sent", {"stream": True})
        assert not self.serves("done_is_sent", {})
        assert self.serves("plain_declares_json", {})
        assert self.serves("error_is_json", {"n": 0}, validity=Validity.INVALID)

    def test_an_invalid_or_keyless_case_serves_no_check_of_successes(self):
        assert not self.serves("plain_declares_json", {}, validity=Validity.INVALID)
        assert not self.serves("plain_declares_json", {}, credential=Credential.NONE)
        assert not self.serves("plain_declares_json", {}, hang_up_after=2)
        assert not self.serves("plain_declares_json", b"{")


def test_the_whole_contract_is_judged_in_its_order():
    rows = (row("done_is_sent", at="a"), row("plain_declares_json", at="b"))
    verdicts = judge_all(contract(requirements=rows), Traffic([plain(FINE), stream(FINE)]))
    assert [(one.requirement.id, one.outcome) for one in verdicts] == [("a", Outcome.PASS), ("b", Outcome.PASS)]


def test_judging_again_gives_the_same_verdicts():
    rows = tuple(row(name, at=name) for name in CATALOGUE)
    traffic = [stream(FINE, done=False), plain(FINE), error(status=500), response(b"\xff")]
    whole = contract(requirements=rows)
    assert judge_all(whole, Traffic(traffic)) == judge_all(
        whole, Traffic([Exchange(x.case, x.attempts) for x in traffic])
    )


class TestMessages:
    def test_expect_states_the_observed_value_first(self):
        assert expect(True, "2", "1") == Satisfied("")
        assert expect(False, "n is 2", "1", "/n") == Violation("n is 2; expected 1", "/n")

    @pytest.mark.parametrize("value", ["\x1b[31m", "\u202e", "\ud800", "\x00\n", {"a": "\x07"}, b"\xff\x1b"])
    def test_hostile_text_is_shown_harmless(self, value):
        assert show(value).isprintable()

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "null"), ({"a": True}, '{"a": true}'), ((0, 1), "[0, 1]"), ('say "é"', '"say \\"é\\""'),
            (b"data: \xff\n", '"data: \\xff\\n"'), (MISSING, "absent"), (float("inf"), "Infinity"),
        ],
    )  # fmt: skip
    def test_values_are_shown_as_json_and_bytes_as_text(self, value, text):
        assert show(value) == text

    def test_long_values_are_cut_in_the_middle(self):
        text = show("a" * 1000 + "z", 40)
        assert len(text) <= 40
        assert text.startswith('"aaa')
        assert text.endswith('z"')

    def test_a_value_that_is_too_large_is_named_by_its_type(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        assert show(deep) == "an array, too large to print"
        assert show(10**5000) == "a number, too large to print"


@pytest.mark.parametrize(
    "content",
    [b'{"prompt":"a","max_tokens":1,"max_tokens":9}', b'\xef\xbb\xbf{"prompt":"a","max_tokens":1}', b'["a"]'],
    ids=["a member named twice", "a byte order mark", "no object"],
)
def test_a_body_that_parsers_read_differently_is_not_judged(toy, content):
    judged = toy(Satisfied())
    x = plain(FINE)
    odd = Exchange(replace(x.case, content=content, hostile=True, validity=Validity.UNSPECIFIED), x.attempts)
    assert judged(odd).examined == 0
    assert judged(x).examined == 1


class TestServerErrorsOfAKind:
    """One 5xx on several different requests of a kind confirms each of them; none needs to be sent again."""

    @staticmethod
    def probes(*statuses, same=False):
        """Streamed requests whose controls are accepted, answered by these statuses."""
        for number, status in enumerate(statuses):
            key = "toy.row" if same else f"toy.row {number}"
            request = {"stream": True, "n": 1 if same else number}
            reply = stream(FINE, request=request) if status == 200 else error(status=status, request=request)
            yield numbered(reply, f"probe-{number}", groups=(Membership("accept", key, "probe"),))
            yield numbered(plain(FINE), f"control-{number}", groups=(Membership("accept", key, "control"),))

    @staticmethod
    def verdict(*exchanges):
        return judge(replace(row(), check="valid_is_accepted"), Traffic(tuple(exchanges)), CONTRACT)

    def test_a_target_that_fails_on_all_streams_breaks_the_rows_that_send_them(self):
        assert self.verdict(*self.probes(500, 500)).outcome is Outcome.FAIL

    def test_the_same_request_twice_does_not_confirm_itself(self):
        verdict = self.verdict(*self.probes(500, 500, same=True))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.repeat

    def test_errors_here_and_there_do_not_confirm_each_other(self):
        assert self.verdict(*self.probes(500, 500, 200, 200, 200)).outcome is Outcome.INCONCLUSIVE

    def test_a_gateway_that_is_overloaded_confirms_nothing(self):
        assert self.verdict(*self.probes(503, 503)).outcome is Outcome.INCONCLUSIVE


FORMS = {"string": "a", "array of string": ["a", "b"], "array of integer": [1, 2], "array of array": [[1], [2]]}


@pytest.mark.parametrize("left_out", ["", *FORMS])
def test_a_row_that_speaks_of_several_forms_passes_only_if_each_was_accepted(left_out):
    openai = load_contract("openai")
    requirement = next(one for one in openai.requirements if one.id == "request.prompt.accepts")
    exchanges = []
    for form, value in FORMS.items():
        for role in ("control", "probe"):
            group = Membership("accept", f"{requirement.id} {form}", role)
            x = plain(FINE, {"model": "m", "prompt": "a" if role == "control" else value})
            if form != left_out or role == "control":
                exchanges.append(numbered(x, len(exchanges), groups=(group,)))
    if left_out == "string":
        exchanges = [x for x in exchanges if x.case.body["prompt"] != "a"]
        group = Membership("accept", f"{requirement.id} other", "joint")
        exchanges.append(numbered(plain(FINE, {"model": "m", "prompt": [1]}), "joint", groups=(group,)))
    verdict = judge(requirement, Traffic(tuple(exchanges)), openai)
    assert verdict.outcome is (Outcome.INCONCLUSIVE if left_out else Outcome.PASS)
    assert verdict.incomplete is bool(left_out)
    assert left_out in verdict.reason
