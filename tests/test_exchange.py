"""One exchange read in many ways: each view is total, and says of the bytes what is there."""

import gzip
import json
import zlib
from functools import cached_property

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judge.fixtures import choice, completion, error, group, plain, response, stream, usage
from conformance.model import Ending, exchange
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.model.json_text import MISSING

VIEWS = [name for name, member in vars(Exchange).items() if isinstance(member, (property, cached_property))]


@settings(deadline=None, derandomize=True, database=None)
@given(
    st.binary(max_size=80)
    | st.sampled_from([b"[" * 100_000, b"1" * 5000, b'data: {"choices": [{"index": true}]}\n\n']),
    st.sampled_from([None, "text/event-stream", "application/json", "", ";", "text/event-stream;"]),
    st.sampled_from([None, 0, 99, 200, 404, 500]),
    st.sampled_from(["identity", "gzip", "GZIP", "deflate", "br", "gzip, gzip", ""]),
)
def test_no_view_raises(content, media_type, status, coding):
    x = response(content, status=status, media_type=media_type, headers={"content-encoding": coding})
    for view in VIEWS:
        getattr(x, view)
    x.arrival(0)
    x.arrival(10**9)


def test_an_exchange_without_any_response_has_empty_views():
    x = Exchange(plain({}).case, (Attempt(0.0, None, error="connection refused"),))
    assert x.status is None
    assert x.content == b""
    assert x.json is MISSING
    assert (x.events, x.documents, x.choices, x.usage) == ((), (), {}, None)
    assert not x.successful
    assert not x.refused
    assert x.arrival(0) == 0.0


def test_the_last_attempt_is_the_one_that_counts():
    busy, fine = error(status=503).last, plain(completion(choice())).last
    x = Exchange(plain({}).case, (busy, fine))
    assert x.status == 200
    assert x.choices[0].text == " 4, 5"


class TestHeaders:
    def test_names_are_met_in_any_case_and_lines_are_joined(self):
        x = response(b"", media_type=None, headers={"Cache-Control": "no-cache", "CACHE-CONTROL": "no-store"})
        assert x.header("cache-control") == "no-cache, no-store"
        assert x.header("content-type") is None

    @pytest.mark.parametrize("value", ["text/event-stream", "Text/Event-Stream ; charset=utf-8", " text/event-stream;"])
    def test_the_media_type_is_told_without_case_and_parameters(self, value):
        assert response(b"", media_type=value).media_type == "text/event-stream"


class TestRefusal:
    @pytest.mark.parametrize("status", [400, 405, 413, 415, 422])
    def test_a_4xx_is_a_refusal(self, status):
        assert error(status=status).refused

    @pytest.mark.parametrize("status", [None, 200, 302, 401, 403, 404, 408, 429, 500, 503])
    def test_key_route_load_and_failure_are_none(self, status):
        assert not error(status=status).refused


class TestCoding:
    TEXT = json.dumps(completion(choice())).encode()

    @pytest.mark.parametrize(
        "packed", [gzip.compress(TEXT), zlib.compress(TEXT), gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])]
    )
    def test_it_is_undone(self, packed):
        x = response(packed, headers={"content-encoding": "gzip"})
        assert x.decoded == (self.TEXT, "")

    def test_what_ends_too_early_keeps_what_was_read(self):
        content, problem = response(gzip.compress(b"x" * 99)[:-12], headers={"content-encoding": "gzip"}).decoded
        assert problem == "content-encoding gzip ends too early"
        assert set(content) <= {ord("x")}

    def test_what_is_no_gzip_is_said_to_be_none(self):
        content, problem = response(b"plain", headers={"content-encoding": "gzip"}).decoded
        assert content == b""
        assert "cannot be undone" in problem

    def test_a_coding_that_was_never_offered_is_said(self):
        assert "never offered" in response(b"x", headers={"content-encoding": "br"}).decoded[1]

    def test_a_bomb_is_not_unpacked(self, monkeypatch):
        monkeypatch.setattr(exchange, "DECODED_CAP", 1000)
        content, problem = response(gzip.compress(b"x" * 100_000), headers={"content-encoding": "gzip"}).decoded
        assert len(content) == 1000
        assert "larger than" in problem

    def test_a_bomb_of_many_members_is_not_unpacked(self):
        packed = gzip.compress(b"x") * 1000
        content, problem = response(packed, headers={"content-encoding": "gzip"}).decoded
        assert len(content) <= exchange.MOST_MEMBERS
        assert "members" in problem

    def test_an_empty_body_is_whole(self):
        assert response(b"", headers={"content-encoding": "gzip"}).decoded == (b"", "")


class TestJson:
    @pytest.mark.parametrize(
        "body", [b"", b"{", b"NaN", b'{"a": Infinity}', b"\xff", b"{} {}", b"\xef\xbb\xbf{}", b"[" * 10**5]
    )
    def test_what_is_no_json_text_is_missing(self, body):
        assert response(body).json is MISSING

    def test_null_is_a_value(self):
        assert response(b" null\n").json is None


class TestStreams:
    def test_the_media_type_makes_a_stream(self):
        assert stream(completion(choice())).streamed
        assert not plain(completion(choice())).streamed

    def test_a_stream_under_another_name_is_read_as_one(self):
        assert stream(completion(choice()), media_type="application/json").streamed
        assert response(b": ping\n\ndata: {}\n\n", media_type=None).streamed

    def test_json_is_not_a_stream_however_it_begins(self):
        assert not response(b'"data: x"').streamed

    def test_done_is_found_and_no_document(self):
        x = stream(completion(choice()), b"data:[DONE]  \n\n", done=False)
        assert x.done == (1,)
        assert [document.at for document in x.documents] == ["event 0"]

    def test_done_within_a_text_is_no_end(self):
        assert stream(completion(choice("[DONE]")), done=False).done == ()

    def test_events_that_are_no_json_keep_their_number(self):
        x = stream(b": ping\n\n", completion(choice()), b"data: oops\n\n", completion(choice("")))
        assert [document.number for document in x.documents] == [0, 2]
        assert len(x.messages) == 4

    def test_a_document_knows_its_first_byte(self):
        x = stream(b": ping\n\n", completion(choice()))
        assert x.content[x.documents[0].offset :].startswith(b'data: {"id"')

    def test_arrival_is_that_of_the_piece_that_holds_the_byte(self):
        x = response([b"abc", b"", b"de"])
        assert [x.arrival(offset) for offset in (0, 2, 3, 4, 5)] == [0.01, 0.01, 0.03, 0.03, 0.03]


class TestChoices:
    def test_parts_are_gathered_by_index_plain_and_streamed_alike(self):
        one = plain(completion(choice(" a b"), choice(" c", index=1)))
        parts = (choice(" a", finish=None), choice(" c", index=1), choice(" b"))
        other = stream(*(completion(part) for part in parts))
        assert {index: found.text for index, found in one.choices.items()} == {0: " a b", 1: " c"}
        assert {index: found.text for index, found in other.choices.items()} == {0: " a b", 1: " c"}
        assert [part.at for part in other.choices[0].parts] == ["event 0 /choices/0", "event 2 /choices/0"]

    def test_an_index_may_be_written_as_a_float(self):
        assert list(plain(completion(choice(index=1.0))).choices) == [1]

    @pytest.mark.parametrize("index", [None, "0", True, 0.5, MISSING])
    def test_a_choice_without_a_usable_index_is_left_out(self, index):
        assert not plain(completion(choice(index=index))).choices

    def test_what_is_no_object_is_left_out(self):
        x = plain({"choices": [None, 3, "x", choice()]})
        assert len(x.documents[0].choices) == 1

    def test_the_last_reason_counts_and_an_empty_one_does_not(self):
        x = stream(completion(choice(finish="")), completion(choice(finish="stop")), completion(choice(finish=None)))
        assert x.choices[0].finish_reason == "stop"

    def test_log_probabilities_are_joined_by_name_and_keep_in_step(self):
        halves = [{"tokens": ["a"], "token_logprobs": None}, {"tokens": ["b"], "token_logprobs": [-1.0]}]
        x = stream(*(completion(choice(logprobs=half)) for half in halves), completion(choice("")))
        assert x.choices[0].logprobs == {"tokens": ["a", "b"], "token_logprobs": [None, -1.0]}

    def test_a_list_that_no_part_has_is_empty(self):
        x = stream(*(completion(choice(logprobs={"tokens": [one], "top_logprobs": None})) for one in "ab"))
        assert x.choices[0].logprobs == {"tokens": ["a", "b"], "top_logprobs": []}

    def test_a_filtered_choice_is_marked(self):
        assert plain(completion(choice(finish="content_filter"))).filtered
        assert not plain(completion(choice())).filtered


class TestUsage:
    def test_absent_and_null_are_told_apart(self):
        absent, null, told = stream(
            completion(choice()), completion(choice(), usage=None), completion(usage=usage())
        ).documents
        assert absent.usage is MISSING
        assert null.usage is None
        assert told.usage["total_tokens"] == 8

    def test_the_last_report_counts(self):
        x = stream(completion(usage=usage(4, 1)), completion(usage=usage(4, 2)), completion(choice(), usage=None))
        assert len(x.reports) == 2
        assert x.usage["completion_tokens"] == 2


class TestErrors:
    def test_the_body_of_a_refusal_is_the_error_whatever_its_shape(self):
        assert error().error["error"]["param"] == "temperature"
        assert plain({"detail": "no"}, status=422).error == {"detail": "no"}
        assert response(b"no", status=500).error is MISSING

    def test_an_error_in_a_stream_is_found(self):
        assert stream(completion(choice()), {"error": {"message": "lost"}}).error == {"error": {"message": "lost"}}

    def test_a_null_error_is_none(self):
        assert plain(completion(choice(), error=None)).error is MISSING


def test_a_group_gives_its_members_by_role():
    found = group("batch", batch=plain({}), single_0=[plain({}), plain({})])
    assert len(found.all("single-0")) == 2
    assert found.first("single-0") is found.all("single-0")[0]
    assert found.first("single-1") is None
    assert found.all("single-1") == ()


def test_views_are_computed_once():
    x = stream(*[completion(choice(" x", finish=None))] * 3)
    for view in ("documents", "choices", "events", "messages", "done", "reports", "error"):
        assert getattr(x, view) is getattr(x, view)
    assert x.documents[0].choices is x.documents[0].choices


def test_how_it_was_split_changes_no_view():
    whole = stream(completion(choice("é")), request={"n": 1})
    split = response([bytes([byte]) for byte in whole.content], whole.case.content, media_type="text/event-stream")
    for view in set(VIEWS) - {"pieces", "last"}:
        assert getattr(whole, view) == getattr(split, view), view


def test_a_piece_keeps_its_time():
    assert Piece(0.5, b"x").at == 0.5
    assert plain({}).ending is Ending.COMPLETE
