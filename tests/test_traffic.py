"""Recorded exchanges of genuine endpoints, judged offline: what real servers do raises no false alarm.

The folder comes from CONFORMANCE_TRAFFIC: `exchanges/*.json`, each with provider, request and response as recorded.
"""

import base64
import gzip
import json
import os
import sys
from collections import defaultdict
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import yaml

from conformance.contract import load, providers
from conformance.contract.validity import validity
from conformance.judge import Traffic, judge_all
from conformance.model import Level, Outcome, RequestCase, Validity
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.recording.load import load as load_recordings
from conformance.run.recorded import audit

FOLDER = os.environ.get("CONFORMANCE_TRAFFIC", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="set CONFORMANCE_TRAFFIC to a folder of recorded exchanges")

BROKEN = {Outcome.FAIL, Outcome.WARN, Outcome.FLAKY}
LOST_ON_THE_WAY = {"content-encoding", "content-length", "transfer-encoding"}  # recorders undo codings

# What OpenAI's own endpoint does against the clear words of its own document. Each is a true finding.
# By requirement, model and words of the finding.
CHAT = "chat models that were let onto this route answer in another shape"
EXPLAINED = [
    ("response.object.enum", "gpt-4o*", 'is "completion"', CHAT),
    ("chunk.object.enum", "gpt-4o*", 'is "completion"', CHAT),
    ("response.choices[[]].logprobs.required", "gpt-4o*", "logprobs is absent", CHAT),
    ("chunk.choices[[]].logprobs.required", "gpt-4o*", "logprobs is absent", CHAT),
    ("errors.envelope", "*", "error.message is ''", "a malformed key was once refused without a word"),
]


def recordings():
    found = []
    for path in sorted(Path(FOLDER).glob("exchanges/*.json")) if FOLDER else []:
        told = json.loads(path.read_text("utf-8"))
        if told.get("endpoint") == "completions" and told.get("genuine") == "yes":
            found.append(told)
    return found


@cache
def contract_of(provider):
    return load(provider if provider in providers() else "openai")


def body_of(told):
    """The response's bytes; what an SDK had parsed is written again as it may have come."""
    text, kind = told["response"].get("body") or "", told["body_kind"]
    if "chunks" not in kind:
        return text.encode()
    try:
        listed = json.loads(text)
        lines = [json.dumps(chunk) for chunk in listed] if isinstance(listed, list) else [text]
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


def exchange_of(told):
    """A recording as an exchange under the provider's contract, or OpenAI's where it has none."""
    request, reply = told["request"], told["response"]
    body = request.get("body")
    if body is None:
        body = {"model": "m", "prompt": "not recorded", "stream": bool(told.get("streamed")), "max_tokens": 10**6}
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    headers = {name.lower(): value for name, value in (reply.get("headers") or {}).items()}
    headers = {name: value for name, value in headers.items() if name not in LOST_ON_THE_WAY}
    streamed = told.get("streamed") and reply["status"] == 200
    headers.setdefault("content-type", "text/event-stream" if streamed else "application/json")
    case = RequestCase(f"recorded/{told['n']}", content, "recorded")
    older = any(
        part in (request.get("url") or "") for part in ("/engines/", "/deployments/")
    )  # the model is in the path
    state = Validity.UNSPECIFIED if older else validity(contract_of(told["provider"]), case.body)
    case = RequestCase(case.id, content, "recorded", state)
    attempt = Attempt(sent_at(headers), reply["status"], tuple(headers.items()), (Piece(0.1, body_of(told)),))
    return Exchange(case, (attempt,))


def sent_at(headers):
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return 0.0


def verdicts_on(told):
    return judge_all(contract_of(told["provider"]), Traffic([exchange_of(told)]))


def names(told):
    """The models that request and reply name, for what is explained by the model."""
    body = exchange_of(told)
    documents = [document.value for document in body.documents]
    found = [one.get("model") for one in (body.case.body, *documents) if isinstance(one, dict)]
    return [name for name in found if isinstance(name, str)] or ["?"]


def explained(told, verdict):
    return any(
        fnmatchcase(verdict.requirement.id, row)
        and words in verdict.reason
        and any(fnmatchcase(name, model) for name in names(told))
        for row, model, words, _ in EXPLAINED
    )


def raw(told):
    """Whether absent and null can be told apart: an SDK's object or an excerpt shows neither framing nor presence."""
    return told["body_kind"] == "raw"


def known(told):
    """Whether the request was kept: what was asked for decides what is owed."""
    return told["request"].get("body") is not None


def test_there_is_traffic_to_judge():
    assert recordings(), f"no genuine completions under {FOLDER}/exchanges"


@pytest.mark.parametrize("told", recordings(), ids=lambda told: f"{told['n']}-{told['provider']}")
def test_no_check_fails_us_on_genuine_traffic(told):
    wrong = [verdict.reason for verdict in verdicts_on(told) if verdict.outcome is Outcome.ERROR]
    assert not wrong


@pytest.mark.parametrize(
    "told",
    [one for one in recordings() if one["provider"] in providers() and known(one) and raw(one)],
    ids=lambda told: f"{told['n']}-{told['provider']}",
)
def test_a_provider_keeps_its_own_contract(told):
    """No FAIL and no WARN but those that are explained above."""
    found = [
        f"{verdict.requirement.id} {verdict.outcome}: {verdict.reason}"
        for verdict in verdicts_on(told)
        if verdict.outcome in BROKEN and not explained(told, verdict)
    ]
    assert not found


@pytest.mark.parametrize(
    "told",
    [one for one in recordings() if one["provider"] in providers() and known(one) and not raw(one)],
    ids=lambda told: f"{told['n']}-{told['provider']}",
)
def test_what_an_sdk_kept_of_a_provider_does_not_fail_its_contract(told):
    found = [
        f"{verdict.requirement.id}: {verdict.reason}"
        for verdict in verdicts_on(told)
        if verdict.outcome is Outcome.FAIL and not explained(told, verdict)
    ]
    assert not found


def yaml_cassette(path, url, request, reply):
    interaction = {
        "request": {"method": "POST", "uri": url, "body": request, "headers": {}},
        "response": {
            "status": {"code": reply["status"], "message": ""},
            "headers": {name: [value] for name, value in reply["headers"].items()},
            "body": {"string": reply["body"]},
        },
    }
    (path / "a.yaml").write_text(yaml.safe_dump({"interactions": [interaction], "version": 1}), "utf-8")


def har(path, url, request, reply):
    headers = [{"name": name, "value": value} for name, value in reply["headers"].items()]
    chunks = json.dumps([base64.b64encode(gzip.compress(reply["body"].encode())).decode()])
    entry = {
        "request": {"method": "POST", "url": url, "headers": [], "postData": {"text": request}},
        "response": {
            "status": reply["status"],
            "headers": headers,
            "content": {"size": 0, "text": chunks, "encoding": "base64"},
        },
    }
    (path / "a.har").write_text(json.dumps({"log": {"entries": [entry]}}), "utf-8")


def jsonl(path, url, request, reply):
    line = {"request": {"url": url, "body": request}, "response": reply, "recorded_by": "wire"}
    (path / "a.jsonl").write_text(json.dumps(line), "utf-8")


def transcript(path, url, request, reply):
    host, _, target = url.removeprefix("https://").partition("/")
    head = "".join(f"{name}: {value}\r\n" for name, value in reply["headers"].items())
    sent = f"POST /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n{request}\r\n"
    (path / "a.http").write_bytes(f"{sent}HTTP/1.1 {reply['status']} \r\n{head}\r\n{reply['body']}".encode())


@pytest.mark.parametrize("write", [yaml_cassette, har, jsonl, transcript])
@pytest.mark.parametrize(
    "told",
    [one for one in recordings() if one["provider"] in providers() and known(one) and raw(one)],
    ids=lambda told: f"{told['n']}-{told['provider']}",
)
def test_no_format_adds_a_finding(told, write, tmp_path):
    """As their recorders stored them: with the header fields of a coded body beside the decoded one."""
    reply = {**told["response"], "headers": told["response"].get("headers") or {}}
    request = told["request"]["body"]
    url = told["request"].get("url") or "https://api.example/v1/completions"
    write(tmp_path, url, request if isinstance(request, str) else json.dumps(request), reply)
    contract = contract_of(told["provider"])
    found = audit(
        contract, load_recordings([tmp_path], contract), "", frozenset(row.id for row in contract.requirements)
    )
    assert (found.left_out.first, found.unreadable, found.damaged) == ([], [], [])
    (run,) = found.runs
    broken = [
        f"{verdict.requirement.id} {verdict.outcome}: {verdict.reason}"
        for verdict in run.verdicts
        if verdict.outcome in BROKEN and not explained(told, verdict)
    ]
    assert broken == []


def test_genuine_traffic_is_really_looked_at():
    """Dozens of promises are seen kept: the silence above is no blindness."""
    own = [one for one in recordings() if one["provider"] == "openai" and known(one) and raw(one)]
    if not own:
        pytest.skip("no raw traffic of OpenAI in this folder")
    verdicts = judge_all(load("openai"), Traffic([exchange_of(one) for one in own]))
    kept = {verdict.requirement.id for verdict in verdicts if verdict.examined and verdict.outcome is Outcome.PASS}
    musts = {verdict.requirement.id for verdict in verdicts if verdict.requirement.level is Level.MUST}
    assert len(kept) >= 60
    assert len(kept & musts) >= 40


def test_other_servers_differ_only_where_the_words_do(capsys):
    """Servers that promised nothing to OpenAI, held against its document: printed, to be read, not judged."""
    found = defaultdict(list)
    for told in recordings():
        if told["provider"] in providers() or not known(told):
            continue
        for verdict in verdicts_on(told):
            if verdict.outcome in BROKEN:
                found[told["provider"], verdict.requirement.id, verdict.outcome.value].append(
                    (told["n"], verdict.reason)
                )
    with capsys.disabled():
        for (provider, row, outcome), cases in sorted(found.items()):
            example = f"{cases[0][0]}: {cases[0][1][:160]}"
            sys.stdout.write(f"\n{provider} {row} {outcome} in {len(cases)}, such as {example}")
