"""Traffic that somebody recorded is judged as if the suite had sent it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import recording
from conformance.config.settings import settings
from conformance.contract import load
from conformance.judge import Traffic, judge_all
from conformance.judge.fixtures import case, choice, completion, plain, response, stream, usage
from conformance.model import Ending, Outcome, Phase, Validity
from conformance.model.exchange import Exchange
from conformance.recording import har
from conformance.recording.load import ForeignExchange
from conformance.recording.load import load as load_recordings
from conformance.run.launch import launch
from conformance.run.recorded import audit
from tests.test_recording import exchanges as any_exchanges

KEY = "sk-canary-0123456789abcdef"
OPENAI = load("openai")
URL = "https://api.example/v1/completions"
BODY = {"model": "m", "prompt": "1, 2, 3,", "max_tokens": 4}
REPLY = completion(choice(), usage=usage())

# The members that HAR 1.2 requires, and their types.
NUMBER, TEXT, LIST = {"type": "number"}, {"type": "string"}, {"type": "array"}
PAIRS = {"type": "array", "items": {"type": "object", "required": ["name", "value"]}}


def record(**members: object) -> dict[str, object]:
    return {"type": "object", "required": list(members), "properties": members}


MESSAGE = {"httpVersion": TEXT, "cookies": LIST, "headers": PAIRS, "headersSize": NUMBER, "bodySize": NUMBER}
HAR = record(
    log=record(
        version={"const": "1.2"},
        creator=record(name=TEXT, version=TEXT),
        entries={
            "type": "array",
            "items": record(
                startedDateTime={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"},
                time={"type": "number", "minimum": 0},
                request=record(method=TEXT, url=TEXT, queryString=PAIRS, **MESSAGE),
                response=record(
                    status={"type": "integer"}, statusText=TEXT, redirectURL=TEXT,
                    content=record(size=NUMBER, mimeType=TEXT), **MESSAGE,
                ),
                cache={"type": "object"},
                timings=record(send={"minimum": 0}, wait={"minimum": 0}, receive={"minimum": 0}),
            ),
        },
    )
)  # fmt: skip


def entry(body=BODY, reply=REPLY, *, url=URL, method="POST", headers=(), sent=(), **content):
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return {
        "startedDateTime": "2026-01-02T03:04:05.678Z",
        "time": 120.5,
        "request": {
            "method": method,
            "url": url,
            "headers": [{"name": name, "value": value} for name, value in sent],
            "postData": {"mimeType": "application/json", "text": body if isinstance(body, str) else json.dumps(body)},
        },
        "response": {
            "status": 200,
            "headers": [
                {"name": name, "value": value} for name, value in (("content-type", "application/json"), *headers)
            ],
            "content": {"size": len(text), "mimeType": "application/json", "text": text, **content},
        },
    }


def saved(path: Path, *entries: object) -> Path:
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return path


def loaded(*paths):
    """The exchanges in files, and the reasons for leaving other messages out."""
    items = list(load_recordings(paths, OPENAI))
    return [item.exchange if isinstance(item, ForeignExchange) else item.reason for item in items]


def judged(*paths, contract=OPENAI):
    """What the audit of files found."""
    return audit(contract, load_recordings(paths, contract), "", frozenset(row.id for row in contract.requirements))


def read(tmp_path, *entries):
    return loaded(saved(tmp_path / "a.har", *entries))


# HAR in


def test_an_entry_becomes_an_exchange(tmp_path):
    (x,) = read(tmp_path, entry(sent=(("Content-Type", "application/json"), ("Host", "h"), ("content-length", "3"))))
    assert isinstance(x, Exchange)
    assert x.case.body == BODY
    assert x.case.validity is Validity.VALID
    assert x.case.headers == (("Content-Type", "application/json"),)
    assert x.json == REPLY
    assert x.last.elapsed == pytest.approx(0.1205)
    assert x.last.started_at == pytest.approx(1767323045.678)


def test_validity_is_computed_and_not_believed(tmp_path):
    found = read(tmp_path, entry({**BODY, "n": 0}), entry("{"), entry({**BODY, "temperature": 1}))
    assert [x.case.validity for x in found] == [Validity.INVALID, Validity.INVALID, Validity.VALID]


def test_content_is_taken_decoded_and_from_base64(tmp_path):
    packed = base64.b64encode(json.dumps(REPLY).encode()).decode()
    (x,) = read(tmp_path, entry(reply=packed, encoding="base64", headers=(("Content-Encoding", "gzip"),)))
    assert x.json == REPLY
    assert x.header("content-encoding") is None


def test_a_stream_is_read_as_one(tmp_path):
    events = b"".join(piece.data for piece in stream(completion(choice()), request=BODY).pieces).decode()
    one = entry({**BODY, "stream": True}, events)
    one["response"]["headers"] = [{"name": "Content-Type", "value": "text/event-stream"}]
    (x,) = read(tmp_path, one)
    assert x.streamed
    assert x.choices[0].text == " 4, 5"


def test_what_speaks_of_other_operations_is_left_out_with_the_reason(tmp_path):
    found = read(
        tmp_path,
        entry(url="https://api.example/v1/chat/completions"),
        entry(method="OPTIONS"),
        entry(url="https://api.example/v1/models"),
        entry(url="https://other.example/openai/deployments/x/completions?api-version=1"),
        3,
    )
    assert [isinstance(x, Exchange) for x in found] == [False, False, False, True, False]
    assert "another operation" in found[0]


def test_content_that_was_not_recorded_is_not_an_empty_reply(tmp_path):
    unsaid = entry()
    del unsaid["response"]["content"]["text"]
    unasked = entry()
    unasked["request"] = {**unasked["request"], "bodySize": 80, "postData": {}}
    assert ["not recorded" in x for x in read(tmp_path, unsaid, unasked)] == [True, True]


def test_a_request_without_a_reply_has_no_status(tmp_path):
    one = entry()
    one["response"] = {"status": 0, "_error": "net::ERR_CONNECTION_RESET"}
    (x,) = read(tmp_path, one)
    assert (x.status, x.ending, x.last.error) == (None, Ending.TRUNCATED, "net::ERR_CONNECTION_RESET")


def test_keys_that_were_recorded_stay_behind(tmp_path):
    one = entry(
        {**BODY, "user": KEY}, {"error": {"message": f"bad key {KEY}"}},
        sent=(("Authorization", f"Bearer {KEY}"), ("Cookie", "a=b")),
    )  # fmt: skip
    (x,) = read(tmp_path, one)
    assert KEY not in repr(x)
    assert "xxxxxxxx" in x.content.decode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "log",
                        "entries",
                        "request",
                        "response",
                        "content",
                        "text",
                        "headers",
                        "url",
                        "method",
                        "status",
                        "postData",
                        "time",
                        "encoding",
                        "_conformance",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_stands_in_a_file_is_read_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("har") / "a.har"
    path.write_text(json.dumps({"log": {"entries": [value]}}))
    assert all(isinstance(item, (str, Exchange)) for item in loaded(path))


# HAR out


def test_exchanges_are_written_as_har_that_its_readers_accept_and_we_read_back_exactly(tmp_path):
    packed = gzip.compress(b'{"a": 1}')
    made = (
        plain(REPLY, BODY, id="a"),
        stream(completion(choice()), b"data: \xff\n\n", request=BODY, id="b"),
        response(packed, BODY, headers={"content-encoding": "gzip"}, id="c"),
        response(b"", BODY, status=None, ending=Ending.TIMED_OUT, error="silent", id="d"),
        response(b"", b"\xff", status=999, headers={"location": "/x"}, id="e"),
        Exchange(case(BODY, id="f"), plain({}).attempts * 2),
    )
    path = tmp_path / "out.har"
    har.write(path, URL + "?a=b", made)
    document = json.loads(path.read_text())
    jsonschema.validate(document, HAR)
    assert document["log"]["entries"][2]["response"]["content"]["text"] == '{"a": 1}'
    assert document["log"]["entries"][1]["response"]["content"]["encoding"] == "base64"
    found = loaded(path)
    assert tuple(x for x in found if isinstance(x, Exchange)) == made
    assert [x for x in found if isinstance(x, str)] == [
        "out.har entry 5: an attempt that was retried; a later entry has the whole exchange"
    ]


@given(any_exchanges)
def test_any_exchange_can_be_written_as_har(x):
    jsonschema.validate(json.loads(json.dumps(har.document(URL, [x]))), HAR)


# Transcripts

REQUEST = (
    f"POST /v1/completions HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {KEY}\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)


def transcript(tmp_path, head: bytes, content: bytes, name: str = "one.http", end: str = "\r\n", request=BODY):
    body = json.dumps(request).encode()
    sent = REQUEST.replace("{length}", str(len(body))).encode() + body
    (tmp_path / name).write_bytes(sent.replace(b"\r\n", end.encode()) + head.replace(b"\r\n", end.encode()) + content)
    return loaded(tmp_path)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_transcript_becomes_an_exchange(tmp_path, end):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    (x,) = transcript(tmp_path, head, json.dumps(REPLY).encode(), end=end)
    assert x.case.body == BODY
    assert (x.status, x.json, x.ending) == (200, REPLY, Ending.COMPLETE)
    assert KEY not in repr(x)


def test_chunks_are_joined_and_a_missing_end_shows(tmp_path):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    (x,) = transcript(tmp_path, head, b"9\r\ndata: 1\n\n\r\n3;x=y\r\n: \n\r\n0\r\n\r\n")
    assert (x.content, x.ending) == (b"data: 1\n\n: \n", Ending.COMPLETE)
    (x,) = transcript(tmp_path, head, b"9\r\ndata: 1\n\n\r\n30\r\nda")
    assert (x.content, x.ending) == (b"data: 1\n\nda", Ending.TRUNCATED)
    (x,) = transcript(tmp_path, head, b"data: 1\n\n")
    assert (x.content, x.ending) == (b"data: 1\n\n", Ending.COMPLETE)


def test_a_body_shorter_than_declared_is_truncated(tmp_path):
    (x,) = transcript(tmp_path, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"{")
    assert (x.ending, x.last.error) == (
        Ending.TRUNCATED,
        "1 of the 9 bytes that Content-Length declares were received",
    )


def test_a_stream_stands_beside_its_request(tmp_path):
    (tmp_path / "a.sse").write_bytes(b"data: [DONE]\n\n")
    (tmp_path / "b.sse").write_bytes(b"data: [DONE]\n\n")
    (tmp_path / "b.json").write_text(json.dumps({**BODY, "stream": True}))
    missing, x = loaded(tmp_path)
    assert "a.json is missing" in missing
    assert x.case.body["stream"] is True
    assert x.streamed


@pytest.mark.parametrize("data", [b"", b"GET /", b"POST /v1/completions HTTP/1.1\r\n\r\n{}", b"\x00\xff\r\n\r\n"])
def test_what_is_no_transcript_is_left_out_with_the_reason(tmp_path, data):
    (tmp_path / "x.http").write_bytes(data)
    (found,) = loaded(tmp_path / "x.http")
    assert found.startswith("x.http")


# Audit


def test_the_audit_of_a_run_s_own_recording_gives_exactly_its_verdicts(tmp_path):
    made = launch(settings("openai", {"out": str(tmp_path), "seed": 11}))
    (found,) = judged(tmp_path / "openai").runs
    assert found.exchanges == made.exchanges
    assert found.planned == made.planned
    assert found.plan_sha256 == made.plan_sha256
    assert found.verdicts == made.verdicts
    path = tmp_path / "all.har"
    har.write(path, URL, made.exchanges)
    again = judge_all(OPENAI, Traffic(loaded(path), made.planned))
    assert again == made.verdicts


def test_an_audit_tells_what_is_broken_and_what_the_traffic_is_silent_about(conformance, tmp_path):
    wrong = {**REPLY, "usage": usage(total=99)}
    path = saved(tmp_path / "a.har", entry(), entry(reply=wrong), entry(url="https://h/v1/models"))
    code, out, err = conformance("audit", "openai", str(path))
    assert code == 1
    assert "total_tokens is 99" in out
    assert "The traffic shows nothing about" in out
    assert "left out: a.har entry 2" in err
    assert not (tmp_path / "reports").exists()
    assert conformance("audit", "openai", str(path), "--out", "there")[0] == 1
    assert (tmp_path / "there/openai/report.html").exists()


def test_what_could_not_be_judged_is_counted_and_said(conformance, tmp_path):
    without_model = {"prompt": "1, 2, 3,", "max_tokens": 4}
    rubbish = {"object": "rubbish", "choices": 7}
    lost = entry()
    lost["response"]["content"] |= {"text": "", "size": 0}
    cut = entry()
    cut["response"]["content"] |= {"size": 10_000}
    created = 1_767_323_045  # the time of the entries
    first = entry(reply={**REPLY, "created": created})
    path = saved(tmp_path / "a.har", first, entry(body=without_model, reply=rubbish), lost, cut)
    code, out, err = conformance("audit", "openai", str(path), "--out", "there")
    assert code == 0
    said = r"^openai: Nothing broken\. In what was seen: \d+ of \d{3} MUSTs, 1 of 4 exchanges judged\."
    assert re.search(said, out, re.MULTILINE), out
    assert "Conforms" not in out
    assert "Every MUST" not in out
    assert "not judged: har/a.har/1-" in err
    assert "is invalid under the contract: /: 'model' is a required property" in err
    assert "left out: a.har entry 2: the response's content was not recorded" in err
    assert "left out: a.har entry 3: the response's content was cut to" in err
    results = json.loads((tmp_path / "there/openai/results.json").read_text())
    assert (results["recorded"]["exchanges"], results["recorded"]["judged"]) == (4, 1)
    assert "1 of 4 exchanges judged" in (tmp_path / "there/openai/badge.svg").read_text()


def test_recordings_of_which_nothing_could_be_judged_are_incomplete(conformance, tmp_path):
    path = saved(tmp_path / "a.har", entry(body={"prompt": "1"}))
    code, out, _ = conformance("audit", "openai", str(path))
    assert code == 3
    assert "none of 1 exchanges could be judged" in out


def test_a_torn_recording_is_judged_as_far_as_it_goes_and_is_incomplete(conformance, tmp_path):
    x = plain(REPLY, BODY, id="a")
    path = tmp_path / "exchanges.ndjson"
    header = {"contract": {"sha256": OPENAI.sha256}}
    recording.write(path, header, [Phase("w", (x.case,))], [x])
    assert conformance("audit", "openai", str(path))[0] == 0
    path.write_bytes(path.read_bytes()[:-20])
    code, out, _ = conformance("audit", "openai", str(path))
    assert code == 3
    assert "was cut off; line 5 is cut off" in out


def test_a_recording_under_another_contract_is_incomplete(tmp_path):
    x = plain(REPLY, BODY, id="a")
    recording.write(tmp_path / "a.ndjson", {"contract": {"sha256": "f" * 64}}, [Phase("w", (x.case,))], [x])
    assert "another contract" in judged(tmp_path / "a.ndjson").runs[0].incomplete[0]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.har", "{}", "unknown kind of recording"),
        ("a.har", '{"log":{"entries":3}}', "log.entries is not a list"),
        ("a.har", '{"log":{"entries":[]}}', "no exchange of this operation"),
        ("a.ndjson", '{"record":"header"}\n', "does not end with"),
        ("a.txt", "", "unknown kind of recording"),
    ],
)
def test_a_file_that_cannot_be_judged_is_one_line_and_exit_code_2(conformance, tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    code, _, err = conformance("audit", "openai", name)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1


def test_recordings_of_two_runs_are_judged_apart(tmp_path):
    x = plain(REPLY, BODY, id="a")
    for name in ("a.ndjson", "b.ndjson"):
        header = {"contract": {"sha256": OPENAI.sha256}, "target": {"name": "staging", "base_url": "u", "model": "m"}}
        recording.write(tmp_path / name, header, [Phase("w", (x.case,))], [x])
    runs = judged(tmp_path).runs
    assert [(run.target.name, len(run.exchanges)) for run in runs] == [("staging", 1), ("staging-2", 1)]


def test_a_broken_exchange_is_found_whatever_it_was_recorded_by(tmp_path):
    wrong = plain({**REPLY, "usage": usage(total=99)}, BODY)
    row = next(row for row in OPENAI.requirements if row.check == "usage_adds_up")
    narrow = replace(OPENAI, requirements=(row,))
    path = tmp_path / "a.har"
    har.write(path, URL, [wrong])
    document = json.loads(path.read_text())
    del document["log"]["entries"][0]["_conformance"]
    path.write_text(json.dumps(document))
    assert judged(path, contract=narrow).runs[0].verdicts[0].outcome is Outcome.FAIL
