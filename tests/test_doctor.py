"""Before a run, whatever stands in its way is named, with what to do."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest

from conformance.cli import _guarded
from conformance.contract import load
from conformance.run.doctor import State, Symptom, examine
from conformance.send import Target, TimeoutPolicy
from tests import hostile
from tests.hostile import BODY, EVENT, STREAM, chunked, says, serving

OPENAI = load("openai")
TIMEOUTS = TimeoutPolicy(connect=0.3, first_byte=0.5, idle=0.5, total=3, first_wait=0.01)
KEY = "sk-canary-0123456789abcdef"


def examined(target: Target, model: str = "m") -> dict[str, Symptom]:
    async def go() -> dict[str, Symptom]:
        return {symptom.about: symptom async for symptom in examine(target, OPENAI, model, TIMEOUTS)}

    return asyncio.run(go())


def told(answer, key: str = KEY, model: str = "m", **more) -> dict[str, Symptom]:
    with serving(answer) as server:
        return examined(Target(server.base_url, "/completions", key, **more), model)


def by_request(plain=None, wrong=None, streamed=None):
    async def answer(request, writer):
        if request.headers.get("authorization") != f"Bearer {KEY}":
            chosen = wrong or says("401 No", body=b"{}")
        elif b'"stream":true' in request.body:
            chosen = streamed or slow_stream
        else:
            chosen = plain or says("200 OK", f"date: {formatdate(usegmt=True)}")
        await chosen(request, writer)

    return answer


async def slow_stream(request, writer):
    writer.write(STREAM)
    for _ in range(6):
        writer.write(chunked(EVENT))
        await writer.drain()
        await asyncio.sleep(0.02)
    writer.write(b"0\r\n\r\n")


def test_a_healthy_target_is_fine_in_every_respect():
    found = told(by_request())
    assert set(found) == {"transport", "request", "model", "clock", "key", "stream"}
    assert {symptom.state for symptom in found.values()} == {State.FINE}


@pytest.mark.parametrize(
    ("answer", "about", "state", "says_so"),
    [
        (by_request(plain=says("401 No", body=b"{}")), "target", State.WRONG, "although a key was sent"),
        (by_request(plain=says("307 There", "location: http://h/")), "target", State.WRONG, "redirect"),
        (by_request(plain=hostile.raw(b"")), "target", State.WRONG, "gave no reply"),
        (by_request(plain=says("400 No", body=b'{"a":"no such model"}')), "request", State.WRONG, "no such model"),
        (by_request(plain=says(body=BODY.replace(b'"m"', b'"n"'))), "model", State.NOTE, 'answered by "n"'),
        (by_request(plain=says("200 OK", "content-encoding: gzip")), "compression", State.NOTE, "compressed"),
        (
            by_request(plain=says("200 OK", f"date: {formatdate(1_000_000, usegmt=True)}")),
            "clock",
            State.NOTE,
            "behind",
        ),
        (by_request(plain=says("200 OK", "date: yesterday")), "clock", State.NOTE, "no Date"),
        (by_request(wrong=says()), "key", State.NOTE, "does not check keys"),
        (by_request(wrong=says("500 Oh", body=b"{}")), "key", State.NOTE, "gets HTTP 500; expected HTTP 401 or 403"),
        (by_request(plain=says(body=b"{}")), "request", State.WRONG, "expected a completion"),
        (
            by_request(plain=says(body=BODY.replace(b'"model"', b'"other"'))),
            "model",
            State.NOTE,
            "does not name its model",
        ),
        (by_request(streamed=says()), "stream", State.NOTE, "no event stream"),
        (
            by_request(streamed=hostile.slow(0.3, hostile.raw(STREAM + chunked(EVENT * 9) + b"0\r\n\r\n"))),
            "stream",
            State.NOTE,
            "buffered on the way",
        ),
    ],
)
def test_each_ailment_is_named_with_what_to_do(answer, about, state, says_so):
    symptom = told(answer)[about]
    assert symptom.state is state
    assert says_so in symptom.seen


def test_nothing_more_is_sent_to_what_is_no_api():
    with serving(says("401 No", body=b"{}")) as server:
        examined(Target(server.base_url, "/completions", KEY))
        assert len(server.requests) == 1


def test_a_key_in_clear_and_an_unused_proxy_are_told_without_sending(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(Target, "loopback", property(lambda _: False))
    found = examined(Target("http://127.0.0.1:9", "/completions", KEY))
    assert found["transport"].state is State.WRONG
    assert "--proxy-from-env" in found["proxy"].seen
    assert found["target"].state is State.WRONG


def test_tls_is_not_called_verified_before_a_reply_came_over_it():
    with serving(says()) as server:
        found = examined(Target(server.base_url.replace("http://", "https://"), "/completions", KEY))
    assert "transport" not in found
    assert found["target"].state is State.WRONG


def test_the_command_ends_with_3_where_a_run_could_not(capsys):
    with serving(says("401 No", body=b"{}")) as server:
        assert _guarded(["doctor", "openai", "--base-url", server.base_url, "--model", "m"], debug=False) == 3
    assert "wrong  target" in capsys.readouterr().out
    assert _guarded(["doctor", "openai"], debug=False) == 0
    assert "ok     stream" in capsys.readouterr().out


def test_targets_of_the_file_are_looked_at_in_turn_and_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with serving(says("401 No", body=b"{}")) as server:
        there = f'base_url = "{server.base_url}"\nmodel = "m"\n'
        text = (
            '[defaults]\nprovider = "openai"\n[[target]]\nname = "reference"\n'
            f'[[target]]\nname = "refuses"\n{there}[[target]]\nname = "keyless"\n{there}api_key_env = "NOT_SET"\n'
        )
        (tmp_path / "conformance.toml").write_text(text, "utf-8")
        assert _guarded(["doctor"], debug=False) == 3
        told = capsys.readouterr().out
        assert (
            told.index("reference: http://") < told.index("refuses: http://") < told.index("keyless: the environment")
        )
        assert _guarded(["doctor", "--target", "keyless"], debug=False) == 2
        assert _guarded(["doctor", "--target", "refer*"], debug=False) == 0
    assert "refuses" not in capsys.readouterr().out
    assert _guarded(["doctor", "openai", "--target", "refuses"], debug=False) == 2
