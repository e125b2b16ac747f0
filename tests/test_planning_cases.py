"""Single cases: values, edges, invalids beside their controls, protocol, and rows that cover combinations."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import pytest
from planned import PROVIDERS, bodies, checks, contract, plan, planned

from conformance.contract.bounds import top
from conformance.contract.validity import complaints, validity
from conformance.judge.fixtures import contract as small
from conformance.model import Combination, Credential, Edge, Limit, Parameter, Source, Validity
from conformance.model.json_text import MISSING, json_equal, loads
from conformance.plan.boundaries import beyond, ends, open_ends
from conformance.plan.context import TOKENS_SHORT, PlanContext
from conformance.plan.covering_rows import coverage, rows
from conformance.plan.factors import SCORED, Factor, factors
from conformance.plan.follow_ups import of_classes
from conformance.plan.input_model import PLAIN_TEXTS, WRONG_NAMES, inputs, invalid_classes
from conformance.plan.parameter_values import factor_level, inside, sample_levels
from conformance.plan.protocol import escaped

FULL = [plan(provider, "full") for provider in PROVIDERS]


def invalid(found):
    return [case for case in found.cases if case.origin == "invalid"]


def controls(found, kind="refuse"):
    """The control of each group, by key."""
    parts = [(part, case) for case in found.cases for part in case.groups if part.kind == kind]
    return {part.key: case for part, case in parts if part.role == "control"}


def changed(case, control):
    """The members in which an invalid request differs from its control."""
    names = {*case.body, *control.body}
    return {name for name in names if not json_equal(case.body.get(name, MISSING), control.body.get(name, MISSING))}


def key_of(case, kind="refuse"):
    return next(part.key for part in case.groups if part.kind == kind)


class TestInvalids:
    @pytest.mark.parametrize("found", FULL, ids=PROVIDERS)
    def test_each_is_invalid_and_its_control_is_not(self, found):
        known = controls(found)
        for case in invalid(found):
            assert validity(found.contract, case.body) is Validity.INVALID
            assert validity(found.contract, known[key_of(case)].body) is not Validity.INVALID

    @pytest.mark.parametrize("found", FULL, ids=PROVIDERS)
    def test_each_differs_from_its_control_in_one_member_or_in_members_that_clash(self, found):
        clashes = {rule.id: rule for rule in found.contract.combinations}
        known = controls(found)
        for case in invalid(found):
            odd, (row,) = changed(case, known[key_of(case)]), case.breaks
            assert odd == clashes[row].example.keys() if row in clashes else len(odd) == 1, case.id

    @pytest.mark.parametrize("found", FULL, ids=PROVIDERS)
    def test_each_breaks_the_rule_that_it_names_and_no_other(self, found):
        """What the schema complains of, and which limits are passed, all belong to the one member and keyword."""
        rows, known = found.context.rows, controls(found)
        for case in invalid(found):
            told = rows[case.breaks[0]].params
            if "combination" in told:
                continue
            name = top(str(told["parameter"]))
            passed = [limit.parameter for limit in found.contract.limits if limit.binding and outside(limit, case.body)]
            before = complained(found.contract, known[key_of(case)].body)
            assert {top(one) for one in passed} <= {name}, case.id
            assert complained(found.contract, case.body) - before <= {name}, case.id
            if told["keyword"] in {"type", "coercion", "enum", "nullable"}:
                assert name not in passed, case.id

    @pytest.mark.parametrize("found", FULL, ids=PROVIDERS)
    def test_every_row_that_demands_a_refusal_has_its_case(self, found):
        broken = {row for case in invalid(found) for row in case.breaks}
        rows = [row for row in found.contract.requirements if row.check == "invalid_is_refused" and row.level != "MAY"]
        assert {row.id for row in rows if row.id.startswith("request.")} <= broken

    def test_full_sends_the_first_of_each_kind_of_row_on_both_channels(self):
        parts = [part for case in invalid(plan("openai", "full")) for part in case.groups if part.kind == "channel"]
        channels = Counter(part.role for part in parts)
        assert channels["plain"] == channels["stream"] > 15

    def test_gate_takes_the_channels_in_turn(self):
        streamed = Counter(case.body.get("stream") is True for case in invalid(plan("openai")))
        assert streamed[True] > 10
        assert streamed[False] > 10

    def test_full_sends_every_class_that_breaks_the_type_of_an_input(self):
        found = plan("openai", "full")
        sent = {key_of(case).partition(" ")[2].partition(",")[0] for case in invalid(found)}
        assert {"a number in quotes", "true in quotes", "a fraction for an integer", "an object"} <= sent
        types = {path: {one.name for one in classes} for path, classes in broken_types(found).items()}
        for path, names in types.items():
            groups = (part.key for case in invalid(found) for part in case.groups if part.kind == "refuse")
            keys = [key for key in groups if key.startswith(f"request.{path}.")]
            missing = {name for name in names if not any(f" {name}" in key for key in keys)}
            assert not missing - set(WRONG_NAMES.values()), path  # drawn bodies have some of these

    def test_a_class_meets_plain_streamed_and_rich_requests(self):
        keys = [key_of(case) for case in invalid(plan("openai", "full")) if " a number in quotes" in key_of(case)]
        rich = [key for key in keys if '"stream' not in key and "stream true" in key and "n 2" in key]
        assert rich
        assert [key for key in keys if "stream" not in key]

    def test_an_invalid_request_that_is_accepted_is_cheap(self):
        for found in FULL:
            limits = [case.body.get("max_tokens") for case in invalid(found)]
            assert max(limit for limit in limits if isinstance(limit, int) and abs(limit) < 2**31) <= TOKENS_SHORT


def broken_types(found):
    """The classes that break the type of each input and nothing else."""
    for_paths = {
        path: [
            one
            for one in invalid_classes(found.contract, path, schema)
            if found.context.validity_of(found.context.body(one.patch)) is Validity.INVALID
        ]
        for path, schema in inputs(found.contract).items()
    }
    return {path: classes for path, classes in for_paths.items() if f"request.{path}.type" in found.context.rows}


def complained(known, body):
    """The members that the printed schema complains of."""
    found = complaints(known.request, body)
    return {at.split("/")[1] for at, message in found if "is a required property" not in message}


def outside(limit, body):
    name = top(limit.parameter)
    value = body.get(name)
    if limit.parameter.endswith("[]"):
        value = [len(value)] if isinstance(value, list) else []
    elif limit.parameter.endswith(".*"):
        value = list(value.values()) if isinstance(value, dict) else []
    else:
        value = [value]
    numbers = [one for one in value if isinstance(one, (int, float)) and not isinstance(one, bool)]
    return any(limit.classify(number) is Validity.INVALID for number in numbers)


class TestSingles:
    @pytest.mark.parametrize("found", FULL, ids=PROVIDERS)
    def test_full_sends_each_value_alone_that_shows_and_others_together(self, found):
        alone = bodies(case for case in found.cases if case.origin in {"value", "base", "relation"})
        context = replace(found.context, known=found.known)
        for one in factors(context):
            for value in one.levels:
                if context.traits(one.parameter).visible_in_reply or one.of(context.base) is value:
                    assert context.body(value.patch) in alone, value.label
                else:
                    assert any(value.holds(body) for body in alone), value.label

    def test_gate_sends_one_value_of_each_shown_dimension_alone(self):
        base = plan("openai").context.base
        alone = bodies(case for case in plan("openai").cases if case.origin == "value")
        odd = [frozenset(name for name in {*body, *base} if body.get(name) != base.get(name)) for body in alone]
        for name in ("n", "logprobs"):
            assert frozenset({name}) in odd
        for name in ("echo", "suffix", "prompt"):  # streams are what forgets most
            assert frozenset({name, "stream", "stream_options"}) in odd

    @pytest.mark.parametrize("found", FULL, ids=PROVIDERS)
    def test_a_value_that_may_be_blamed_is_valid_and_has_a_control(self, found):
        known = controls(found, "accept")
        for case in found.cases:
            for part in case.groups:
                if (part.kind, part.role) == ("accept", "probe"):
                    assert part.key in known
                    assert case.validity is Validity.VALID, part.key

    def test_many_choices_are_asked_for_once_each_and_one_token_long(self):
        sent = [body for body in bodies(plan("openai", "full").cases) if body.get("n") in (127, 128)]
        assert sorted((body["n"], body["max_tokens"]) for body in sent) == [(127, 1), (128, 1)]

    def test_no_limit_of_tokens_is_streamed_and_hung_up_on(self):
        for provider in ("nebius", "novita", "interactive"):
            sent = [case for case in plan(provider, "full").cases if case.validity is not Validity.INVALID]
            free = [case for case in sent if isinstance(case.body, dict) and case.body.get("max_tokens") is None]
            assert free
            assert all(case.hang_up_after and case.body["stream"] for case in free), provider

    def test_a_field_that_the_contract_accepts_unseen_is_sent(self):
        keys = [part.key for case in plan("nebius").cases for part in case.groups if part.kind == "accept"]
        assert any(key.startswith("request.unknown.accepts") for key in keys)


class TestEdges:
    LIMIT = Limit("temperature", 0, 2, Edge.CLOSED, Edge.UNSPECIFIED)

    def test_a_closed_end_and_a_step_inside_of_each_are_values(self):
        context = PlanContext(contract("openai"), checks(), "m")
        assert [one.value for one in ends(context, self.LIMIT)] == [0, 0.01, 1.99]

    def test_an_end_left_open_is_observed_and_neither_accepted_nor_refused(self):
        assert [one.value for one in open_ends(self.LIMIT)] == [2]
        assert list(beyond(PlanContext(contract("openai"), checks(), "m"), self.LIMIT, "maximum")) == [2.01, 1002]

    def test_a_strict_end_is_outside_itself(self):
        context, strict = PlanContext(contract("openai"), checks(), "m"), Limit("top_p", 0, 1, Edge.OPEN, Edge.OPEN)
        assert list(beyond(context, strict, "minimum"))[:2] == [0, -0.01]

    def test_the_count_of_a_list_and_the_values_of_a_map_have_edges(self):
        context = PlanContext(contract("openai"), checks(), "m")
        lists = [one.value for one in ends(context, Limit("stop[]", 1, 4))]
        assert [len(one) for one in lists] == [1, 2, 4, 3]
        assert next(ends(context, Limit("logit_bias.*", -100, 100))).value == {"0": -100}

    def test_full_tries_every_closed_end_of_every_documented_range(self):
        found = plan("openai", "full")
        sent = {(name, repr(value)) for body in bodies(found.cases) for name, value in body.items()}
        for limit in found.contract.limits:
            for one in ends(found.context, limit) if limit.binding else ():
                ((name, value),) = one.patch.items()
                assert (name, repr(value)) in sent, one.label


class TestValues:
    def parameter(self, schema, **more):
        whole = replace(small(), parameters={"x": Parameter("x", schema, False, True, MISSING, Source("#"))}, **more)
        return [one.value for one in sample_levels(whole, "x")]

    def test_a_parameter_that_nobody_knows_gets_values_from_its_schema(self):
        assert self.parameter({"type": "boolean"}) == [True, False]
        assert self.parameter({"enum": ["a", None, "b"]}) == ["a", "b"]
        assert self.parameter({"type": ["string", "null"]}) == ["x"]
        union = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}
        assert self.parameter(union) == [1, []]
        assert self.parameter({"type": "array", "items": {"type": "number"}, "minItems": 2}) == [[1, 1]]
        assert self.parameter({"type": "object", "additionalProperties": {"type": "string"}}) == [{"1": "x"}]
        told = {"type": "object", "required": ["a"], "properties": {"a": {"const": 3}, "b": {"type": "string"}}}
        assert self.parameter(told) == [{"a": 3}]

    def test_its_limits_hold(self):
        assert self.parameter({"type": "integer"}, limits=(Limit("x", 40, 50),)) == [45]

    def test_the_examples_of_the_contract_come_first(self):
        assert self.parameter({"type": "string"}, examples={"x": ("blue", "red")}) == ["blue", "red"]

    def test_numbers_are_looked_for_where_they_are_surely_allowed(self):
        assert inside(None, (7,)) == 7
        assert inside(Limit("x", 0, 1, Edge.OPEN, Edge.OPEN), (0, 1)) == 0.5
        assert inside(Limit("x", 0), (-1,)) is None

    def test_a_level_tells_values_apart_by_type(self):
        assert factor_level("n", 1).holds({"n": 1})
        assert not factor_level("n", 1).holds({"n": True})
        assert not factor_level("n", 1).holds({"n": 1.0})
        assert factor_level("n", MISSING).holds({})

    def test_a_sixth_parameter_is_planned_from_its_schema_alone(self):
        known = contract("nebius")
        shape = {"type": "string", "enum": ["calm", "wild"]}
        request = {**known.request, "properties": {**known.request["properties"], "mood": shape}}
        more = {**known.parameters, "mood": Parameter("mood", shape, False, False, MISSING, Source("#"))}
        wider = replace(known, request=request, parameters=more)
        found = planned(wider, profile="full")
        moods = Counter(body.get("mood") for body in bodies(found.cases))
        assert moods["calm"] >= 10
        assert found.drawn_parameters["mood"] >= 10
        assert found.coverage(3).share == 1


class TestArrays:
    LEVELS = tuple(Factor(name, tuple(factor_level(name, value) for value in values)) for name, values in {
        "echo": (MISSING, True), "n": (MISSING, 2, 3), "logprobs": (MISSING, 0, 1, 5), "seed": (MISSING, 7),
        "best_of": (MISSING, 3),
    }.items())  # fmt: skip

    def context(self, *rules):
        return PlanContext(replace(contract("openai"), combinations=rules), checks(), "m")

    @pytest.mark.parametrize("strength", [2, 3])
    def test_every_combination_of_levels_occurs_in_some_row(self, strength):
        found = rows(self.context(), self.LEVELS, strength)
        sizes = [range(len(one.levels)) for one in self.LEVELS]
        for places in combinations(range(len(sizes)), strength):
            for wanted in product(*(sizes[place] for place in places)):
                assert any(tuple(row[place] for place in places) == wanted for row in found)

    def test_rows_are_far_fewer_than_all_combinations(self):
        assert len(rows(self.context(), self.LEVELS, 2)) <= 15

    def test_members_that_do_not_go_together_are_in_no_row(self):
        rule = Combination("r", Validity.INVALID, given=("best_of", "n"), compare=("best_of", "eq", "n"))
        found = rows(self.context(rule), self.LEVELS, 3)
        assert not [row for row in found if (row[1], row[4]) == (2, 1)]
        assert [row for row in found if (row[1], row[4]) == (1, 1)]

    def test_what_the_contract_leaves_open_is_combined_until_the_target_refuses_it(self):
        rule = Combination("r", Validity.UNSPECIFIED, where={"echo": True}, given=("logprobs",))
        context = self.context(rule)
        assert [row for row in rows(context, self.LEVELS, 2) if row[0] == 1 and row[2]]
        context.known.refused["r"] = {"echo": True, "logprobs": 1}
        assert not [row for row in rows(context, self.LEVELS, 2) if row[0] == 1 and row[2]]

    def test_rows_that_were_sent_already_are_not_sent_again(self):
        first = rows(self.context(), self.LEVELS, 2)
        assert rows(self.context(), self.LEVELS, 2, first) == []

    def test_coverage_names_what_is_missed(self):
        found = coverage(self.context(), self.LEVELS[:2], [{"echo": True, "n": 2}, {}], 2)
        assert (found.met, found.of) == (2, 6)
        assert "echo=true + n=3" in found.missed


class TestProtocol:
    def test_each_row_of_the_protocol_has_its_case(self):
        found = plan("openai", "full")
        rows = [row for row in found.contract.requirements if row.id.split(".")[0] in {"protocol", "auth"}]
        broken = {row for case in found.cases for row in case.breaks}
        assert {row.id for row in rows if row.check == "invalid_is_refused"} <= broken

    def test_wrong_syntax_is_wrong_and_nothing_else_is(self):
        wrong = [case for case in plan("openai", "full").cases if case.origin == "protocol" and case.breaks]
        told = {case.breaks[0]: case for case in wrong}
        assert told["protocol.malformed-json"].body is MISSING
        assert told["protocol.empty-body"].content == b""
        assert told["protocol.wrong-method"].method == "PUT"
        assert told["protocol.no-content-type"].headers == ()
        assert b"NaN" in told["protocol.not-a-number"].content
        with pytest.raises(UnicodeDecodeError):
            told["protocol.invalid-utf8"].content.decode()

    def test_another_form_of_a_request_says_the_same(self):
        cases = [case for case in plan("openai", "full").cases if case.origin == "protocol"]
        forms = {part.key: case for case in cases for part in case.groups if part.kind == "accept"}
        assert forms["protocol.chunked base"].chunked
        assert not forms["protocol.utf8 base"].content.isascii()
        assert len(forms["protocol.large-body a mebibyte"].content) > 2**20
        assert b"prompt" not in forms["protocol.escapes base"].content
        assert forms["protocol.escapes base"].body == forms["protocol.white-space base"].body
        assert loads(escaped({"a\N{ROCKET}": ["\u00fc", None, 1.5]})) == {"a\N{ROCKET}": ["\u00fc", None, 1.5]}

    def test_no_case_ever_holds_a_key(self):
        for case in plan("openai", "full").cases:
            assert not [name for name, _ in case.headers if name.lower() == "authorization"]
        used = {case.credential for case in plan("openai", "full").cases}
        assert used == set(Credential)


GATE = [plan(provider) for provider in PROVIDERS]


class TestRichRequestsOfGate:
    """Each valid request of `gate` shows much at once, because there is room for few."""

    @pytest.mark.parametrize("found", GATE, ids=PROVIDERS)
    def test_a_stream_has_several_prompts_choices_and_log_probabilities_together(self, found):
        streams = [body for body in bodies(found.cases) if body.get("stream") is True]
        assert any(SCORED.items() <= body.items() for body in streams)
        assert any(len(set(body["prompt"])) < len(body["prompt"]) for body in streams if SCORED.items() <= body.items())

    @pytest.mark.parametrize("found", GATE, ids=PROVIDERS)
    def test_texts_of_every_class_come_back_in_a_stream_where_there_is_an_echo(self, found):
        echoed = [body for body in bodies(found.cases) if body.get("echo") is True and body.get("stream") is True]
        sent = {text for body in echoed for text in body["prompt"] if isinstance(text, str)}
        assert sent.issuperset(PLAIN_TEXTS) is ("echo" in found.contract.parameters)

    @pytest.mark.parametrize("found", GATE, ids=PROVIDERS)
    def test_refusals_meet_plain_streamed_and_rich_requests(self, found):
        settings = Counter(
            (case.body.get("stream") is True, case.body.get("n") == SCORED["n"])
            for case in invalid(found)
            if isinstance(case.body, dict)
        )
        assert min(settings[streams, rich] for streams in (True, False) for rich in (True, False)) > 1

    @pytest.mark.parametrize("found", GATE, ids=PROVIDERS)
    def test_a_wrong_key_is_sent_in_another_setting_than_none(self, found):
        wrong = {case.credential: case.body for case in found.cases if case.credential is not Credential.KEY}
        assert wrong[Credential.NONE].get("stream") is True
        assert wrong[Credential.PROLONGED].get("stream") is not True

    def test_some_nulls_are_streamed(self):
        streamed = [body for body in bodies(plan("openai").cases) if body.get("stream") is True]
        assert any(body.get("n", 1) is None for body in streamed)

    def test_stop_sequences_are_taken_from_the_texts_by_class(self):
        assert of_classes(["One (two)\n", "\u6771\u4eac \u5927\u962a"]) == ["\u4eac", "(", "\n"]
        assert of_classes(["one two"]) == [" "]
        assert of_classes(["one", ""]) == []
