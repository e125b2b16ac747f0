"""Every format that people record traffic in is read: what the recorder lost is said, and is no finding."""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract import load
from conformance.model import BROKEN, Validity
from conformance.model.exchange import Unrecorded
from conformance.recording.json_stream import CHUNK, JsonStream
from conformance.recording.load import Damaged, ForeignExchange, NotJudged, OtherFile
from conformance.recording.load import load as load_recordings
from conformance.recording.yaml_stream import items
from conformance.run.recorded import audit
from conformance.selftest.mutation_testing import baseline

OPENAI = load("openai")
URL = "https://api.example/v1/completions"
SENT_AT = 1_767_323_045
DATE = "Fri, 02 Jan 2026 03:04:05 GMT"
REQUEST = json.dumps({"model": "m", "prompt": "1, 2, 3,", "max_tokens": 4})
COMPLETION = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": SENT_AT,
    "model": "m",
    "choices": [{"text": " 4, 5", "index": 0, "logprobs": None, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 12},
}
REPLY = json.dumps(COMPLETION)
STREAM_REQUEST = json.dumps({"model": "m", "prompt": "1, 2, 3,", "max_tokens": 4, "stream": True})
CHUNKS = [
    {name: value for name, value in COMPLETION.items() if name != "usage"}
    | {"choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": reason}]}
    for text, reason in ((" 4,", None), (" 5", "length"))
]
STREAM = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"
JSON_FIELDS = {"Content-Type": "application/json", "Date": DATE, "X-Request-Id": "req-1"}
STREAM_FIELDS = {"Content-Type": "text/event-stream", "Date": DATE}


def loaded(*paths):
    return list(load_recordings(paths, OPENAI))


def exchanges(*paths):
    found = loaded(*paths)
    assert all(isinstance(item, ForeignExchange) for item in found), found
    return [item.exchange for item in found]


def judged(*paths):
    return audit(OPENAI, load_recordings(paths, OPENAI), "", frozenset(row.id for row in OPENAI.requirements))


def findings(*paths):
    """What is broken in files, all exchanges of which can be judged."""
    found = judged(*paths)
    assert [found.left_out.first, found.not_judged.first, found.damaged, found.unreadable] == [[]] * 4
    return [
        f"{verdict.requirement.id}: {verdict.reason}"
        for run in found.runs
        for verdict in run.verdicts
        if verdict.outcome in BROKEN
    ]


def saved(path: Path, content: bytes | str | object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, (bytes, str)) else json.dumps(content)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# HAR as it is found


def har(content: dict, *, headers=JSON_FIELDS, request=REQUEST, url=URL, sent=None, **request_members):
    entry = {
        "startedDateTime": "2026-01-02T03:04:05.678Z",
        "time": 120.5,
        "request": {"method": "POST", "url": url, "headers": _pairs(sent or {}), "postData": {"text": request}},
        "response": {"status": 200, "headers": _pairs(headers), "content": content},
    }
    entry["request"] |= request_members
    return {"log": {"version": "1.2", "pages": [], "entries": [entry]}}


def _pairs(fields):
    return [{"name": name, "value": value} for name, value in fields.items()]


def packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


@pytest.mark.parametrize(
    "content",
    [
        {"text": packed(REPLY), "encoding": "base64"},
        {"text": json.dumps([packed(REPLY)]), "encoding": "base64", "size": 3},
        {"text": json.dumps([gzip.compress(REPLY.encode()).hex()]), "size": 3},
        {"text": base64.b64encode(REPLY.encode()).decode(), "encoding": "base64", "size": len(REPLY)},
        {"text": REPLY},
    ],
    ids=["base64 of gzip", "Polly's chunks", "older Polly's chunks", "base64", "text"],
)
@pytest.mark.parametrize("coding", [{}, {"Content-Encoding": "gzip"}, {"content-encoding": "br"}])
def test_content_is_read_whatever_its_recorder_made_of_it(tmp_path, content, coding):
    path = saved(tmp_path / "a.har", har(content, headers={**JSON_FIELDS, **coding}))
    assert findings(path) == []
    assert exchanges(path)[0].json == COMPLETION


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"size": 0, "text": ""}, "content was not recorded"),
        ({"size": 0, "text": None}, "content was not recorded"),
        ({}, "content was not recorded"),
        ({"size": 5_000, "text": REPLY}, "was cut to"),
    ],
)
def test_content_that_a_har_lost_is_no_reply(tmp_path, content, reason):
    (found,) = loaded(saved(tmp_path / "a.har", har(content)))
    assert isinstance(found, NotJudged)
    assert reason in found.reason
    assert "a.har entry 0" in found.reason


@pytest.mark.parametrize("members", [{"postData": {}}, {"postData": {"text": None}}, {"bodySize": 0, "postData": {}}])
def test_a_request_that_a_har_lost_is_counted_and_not_judged(tmp_path, members):
    (found,) = loaded(saved(tmp_path / "a.har", har({"text": REPLY}, **members)))
    assert found.reason == "a.har entry 0: the request's body was not recorded"


def test_the_media_type_of_a_har_stands_for_missing_header_fields(tmp_path):
    content = {"text": STREAM, "mimeType": "text/event-stream"}
    path = saved(tmp_path / "a.har", har(content, headers={}, request=STREAM_REQUEST))
    assert findings(path) == []
    assert exchanges(path)[0].media_type == "text/event-stream"


def test_missing_header_fields_are_not_judged(tmp_path):
    path = saved(tmp_path / "a.har", har({"text": STREAM}, headers={}, request=STREAM_REQUEST))
    (x,) = exchanges(path)
    assert Unrecorded.HEADERS in x.last.unrecorded
    assert findings(path) == []
    verdict = next(one for one in judged(path).runs[0].verdicts if one.requirement.id == "framing.content-type")
    assert verdict.outcome == "not_applicable"


@pytest.mark.parametrize("time", ["1e400", "-1", '"x"', "null"])
def test_a_time_that_cannot_be_is_none(tmp_path, time):
    text = json.dumps(har({"text": REPLY})).replace("120.5", time)
    assert exchanges(saved(tmp_path / "a.har", text))[0].last.elapsed == 0.0


@pytest.mark.parametrize("encode", [lambda text: text.encode("utf-16"), lambda text: b"\xef\xbb\xbf" + text.encode(),
                                    lambda text: gzip.compress(text.encode())])  # fmt: skip
@pytest.mark.parametrize("name", ["a.HAR", "a.har.gz", "noextension"])
def test_a_format_is_recognised_by_its_content(tmp_path, encode, name):
    assert exchanges(saved(tmp_path / name, encode(json.dumps(har({"text": REPLY})))))[0].json == COMPLETION


# Cassettes

VCRPY = {
    "interactions": [
        {
            "request": {"body": REQUEST, "headers": {"Accept": ["*/*"]}, "method": "POST", "uri": URL},
            "response": {
                "body": {"string": REPLY},
                "headers": {name: [value] for name, value in JSON_FIELDS.items()},
                "status": {"code": 200, "message": "OK"},
            },
        }
    ],
    "version": 1,
}
OLDER_VCRPY = {
    "interactions": [
        {
            "request": {"body": REQUEST.encode(), "headers": {}, "method": "POST", "uri": URL},
            "response": {"content": REPLY, "headers": {**JSON_FIELDS}, "http_version": "HTTP/1.1", "status_code": 200},
        }
    ],
    "version": 1,
}
RUBY = {
    "http_interactions": [
        {
            "request": {"method": "post", "uri": URL, "body": {"encoding": "UTF-8", "string": REQUEST}, "headers": {}},
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {name: [value] for name, value in JSON_FIELDS.items()},
                "body": {"encoding": "ASCII-8BIT", "string": REPLY},
            },
            "recorded_at": DATE,
        }
    ],
    "recorded_with": "VCR 6.1.0",
}
RUBY_BASE64 = json.loads(json.dumps(RUBY))
RUBY_BASE64["http_interactions"][0]["response"]["body"] = {
    "encoding": "UTF-8",
    "base64_string": base64.b64encode(REPLY.encode()).decode(),
}
GO_1 = {
    "version": 1,
    "interactions": [
        {
            "request": {"body": REQUEST, "form": {}, "headers": {}, "url": URL, "method": "POST"},
            "response": {
                "body": REPLY,
                "headers": {name: [value] for name, value in JSON_FIELDS.items()},
                "status": "200 OK",
                "code": 200,
                "duration": "",
            },
        }
    ],
}
GO_4 = json.loads(json.dumps(GO_1))
GO_4["version"] = 2
GO_4["interactions"][0] |= {"id": 0}
GO_4["interactions"][0]["request"] |= {"proto": "HTTP/1.1", "content_length": 70, "host": "api.example", "trailer": {}}
GO_4["interactions"][0]["response"] |= {"proto": "HTTP/2.0", "uncompressed": True, "duration": "1.2s"}
CASSETTES = {"vcrpy": VCRPY, "older vcrpy": OLDER_VCRPY, "Ruby VCR": RUBY, "Ruby VCR, base64": RUBY_BASE64,
             "go-vcr 1": GO_1, "go-vcr 4": GO_4}  # fmt: skip


@pytest.mark.parametrize("name", CASSETTES)
def test_a_cassette_in_yaml_is_read(tmp_path, name):
    path = saved(tmp_path / "a.yaml", "---\n" + yaml.safe_dump(CASSETTES[name]))
    assert findings(path) == []
    (x,) = exchanges(path)
    assert (x.status, x.json, x.case.body["model"], x.media_type) == (200, COMPLETION, "m", "application/json")


@pytest.mark.parametrize("name", [name for name in CASSETTES if name != "older vcrpy"])
def test_a_cassette_in_json_is_read(tmp_path, name):
    (x,) = exchanges(saved(tmp_path / "a.json", CASSETTES[name]))
    assert (x.status, x.json) == (200, COMPLETION)


@pytest.mark.parametrize("body", [REPLY.encode(), gzip.compress(REPLY.encode()), zlib.compress(REPLY.encode())])
def test_a_cassette_may_hold_a_body_coded_or_decoded_beside_its_coding(tmp_path, body):
    coding = "deflate" if body[:1] == b"x" else "gzip"
    document = json.loads(json.dumps(VCRPY))
    response = document["interactions"][0]["response"]
    response["headers"] |= {"Content-Encoding": [coding], "Content-Length": [str(len(gzip.compress(REPLY.encode())))]}
    response["body"] = {"string": body}
    assert findings(saved(tmp_path / "a.yaml", yaml.safe_dump(document))) == []


def test_tags_of_python_and_ruby_are_read_and_never_followed(tmp_path):
    text = f"""
interactions:
- request:
    body: !!python/object/new:_io.BytesIO
      state: !!python/tuple [a, 0, null]
    headers: {{}}
    method: GET
    uri: {URL}
- request:
    body: '{REQUEST}'
    headers:
      ? &id001 !!python/object/apply:multidict._multidict.istr
      - Accept
      : - '*/*'
    method: POST
    uri: {URL}
  response:
    body:
      string: !binary |-
        {base64.b64encode(REPLY.encode()).decode()}
    headers:
      ? !!python/object/apply:multidict._multidict.istr [Content-Type]
      : - application/json
      ? *id001
      : !ruby/array:X [x]
    status: {{code: 200, message: OK}}
version: 1
"""
    left_out, found = loaded(saved(tmp_path / "a.yaml", text))
    assert isinstance(left_out, NotJudged)
    assert found.exchange.json == COMPLETION
    assert found.exchange.headers == (("Content-Type", "application/json"), ("Accept", "x"))


def test_a_stream_in_a_cassette_is_judged_to_its_last_byte(tmp_path):
    document = json.loads(json.dumps(VCRPY))
    (interaction,) = document["interactions"]
    interaction["request"]["body"] = STREAM_REQUEST
    interaction["response"] |= {"headers": STREAM_FIELDS, "body": {"string": STREAM}}
    assert findings(saved(tmp_path / "a.yaml", yaml.safe_dump(document))) == []
    interaction["response"]["body"] = {"string": STREAM.replace("data: [DONE]\n\n", "")}
    assert any("framing.done" in one for one in findings(saved(tmp_path / "b.yaml", yaml.safe_dump(document))))


def test_interactions_that_cannot_be_judged_are_left_out_with_their_line(tmp_path):
    document = {
        "interactions": [{"response": {}}, VCRPY["interactions"][0], {"request": {"uri": URL, "body": REQUEST}}]
    }
    first, second, third = loaded(saved(tmp_path / "a.yaml", yaml.safe_dump(document)))
    assert first.reason.startswith("a.yaml interaction 0, line 2: it has no member request")
    assert isinstance(second, ForeignExchange)
    assert third.reason == "a.yaml interaction 2: the response was not recorded"


# JSONL


def line(request=REQUEST, *, headers=JSON_FIELDS, recorded_by=None, url=URL, **response):
    told = {"request": {"url": url, "body": request}, "response": {"status": 200, **response}}
    told["response"] |= {"headers": headers} if headers else {}
    return json.dumps(told | ({"recorded_by": recorded_by} if recorded_by else {})) + "\n"


def test_each_line_of_jsonl_is_an_exchange(tmp_path):
    lines = [
        line(body=REPLY),
        line(json.loads(REQUEST), body=COMPLETION),
        line(STREAM_REQUEST, body=STREAM, headers=STREAM_FIELDS),
        line(STREAM_REQUEST, events=[*CHUNKS, "[DONE]"], headers=None),
        line(STREAM_REQUEST, events=CHUNKS, headers=None, recorded_by="sdk"),
    ]
    path = saved(tmp_path / "log", "".join(lines))
    assert findings(path) == []
    assert [x.choices[0].text for x in exchanges(path)] == [" 4, 5"] * 5


def test_a_line_that_cannot_be_read_does_not_affect_the_others(tmp_path):
    found = loaded(saved(tmp_path / "a.jsonl", line(body=REPLY) + '{"request": {\n\n' + line(body=REPLY) + '"text"\n'))
    assert [isinstance(item, ForeignExchange) for item in found] == [True, False, True, False]
    assert found[1].reason.startswith("a.jsonl line 2: not JSON: ")
    assert found[3].reason.startswith("a.jsonl line 5: it has no member request")


def test_one_exchange_may_be_printed_on_several_lines(tmp_path):
    text = json.dumps(json.loads(line(body=REPLY)), indent=2)
    assert [x.json for x in exchanges(saved(tmp_path / "a.json", text + "\n" + text))] == [COMPLETION] * 2
    assert len(exchanges(saved(tmp_path / "b.json", f"[{text}, {text}]"))) == 2


def test_who_recorded_is_one_of_two_words(tmp_path):
    (found,) = loaded(saved(tmp_path / "a.jsonl", line(body=REPLY, recorded_by="me")))
    assert 'recorded_by is "me"; expected' in found.reason


def test_from_an_sdk_null_and_absent_are_one(tmp_path):
    without_id = {**COMPLETION, "id": None}
    choices = [{"text": " 4, 5", "index": 0, "finish_reason": "length"}]
    sdk = line(body={**without_id, "choices": choices, "service_tier": None}, headers=None, recorded_by="sdk")
    assert findings(saved(tmp_path / "a.jsonl", sdk)) == []
    wire = line(body=json.dumps({**without_id, "choices": choices}), recorded_by="wire")
    assert len(findings(saved(tmp_path / "b.jsonl", wire))) >= 2


def test_an_sdk_s_values_are_judged_all_the_same(tmp_path):
    wrong = {**COMPLETION, "usage": {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 99}}
    path = saved(tmp_path / "a.jsonl", line(body=wrong, headers=None, recorded_by="sdk"))
    assert any("total_tokens is 99" in one for one in findings(path))


def test_an_sdk_s_view_of_a_conforming_target_breaks_nothing(tmp_path):
    """The replies of the reference as a client library has them: parsed, without header fields, null for absent."""
    lines = []
    for x in baseline("openai", "gate").plain.exchanges:
        body = x.case.body
        if not isinstance(body, dict) or x.status is None or (x.case.validity is Validity.INVALID and x.successful):
            continue
        told = {"events": [one.value for one in x.documents]} if x.streamed else {"body": _by_sdk(x.json)}
        lines.append(line(body, headers=None, recorded_by="sdk", **{**told, "status": x.status}))
    assert len(lines) > 50
    found = judged(saved(tmp_path / "a.jsonl", "".join(lines)))
    broken = [
        f"{verdict.requirement.id}: {verdict.reason}"
        for run in found.runs
        for verdict in run.verdicts
        if verdict.outcome in BROKEN
    ]
    assert broken == []


def _by_sdk(value):
    return {**value, "system_fingerprint": None, "service_tier": None} if isinstance(value, dict) else value


# Transcripts

SENT = f"POST /v1/completions HTTP/1.1\r\nHost: api.example\r\nContent-Length: {len(REQUEST)}\r\n\r\n{REQUEST}".encode()


def reply_of(body: bytes, **fields: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**JSON_FIELDS, **named}.items())
    return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
@pytest.mark.parametrize("length", [{}, {"Content_Length": "17"}, {"Transfer_Encoding": "chunked"}])
def test_a_decoded_body_beside_its_content_encoding_is_whole(tmp_path, coding, length):
    path = saved(tmp_path / "a.http", SENT + reply_of(REPLY.encode(), Content_Encoding=coding, **length))
    assert findings(path) == []
    assert exchanges(path)[0].json == COMPLETION


def test_a_coded_body_stays_as_it_was_sent(tmp_path):
    body = gzip.compress(REPLY.encode())
    (x,) = exchanges(saved(tmp_path / "a.http", SENT + reply_of(body, Content_Encoding="gzip")))
    assert b"".join(piece.data for piece in x.pieces) == body
    assert x.json == COMPLETION


def test_a_coding_that_cannot_be_undone_is_said(tmp_path):
    (found,) = loaded(saved(tmp_path / "a.http", SENT + reply_of(b"\x0b\x02\x80\xff\xfe", Content_Encoding="br")))
    assert "is coded with br" in found.reason


@pytest.mark.parametrize(
    "before", [b"HTTP/1.1 200 Connection established\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
               b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"]
)  # fmt: skip
def test_interim_responses_are_passed_over(tmp_path, before):
    path = saved(tmp_path / "a.http", SENT + before + reply_of(REPLY.encode()))
    assert findings(path) == []
    assert exchanges(path)[0].json == COMPLETION


def test_a_transcript_may_hold_several_exchanges(tmp_path):
    chunked = reply_of(b"5\r\n" + b" " * 5 + b"\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(REPLY), REPLY.encode()),
                       Transfer_Encoding="chunked")  # fmt: skip
    sized = reply_of(REPLY.encode(), Content_Length=str(len(REPLY)))
    open_ended = reply_of(REPLY.encode())
    path = saved(tmp_path / "a.http", b"\r\n\r\n".join([SENT + chunked, SENT + sized, SENT + open_ended, SENT + sized]))
    assert [x.json for x in exchanges(path)] == [COMPLETION] * 4
    assert findings(path) == []


def test_a_response_alone_and_a_request_alone_are_left_out(tmp_path):
    (alone,) = loaded(saved(tmp_path / "a.http", reply_of(REPLY.encode())))
    assert "the request was not recorded" in alone.reason
    (alone,) = loaded(saved(tmp_path / "b.http", SENT))
    assert "no response follows the request" in alone.reason


# Several files


def test_exchanges_are_grouped_by_address_and_model(tmp_path):
    other_model = REQUEST.replace('"m"', '"other"')
    saved(tmp_path / "a.jsonl", line(body=REPLY) + line(body=REPLY, url="https://two.example/v1/completions"))
    saved(tmp_path / "deep" / "b.jsonl", line(body=REPLY) + line(other_model, body=REPLY))
    found = judged(tmp_path)
    groups = [(run.target.name, run.target.base_url, run.target.model, len(run.exchanges)) for run in found.runs]
    assert groups == [
        ("api.example-m", "https://api.example/v1", "m", 2),
        ("two.example-m", "https://two.example/v1", "m", 1),
        ("api.example-other", "https://api.example/v1", "other", 1),
    ]


def test_one_group_has_the_name_of_the_provider(tmp_path):
    (run,) = judged(saved(tmp_path / "a.jsonl", line(body=REPLY) * 2)).runs
    assert run.target.name == "openai"
    assert len({x.case.id for x in run.exchanges}) == 2
    assert len(run.plan_sha256) == 64


@pytest.mark.parametrize("path", ["/openai/deployments/my-model/completions", "/v1/engines/my-model/completions"])
def test_the_model_may_be_in_the_path(tmp_path, path):
    request = json.dumps({"prompt": "1, 2, 3,", "max_tokens": 4})
    url = f"https://host.example{path}?api-version=2024-02-01"
    file = saved(tmp_path / "a.jsonl", line(request, body=REPLY, url=url))
    (run,) = judged(file).runs
    assert (run.target.model, run.target.query) == ("my-model", (("api-version", "2024-02-01"),) if "?" in url else ())
    assert run.recorded["judged"] == 1
    rubbish = saved(tmp_path / "b.jsonl", line(request, body='{"object":"rubbish","choices":7}', url=url))
    assert len(findings(rubbish)) > 2


def test_an_exchange_without_a_model_is_counted_with_those_of_its_address(tmp_path):
    without = line('{"prompt": "1"}', body=REPLY)
    (run,) = judged(saved(tmp_path / "a.jsonl", without + line(body=REPLY) + without)).runs
    assert (run.recorded["exchanges"], run.recorded["judged"]) == (3, 1)


def test_damaged_and_foreign_files_do_not_keep_the_others_from_being_judged(tmp_path):
    whole = json.dumps(har({"text": REPLY}))
    entry = whole[whole.index('{"startedDateTime') : -3]
    torn = saved(tmp_path / "torn.har", whole.replace(entry, entry + ", " + entry)[: -len(entry) // 2])
    saved(tmp_path / "notes.txt", "nothing")
    saved(tmp_path / "package.json", {"name": "x"})
    saved(tmp_path / "good.jsonl", line(body=REPLY))
    found = loaded(tmp_path, torn, tmp_path / "missing.har", tmp_path / "notes.txt")
    assert [type(item).__name__ for item in found].count("ForeignExchange") == 2
    reasons = [item.reason for item in found if isinstance(item, Damaged)]
    assert "there is no such file or folder" in reasons[0]
    assert any(reason.startswith("notes.txt: unknown kind of recording") for reason in reasons)
    assert any(reason.startswith("torn.har: after entry 1: the file ends in the middle") for reason in reasons)
    assert [item.name for item in found if isinstance(item, OtherFile)] == ["package.json"]
    (run,) = judged(tmp_path).runs
    assert any("torn.har" in reason for reason in run.incomplete)


def test_patterns_and_folders_name_files(tmp_path):
    for name in ("a/one.jsonl", "a/b/two.jsonl", ".hidden/three.jsonl"):
        saved(tmp_path / name, line(body=REPLY))
    assert len(exchanges(tmp_path)) == 2
    assert len(exchanges(str(tmp_path / "**" / "*o.jsonl"))) == 1
    ids = {x.case.id.rpartition("/")[0] for x in exchanges(tmp_path, tmp_path / "a" / "one.jsonl")}
    assert ids == {"jsonl/one.jsonl", "jsonl/b/two.jsonl"}


# What must not be written


SECRET = "zY9xWv8UtSr7QpOn1MlK"


@pytest.mark.parametrize(
    "field",
    [("Authorization", f"Bearer {SECRET}"), ("Helicone-Auth", f"Bearer {SECRET}"), ("X-Whatever", f"sk-{SECRET}"),
     ("X-Other", f"bearer {SECRET}"), ("api-key", SECRET), ("Cookie", f"session={SECRET}")],
)  # fmt: skip
def test_secrets_are_found_by_name_and_by_value(tmp_path, field):
    echoed = field[1].rpartition(" ")[2].rpartition("=")[2]
    document = har({"text": REPLY.replace("cmpl-1", echoed)}, sent=dict([field]), headers={
        **JSON_FIELDS, "Set-Cookie": f"a={SECRET}", "X-Echo": f"Bearer {SECRET}"})  # fmt: skip
    (run,) = judged(saved(tmp_path / "a.har", document)).runs
    assert SECRET not in repr(run)


def test_a_secret_in_the_address_is_left_out(tmp_path):
    url = f"https://user:{SECRET}@api.example/v1/completions?api_key={SECRET}&v=1"
    (run,) = judged(saved(tmp_path / "a.jsonl", line(body=REPLY, url=url))).runs
    assert SECRET not in repr(run)
    assert run.target.query == (("api_key", None), ("v", "1"))
    assert run.target.base_url == "https://api.example/v1"


# The command


def test_printed_commands_carry_the_recorded_address(conformance, tmp_path):
    wrong = REPLY.replace('"total_tokens": 12', '"total_tokens": 99')
    url = "https://h.example/openai/deployments/d/completions?api-version=1"
    document = har({"text": wrong}, url=url, sent={"api-key": "0123456789abcdef"})
    code, out, _ = conformance("audit", "openai", str(saved(tmp_path / "a.har", document)))
    assert code == 1
    assert "'https://h.example/openai/deployments/d/completions?api-version=1'" in out
    assert '-H "api-key: ${API_KEY}"' in out
    assert "conformance send" not in out
    assert "recorded/completions" not in out


def test_results_of_an_audit_can_be_compared_and_waived(conformance, tmp_path):
    wrong = REPLY.replace('"total_tokens": 12', '"total_tokens": 99')
    for name, reply in (("old", REPLY), ("new", wrong)):
        path = saved(tmp_path / f"{name}.jsonl", line(body=reply))
        assert conformance("audit", "openai", str(path), "--out", f"runs/{name}", "-q")[0] == (reply == wrong)
    results = json.loads(Path("runs/new/openai/results.json").read_text())
    assert results["duration_s"] == 0
    assert results["started_at"].startswith("2026-01-02T03:04:05")
    code, out, err = conformance("diff", "runs/old/openai/results.json", "runs/new/openai/results.json")
    assert (code, err) == (1, "")
    assert "usage.total" in out
    assert conformance("history", "runs")[0] == 0
    code, waivers, err = conformance("waivers", "--from", "runs/new/openai/results.json")
    assert (code, err) == (0, "")
    assert "usage.total" in waivers


def test_several_groups_have_a_report_each_and_an_index(conformance, tmp_path):
    other = line(body=REPLY, url="https://two.example/v1/completions")
    path = saved(tmp_path / "a.jsonl", line(body=REPLY) + other)
    code, out, _ = conformance("audit", "openai", str(path), "--out", "there", "-q")
    assert code == 0
    assert "api.example-m: Nothing broken" in out
    assert "https://two.example/v1, model m" in out
    assert {path.name for path in Path("there").iterdir()} == {"api.example-m", "two.example-m", "index.html"}


def test_requests_for_other_operations_are_one_line(conformance, tmp_path):
    others = [line(body=REPLY, url=f"https://api.example/v1/models/{number}") for number in range(9)]
    code, _, err = conformance("audit", "openai", str(saved(tmp_path / "a.jsonl", line(body=REPLY) + "".join(others))))
    assert code == 0
    assert err.count("\n") == 1
    assert "left out: 9 requests for other operations, such as a.jsonl line 2: POST https://api.example" in err


# Readers that hold one value at a time

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, 1]), st.integers(0, 70_000))
def test_a_json_stream_gives_what_json_gives(values, indent, padding):
    text = json.dumps({"pad": " " * padding, "list": values, "end": 1.5}, indent=indent)
    stream = JsonStream(io.BufferedReader(io.BytesIO(text.encode())))
    found = {}
    for name in stream.members():
        found[name] = [stream.value() for _ in stream.items()] if name == "list" else stream.value()
    assert found == json.loads(text)
    assert stream.next_char() == ""


def lists_of(text):
    """The items of all lists that are members of an object."""
    stream = JsonStream(io.BufferedReader(io.BytesIO(text.encode())))
    return [stream.value() for _ in stream.members() for _ in stream.items()]


@given(st.integers(1, 400))
def test_a_json_stream_says_where_a_file_was_cut(keep):
    text = json.dumps({"list": [{"a": "x" * 50, "b": [1, 2.5, None, "é"]}] * 5})[:keep]
    with pytest.raises(ValueError, match="ends in the middle"):
        lists_of(text)


@pytest.mark.parametrize("text", ['{"list": [1, oops]}', '{"list": [{"a" 1}]}', '{"list": [1 2]}', "{1: 2}"])
def test_a_json_stream_says_where_it_is_not_json(text):
    with pytest.raises(ValueError, match="not JSON at character"):
        lists_of(text + " " * 2 * CHUNK)


def test_nesting_that_would_end_the_process_is_refused(tmp_path):
    deep = saved(tmp_path / "a.har", '{"log": {"entries": [' + "[" * 200_000)
    assert isinstance(loaded(deep)[0], Damaged)
    yaml_text = "interactions: " + "[" * 5_000 + "]" * 5_000
    assert len(list(items(io.BytesIO(yaml_text.encode()), {"interactions"}))) == 1  # type: ignore[arg-type]


def test_no_exchange_is_kept_whole_that_no_report_needs(tmp_path, monkeypatch):
    from conformance.run import recorded

    monkeypatch.setattr(recorded, "KEPT_BYTES", 0)
    wrong = REPLY.replace('"total_tokens": 12', '"total_tokens": 99')
    path = saved(tmp_path / "a.jsonl", line(body=REPLY) * 3 + line(body=wrong))
    (run,) = judged(path).runs
    assert [len(x.pieces) for x in run.exchanges] == [0, 0, 0, 1]
    monkeypatch.undo()
    (whole,) = judged(path).runs
    assert whole.verdicts == run.verdicts
