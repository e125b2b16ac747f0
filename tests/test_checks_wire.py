"""Checks on the wire: the defects that they must catch, and what real servers legally do."""

import gzip
from dataclasses import replace

import pytest
from support import findings, kinds

from conformance.judge import Traffic, judge
from conformance.judge.catalogue import CheckContext, load
from conformance.judge.fixtures import (
    CREATED,
    choice,
    completion,
    contract,
    error,
    group,
    logprobs,
    plain,
    response,
    stream,
    usage,
)
from conformance.model import (
    Combination,
    Credential,
    Ending,
    Inconclusive,
    Layer,
    Level,
    Membership,
    Observation,
    Requirement,
    Satisfied,
    Source,
    Validity,
    Violation,
)
from conformance.model.exchange import Exchange, Piece
from conformance.model.json_text import MISSING, dumps

CATALOGUE = load()
CONTRACT = contract()
MINE = {"framing", "stream", "identity", "usage", "usage_counts", "finish", "limits", "errors", "headers", "robustness"}
WIRE = [one for one in CATALOGUE.values() if one.function.__module__.rpartition(".")[2] in MINE]
UNASKED = {"usage_is_in_last_chunk"}  # bound with `unasked` only where every stream owes usage
MAY = {"data_field_has_a_space", "chunks_share_one_created", "request_id_is_sent", "error_status_is_documented"}

ASKED = {"stream_options": {"include_usage": True}}
FINE = completion(choice())
OPEN = completion(choice(" 4", finish=None))
END = completion(choice(""))


def violations(check, subject, **params):
    return [one for one in findings(check, subject, **params) if isinstance(one, Violation)]


def only(kind, check, subject, **params):
    return set(kinds(check, subject, **params)) == {kind}


def chunk(*choices, **more):
    return completion(*choices, usage=None, **more)


def lines(*chunks, end="\n", before="data: ", comment=""):
    """A stream written by hand: any line end, any prefix, comments between."""
    events = [
        f"{comment}{before}{one if isinstance(one, str) else dumps(one)}{end}{end}" for one in (*chunks, "[DONE]")
    ]
    return response("".join(events).encode(), {"stream": True}, media_type="text/event-stream")


INVALID = Validity.INVALID
REPORT = completion(usage=usage())
ANNOTATIONS = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{}]}

LEGAL = {
    "a plain completion": plain(completion(choice(), usage=usage(4, 3))),
    "a stream": stream(OPEN, END),
    "the same finish again on an empty chunk": stream(OPEN, FINE, END),
    "the finish of all choices in one chunk": stream(
        completion(choice(" a", finish=None), choice(" b", index=1, finish=None)),
        completion(choice(""), choice("", index=1)),
        request={"n": 2},
    ),
    "text on the finishing chunk": stream(OPEN, completion(choice(" end", finish="length"))),
    "empty chunks while a stop sequence is held back": stream(
        completion(choice("", finish=None)), OPEN, completion(choice("", finish=None)), END
    ),
    "usage null on every chunk, then a chunk of its own": stream(
        chunk(choice(finish=None)), chunk(choice()), REPORT, request=ASKED
    ),
    "usage null everywhere though nobody asked": stream(chunk(choice(finish=None)), chunk(choice())),
    "usage on the finishing chunk though nobody asked": stream(OPEN, completion(choice(), usage=usage())),
    "no completion tokens counted where there is no text": plain(
        completion(choice("", finish="stop"), usage={"prompt_tokens": 4, "total_tokens": 4})
    ),
    "null details of usage": plain(
        completion(choice(), usage=usage(4, 3, prompt_tokens_details=None, completion_tokens_details=None))
    ),
    "details of usage that are no token counts": plain(
        completion(choice(), usage=usage(4, 3, completion_tokens_details={"time": 9.5, "modalities": [1]}, cost=0.1))
    ),
    "counts written as floats": plain(completion(choice(), usage=usage(4.0, 3.0))),
    "best_of counts all its candidates": plain(
        completion(choice(), usage=usage(4, 64)), {"best_of": 4, "max_tokens": 16}
    ),
    "no usage at all": plain(completion(choice())),
    "a start token before each prompt of ids": plain(
        completion(choice(), choice(index=1), usage=usage(7, 6)), {"prompt": [[1, 2], [3, 4, 5]]}
    ),
    "a model name that the server rewrites": plain(completion(choice(), model="m:2023-07-21-v2"), {"model": "m"}),
    "extra members": stream(completion(choice(stop_reason=None, token_ids=[7]), seed=2**60, time_info={}, delta="x")),
    "an id of any form": plain(completion(choice(), id="chatcmpl-1")),
    "a finish chunk with empty lists of log probabilities": stream(
        completion(choice(" 4", finish=None, logprobs=logprobs([" 4"]))),
        completion(choice("", logprobs=logprobs([]))),
        request={"logprobs": 1, "max_tokens": 1},
    ),
    "CRLF": lines(OPEN, END, end="\r\n"),
    "CR": lines(OPEN, END, end="\r"),
    "comments between events": lines(OPEN, END, comment=": PROCESSING\n\n"),
    "comments inside events": lines(OPEN, END, comment=": ping\n"),
    "no space after data:": lines(OPEN, END, before="data:"),
    "a byte order mark before a stream": response(
        b"\xef\xbb\xbf" + stream(OPEN, END).content, {"stream": True}, media_type="text/event-stream"
    ),
    "one byte at a time": response(
        [bytes([byte]) for byte in stream(OPEN, END).content], {"stream": True}, media_type="text/event-stream"
    ),
    "everything in one piece": response(stream(OPEN, END).content, {"stream": True}, media_type="text/event-stream"),
    "a comment after [DONE]": stream(OPEN, END, b"data: [DONE]\n\n", b": bye\n\n", done=False),
    "gzip": response(gzip.compress(dumps(FINE).encode()), headers={"content-encoding": "gzip"}),
    "a charset": plain(FINE, media_type="application/json; charset=utf-8"),
    "white space around the body": response(b"\n" + dumps(FINE).encode() + b"\n\n"),
    "escapes instead of characters": response(
        rb'{"id":"a","choices":[{"text":"\ud83d\ude00 \u00e9","index":0,"finish_reason":"stop"}]}'
    ),
    "an error text inside a completion": plain(completion(choice(' {"error": {"message": "no"}}', finish="stop"))),
    "[DONE] and data: inside a text": stream(completion(choice("data: [DONE]\n\nevent: x\n", finish="stop"))),
    "a text that repeats itself": stream(*(completion(choice(" the", finish=None)) for _ in range(12)), END),
    "a text that repeats itself in growing pieces": stream(
        *(completion(choice(" and" * size, finish=None)) for size in (1, 1, 1, 1, 4, 8, 16)), END
    ),
    "a refusal in the common envelope": error(validity=INVALID),
    "a refusal with nulls and more members": plain(
        {"error": {"message": "no such model", "type": "x", "param": None, "code": None}, "request_id": "r"}, status=404
    ),
    "a refusal that repeats what was sent": error(
        "/srv/app/main.py is not a valid prompt", request={"prompt": "/srv/app/main.py"}, validity=INVALID
    ),
    "a refusal that quotes the value": error("{'a': 1} is not valid under any of the given schemas", validity=INVALID),
    "a refusal with a link": error("See https://platform.example.com/docs/errors.js.", validity=INVALID),
    "a key refused": plain(
        {"error": {"message": "no key", "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}},
        status=401,
        credential=Credential.WRONG,
    ),
    "too many requests": error("slow down", 429),
    "a client that hung up": stream(OPEN, done=False, ending=Ending.ABANDONED, hang_up_after=1),
    "a wrong method, refused by the framework": response(
        b"Method Not Allowed", status=405, media_type="text/plain", method="GET", validity=Validity.INVALID
    ),
}  # fmt: skip


def in_scope(check, x):
    from conformance.judge import Traffic

    return any(known.subject is x for known in Traffic([x]).by_scope.get(check.scope, ()))


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_variant_is_accepted(name):
    x = LEGAL[name]
    for check in WIRE:
        if check.group or check.name in MAY | UNASKED or not in_scope(check, x):
            continue
        params = {"values": ["stop", "length", "content_filter"], "members": ["message"]}
        assert not violations(check.name, x, **params), check.name


@pytest.mark.parametrize("name", ["a plain completion", "a stream", "a refusal in the common envelope"])
def test_an_ordinary_reply_is_examined_by_many_checks(name):
    x = LEGAL[name]
    seen = [check for check in WIRE if not check.group and in_scope(check, x) and findings(check.name, x)]
    assert len(seen) >= 6


AZURE = stream(ANNOTATIONS, OPEN, END)


@pytest.mark.parametrize("check", [one.name for one in WIRE if not one.group])
def test_a_leading_chunk_of_annotations_is_no_violation(check):
    if check in UNASKED or not in_scope(CATALOGUE[check], AZURE):
        return
    assert bool(violations(check, AZURE)) is (check == "request_id_is_sent")


def test_a_single_line_end_after_done_is_a_matter_of_its_own():
    x = stream(OPEN, END, b"data: [DONE]\n", done=False)
    assert violations("done_is_terminated", x)
    for check in ("done_is_sent", "done_is_sent_once", "nothing_follows_done", "last_event_is_terminated"):
        assert only(Satisfied, check, x)


class TestFraming:
    @pytest.mark.parametrize(
        ("check", "x"),
        [
            ("stream_declares_event_stream", stream(FINE, media_type=None)),
            ("stream_declares_event_stream", plain(FINE, {"stream": True})),
            ("stream_has_events", plain(FINE, {"stream": True})),
            ("stream_has_events", stream()),
            ("plain_declares_json", plain(FINE, media_type=None)),
            ("plain_declares_json", response(b"{}\ndata: [DONE]\n\n", media_type="text/event-stream")),
            ("plain_is_one_json_text", response(b"")),
            ("plain_is_one_json_text", response(b"\xef\xbb\xbf{}")),
            ("plain_is_one_json_text", response(b"[]")),
            ("plain_is_one_json_text", response(b"\x1f\x8b{}", headers={"content-encoding": "gzip"})),
            ("response_is_complete", response(b"{}", headers={"content-encoding": "br"})),
            ("stream_payloads_are_json", lines(dumps(FINE), "[done]")),
            ("stream_payloads_are_json", stream(b"data: {}\ndata: {}\n\n")),
            ("stream_payloads_are_json", stream(b'data: {"id": "cm\n\n', b'data: pl-1"}\n\n')),
            ("stream_payloads_are_json", stream(b"data:\n\n", FINE)),
            ("done_is_sent", stream(OPEN, done=False)),
            ("done_is_sent", stream(OPEN, END, {"error": {"message": "lost"}}, done=False)),
            ("nothing_follows_done", stream(OPEN, b"data: [DONE]\n\n", REPORT, done=False)),
            ("nothing_follows_done", stream(OPEN, b"data: [DONE]\n\n", b"oops\n", done=False)),
            ("last_event_is_terminated", stream(OPEN, b'data: {"choices', done=False)),
            ("stream_carries_no_error", stream(OPEN, b'event: error\ndata: {"message": "x"}\n\n', done=False)),
            ("stream_carries_no_error", stream(OPEN, completion(choice(finish="error"), error={"code": 502}))),
        ],
    )  # fmt: skip
    def test_it_is_caught(self, check, x):
        assert violations(check, x)

    def test_a_reply_that_is_no_stream_is_blamed_for_that_alone(self):
        x = plain(FINE, {"stream": True, **ASKED})
        caught = {one.name for one in WIRE if not one.group and in_scope(one, x) and violations(one.name, x)}
        assert caught - MAY == {"stream_declares_event_stream", "stream_has_events"}

    def test_a_missing_blank_line_between_events_is_a_payload_that_is_no_json(self):
        (found,) = violations(
            "stream_payloads_are_json",
            response(b"data: {}\ndata: {}\n\n", {"stream": True}, media_type="text/event-stream"),
        )
        assert found.at == "event 0"

    def test_the_place_is_told(self):
        (found,) = violations("stream_payloads_are_json", stream(OPEN, b"data: : PROCESSING\n\n", END))
        assert found.at == "event 1"
        assert found.message == 'data is ": PROCESSING"; expected one JSON object or [DONE]'


class TestStream:
    def parts(self, *texts):
        return stream(*(completion(choice(text, finish=None)) for text in texts))

    def test_chunks_that_each_hold_the_whole_text_are_cumulative(self):
        assert violations("deltas_are_not_cumulative", self.parts("One", "One two", "One two three", "One two three."))

    def test_some_chunks_that_hold_the_whole_text_are_cumulative_too(self):
        texts = [" one", " two", " three", " one two three four", " one two three four five"]
        assert violations("deltas_are_not_cumulative", self.parts(*texts))

    def test_one_chunk_that_happens_to_begin_like_the_text_is_not(self):
        assert only(Satisfied, "deltas_are_not_cumulative", self.parts(" one", " two", " six", " one two six", " ten"))

    def test_three_chunks_are_too_few_to_tell(self):
        assert not findings("deltas_are_not_cumulative", self.parts("One", "One two", "One two three"))

    def test_a_fresh_id_in_each_chunk_is_found_with_n_above_one_too(self):
        x = stream(completion(choice(finish=None), id="a"), completion(choice("", index=1), id="b"), request={"n": 2})
        assert violations("chunks_share_one_id", x)

    def test_the_usage_chunk_must_share_the_id(self):
        assert violations("chunks_share_one_id", stream(OPEN, completion(usage=usage(), id="other")))

    def test_a_single_chunk_shares_its_id_with_none(self):
        assert not findings("chunks_share_one_id", stream(FINE))

    @pytest.mark.parametrize("created", [CREATED * 1000, 0, CREATED - 90_000, 1e30])
    def test_a_time_that_is_no_second_of_today_is_found(self, created):
        assert violations("created_is_in_seconds", plain(completion(choice(), created=created)))

    def test_without_the_time_of_the_request_any_plausible_second_holds(self):
        x = plain(completion(choice(), created=1_400_000_000))
        unknown = Exchange(x.case, (replace(x.last, started_at=0.0),))
        assert only(Satisfied, "created_is_in_seconds", unknown)
        assert violations(
            "created_is_in_seconds",
            replace(
                unknown,
                case=x.case,
                attempts=(replace(plain(completion(choice(), created=CREATED * 1000)).last, started_at=0.0),),
            ),
        )

    def test_ids_that_come_again_are_found(self):
        same = plain(completion(choice(), id="a"))
        assert violations("ids_are_unique", group("repeat", first=same, second=same))
        assert only(Inconclusive, "ids_are_unique", group("repeat", first=same, second=error()))


class TestUsage:
    def test_usage_that_never_comes(self):
        (found,) = violations("usage_chunk_is_sent", stream(chunk(choice()), request=ASKED))
        assert "null in 1" in found.message

    def test_a_broken_stream_owes_no_usage(self):
        assert not findings("usage_chunk_is_sent", stream(OPEN, {"error": {"message": "lost"}}, request=ASKED))

    def test_nobody_who_did_not_ask_is_owed_usage(self):
        assert not findings("usage_chunk_is_sent", stream(FINE))
        assert violations("usage_chunk_is_sent", stream(FINE), unasked=True)

    def test_usage_beside_a_choice(self):
        x = stream(chunk(choice(finish=None)), completion(choice(), usage=usage()), request=ASKED)
        assert violations("usage_chunk_has_no_choices", x)
        for check in (
            "usage_chunk_is_sent",
            "usage_chunk_is_last",
            "usage_is_reported_once",
            "other_chunks_carry_null_usage",
        ):
            assert not violations(check, x)

    def test_running_usage_is_no_fault_of_the_last_report(self):
        x = stream(
            completion(choice(finish=None), usage=usage(4, 1)),
            completion(choice(), usage=usage(4, 2)),
            REPORT,
            request=ASKED,
        )
        assert violations("usage_is_reported_once", x)
        assert only(Satisfied, "usage_chunk_has_no_choices", x)
        assert only(Satisfied, "usage_chunk_is_last", x)

    def test_usage_that_comes_before_the_text(self):
        x = stream(REPORT, chunk(choice()), request=ASKED)
        assert violations("usage_chunk_is_last", x)
        assert violations("usage_is_in_last_chunk", x)

    def test_text_after_the_usage_chunk(self):
        assert violations("usage_chunk_is_last", stream(chunk(choice()), REPORT, chunk(choice("")), request=ASKED))

    def test_a_chunk_without_the_member(self):
        (found,) = violations("other_chunks_carry_null_usage", stream(OPEN, chunk(choice("")), REPORT, request=ASKED))
        assert (found.message, found.at) == ("usage is absent; expected null", "event 0")

    def test_a_usage_chunk_without_choices_member(self):
        assert violations("usage_chunk_has_no_choices", stream(chunk(choice()), {"usage": usage()}, request=ASKED))

    def test_usage_in_the_last_chunk_of_either_kind(self):
        assert only(
            Satisfied, "usage_is_in_last_chunk", stream(OPEN, completion(choice(), usage=usage()), request=ASKED)
        )
        assert only(Satisfied, "usage_is_in_last_chunk", stream(OPEN, END, REPORT, request=ASKED))
        assert violations("usage_is_in_last_chunk", stream(OPEN, END, request=ASKED))

    def test_a_chunk_of_usage_that_nobody_asked_for(self):
        assert violations("unasked_usage_takes_no_chunk", stream(OPEN, END, REPORT))
        assert not violations("unasked_usage_takes_no_chunk", stream(OPEN, END, REPORT, request=ASKED))

    @pytest.mark.parametrize(
        ("x", "told"),
        [
            (stream(OPEN, END), "absent"),
            (stream(chunk(choice())), "null"),
            (stream(OPEN, completion(choice(), usage=usage())), "in a chunk with a choice"),
            (stream(OPEN, END, REPORT), "in a chunk without choices"),
            (stream(*[completion(choice(), usage=usage())] * 2), "in several chunks"),
        ],
    )  # fmt: skip
    def test_usage_without_a_request_for_it_is_observed(self, x, told):
        assert [one.value for one in findings("usage_without_asking", x)] == [told]

    @pytest.mark.parametrize(
        ("check", "report", "asked"),
        [
            ("usage_adds_up", {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 4}, {}),
            ("usage_adds_up", {"prompt_tokens": 4, "total_tokens": 5}, {}),
            ("usage_has_three_counts", {"prompt_tokens": 4, "completion_tokens": 4}, {}),
            ("usage_has_three_counts", {"prompt_tokens": 4, "total_tokens": 4}, {}),
            ("usage_has_three_counts", {}, {}),
            ("usage_counts_are_whole", usage(4, 1.5), {}),
            ("usage_counts_are_whole", usage(4, -1), {}),
            ("usage_counts_are_whole", {"prompt_tokens": "4", "total_tokens": 4}, {}),
            ("completion_tokens_within_limit", usage(4, 19_503), {"max_tokens": 300}),
            ("completion_tokens_within_limit", usage(4, 17), {}),
            ("completion_tokens_within_limit", usage(4, 9), {"n": 2, "max_tokens": 4}),
            ("completion_tokens_are_counted", usage(4, 0), {}),
            ("prompt_tokens_are_counted", usage(0, 4), {}),
            ("prompt_tokens_are_counted", usage(1, 4), {"prompt": ["one", "two"]}),
            ("prompt_tokens_are_counted", usage(1, 4), {"prompt": "a word " * 50}),
            ("prompt_tokens_match_ids", usage(1, 4), {"prompt": [1, 2, 3, 4, 5]}),
            ("prompt_tokens_match_ids", usage(6, 4), {"prompt": [[1, 2], [3, 4]], "n": 2}),
            ("cached_tokens_within_prompt", usage(4, 4, prompt_tokens_details={"cached_tokens": 5}), {}),
            ("cached_tokens_within_prompt", usage(4, 4, prompt_tokens_details={"cached_tokens": -1}), {}),
            ("details_within_totals", usage(4, 4, completion_tokens_details={"reasoning_tokens": 5}), {}),
            ("details_within_totals", usage(4, 4, prompt_tokens_details={"audio_tokens": 5}), {}),
        ],
    )  # fmt: skip
    def test_counts_that_cannot_be(self, check, report, asked):
        if check == "prompt_tokens_match_ids" and asked.get("n"):
            report = usage(8, 4)  # each prompt counted once for every choice
        for x in (
            plain(completion(choice(), usage=report), asked),
            stream(FINE, completion(usage=report), request={**asked, **ASKED}),
        ):
            assert violations(check, x)

    def test_numbers_of_any_size_do_not_upset_it(self):
        report = b'{"prompt_tokens": 1' + b"0" * 400 + b', "completion_tokens": 1.5, "total_tokens": 1e999}'
        x = response(b'{"choices": [{"text": "a", "index": 0}], "usage": ' + report + b"}")
        for check in WIRE:
            if check.area == "usage":
                findings(check.name, x)

    def test_usage_is_due_only_where_it_is_owed(self):
        owed, free = contract(response={"required": ["usage"]}), contract()
        asked = CheckContext(free).request(plain(FINE))
        due = CATALOGUE["usage_adds_up"].expected_when
        assert due(asked, CheckContext(owed))
        assert not due(asked, CheckContext(free))
        assert due(CheckContext(free).request(stream(FINE, request=ASKED)), CheckContext(free))
        assert not due(CheckContext(free).request(stream(FINE)), CheckContext(free))


VALUES = {"values": ["stop", "length", "content_filter"], "null_in_chunks": True}


class TestFinish:
    @pytest.mark.parametrize("reason", ["", "eos", "eos_token", "Generated", "STOP", 0, True, [], "end_turn"])
    @pytest.mark.parametrize("reply", [plain, stream])
    def test_a_word_of_the_engine_is_found(self, reason, reply):
        assert violations("finish_reason_is_one_of", reply(completion(choice(finish=reason))), **VALUES)

    def test_null_is_what_a_chunk_has_until_then(self):
        assert only(Satisfied, "finish_reason_is_one_of", stream(OPEN, END), **VALUES)
        assert violations("finish_reason_is_one_of", stream(OPEN, END), values=["length"], null_in_chunks=False)

    def test_a_missing_member_is_the_schemas_concern(self):
        assert only(Satisfied, "finish_reason_is_one_of", stream(completion(choice(finish=MISSING)), END), **VALUES)

    @pytest.mark.parametrize(
        "x",
        [
            plain(completion(choice(finish=None))),
            plain(completion(choice(finish=MISSING))),
            plain(completion(choice(), choice(index=1, finish="")), {"n": 2}),
            stream(OPEN, OPEN),
            stream(OPEN, completion(choice(index=1, finish=None)), END, request={"n": 2}),
        ],
    )
    def test_a_choice_that_never_finishes_is_found(self, x):
        assert violations("every_choice_finishes", x)

    def test_a_stream_that_broke_is_not_blamed_for_that(self):
        assert not findings("every_choice_finishes", stream(OPEN, {"error": {"message": "lost"}}))

    def test_an_early_reason_is_found_by_the_text_after_it(self):
        x = stream(completion(choice(" 4", finish="stop")), completion(choice(" 5", finish="stop")))
        assert violations("no_text_after_finish", x)
        assert only(Satisfied, "finish_reason_is_settled", x)

    def test_text_of_another_choice_may_follow(self):
        x = stream(completion(choice(" a")), completion(choice(" b", index=1)), request={"n": 2})
        assert only(Satisfied, "no_text_after_finish", x)

    def test_two_reasons_for_one_choice_are_found(self):
        assert violations("finish_reason_is_settled", stream(FINE, completion(choice("", finish="stop"))))

    def test_a_choice_of_a_batch_that_ended_by_itself_did_not_reach_the_limit(self):
        short, full = logprobs([" a"]), logprobs([" a", " b", " c", " d"])
        x = plain(
            completion(choice(" a", logprobs=short), choice(" a b c d", index=1, logprobs=full)),
            {"prompt": ["x", "y"], "logprobs": 1, "max_tokens": 4},
        )
        (found,) = violations("length_means_the_limit", x)
        assert 'choice 0 finishes with "length" after 1 token;' in found.message

    FULL = logprobs([" a", " b", " c", " d"])
    STOPPED = completion(choice(" a b c d", finish="stop", logprobs=FULL))

    def test_a_choice_with_all_its_tokens_in_sight_did_not_stop_by_itself(self):
        asked = {"max_tokens": 4, "logprobs": 1}
        assert violations("length_means_the_limit", plain(self.STOPPED, asked))
        assert violations("length_means_the_limit", stream(self.STOPPED, request=asked))
        assert not violations("length_means_the_limit", plain(self.STOPPED, {**asked, "max_tokens": 5}))

    @pytest.mark.parametrize(
        ("body", "asked"),
        [
            (STOPPED, {"max_tokens": 4, "logprobs": 1, "stop": "e"}),
            (STOPPED, {"max_tokens": 4, "logprobs": 1, "response_format": {"type": "json_object"}}),
            (completion(choice(" a b c", finish="stop", logprobs=FULL)), {"max_tokens": 4, "logprobs": 1}),
            (completion(choice(" a b c d", finish="stop"), usage=usage(4, 4)), {"max_tokens": 4}),
            (completion(choice(" a", finish="content_filter")), {"max_tokens": 1}),
            (completion(choice("", finish="stop"), usage=usage(4, 1)), {"max_tokens": 1}),
        ],
    )
    def test_an_end_of_text_may_be_the_last_token_and_a_stop_sequence_too(self, body, asked):
        assert not violations("length_means_the_limit", plain(body, asked))

    def test_chunks_are_counted_where_all_tokens_were_spent(self):
        chunks = [completion(choice(text, finish=None)) for text in (" a", " b")]
        asked = {**ASKED, "max_tokens": 2}
        end = completion(choice("", finish="stop"))
        assert violations("length_means_the_limit", stream(*chunks, end, completion(usage=usage(4, 2)), request=asked))
        assert not violations(
            "length_means_the_limit", stream(*chunks[:1], end, completion(usage=usage(4, 2)), request=asked)
        )


class TestLimits:
    def accept(self, *probes, control=None, check="valid_is_accepted", kind="accept", **params):
        found = group(kind, "request.n.accepts n=2", control=control or plain(FINE), probe=probes)
        return findings(check, found, **params)

    def refuse(self, *probes, **more):
        return self.accept(*probes, check="invalid_is_refused", kind="refuse", **more)

    def test_a_refused_value_is_a_violation_at_once(self):
        (found,) = self.accept(error(status=422))
        assert isinstance(found, Violation)
        assert not found.flaky
        assert 'n=2: HTTP 422, "temperature must be at most 2"; expected 2xx' in found.message

    def test_now_accepted_now_refused_is_flaky(self):
        (found,) = self.accept(error(), plain(FINE), plain(FINE))
        assert found.flaky
        (found,) = self.refuse(plain(FINE), error(), error())
        assert found.flaky

    def test_without_an_accepted_control_an_answer_proves_nothing(self):
        for found in (self.accept(error(), control=error()), self.refuse(error(), control=error())):
            assert isinstance(found[0], Inconclusive)
            assert "control was not accepted" in found[0].reason

    def test_a_refused_look_alike_shows_that_types_are_checked_and_an_accepted_one_nothing(self):
        def alike(reply, control=None):
            parts = {"control": control or plain(FINE), "look-alike": reply}
            return findings("invalid_is_refused", group("refuse", "request.n.type a number in quotes", **parts))

        assert [type(found) for found in alike(error())] == [Satisfied]
        assert alike(plain(FINE)) == []
        assert alike(error(), control=error()) == []

    @pytest.mark.parametrize("status", [401, 403, 404, 408, 429])
    def test_key_route_and_load_are_no_answer(self, status):
        assert isinstance(self.accept(error(status=status))[0], Inconclusive)
        assert isinstance(self.refuse(error(status=status))[0], Inconclusive)

    def test_a_5xx_is_no_answer_until_it_comes_again_and_again(self):
        (once,) = self.accept(error(status=503))
        assert isinstance(once, Inconclusive)
        assert once.repeat
        assert isinstance(self.accept(*[error(status=503)] * 3)[0], Violation)
        assert isinstance(self.refuse(*[error(status=503)] * 3)[0], Violation)

    def test_a_lost_connection_is_no_answer(self):
        (found,) = self.refuse(response(b"", status=None, error="reset"))
        assert isinstance(found, Inconclusive)

    def test_a_key_that_is_written_otherwise_may_be_refused_by_401(self):
        probe = error(status=401, credential=Credential.LOWERCASE_SCHEME)
        assert isinstance(self.accept(probe)[0], Violation)

    @pytest.mark.parametrize("member", [None, "", 0, []])
    def test_an_empty_error_member_is_judged_without_raising(self, member):
        assert findings("combination_is_accepted", plain({"error": member}))

    def test_an_error_behind_a_200_is_no_acceptance(self):
        (found,) = self.accept(stream({"error": {"message": "unsupported"}}))
        assert isinstance(found, Violation)

    def test_nor_is_it_a_refusal_of_what_is_invalid(self):
        (found,) = self.refuse(stream({"error": {"message": "n is too low"}}))
        assert found.message == 'n=2: HTTP 200, "n is too low"; expected a 4xx that says why'
        assert isinstance(self.refuse(plain({"error": {"message": "m"}}), statuses=[400, 404])[0], Violation)

    def test_where_statuses_are_named_others_are_wrong(self):
        assert isinstance(self.refuse(error(status=404), statuses=[401, 403])[0], Violation)
        assert isinstance(self.refuse(error(status=401), statuses=[401, 403])[0], Satisfied)
        assert isinstance(self.refuse(error(status=429), statuses=[401, 403])[0], Inconclusive)

    @pytest.mark.parametrize(("x", "word"), [(plain(FINE), "accepted"), (error(), "refused")])
    def test_an_edge_is_observed(self, x, word):
        (found,) = self.accept(x, check="edge_is_observed", kind="observe")
        assert isinstance(found, Observation)
        assert found.value.startswith(word)

    @pytest.mark.parametrize(
        ("params", "asked", "told"),
        [
            ({"parameter": "best_of"}, {"best_of": 21, "stream": True}, "best_of = 21, streamed: HTTP 200"),
            ({"parameter": "stop[]"}, {"stop": [None]}, "stop = [null]: HTTP 200"),
            ({"parameter": "stream"}, {"stream": True}, "stream = true: HTTP 200"),
            ({"parameter": "suffix"}, {}, "suffix absent: HTTP 200"),
            ({"combination": "pair"}, {"n": 3, "best_of": 2, "user": "u"}, "n = 3, best_of = 2: HTTP 200"),
            ({}, {"n": 3}, "what it says: HTTP 200"),
        ],
    )
    def test_what_was_sent_is_named_once(self, params, asked, told):
        rule = Combination("pair", Validity.INVALID, example={"n": 2, "best_of": 1})
        subject = group("refuse", "row what it says", control=plain(FINE), probe=plain(FINE, asked))
        context = CheckContext(contract(combinations=(rule,)), params)
        (violation,) = CATALOGUE["invalid_is_refused"].function(subject, context)
        assert violation.message == f"{told}; expected a 4xx that says why"
        assert violation.at == ""

    def test_a_value_that_is_refused_is_named_once(self):
        subject = group("accept", "row n=3", control=plain(FINE), probe=error("no", request={"n": 3}))
        (violation,) = violations("valid_is_accepted", subject, parameter="n")
        assert violation.message.startswith('n = 3: HTTP 400, "no"; expected 2xx')
        assert violation.at == ""

    def test_a_combination_that_is_refused_is_shown(self):
        assert violations("combination_is_accepted", error("bad request", request={"n": 2, "temperature": 0}))

    def test_a_value_that_is_not_allowed_is_no_capability_that_is_missing(self):
        refusal = error("none is not an allowed value", request={"logit_bias": None, "stream": True})
        assert violations("combination_is_accepted", refusal)

    @pytest.mark.parametrize(
        "message",
        [
            "Setting 'echo' and 'logprobs' at the same time is not supported for this model.",
            "unsupported_streaming: several prompts",
            "suffix isn't available for this model",
        ],
    )
    def test_a_combination_that_is_plainly_not_supported_is_observed(self, message):
        assert only(Observation, "combination_is_accepted", error(message, request={"echo": True, "logprobs": 1}))

    def test_a_value_that_is_tried_alone_has_its_own_row(self):
        part = Membership("accept", "request.suffix.accepts x", "probe")
        assert not findings("combination_is_accepted", error(request={"suffix": "x"}, groups=(part,)))

    def together(self, x, *others):
        """What the check says of one exchange in a run in which n=128 was refused by itself."""
        part = ("accept", "request.n.accepts n=128")
        control = plain(FINE, id="base/0", groups=(Membership(*part, "control"),))
        alone = error("n is too large", request={"n": 128}, id="value/0", groups=(Membership(*part, "probe"),))
        row = Requirement("together", "combination_is_accepted", Level.SHOULD, Layer.ECOSYSTEM, "", Source("#"))
        return judge(row, Traffic([control, alone, *others, x]), contract())

    @pytest.mark.parametrize(
        ("asked", "message", "param"),
        [
            ({"n": 128, "temperature": 0}, "bad request", None),
            ({"n": 128, "temperature": 0}, "temperature is bad", "temperature"),
            ({"n": 40, "temperature": 0}, "Field 'n': must be between 1 and 8 for this model", None),
            ({"n": 40, "temperature": 0}, "no", "n"),
        ],
    )
    def test_a_value_that_is_refused_alone_is_refused_in_company_for_itself(self, asked, message, param):
        x = plain({"error": {"message": message, "type": "x", "param": param, "code": None}}, asked, status=400)
        verdict = self.together(x)
        assert not verdict.violations
        assert [one.value for one in verdict.observations if one.value.startswith("n: HTTP 400")]

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"n": 40, "temperature": 0}, "bad request"),
            ({"n": 40, "temperature": 0}, "n must be 1 where temperature is 0"),
            ({"n": 2, "temperature": 0}, "n is too large"),
            ({"echo": True, "temperature": 0}, "echo is bad"),
        ],
    )
    def test_other_values_are_refused_for_their_company(self, asked, message):
        x = plain({"error": {"message": message, "type": "x", "param": None, "code": None}}, asked, status=400)
        assert self.together(x, plain(FINE, {"n": 2}, id="value/1")).violations

    def test_a_value_that_some_request_may_have_is_not_refused_alone(self):
        x = error("no", request={"n": 128, "temperature": 0})
        assert self.together(x, plain(FINE, {"n": 128, "temperature": 2}, id="value/1")).violations

    def test_open_and_invalid_requests_may_be_refused(self):
        for state in (Validity.UNSPECIFIED, Validity.INVALID):
            assert not findings("combination_is_accepted", error(validity=state))

    def test_a_stream_that_is_refused_where_the_plain_request_is_not(self):
        assert violations("channels_accept_alike", group("twin", plain=plain(FINE), stream=error()))
        assert violations("channels_accept_alike", group("twin", plain=[error(status=500)] * 3, stream=stream(FINE)))
        assert not findings("channels_accept_alike", group("twin", plain=error(), stream=error()))
        (found,) = findings("channels_accept_alike", group("twin", plain=error(status=503), stream=stream(FINE)))
        assert isinstance(found, Inconclusive)


class TestErrors:
    @pytest.mark.parametrize(
        "body",
        [
            {"object": "error", "message": "no", "type": "BadRequestError", "param": None, "code": 400},
            {"error": "Unauthorized"},
            {"detail": "model not found"},
            {"error": {"type": "x", "param": None, "code": None}},
            {"error": {"message": "", "type": "x", "param": None, "code": None}},
            {"error": {"message": "no", "type": "list_type", "param": {"role": "x"}, "code": None}},
            {"error": {"message": ["no"], "type": "x", "param": None, "code": None}},
            {"error": None},
            {},
        ],
    )
    def test_another_shape_than_the_common_envelope_is_found(self, body):
        assert violations("error_has_envelope", plain(body, status=400), members=["message", "type", "param", "code"])

    def test_a_documented_shape_has_its_own_rows(self):
        context = CheckContext(contract(errors={"422": {}}))
        assert not list(CATALOGUE["error_has_envelope"].function(plain({"detail": []}, status=422), context))

    @pytest.mark.parametrize(
        "message",
        [
            'Traceback (most recent call last):\n  File "/app/x.py", line 3',
            "thread 'main' panicked at src/main.rs:7",
            "boom\n\tat com.example.Server.handle(Server.java:12)",
            "failed in /usr/lib/python3/dist-packages/vllm/engine.py",
            "<Engine object at 0x7f00deadbeef>",
            "KeyError: 'prompt'",
            "RuntimeError('CUDA out of memory')",
            '{"detail":[{"type":"greater_than","loc":["body","n"]}]}',
            "[{'type': 'extra_forbidden', 'loc': ('body', 'x'), 'msg': 'Extra inputs'}]",
        ],
    )
    def test_the_insides_of_a_server_are_found_in_a_message(self, message):
        assert violations("error_message_is_clean", error(message, 500))

    @pytest.mark.parametrize(
        "message",
        [
            "temperature must be at most 2",
            "'abc' is not of type 'number' - 'temperature'",
            "Unexpected token } at position 12",
            "This model's maximum context length is 4097 tokens, however you requested 5000 tokens.",
            "Invalid value: ratio 3/4.5 is not allowed",
            "",
        ],
    )
    def test_a_sentence_is_clean(self, message):
        assert not violations("error_message_is_clean", error(message))

    def test_a_long_message_of_line_ends_is_read_in_no_time(self):
        assert not violations("error_message_is_clean", error("\n" * 50_000 + " at " * 5_000))

    def refused(self, key, message, param=None, **more):
        body = {"error": {"message": message, "type": "x", "param": param, "code": None}}
        return group("refuse", key, control=plain(FINE), probe=plain(body, status=400, **more))

    @pytest.mark.parametrize(
        ("key", "message", "param"),
        [
            ("request.n.minimum 0", "'n' must be at least 1", None),
            ("request.n.minimum 0", "must be positive", "n"),
            ("request.stop[].type 3", "stop.0 must be a string", None),
            ("request.stream_options.include_usage.type x", "stream_options: invalid", None),
            ("request.stream_options.include_usage.type x", "Field 'include_usage': must be boolean", None),
            ("request.stream_options.include_usage.type x", "must be boolean", "stream_options.include_usage"),
            ("request.stream_options.include_usage.type x", "must be boolean", "include_usage"),
            ("request.response_format.type.enum x", "unknown", "type"),
            ("request.max_tokens.minimum -1", "Max tokens must be positive", None),
        ],
    )
    def test_a_field_may_be_named_anywhere(self, key, message, param):
        assert only(Satisfied, "error_names_the_field", self.refused(key, message, param))

    @pytest.mark.parametrize(
        ("key", "message", "param"),
        [
            ("request.n.minimum 0", "don't do that, no one can", None),
            ("request.n.minimum 0", "n is bad", "top_p"),
            ("request.temperature.maximum 3", "Bad Request", None),
            ("request.response_format.type.enum x", "this type of request is bad", None),
            ("request.stream_options.include_usage.type x", "include is bad", None),
        ],
    )
    def test_a_field_that_is_not_named_or_another_one_is_found(self, key, message, param):
        assert violations("error_names_the_field", self.refused(key, message, param))

    def test_a_name_in_escapes_is_a_name(self):
        body = {"error": {"message": "max_tokens must be positive", "type": "x", "param": None, "code": None}}
        escaped = dumps(body).replace("max", "\\u006d\\u0061\\u0078").encode()
        probe = response(escaped, status=400)
        assert b"max_tokens" not in probe.content
        subject = group("refuse", "request.max_tokens.minimum -1", control=plain(FINE), probe=probe)
        assert only(Satisfied, "error_names_the_field", subject)

    def test_a_rule_on_the_protocol_names_no_field(self):
        assert not findings("error_names_the_field", self.refused("protocol.malformed-json", "not JSON"))

    def test_an_error_about_something_that_the_control_has_as_well_is_no_wrong_name(self):
        refused = self.refused("request.user.type a fraction, with suffix", "suffix is not supported", "suffix")
        beside = group("refuse", refused.key, control=error("suffix is not supported"), probe=refused.all("probe"))
        assert violations("error_names_the_field", refused)
        assert not findings("error_names_the_field", beside)

    def test_a_member_that_a_gateway_added_is_found(self):
        body = {"error": {"message": "extra fields", "type": "x", "param": "stream_options", "code": None}}
        assert violations("error_names_a_sent_field", plain(body, status=400))
        assert only(Satisfied, "error_names_a_sent_field", plain(body, {"stream_options": {}}, status=400))

    @pytest.mark.parametrize("param", ["prompt", "max_tokens", "model"])
    def test_a_required_member_or_one_with_a_default_may_be_named_unsent(self, param):
        body = {"error": {"message": "it", "type": "x", "param": param, "code": None}}
        assert only(Satisfied, "error_names_a_sent_field", plain(body, b"{}", status=400))

    def test_an_error_in_the_middle_of_a_stream_is_no_refusal(self):
        assert only(Satisfied, "refusal_is_not_a_success", stream(OPEN, {"error": {"message": "lost"}}))

    @pytest.mark.parametrize(
        "body",
        [
            {"error": {"message": "no"}},
            {"error": "no"},
            {"object": "error", "message": "no such model", "code": 404},
            {"detail": "Not Found"},
            {"message": "too long", "code": 400},
        ],
    )
    def test_a_refusal_behind_a_200_is_found_on_both_channels(self, body):
        assert violations("refusal_is_not_a_success", plain(body, validity=Validity.INVALID))
        assert violations("refusal_is_not_a_success", stream(body))

    def test_the_same_error_on_both_channels_holds_though_words_differ(self):
        one, other = error("request 1: bad"), error("request 2: bad", request={"stream": True})
        assert only(Satisfied, "errors_agree_on_both_channels", group("channel", plain=one, stream=other))

    def test_load_on_one_channel_is_no_difference(self):
        pair = group("channel", plain=error(), stream=error(status=503))
        assert only(Inconclusive, "errors_agree_on_both_channels", pair)

    def test_accepted_on_one_channel_only(self):
        assert violations("errors_agree_on_both_channels", group("channel", plain=error(), stream=stream(FINE)))
        assert not findings("errors_agree_on_both_channels", group("channel", plain=plain(FINE), stream=stream(FINE)))

    @pytest.mark.parametrize(
        ("known", "status", "held"),
        [([400], 400, True), (["4XX"], 418, True), ([400], 418, False), (["default"], 418, True)],
    )
    def test_a_status_is_met_by_its_class_too(self, known, status, held):
        assert only(
            Satisfied if held else Violation, "error_status_is_documented", error(status=status), statuses=known
        )

    def test_a_gateways_page_is_not_the_targets(self):
        x = response(b"<html>502 Bad Gateway</html>", status=502, media_type="text/html")
        assert not findings("error_is_json", x)
        assert violations("error_is_json", replace(x, attempts=(replace(x.last, status=500),)))

    def test_statuses_narrow_a_row(self):
        x = response(b"no", status=404, media_type="text/plain")
        assert not findings("error_is_json", x, statuses=[400, 401])
        assert violations("error_is_json", x, statuses=["404"])


class TestHeaders:
    @pytest.mark.parametrize("told", ["max-age=60", "public", "private, max-age=10", "s-maxage=5"])
    def test_a_stream_that_invites_caches_is_found(self, told):
        assert violations("stream_is_not_cacheable", stream(FINE, headers={"cache-control": told}))

    @pytest.mark.parametrize(
        "told", ["no-cache", "no-store, max-age=60", "max-age=0", "no-cache, must-revalidate", "private"]
    )
    def test_one_that_does_not_holds(self, told):
        assert only(Satisfied, "stream_is_not_cacheable", stream(FINE, headers={"cache-control": told}))
        assert only(Satisfied, "stream_is_not_cacheable", stream(FINE))

    @pytest.mark.parametrize("charset", ["iso-8859-1", '"latin1"', "utf-16"])
    def test_another_charset_is_found(self, charset):
        assert violations("charset_is_utf8", plain(FINE, media_type=f"application/json; Charset={charset}"))

    @pytest.mark.parametrize(
        "name", ["X-Request-ID", "x-ms-request-id", "request-id", "CF-Ray", "apim-request-id", "x-trace-id"]
    )
    def test_a_request_id_has_many_names(self, name):
        assert only(Satisfied, "request_id_is_sent", plain(FINE, headers={name: "1"}))


class TestRobustness:
    def test_gateway_statuses_are_doubted(self):
        assert violations("no_server_error", error(status=500))
        assert only(Inconclusive, "no_server_error", error(status=503))
        assert not findings("no_server_error", response(b"", status=None))

    @pytest.mark.parametrize("ending", [Ending.TRUNCATED, Ending.TIMED_OUT, Ending.OVERSIZED])
    def test_a_response_that_did_not_come_to_its_end_is_found(self, ending):
        assert violations("response_is_complete", stream(OPEN, done=False, ending=ending, error="why"))

    def test_silence_before_the_first_byte_is_found_and_a_refused_connection_doubted(self):
        assert violations("response_is_complete", response(b"", status=None, ending=Ending.TIMED_OUT, error="30 s"))
        assert only(
            Inconclusive, "response_is_complete", response(b"", status=None, ending=Ending.TRUNCATED, error="reset")
        )

    def test_a_coding_that_breaks_off_is_no_whole_response(self):
        torn = gzip.compress(dumps(FINE).encode())[:-9]
        assert violations("response_is_complete", response(torn, headers={"content-encoding": "gzip"}))

    LOST = response(b"", status=None, error="connection refused")

    def test_one_lost_probe_is_doubted_three_are_a_dead_server(self):
        (found,) = findings("alive_after_hostile", group("alive", "x", hostile=error(), probe=self.LOST))
        assert isinstance(found, Inconclusive)
        assert found.repeat
        assert violations("alive_after_hostile", group("alive", "x", hostile=error(), probe=[self.LOST] * 3))

    def test_a_server_that_came_back_had_gone(self):
        (found,) = violations(
            "alive_after_hostile", group("alive", "x", hostile=error(), probe=[self.LOST, plain(FINE)])
        )
        assert found.flaky

    def test_a_probe_that_is_refused_or_throttled_is_not_dead(self):
        for status in (400, 401, 429):
            assert only(
                Inconclusive, "alive_after_hostile", group("alive", "x", hostile=error(), probe=error(status=status))
            )

    def test_a_request_that_fails_the_second_time(self):
        once = group("repeat", "x", first=plain(FINE), second=error(status=500))
        assert only(Inconclusive, "repeat_is_answered", once)
        assert violations("repeat_is_answered", group("repeat", "x", first=plain(FINE), second=[error(status=500)] * 3))
        assert not findings("repeat_is_answered", group("repeat", "x", first=error(), second=error(status=500)))


class TestTiming:
    def spaced(self, *times):
        x = stream(OPEN, OPEN, END)
        pieces = tuple(Piece(at, piece.data) for at, piece in zip(times, x.pieces, strict=True))
        return replace(x, attempts=(replace(x.last, pieces=pieces),))

    def test_what_is_seen_is_told_coarsely(self):
        x = self.spaced(0.4, 0.5, 4.0, 4.1)
        assert [one.value for one in findings("first_byte_time", x)] == ["under 1 s"]
        assert [one.value for one in findings("longest_silence", x)] == ["under 10 s"]
        assert [one.value for one in findings("stream_arrives_in_pieces", x)] == ["in several pieces"]

    def test_a_buffered_stream_is_told(self):
        assert [one.value for one in findings("stream_arrives_in_pieces", self.spaced(2, 2, 2, 2))] == ["all at once"]

    def test_timing_is_never_a_violation(self):
        for check in CATALOGUE.values():
            if check.area == "timing":
                assert not violations(check.name, self.spaced(100, 200, 300, 400))


def test_an_error_in_the_middle_of_a_stream_is_not_called_a_malformed_chunk():
    broken = stream(OPEN, {"error": {"message": "engine stopped"}})
    assert only(Satisfied, "chunk_field_conforms", broken, path="id", keyword="required", expected=None)


def test_a_server_that_fails_in_the_middle_of_a_stream_fails_as_one_that_says_so_before():
    assert only(Violation, "no_server_error", stream(OPEN, {"error": {"message": "100", "code": 500}}))
    assert only(Inconclusive, "no_server_error", stream(OPEN, {"error": {"message": "busy", "code": 503}}))
    assert only(Satisfied, "no_server_error", stream(OPEN, {"error": {"message": "flagged", "code": 400}}))
