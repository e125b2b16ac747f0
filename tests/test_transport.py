"""What goes over the wire is sent once, kept whole, and never hurts whoever asked."""

from __future__ import annotations

import asyncio
import base64
import gzip
import resource
import shutil
import ssl
import subprocess
import sys
import time
from dataclasses import replace
from email.utils import formatdate
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conformance.judge.catalogue import CheckContext
from conformance.judge.checks.robustness import response_is_complete
from conformance.judge.fixtures import case, contract
from conformance.model import (
    Credential,
    Ending,
    Inconclusive,
    Layer,
    Level,
    Phase,
    RequestCase,
    Requirement,
    Source,
    Validity,
    Violation,
)
from conformance.model.budget import Account, Budget, Cost, reported, worst_case
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.model.redaction import is_secret
from conformance.model.secret_forms import is_common
from conformance.recording.json_forms import bytes_in, bytes_out
from conformance.run.reproducer import shows
from conformance.send import RateLimits, Redaction, Sender, Target, TimeoutPolicy, Watcher
from conformance.send.rate_limits import Bucket, back_off, retry_after
from conformance.send.response_reader import KEPT_OF_ENDLESS, KEPT_WEIGHT, LARGE, TOTAL, Reading, ResponseMemoryBudget
from tests import hostile
from tests.hostile import BODY, EVENT, STREAM, chunked, head, says, serving

KEY = "sk-canary-/+7f3a9b2c&d"
HURRIED = TimeoutPolicy(
    connect=0.4, first_byte=0.4, idle=0.4, total=1.0, most_bytes=300_000, retries=2, first_wait=0.01, longest_wait=2
)


def cases(count: int, **more: object) -> tuple[RequestCase, ...]:
    return tuple(replace(case({"max_tokens": 1}, **more), id=f"t/{place}") for place in range(count))


def send(
    answer: hostile.Answer,
    phase: Phase | RequestCase | None = None,
    *,
    timeouts: TimeoutPolicy = HURRIED,
    pace: RateLimits = RateLimits(),  # noqa: B008
    budget: Budget = Budget(),  # noqa: B008
    watcher: Watcher = Watcher(),  # noqa: B008
    base: str = "",
    **target: object,
) -> tuple[tuple[Exchange, ...], hostile.Server, Sender]:
    """Send a wave (or one case) to a server that answers so."""
    phase = phase or case({"max_tokens": 1})
    phase = Phase("test", (phase,)) if isinstance(phase, RequestCase) else phase

    async def go(base_url: str) -> tuple[tuple[Exchange, ...], Sender]:
        there = Target(base_url + base, "/completions", **{"key": KEY, **target})  # type: ignore[arg-type]
        async with Sender(there, Account(budget), timeouts=timeouts, pace=pace, watcher=watcher) as sender:
            return await sender.send(phase), sender

    with serving(answer) as server:
        exchanges, sender = asyncio.run(go(server.base_url))
    return exchanges, server, sender


def one(answer: hostile.Answer, phase: Phase | RequestCase | None = None, **more: object) -> Exchange:
    (exchange,), _, _ = send(answer, phase, **more)  # type: ignore[arg-type]
    return exchange


# What is sent


def test_a_case_goes_out_as_it_is_with_the_key_and_nothing_from_the_environment(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    (exchange,), server, _ = send(says(), case(b'{ "model" : "m" }'), base="/v1/", query=(("ai project", "a&b"),))
    (request,) = server.requests
    assert request.body == b'{ "model" : "m" }'
    assert (request.method, request.path) == ("POST", "/v1/completions?ai%20project=a%26b")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept-encoding"] == "gzip, deflate"
    assert request.headers["content-type"] == "application/json"
    assert set(request.headers) == {
        "host", "accept", "accept-encoding", "user-agent", "authorization", "content-type", "content-length",
    }  # fmt: skip
    assert exchange.status == 200
    assert exchange.content == BODY
    assert exchange.ending is Ending.COMPLETE


@pytest.mark.parametrize(
    ("credential", "sent", "api_key"),
    [
        (Credential.KEY, f"Bearer {KEY}", "hidden-value"),
        (Credential.LOWERCASE_SCHEME, f"bearer {KEY}", "hidden-value"),
        (Credential.NONE, None, None),
        (
            Credential.WRONG,
            "Bearer sk-conformance-wrong-key-0000000000000000",
            "sk-conformance-wrong-key-0000000000000000",
        ),
    ],
)
def test_the_credential_rules_every_secret_header(credential, sent, api_key):
    _, server, _ = send(
        says(), case(credential=credential), headers=(("Api-Key", "hidden-value"), ("X-Team", "conformance"))
    )
    headers = server.requests[0].headers
    assert headers.get("authorization") == sent
    assert headers.get("api-key") == api_key
    assert headers["x-team"] == "conformance"


def test_a_get_without_a_body_declares_no_length():
    _, server, _ = send(says(), replace(case(b""), method="GET", path="/models", headers=()))
    assert server.requests[0].method == "GET"
    assert server.requests[0].path == "/models"
    assert "content-length" not in server.requests[0].headers
    assert "content-type" not in server.requests[0].headers


def test_a_body_in_chunks_declares_no_length_and_arrives_whole():
    chunked = replace(case(b'{"model":"m"}'), headers=(("transfer-encoding", "chunked"),))
    _, server, _ = send(says(), chunked)
    (request,) = server.requests
    assert request.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in request.headers
    assert request.body == b'{"model":"m"}'


def test_a_case_may_say_what_it_accepts():
    _, server, _ = send(says(), replace(case(b"{}"), headers=(("accept", "application/json"),)))
    assert server.requests[0].headers["accept"] == "application/json"


def test_an_empty_post_declares_that_it_is_empty():
    _, server, _ = send(says(), case(b""))
    assert server.requests[0].headers["content-length"] == "0"


@pytest.mark.parametrize(
    ("base_url", "says_so"),
    [
        ("localhost:8000", "expected http://"),
        ("ftp://host", "expected http://"),
        ("http://", "expected http://"),
        ("http://me:secret@host", "put the key into the environment"),
        ("http://host?key=1", "--query"),
        ("http://host:port", "cannot be read"),
    ],
)
def test_a_base_url_that_cannot_work_is_refused_without_printing_secrets(base_url, says_so):
    with pytest.raises(ValueError, match=says_so) as caught:
        Target(base_url, "/completions")
    assert "secret" not in str(caught.value)


def test_a_key_with_a_line_break_is_refused_without_printing_it():
    with pytest.raises(ValueError, match="white space") as caught:
        Target("http://host", "/completions", key="sk-secret\n")
    assert "sk-secret" not in str(caught.value)
    assert "sk-secret" not in repr(Target("http://host", "/completions", key="sk-secret"))


def test_a_header_that_would_split_the_request_is_refused():
    with pytest.raises(ValueError, match="one line"):
        Target("http://host", "/completions", headers=(("X-A", "b\r\nX-C: d"),))


# What is kept


def test_pieces_are_kept_as_they_came_with_their_times():
    async def answer(request, writer):
        writer.write(STREAM)
        for place in range(3):
            await asyncio.sleep(0.1)
            writer.write(chunked(b"data: %d\n\n" % place))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    exchange = one(answer)
    assert [piece.data for piece in exchange.pieces] == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    times = [piece.at for piece in exchange.pieces]
    assert times == sorted(times)
    assert times[2] - times[0] > 0.1
    assert exchange.last.elapsed >= times[-1]


def test_header_case_order_and_repetition_are_kept():
    exchange = one(hostile.raw(b"HTTP/1.1 200 Fine\r\nX-One: 1\r\nx-ONE: \xfc\r\ncontent-length: 0\r\n\r\n"))
    assert exchange.headers == (("X-One", "1"), ("x-ONE", "ü"), ("content-length", "0"))
    assert exchange.last.http_version == "HTTP/1.1"


def test_compressed_content_is_kept_as_sent():
    packed = gzip.compress(BODY)
    exchange = one(says("200 OK", "content-encoding: gzip", body=packed))
    assert b"".join(piece.data for piece in exchange.pieces) == packed
    assert exchange.content == BODY


def test_a_connection_is_used_again():
    _, server, _ = send(says(), Phase("serial", cases(4), serial=True))
    assert server.connections == 1


def test_a_redirect_is_kept_and_not_followed():
    with serving(says(body=b"stolen")) as elsewhere:
        exchange = one(says("307 Temporary Redirect", f"location: {elsewhere.base_url}/completions", body=b""))
        assert exchange.status == 307
        assert elsewhere.requests == []


def test_cookies_are_not_carried_from_one_case_to_the_next():
    _, server, _ = send(says("200 OK", "set-cookie: a=b"), Phase("serial", cases(2), serial=True))
    assert "cookie" not in server.requests[1].headers


def test_the_client_hangs_up_when_the_case_says_so():
    exchange = one(hostile.endless(STREAM, chunked(EVENT), pause=0.001), case(hang_up_after=3))
    assert exchange.ending is Ending.ABANDONED
    assert len(exchange.pieces) == 3


# Targets that misbehave

ENDLESS = b"x: y\r\n" * 50
HOSTILE = [
    ("endless stream", hostile.endless(STREAM, chunked(EVENT)), 200, Ending.OVERSIZED, "longer than 300000 bytes"),
    ("four gigabytes", hostile.zeros(), 200, Ending.OVERSIZED, "longer than 300000 bytes"),
    ("megabyte line", hostile.endless(STREAM, chunked(b"data: " + b"x" * 1_000_000)), 200, Ending.OVERSIZED, "longer"),
    ("gzip bomb", hostile.gzip_bomb(20), 200, Ending.OVERSIZED, "longer than 300000 bytes"),
    ("deflate bomb", hostile.gzip_bomb(20, "deflate"), 200, Ending.OVERSIZED, "longer than 300000 bytes"),
    ("endless headers", hostile.endless(b"HTTP/1.1 200 OK\r\n", ENDLESS), None, Ending.TRUNCATED, "RemoteProt"),
    ("endless continue", hostile.endless(b"", b"HTTP/1.1 100 On\r\n\r\n", 0.01), None, Ending.TIMED_OUT, "no response"),
    ("slow head", hostile.endless(b"HTTP/1.1 200 OK\r\n", b"x", 0.02), None, Ending.TIMED_OUT, "no response head"),
    ("slow body", hostile.endless(head(length=10_000), b"x", 0.02), 200, Ending.TIMED_OUT, "not finished within 1 s"),
    ("silent at once", hostile.falls_silent(b""), None, Ending.TIMED_OUT, "no response head within"),
    ("silent in the middle", hostile.falls_silent(STREAM + chunked(EVENT)), 200, Ending.TIMED_OUT, "silent for 0.4 s"),
    ("cut short", hostile.raw(head(length=500) + b"{"), 200, Ending.TRUNCATED, "peer closed connection"),
    ("reset in the body", hostile.resets(STREAM + chunked(EVENT)), 200, Ending.TRUNCATED, "reset"),
    ("broken chunk", hostile.raw(STREAM + b"zz\r\nwhat\r\n"), 200, Ending.TRUNCATED, "illegal chunk header"),
    ("not HTTP", hostile.raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), None, Ending.TRUNCATED, "RemoteProtocolError"),
    ("closed without a word", hostile.raw(b""), None, Ending.TRUNCATED, "without sending a response"),
    ("odd status", says("999 What", body=b""), 999, Ending.COMPLETE, ""),
    ("endless trailers", hostile.endless(STREAM + b"0\r\n", ENDLESS), 200, Ending.TRUNCATED, "RemoteP"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "status", "ending", "error"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE]
)
def test_a_hostile_target_ends_in_an_attempt_and_the_next_case_is_unaffected(answer, status, ending, error):
    timeouts = replace(HURRIED, retries=0)
    begun = time.perf_counter()
    (bad, good), _, _ = send(hostile.in_turn(answer, says()), Phase("serial", cases(2), serial=True), timeouts=timeouts)
    assert time.perf_counter() - begun < 10
    assert (bad.status, bad.ending) == (status, ending), bad.last.error
    assert error in bad.last.error
    assert sum(len(piece.data) for piece in bad.pieces) <= 300_000
    assert (good.status, good.content, good.ending) == (200, BODY, Ending.COMPLETE)


@pytest.mark.parametrize("place", range(0, len(STREAM + chunked(EVENT, EVENT)) + 1, 7))
def test_a_reset_at_any_byte_is_told_from_the_end(place):
    whole = STREAM + chunked(EVENT, EVENT)
    exchange = one(hostile.resets(whole[:place]), timeouts=replace(HURRIED, retries=0))
    assert exchange.ending is Ending.TRUNCATED
    assert (exchange.status is None) == (place < len(STREAM))


@pytest.mark.parametrize("again", [b"data:1\n\n", b"[],", b'{"a":{}},'])
def test_what_would_fill_memory_once_it_is_read_stops_early(again):
    reading = Reading(0.0, None, 2**30)
    reading.head(200, [(b"content-type", b"text/event-stream")], b"HTTP/1.1")
    fed = 0
    while reading.feed(again * 100, 0.1):
        fed += 100
    attempt = reading.attempt(1.0)
    assert attempt.ending is Ending.OVERSIZED
    assert "too many values and lines" in attempt.error
    assert 50_000 < fed < 2_000_000
    assert sum(len(piece.data) for piece in attempt.pieces) <= KEPT_OF_ENDLESS


def read_with(shelf: ResponseMemoryBudget, data: bytes, *headers: tuple[bytes, bytes], step: int = 10_000) -> Attempt:
    reading = Reading(0.0, None, 2**30, shelf)
    reading.head(200, headers, b"HTTP/1.1")
    for place in range(0, len(data), step):
        if not reading.feed(data[place : place + step], 0.1):
            break
    return reading.attempt(1.0)


def test_what_all_responses_weigh_has_an_end_however_many_there_are():
    shelf, event = ResponseMemoryBudget(), EVENT * 100
    kept = [read_with(shelf, event * 1000).ending for _ in range(20)]
    assert set(kept) == {Ending.OVERSIZED}
    assert shelf.used < LARGE / 2
    long = [read_with(shelf, b"x" * 10_000_000) for _ in range(5)]
    assert {Ending.COMPLETE, Ending.UNREAD} == {one.ending for one in long}
    assert LARGE / 4 < shelf.used < TOTAL
    # those in order go on, as long as they are short
    assert [read_with(shelf, BODY).ending for _ in range(1000)] == [Ending.COMPLETE] * 1000
    assert shelf.used < TOTAL


def full_shelf() -> ResponseMemoryBudget:
    shelf = ResponseMemoryBudget(large=2**24, total=2**24)
    shelf.used = 2**24
    return shelf


def test_a_light_response_that_ends_is_not_blamed_for_the_heavy_ones_before_it():
    shelf = full_shelf()
    attempt = read_with(shelf, EVENT * 1000)
    assert attempt.ending is Ending.UNREAD
    assert f"{len(EVENT) * 1000} bytes were read, the first " in attempt.error
    assert sum(len(piece.data) for piece in attempt.pieces) < len(EVENT) * 1000
    x = Exchange(case(), (attempt,))
    (found,) = response_is_complete(x, CheckContext(contract()))
    assert isinstance(found, Inconclusive)
    assert not found.repeat
    row = Requirement("r.complete", "response_is_complete", Level.MUST, Layer.STANDARD, "it ends", Source("#"))
    assert not shows(row, x, (), contract())


def test_a_light_response_that_never_ends_is_blamed_whatever_came_before_it():
    shelf = full_shelf()
    reading = Reading(0.0, None, 2**30, shelf)
    reading.head(200, [(b"content-type", b"text/event-stream")], b"HTTP/1.1")
    fed = 0
    while reading.feed(EVENT, 0.1):
        fed += 1
        assert fed < 100_000
    attempt = reading.attempt(1.0)
    assert attempt.ending is Ending.OVERSIZED
    assert shelf.used <= full_shelf().used + KEPT_WEIGHT
    (found,) = response_is_complete(Exchange(case(), (attempt,)), CheckContext(contract()))
    assert isinstance(found, Violation)
    assert f"{len(EVENT) * (fed + 1)} bytes were read" in found.message
    assert " after " not in found.message


@pytest.mark.parametrize(("ending", "told"), [(Ending.TIMED_OUT, "silent for 30 s; "), (Ending.TRUNCATED, "closed; ")])
def test_what_was_not_kept_for_want_of_memory_can_fail_all_the_same(ending, told):
    shelf = full_shelf()
    reading = Reading(0.0, None, 2**30, shelf)
    reading.head(200, [(b"content-type", b"text/event-stream")], b"HTTP/1.1")
    assert all(reading.feed(EVENT, 0.1) for _ in range(1000))
    reading.fail(ending, told[:-2])
    attempt = reading.attempt(1.0)
    assert attempt.ending is ending
    assert attempt.error.startswith(f"{told}{len(EVENT) * 1000} bytes were read, the first ")


@pytest.mark.parametrize("step", [10, 500, 100_000])
def test_what_is_kept_of_a_bomb_that_comes_in_drops_unpacks_to_little(step):
    bomb = gzip.compress(b"[" * 2**26)
    attempt = read_with(ResponseMemoryBudget(), bomb, (b"content-encoding", b"gzip"), step=step)
    assert attempt.ending is Ending.OVERSIZED
    assert len(Exchange(case({}), (attempt,)).content) < 200_000


def test_many_small_pieces_are_joined():
    reading = Reading(0.0, None, 2**30)
    reading.head(200, [], b"HTTP/1.1")
    for place in range(100_000):
        assert reading.feed(b"12345678", place / 1000)
    pieces = reading.attempt(101.0).pieces
    assert len(pieces) < 21_000
    assert b"".join(piece.data for piece in pieces) == b"12345678" * 100_000


def test_all_responses_together_stay_within_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exchanges, _, _ = send(
        hostile.endless(STREAM, chunked(b"x" * 60_000)),
        Phase("many", cases(40)),
        timeouts=replace(HURRIED, most_bytes=4 * 2**20, total=20, idle=5, first_byte=5),
    )
    assert {x.ending for x in exchanges} == {Ending.OVERSIZED}
    assert sum(len(piece.data) for x in exchanges for piece in x.pieces) <= 40 * KEPT_OF_ENDLESS
    assert "are kept" in exchanges[0].last.error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000


def test_a_target_that_answers_twice_does_not_answer_the_next_case():
    twice = hostile.raw(head(length=len(BODY)) + BODY + head("418 Teapot", length=0), close=False)
    (_, second), _, _ = send(hostile.in_turn(twice, says()), Phase("serial", cases(2), serial=True))
    assert second.status == 200


def test_a_host_that_nobody_answers_at_is_told_in_one_line():
    async def go() -> Exchange:
        target = Target("http://127.0.0.1:9", "/completions")
        async with Sender(target, Account(Budget()), timeouts=HURRIED) as sender:
            (exchange,) = await sender.send(Phase("one", cases(1)))
            return exchange

    exchange = asyncio.run(go())
    assert exchange.status is None
    assert exchange.last.error == "connection refused"
    assert "\n" not in exchange.last.error
    assert len(exchange.attempts) == 3


def test_a_certificate_that_cannot_be_verified_is_not_tried_again(tmp_path):
    async def go() -> Exchange:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self_signed(tmp_path))
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        async with Sender(Target(f"https://127.0.0.1:{port}", "/"), Account(Budget()), timeouts=HURRIED) as sender:
            (exchange,) = await sender.send(Phase("one", cases(1)))
        server.close()
        return exchange

    exchange = asyncio.run(go())
    assert "certificate verify failed" in exchange.last.error.lower()
    assert len(exchange.attempts) == 1


def self_signed(folder):
    """A certificate that nobody signed but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not there")
    files = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-subj", "/CN=h", *("-out", files[0], "-keyout", files[1])],
        check=True,
        capture_output=True,
    )
    return files


# Trying again


@pytest.mark.parametrize("status", ["429 Slow", "502 Bad Gateway", "503 Busy", "504 Late"])
def test_overload_is_tried_again_and_every_attempt_is_kept(status):
    exchange = one(hostile.in_turn(says(status, body=b"busy"), says(status, body=b"busy"), says()))
    assert [attempt.status for attempt in exchange.attempts] == [int(status[:3])] * 2 + [200]
    assert exchange.attempts[0].pieces[0].data == b"busy"
    assert exchange.content == BODY


def test_a_connection_that_breaks_before_the_reply_is_tried_again():
    exchange = one(hostile.in_turn(hostile.resets(), hostile.raw(b""), says()))
    assert [attempt.status for attempt in exchange.attempts] == [None, None, 200]


@pytest.mark.parametrize(
    "answer", [says("500 Oops"), says("400 No"), says("408 Late"), hostile.raw(head(length=9) + b"{")]
)
def test_other_answers_are_evidence_and_not_asked_for_again(answer):
    assert len(one(answer).attempts) == 1


def test_retries_end_with_their_number_and_the_last_answer_stands():
    exchange = one(says("503 Busy"))
    assert [attempt.status for attempt in exchange.attempts] == [503, 503, 503]


def test_retry_after_is_waited_for_by_everyone():
    begun = time.perf_counter()
    exchanges, _, _ = send(
        hostile.in_turn(says("429 Slow", "Retry-After: 1"), says()), Phase("two", cases(2), serial=True)
    )
    assert time.perf_counter() - begun >= 1.0
    assert [x.status for x in exchanges] == [200, 200]


def test_a_retry_after_beyond_patience_ends_the_attempts():
    begun = time.perf_counter()
    exchange = one(says("429 Slow", "Retry-After: 3600"))
    assert time.perf_counter() - begun < 10
    assert len(exchange.attempts) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0), (" 30 ", 30.0), ("0", 0.0), (formatdate(1_000_060, usegmt=True), 60.0),
        (formatdate(999_000, usegmt=True), 0.0), ("-1", None), ("soon", None), ("", None), ("1.5", None), ("²", None),
        ("9" * 400, 999_999_999.0), ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms(value, seconds):
    assert retry_after({"retry-after": value}, 1_000_000.0) == seconds


def test_a_retry_date_is_measured_by_the_clock_of_whoever_wrote_it():
    headers = {"retry-after": formatdate(5_010, usegmt=True), "date": formatdate(5_000, usegmt=True)}
    assert retry_after(headers, 1_000_000.0) == 10.0


def test_back_off_doubles_with_dice_that_fall_the_same_each_time():
    timeouts = TimeoutPolicy(first_wait=1, longest_wait=5)
    waits = [back_off(timeouts, attempt, Random(7)) for attempt in range(1, 6)]
    assert waits == [back_off(timeouts, attempt, Random(7)) for attempt in range(1, 6)]
    for wait, most in zip(waits, [1, 2, 4, 5, 5], strict=True):
        assert most / 2 <= wait <= most


@pytest.mark.parametrize("answer", [hostile.raw(b""), hostile.falls_silent(STREAM + chunked(EVENT))])
def test_a_target_that_is_gone_is_not_asked_for_ever(answer):
    exchanges, _, sender = send(
        answer, Phase("many", cases(30)), pace=RateLimits(concurrency=4), timeouts=replace(HURRIED, retries=0)
    )
    assert 8 <= len(exchanges) <= 12
    assert len(sender.unsent) == 30 - len(exchanges)
    assert "stopped answering" in sender.unsent["t/29"]


def test_a_stream_of_comments_alone_counts_as_silent():
    async def pings(request, writer):
        writer.write(STREAM + chunked(EVENT))
        for _ in range(40):
            await asyncio.sleep(0.05)
            writer.write(chunked(b": ping\n\n"))
            await writer.drain()

    exchange = one(pings, timeouts=replace(HURRIED, total=1.9))
    assert exchange.ending is Ending.TIMED_OUT
    assert "only comments for 0.4 s" in exchange.last.error


def test_a_target_that_refuses_for_load_for_ever_is_not_asked_for_ever():
    timeouts = replace(HURRIED, longest_wait=0.05)
    exchanges, _, sender = send(
        says("429 Slow", "retry-after: 9999"),
        Phase("many", cases(60)),
        pace=RateLimits(concurrency=4),
        timeouts=timeouts,
    )
    assert 16 <= len(exchanges) <= 20
    assert "overloaded" in sender.unsent["t/59"]


def test_being_refused_for_load_now_and_then_stops_nothing():
    answers = [*[says("429 Slow")] * 15, says()] * 3
    exchanges, _, _ = send(
        hostile.in_turn(*answers), Phase("many", cases(48), serial=True), timeouts=replace(HURRIED, retries=0)
    )
    assert len(exchanges) == 48


# Order and pace


@pytest.mark.parametrize(
    ("phase", "together"), [({}, 3), ({"serial": True}, 1), ({"burst": 12}, 12), ({"burst": 5}, 5)]
)
def test_at_most_so_many_are_in_flight_and_the_order_is_that_of_the_plan(phase, together):
    running, most = 0, 0

    async def answer(request, writer):
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(100):  # until all that may come have come
            if most >= together:
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.01 if request.body.endswith(b"0}") else 0)
        running -= 1
        await says()(request, writer)

    twelve = tuple(replace(case({"max_tokens": place % 3}), id=f"t/{place}") for place in range(12))
    timeouts = TimeoutPolicy()
    exchanges, _, _ = send(answer, Phase("twelve", twelve, **phase), pace=RateLimits(concurrency=3), timeouts=timeouts)
    assert most == together
    assert [x.case.id for x in exchanges] == [one.id for one in twelve]


def test_requests_keep_to_their_rate():
    begun = time.perf_counter()
    send(says(), Phase("ten", cases(13)), pace=RateLimits(requests_per_minute=600))
    assert 0.2 <= time.perf_counter() - begun < 10


def test_a_bucket_lends_and_what_comes_back_shortens_the_wait():
    now = [0.0]
    bucket = Bucket(60, lambda: now[0])
    assert bucket.take(1) == 0
    assert bucket.take(5) == pytest.approx(5)
    bucket.give_back(4)
    assert bucket.take(1) == pytest.approx(2)
    now[0] += 60
    assert bucket.take(1) == 0
    assert Bucket(None, lambda: 0.0).take(10**9) == 0


def test_overhead_is_small():
    begun = time.thread_time()  # this thread only: the server has its own
    send(says(), Phase("many", cases(300)), timeouts=TimeoutPolicy())
    assert (time.thread_time() - begun) / 300 < 0.003  # about 0.0009 on a quiet machine, see bench/


# Budgets


def test_attempts_are_counted_and_the_rest_stays_unsent_with_the_reason():
    exchanges, server, sender = send(says(), Phase("ten", cases(10)), budget=Budget(requests=4))
    assert len(exchanges) == len(server.requests) == 4
    assert len(sender.unsent) == 6
    assert "--max-requests" in sender.unsent["t/9"]


def test_retries_are_paid_for_too():
    exchanges, server, _ = send(says("503 Busy"), Phase("ten", cases(10), serial=True), budget=Budget(requests=4))
    assert len(server.requests) == 4
    assert [len(x.attempts) for x in exchanges] == [3, 1]


def test_completion_tokens_are_a_ceiling_that_nothing_in_flight_can_break():
    phase = Phase("ten", tuple(replace(one, content=b'{"prompt":"a","max_tokens":10}') for one in cases(10)))
    exchanges, _, sender = send(hostile.slow(0.02, says()), phase, budget=Budget(completion_tokens=25))
    # each may take 10 and takes 1: two at once, and one after another until 16 are spent
    assert len(exchanges) == 10
    assert sender.unsent == {}
    exchanges, _, sender = send(says(body=b"{}"), phase, budget=Budget(completion_tokens=25))
    assert len(exchanges) == 2  # nothing is reported, so the worst case counts
    assert "--max-tokens" in next(iter(sender.unsent.values()))


def test_refusals_cost_nothing_and_invalid_requests_set_nothing_aside():
    invalid = tuple(replace(one, content=b'{"max_tokens":1000000}', validity=Validity.INVALID) for one in cases(5))
    exchanges, _, _ = send(says("400 No"), Phase("five", invalid), budget=Budget(completion_tokens=1))
    assert len(exchanges) == 5


def test_prompt_tokens_are_a_ceiling_for_adversarial_requests_too_but_for_large_ones():
    long = tuple(replace(one, content=b'{"prompt":"%s"}' % (b"a" * 300)) for one in cases(3))
    exchanges, _, sender = send(says("200 OK", body=b"{}"), Phase("three", long), budget=Budget(prompt_tokens=350))
    assert len(exchanges) == 1
    assert "--max-prompt-tokens" in sender.unsent["t/2"]
    adversarial = tuple(replace(one, hostile=True) for one in long)
    exchanges, _, _ = send(says(), Phase("three", adversarial), budget=Budget(prompt_tokens=1))
    assert exchanges == ()
    asked_for = tuple(replace(one, content=b'{"prompt":"%s"}' % (b"a" * 200_000)) for one in adversarial)
    exchanges, _, _ = send(says(), Phase("three", asked_for), budget=Budget(prompt_tokens=1))
    assert len(exchanges) == 3


def test_time_is_a_ceiling_and_what_was_in_flight_is_no_evidence():
    begun = time.perf_counter()
    exchanges, _, sender = send(
        hostile.in_turn(says(), says(), hostile.falls_silent(b"")), Phase("ten", cases(10), serial=True),
        budget=Budget(seconds=0.6), timeouts=TimeoutPolicy(),
    )  # fmt: skip
    assert 0.6 <= time.perf_counter() - begun < 10
    assert len(exchanges) == 2
    assert "in flight" in sender.unsent["t/2"]
    assert "--max-seconds" in sender.unsent["t/9"]


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.integers(), st.lists, max_leaves=5))
def test_costs_are_read_from_anything(value):
    from conformance.model.request_view import RequestView

    cost = worst_case(RequestView({"prompt": value, "max_tokens": value, "n": value, "best_of": value}, {}))
    assert cost.prompt >= 0
    assert cost.completion >= 0
    found = reported({"prompt_tokens": value, "completion_tokens": value})
    assert found is None or found.prompt >= 0


def test_usage_is_read_as_reported():
    assert reported({"prompt_tokens": 4, "completion_tokens": 2.0}) == Cost(4, 2)
    assert reported({"prompt_tokens": 4}) == Cost(4, 0)
    assert reported(None) is None


# Secrets


def forms(secret: str) -> list[bytes]:
    from urllib.parse import quote

    data = secret.encode()
    return [
        data, data.upper(), base64.b64encode(data), base64.urlsafe_b64encode(data), base64.b64encode(b"Bearer " + data),
        base64.b64encode(b"user:" + data + b"!"), data.hex().encode(), data.hex().upper().encode(),
        quote(secret, safe="").encode(), quote(secret, safe="").lower().encode(),
    ]  # fmt: skip


def leaks(data: bytes, secret: str) -> list[bytes]:
    core = [form for form in forms(secret) if not form.startswith(base64.b64encode(b"Bearer ")[:6])]
    return [form for form in core if form in data]


@pytest.mark.parametrize("form", range(10))
def test_a_key_that_is_echoed_is_masked_in_each_form_without_a_change_of_length(form):
    echoed = b'{"error":"no such key ' + forms(KEY)[form] + b' here"}'
    exchange = one(says("401 No", "x-echo: " + forms(KEY)[form].decode(), body=echoed))
    kept = b"".join(piece.data for piece in exchange.pieces)
    assert len(kept) == len(echoed)
    assert kept.startswith(b'{"error":"no such key ')
    assert b"xxxxxxxx" in kept
    assert leaks(kept, KEY) == []
    assert leaks((exchange.header("x-echo") or "").encode(), KEY) == []


def test_a_key_cut_between_two_pieces_is_masked_and_the_cut_stays():
    pieces = (Piece(0.1, b"a " + KEY[:9].encode()), Piece(0.2, KEY[9:].encode() + b" b"))
    clean = Redaction([KEY]).attempt(Attempt(0.0, 200, pieces=pieces))
    assert [len(piece.data) for piece in clean.pieces] == [len(piece.data) for piece in pieces]
    assert b"".join(piece.data for piece in clean.pieces) == b"a " + b"x" * len(KEY) + b" b"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_key_in_a_compressed_body_is_masked_too(coding):
    import zlib

    pack = gzip.compress if coding == "gzip" else zlib.compress
    echoed = b'{"error":"no such key ' + KEY.encode() + b'"}'
    exchange = one(says("401 No", f"content-encoding: {coding}", body=pack(echoed)))
    assert exchange.content == echoed.replace(KEY.encode(), b"x" * len(KEY))
    assert exchange.decoded[1] == ""


def test_secret_headers_and_query_values_are_secrets_as_well():
    target = Target(
        "http://host", "/", key="k" * 20, headers=(("X-Api-Key", "Basic abcdefgh12"), ("X-Team", "conformance")),
        query=(("token", "qwertyuiop"), ("region", "north-south")),
    )  # fmt: skip
    assert set(target.secrets) >= {"k" * 20, "abcdefgh12", "qwertyuiop"}
    assert not {"conformance", "north-south"} & set(target.secrets)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("Authorization", "", True),
        ("X-Api-Key", "", True),
        ("apiKey", "", True),
        ("Ocp-Apim-Subscription-Key", "", True),
        ("key", "", True),
        ("X-Auth-Token", "", True),
        ("Set-Cookie", "", True),
        ("X-PORTKEY-API-KEY", "", True),
        ("x-portkey-provider", "openai", False),
        ("X-Portkey-Custom-Host", "http://host", False),
        ("X-Monkey", "a", False),
        ("Max-Tokens", "5", False),
        ("Idempotency-Key", "a-1", False),
        ("Helicone-Account", "Bearer abcdefgh", True),
        ("X-Upstream", "sk-0123456789", True),
        ("X-Upstream", "basic", False),
    ],
)
def test_a_credential_is_recognised_by_whole_words_of_its_name_or_by_its_value(name, value, secret):
    assert is_secret(name, value) is secret


def test_a_header_whose_name_only_contains_key_is_sent_without_a_credential_too():
    headers = (("x-portkey-provider", "openai"), ("x-team-pass", "hush-hush"))
    _, server, _ = send(says(), case(credential=Credential.NONE), headers=headers, credentials=("X-Team-Pass",))
    assert server.requests[0].headers["x-portkey-provider"] == "openai"
    assert "x-team-pass" not in server.requests[0].headers


def test_cookies_that_a_target_sets_are_masked():
    attempt = Attempt(0.0, 200, (("Set-Cookie", "session=abc"), ("date", "now")))
    assert Redaction([]).attempt(attempt).headers == (("Set-Cookie", "x" * 11), ("date", "now"))


def test_an_error_that_names_the_key_is_masked():
    assert KEY not in Redaction([KEY]).attempt(Attempt(0.0, None, error=f"bad {KEY}")).error


def test_a_placeholder_is_no_secret():
    attempt = Attempt(0.0, 200, pieces=(Piece(0.1, b"EMPTY none x"),))
    assert Redaction(["EMPTY", "none", "x", ""]).attempt(attempt) == attempt


@given(
    st.text(min_size=6, max_size=40, alphabet=st.characters(min_codepoint=33, max_codepoint=126)),
    st.binary(),
    st.binary(),
)
def test_whatever_surrounds_a_key_only_the_key_is_masked(secret, before, after):
    assume(not is_common(secret))
    redaction = Redaction([secret])
    clean = redaction.data(before + secret.encode() + after)
    assert len(clean) == len(before) + len(secret) + len(after)
    assert secret.encode() not in clean or set(secret.lower()) == {"x"}


# Who watches


def test_a_watcher_hears_of_starts_attempts_and_ends():
    heard = []
    watcher = Watcher(
        lambda case: heard.append(("started", case.id)),
        lambda _, attempt, final: heard.append(("attempted", attempt.status, final)),
        lambda exchange: heard.append(("finished", exchange.status)),
    )
    one(hostile.in_turn(says("503 Busy"), says()), watcher=watcher)
    assert heard == [
        ("started", "example/0"), ("attempted", 503, False), ("started", "example/0"), ("attempted", 200, True),
        ("finished", 200),
    ]  # fmt: skip


def test_nothing_is_loaded_while_the_first_request_is_timed():
    script = """
import asyncio
import sys
from conformance.model.budget import Account, Budget
from conformance.send import Sender, Target

async def main():
    async with Sender(Target("http://127.0.0.1:9", "/"), Account(Budget())):
        print("anyio._backends._asyncio" in sys.modules)

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"


# What a run keeps of many heavy replies


def read_whole(memory, headers=(), data=b"", times=1):
    """The attempts of as many equal replies, read one after another within the memory of one run."""
    for _ in range(times):
        reading = Reading(0.0, None, 16 * 1024 * 1024, memory)
        reading.head(200, [(name, value) for name, value in headers], b"HTTP/1.1")
        for start in range(0, len(data), 64 * 1024):
            if not reading.feed(data[start : start + 64 * 1024], 0.1):
                break
        yield reading.attempt(1.0)


MEMBER = gzip.compress(b"")
PACKED = [(b"content-encoding", b"gzip")]


@pytest.mark.parametrize(
    ("headers", "data", "ending"),
    [
        (PACKED, gzip.compress(b"0") + bytes(15_900_000), Ending.OVERSIZED),
        (PACKED, b"\x1f\x8b" + bytes(15_900_000), Ending.OVERSIZED),
        (PACKED, MEMBER * (15_500_000 // len(MEMBER)), Ending.OVERSIZED),
        (PACKED, MEMBER + gzip.compress(bytes(15_000_000)), Ending.OVERSIZED),
        ([*PACKED, (b"content-encoding", b"identity")], gzip.compress(bytes(17_000_000)), Ending.OVERSIZED),
    ],
)
def test_raw_bytes_and_every_member_have_weight(headers, data, ending):
    memory = ResponseMemoryBudget()
    for attempt in read_whole(memory, headers, data, times=3):
        assert attempt.ending is ending
    assert memory.used < 3 * 1024 * 1024


@pytest.mark.parametrize(
    "headers", [[(b"x", b"1")] * 20_000, [(b"set-cookie", b"c" * 900)] * 95, [(b"x-a", b"y" * 60_000)]]
)
def test_header_fields_have_weight_and_the_first_are_kept(headers):
    memory = ResponseMemoryBudget(8 * 1024 * 1024, 10 * 1024 * 1024)
    *_, last = read_whole(memory, [*headers, (b"content-type", b"application/json")], b"{}", times=300)
    assert last.headers[-1] == ("content-type", "application/json")
    assert memory.used < 16 * 1024 * 1024
    first = next(read_whole(ResponseMemoryBudget(), headers))
    assert len(first.headers) == len(headers), "alone, it is kept as it came"


def test_what_json_would_write_six_times_as_long_is_recorded_in_base64():
    assert bytes_out(b"\0" * 100) == {"base64": base64.b64encode(b"\0" * 100).decode()}
    assert bytes_out(b"data: a\n\n\r\n\tb") == "data: a\n\n\r\n\tb"
    assert all(bytes_in(bytes_out(data)) == data for data in (b"", b"\0", b"\0a\0", b"\xff", "日本".encode()))
