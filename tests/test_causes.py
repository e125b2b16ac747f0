"""Which broken requirements become one cause, and which do not."""

from datetime import date
from itertools import count

import fake_runs
import pytest

from conformance.config.waivers import Waiver
from conformance.judge import fixtures as ex
from conformance.judge.causes import causes
from conformance.judge.causes.request_settings import distinguishing, settings_of, words
from conformance.model import Credential, Evidence, Layer, Level, Outcome, Requirement, Source, Validity, Verdict
from conformance.report import markdown, page, results, terminal
from conformance.report.tally import headline

CONTRACT = ex.contract()
FINE = ex.completion(ex.choice(), usage=ex.usage())
NUMBERS = count()


def sent(build=ex.plain, body=FINE, request=None, **more):
    """An exchange with an id of its own."""
    return build(body, request=request, id=f"case/{next(NUMBERS)}", **more)


def streamed(*chunks, request=None, **more):
    return ex.stream(*(chunks or (FINE,)), request=request, id=f"case/{next(NUMBERS)}", **more)


def refused(request=None, status=400, **more):
    return ex.error("it cannot be served", status, request, id=f"case/{next(NUMBERS)}", **more)


def broken(id, check, failing, kept=(), level=Level.MUST, **params):  # noqa: A002 - what it is called everywhere
    """The verdict on a requirement that these exchanges break, and those keep."""
    row = Requirement(id, check, level, Layer.CONTRACT, "It holds.", Source("#"), params=params)
    return Verdict(
        row,
        Outcome.FAIL if level is Level.MUST else Outcome.WARN,
        "something; expected another thing",
        examined=len(failing) + len(kept),
        violations=len(failing),
        evidence=(Evidence(failing[0].case.id, "", "something; expected another thing"),),
        broke=tuple((x.case.id,) for x in failing),
        kept=tuple((x.case.id,) for x in kept),
    )


def unjudged(id, check, due):  # noqa: A002
    """The verdict on a requirement that these exchanges should have shown."""
    row = Requirement(id, check, Level.MUST, Layer.CONTRACT, "It holds.", Source("#"))
    cases = tuple((x.case.id,) for x in due)
    return Verdict(row, Outcome.INCONCLUSIVE, "none did", incomplete=True, due=cases)


def found(verdicts, *exchanges):
    return causes(CONTRACT, verdicts, [x for each in exchanges for x in each])


def names(*arguments):
    return [cause.name for cause in found(*arguments)]


def accepted_values(*parameters, keyword="type"):
    """Wrong values of parameters that were accepted, each with its row."""
    exchanges = [sent(request={name: {}}, validity=Validity.INVALID) for name in parameters]
    rows = [
        broken(f"request.{name}.{keyword}", "invalid_is_refused", [x], parameter=name, keyword=keyword)
        for name, x in zip(parameters, exchanges, strict=True)
    ]
    return rows, exchanges


def test_values_that_are_not_validated_are_one_cause_with_a_matrix():
    rows, exchanges = accepted_values("n", "seed", "top_p", "user")
    (cause,) = found(rows, exchanges)
    assert cause.name == "values of 4 parameters are not validated"
    assert cause.observed == "4 of 4 wrong values of 4 parameters were accepted"
    assert {(name, rule) for name, rule, _ in cause.matrix} == {(n, "type") for n in ("n", "seed", "top_p", "user")}
    assert (cause.broken, cause.examined) == (4, 4)


def test_one_parameter_that_is_not_validated_is_named():
    rows, exchanges = accepted_values("n")
    assert names(rows, exchanges) == ["`n` is not validated"]


def test_look_alikes_alone_are_converted_and_not_unvalidated():
    rows, exchanges = accepted_values("n", "seed", keyword="coercion")
    assert names(rows, exchanges) == ["`n` and `seed` are converted from other JSON types"]


def test_a_wrong_value_that_is_answered_with_500_is_no_accepted_value():
    invalid = [refused({name: {}}, 500, validity=Validity.INVALID) for name in ("n", "seed")]
    rows = [
        broken("request.n.type", "invalid_is_refused", invalid[:1], parameter="n", keyword="type"),
        broken("request.seed.type", "invalid_is_refused", invalid[1:], parameter="seed", keyword="type"),
        broken("robustness.no-5xx", "no_server_error", invalid),
    ]
    (cause,) = found(rows, invalid)
    assert cause.name == "validation errors are answered with HTTP 500"
    assert len(cause.rows) == 3


def test_server_errors_on_valid_requests_are_named_after_what_these_have():
    failing = [refused({"echo": True, "user": text}, 500) for text in "ab"]
    fine = [sent(request={"user": "c"}), sent()]
    rows = [broken("robustness.no-5xx", "no_server_error", failing, fine)]
    assert names(rows, failing, fine) == ["valid requests are answered with HTTP 500 with `echo`"]


def test_streaming_is_not_offered_where_no_stream_comes_and_plain_replies_do():
    streams = [refused({"stream": True, "user": text}, 500) for text in "abc"]
    plain = [sent()]
    rows = [
        broken("robustness.no-5xx", "no_server_error", streams, plain),
        broken("request.stream.accepts", "valid_is_accepted", streams[:1], parameter="stream"),
    ]
    waiting = unjudged("framing.done", "done_is_sent", streams)
    (cause,) = found([*rows, waiting], streams, plain)
    assert cause.name == "streaming is not offered"
    assert cause.observed == "HTTP 500 in 3 of 3 streams"
    assert cause.rows[0] == "request.stream.accepts"
    assert cause.blocked == ("framing.done",)


def test_streaming_is_offered_where_one_stream_comes():
    streams = [refused({"stream": True, "user": text}, 500) for text in "abc"]
    others = [sent(), streamed()]
    rows = [broken("robustness.no-5xx", "no_server_error", streams, others)]
    assert "streaming is not offered" not in names(rows, streams, others)


def test_one_text_for_all_prompts_is_one_cause():
    replies = [sent(request={"prompt": text}) for text in "abcdef"]
    rows = [
        broken("stop.text", "stop_text_is_as_promised", replies[:2]),
        broken("echo.prefix", "echo_begins_with_prompt", replies[2:]),
    ]
    assert names(rows, replies) == ["the same body whatever is asked"]


def test_texts_of_their_own_are_two_causes():
    replies = [
        sent(body=ex.completion(ex.choice(text)), request={"prompt": text, name: value})
        for text, (name, value) in zip("abcdef", [("stop", "x"), ("echo", True)] * 3, strict=True)
    ]
    rows = [
        broken("stop.text", "stop_text_is_as_promised", replies[::2]),
        broken("echo.prefix", "echo_begins_with_prompt", replies[1::2]),
    ]
    assert set(names(rows, replies)) == {"`stop` does not work as promised", "`echo` does not work as promised"}


def test_a_parameter_has_no_effect_where_the_reply_is_the_same_without_it():
    with_stop, without = sent(request={"stop": "4"}), sent()
    others = [sent(request={"prompt": text}) for text in "abc"]
    rows = [broken("stop.text", "stop_text_is_as_promised", [with_stop])]
    assert names(rows, [with_stop, without], others) == ["`stop` has no effect"]


def test_no_effect_is_not_said_of_a_parameter_that_changes_the_reply():
    with_stop = sent(body=ex.completion(ex.choice(" 4 and more")), request={"stop": "4"})
    others = [sent(), *(sent(request={"prompt": text}) for text in "abc")]
    rows = [broken("stop.text", "stop_text_is_as_promised", [with_stop])]
    assert names(rows, [with_stop], others) == ["`stop` does not work as promised"]


def test_n_is_ignored_where_one_choice_comes_for_each_prompt():
    failing = [streamed(request={"n": 2, "user": text}) for text in "abc"]
    fine = [sent(request={"n": 2, "user": "c"}), streamed(request={"user": "d"})]
    rows = [broken("choices.complete", "choices_are_complete", failing, fine)]
    (cause,) = found(rows, failing, fine)
    assert cause.name == "`n` has no effect in streams"


def test_n_is_not_ignored_where_the_indices_are_wrong():
    wrong = ex.completion(ex.choice(index=1), ex.choice(index=2), usage=ex.usage())
    failing = [sent(body=wrong, request={"n": 2, "user": text}) for text in "ab"]
    rows = [broken("choices.complete", "choices_are_complete", failing, [sent()])]
    assert names(rows, failing) == ["choices are missing or misnumbered"]


def test_a_member_that_is_missing_takes_what_is_read_from_it_along():
    bare = ex.completion({"text": " 4", "finish_reason": "stop"})
    plain = [sent(body=bare) for _ in range(3)]
    streams = [streamed(bare) for _ in range(3)]
    index = {"path": "choices[].index", "keyword": "required"}
    rows = [
        broken("response.index", "plain_field_conforms", plain, channel="plain", **index),
        broken("chunk.index", "chunk_field_conforms", streams, channel="chunk", **index),
        broken("choices.complete", "choices_are_complete", [*plain, *streams]),
    ]  # fmt: skip
    (cause,) = found(rows, plain, streams)
    assert cause.name == "a member is missing in every reply: `choices[].index`"
    assert len(cause.rows) == 3


def test_a_member_explains_nothing_that_is_not_read_from_it():
    replies = [sent() for _ in range(3)]
    rows = [
        broken("response.id", "plain_field_conforms", replies, path="id", channel="plain", keyword="required"),
        broken("usage.total", "usage_adds_up", replies),
    ]
    assert len(found(rows, replies)) == 2


def test_what_breaks_on_the_same_replies_is_one_cause():
    failing, fine = (
        [streamed(request={"user": text}) for text in "abc"],
        [sent(request={"user": text}) for text in "ab"],
    )
    rows = [
        broken("usage.total", "usage_adds_up", failing, fine),
        broken("relations.twin.usage", "twin_usage_agrees", failing[:1], level=Level.SHOULD),
    ]
    (cause,) = found(rows, failing, fine)
    assert cause.name == "token counts are wrong in streams"
    assert cause.rows == ("usage.total", "relations.twin.usage")
    assert cause.level is Level.MUST


def test_what_breaks_on_other_replies_is_another_cause():
    streams, plain = [streamed() for _ in range(3)], [sent() for _ in range(3)]
    rows = [
        broken("usage.total", "usage_adds_up", streams, plain),
        broken("finish.enum", "finish_reason_is_one_of", plain, streams),
    ]
    assert names(rows, streams, plain) == [
        "finish reasons are wrong without streaming",
        "token counts are wrong in streams",
    ]


@pytest.mark.parametrize(
    ("credentials", "name"),
    [
        ((Credential.NONE, Credential.WRONG), "no authentication"),
        ((Credential.CUT_SHORT,), "wrong credentials are accepted"),
    ],
)
def test_any_key_is_no_authentication_and_some_keys_are_not(credentials, name):
    exchanges = [sent(credential=credential) for credential in credentials]
    rows = [broken(f"auth.{x.case.credential}", "invalid_is_refused", [x]) for x in exchanges]
    assert names(rows, exchanges) == [name]


def test_null_that_is_refused_is_one_cause_for_all_parameters():
    probes = [refused({name: None}) for name in ("stop", "seed")]
    rows = [
        broken(f"request.{name}.null", "valid_is_accepted", [x], parameter=name, keyword="null")
        for name, x in zip(("stop", "seed"), probes, strict=True)
    ]
    assert names(rows, probes) == ["null is refused for `stop` and `seed`"]


def test_a_parameter_that_is_refused_blocks_what_needs_it():
    probe, control = refused({"suffix": "."}), sent()
    rows = [broken("request.suffix.accepts", "valid_is_accepted", [probe], parameter="suffix", keyword="accepts")]
    second = refused({"suffix": "!"})
    waiting = unjudged("effects.suffix", "suffix_is_used", [second])
    other = unjudged("stop.text", "stop_text_is_as_promised", [control])
    (cause,) = found([*rows, waiting, other], [probe, control, second])
    assert (cause.name, cause.blocked) == ("`suffix` is refused", ("effects.suffix",))


def test_harm_decides_the_order_and_the_level_before_it():
    seeded = sent(request={"seed": 1})
    text, usage, lenient = sent(request={"stop": "4"}), sent(), sent(request={"n": {}}, validity=Validity.INVALID)
    rows = [
        broken("request.n.type", "invalid_is_refused", [lenient], parameter="n", keyword="type"),
        broken("usage.total", "usage_adds_up", [usage]),
        broken("stop.text", "stop_text_is_as_promised", [text]),
        broken("stop.never", "stop_that_never_matches", [seeded], level=Level.SHOULD, parameter="seed"),
    ]
    assert [cause.rows[0] for cause in found(rows, [text, usage, lenient, seeded])] == [
        "stop.text",
        "usage.total",
        "request.n.type",
        "stop.never",
    ]


def test_every_broken_requirement_has_one_cause():
    run = fake_runs.failing()
    broken_rows = {v.requirement.id for v in run.verdicts if v.outcome in {Outcome.FAIL, Outcome.WARN, Outcome.FLAKY}}
    listed = [name for cause in causes(run.contract, run.verdicts, run.exchanges) for name in cause.rows]
    assert sorted(listed) == sorted(broken_rows)


# Settings.


def test_a_setting_distinguishes_where_all_failing_have_it_and_no_passing():
    failing = [settings_of(sent(request={"echo": True, "user": text}), CONTRACT) for text in "ab"]
    passing = {settings_of(sent(request={"user": "c"}), CONTRACT)}
    assert distinguishing(failing, passing) == ("echo",)
    assert not distinguishing(failing, {*passing, settings_of(sent(request={"echo": True}), CONTRACT)})


def test_two_settings_need_three_requests():
    failing = [
        settings_of(streamed(request={"echo": True, "user": "u", **more}), CONTRACT)
        for more in ({"seed": 1}, {"stop": "x"}, {"suffix": "."})
    ]
    passing = [
        settings_of(streamed(request={"user": "u"}), CONTRACT),
        settings_of(sent(request={"echo": True}), CONTRACT),
    ]
    assert distinguishing(failing, passing) == ("streamed", "echo")
    assert distinguishing(failing[:2], passing) == ()
    assert words(("streamed", "echo")) == "in streams with `echo`"


# In reports.


def a_run(*more):
    """A gate whose streams all fail, so that a requirement on streams cannot be judged."""
    streams = [refused({"stream": True, "user": text}, 500) for text in "abc"]
    rows = [
        broken("request.stream.accepts", "valid_is_accepted", streams, parameter="stream"),
        unjudged("framing.done", "done_is_sent", streams),
        *more,
    ]
    return fake_runs.run(*rows, exchanges=[*streams, sent()])


def waiver(requirement, **more):
    return Waiver(requirement, "example", "known", "ana", "https://example.org/7", date(2999, 1, 1), **more)


def test_what_a_broken_must_blocks_does_not_make_the_run_incomplete():
    document = results.document(a_run())
    (cause,) = document["causes"]
    row = document["requirements"][1]
    assert (row["blocked_by"], row["incomplete"]) == (cause["id"], False)
    assert document["requirements"][0]["cause"] == cause["id"]
    assert document["exit_code"] == 1


def test_a_waiver_of_the_cause_covers_what_it_blocks():
    document = results.document(a_run(), waivers=[waiver("request.stream.accepts")])
    assert document["exit_code"] == 0
    assert document["causes"][0]["waived"]
    assert "1 MUST that is waived; 1 MUST cannot be judged because of these" in headline(document)[1]


def test_what_no_cause_blocks_still_makes_the_run_incomplete():
    document = results.document(
        a_run(unjudged("stop.text", "stop_text_is_as_promised", [sent()])), waivers=[waiver("request.stream.accepts")]
    )
    assert document["exit_code"] == 3


def test_a_broken_should_alone_excuses_no_must():
    streams = [refused({"stream": True, "user": text}, 500) for text in "abc"]
    rows = [
        broken("request.stream.accepts", "valid_is_accepted", streams, level=Level.SHOULD, parameter="stream"),
        unjudged("framing.done", "done_is_sent", streams),
    ]
    document = results.document(fake_runs.run(*rows, exchanges=[*streams, sent()]))
    assert document["requirements"][1]["blocked_by"]
    assert document["exit_code"] == 3


def test_each_output_shows_the_cause():
    document = results.document(a_run())
    said = next(terminal.blocks(document))
    assert said.startswith("CAUSE 1 of 1 example (MUST): streaming is not offered\n")
    assert "blocked   1 requirement cannot be judged: framing.done" in said
    assert "  1. MUST: streaming is not offered (1 requirement cannot be judged because of it)" in terminal.summary(
        document
    )
    assert "streaming is not offered" in markdown.render(document)
    html = page.render(document)
    assert "Streaming is not offered" in html
    assert 'href="#cause-1"' in html


def test_the_matrix_of_the_page_has_parameters_and_rules():
    rows, exchanges = accepted_values("n", "seed")
    html = page.render(results.document(fake_runs.run(*rows, exchanges=exchanges)))
    assert '<th scope="col">type</th>' in html
    assert '<th scope="row"><code>seed</code></th>' in html


def test_results_without_causes_are_shown_as_before():
    document = results.document(a_run())
    del document["causes"]
    assert "request.stream.accepts" in page.render(document)
    assert "CAUSE" not in "".join(terminal.blocks(document))
