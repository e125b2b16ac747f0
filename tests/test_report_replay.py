"""Requests to paste: curl is run by a real shell, Python is compiled."""

import ast
import shlex
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest

from conformance.judge import fixtures as ex
from conformance.model import Credential
from conformance.model.json_text import dumps
from conformance.report.replay_commands import Destination, again, curl, one_line, python

TO = Destination("http://127.0.0.1:9/v1", "/completions")
TO = Destination("http://127.0.0.1:9/v1", "/completions")
URL = "http://127.0.0.1:9/v1/completions"


def handed_over(command: str) -> tuple[list[str], bytes]:
    """The arguments and the standard input that a shell gives to curl."""
    script = (
        'curl() { for word in "$@"; do printf "%s\\n" "$word" >&2; done; if [ ! -t 0 ]; then cat; fi; }\n' + command
    )
    done = subprocess.run(
        ["bash", "-c", script],
        input=b"",
        capture_output=True,
        check=True,
        env={"CONFORMANCE_API_KEY": "k", "X_API_KEY": "hush", "SIG": "a", "MY_KEY": "other", "PATH": "/usr/bin:/bin"},
    )
    return done.stderr.decode().splitlines(), done.stdout


def test_curl_sends_the_body_byte_for_byte():
    case = ex.case({"prompt": 'it\'s $HOME `id` "x" \\ é'})
    words, _ = handed_over(curl(case, TO))
    assert words[words.index("--data-raw") + 1] == case.content.decode()
    assert "Authorization: Bearer k" in words
    assert "content-type: application/json" in words
    assert URL in words


@pytest.mark.parametrize("content", [b"\x00\xff%s\\'\n", b"-e\n", "\u202e".encode(), bytes(range(256))])
def test_bytes_that_no_argument_can_hold_are_piped_in(content):
    words, given = handed_over(curl(ex.case(content), TO))
    assert given == content
    assert words[-2:] == ["--data-binary", "@-"]


def test_curl_shows_a_stream_as_it_comes():
    assert curl(ex.case({"stream": True}), TO).startswith("curl -sSNi ")
    assert curl(ex.case(), TO).startswith("curl -sSi ")


@pytest.mark.parametrize(
    ("credential", "says"),
    [
        (Credential.KEY, "Authorization: Bearer k"),
        (Credential.LOWERCASE_SCHEME, "Authorization: bearer k"),
        (Credential.WRONG, "Authorization: Bearer wrong-key"),
        (Credential.OTHER_SCHEME, "Authorization: Basic k"),
        (Credential.NO_SCHEME, "Authorization: k"),
    ],
)
def test_curl_carries_the_credential_of_the_case(credential, says):
    assert says in handed_over(curl(ex.case(credential=credential), TO))[0]


def test_curl_without_a_key_sends_none():
    assert "uthorization" not in curl(ex.case(credential=Credential.NONE), TO)


def test_curl_keeps_an_odd_method_and_a_missing_content_type():
    words = shlex.split(curl(ex.case(method="PUT", headers=()), TO))
    assert words[words.index("-X") + 1] == "PUT"
    assert "Content-Type:" in words
    assert "-X POST" in curl(ex.case(b""), TO)


def test_a_megabyte_is_read_from_a_file_beside_the_report(tmp_path):
    case = ex.case({"prompt": "x" * 1_000_000}, id="hostile/1")
    to = replace(TO, folder=str(tmp_path))
    words, _ = handed_over(curl(case, to))
    assert words[-2:] == ["--data-binary", f"@{tmp_path}/bodies/hostile-1.body"]
    (tmp_path / "bodies").mkdir()
    (tmp_path / "bodies" / "hostile-1.body").write_bytes(case.content)
    sent = {}
    client = SimpleNamespace(post=lambda _, cast_to, body: sent.update(body))  # noqa: ARG005
    lines = [line for line in python(case, to).splitlines() if not line.startswith(("from", "client"))]
    exec("\n".join(lines), {"client": client})
    assert sent == case.body


def test_what_every_request_of_the_run_had_is_in_each_command():
    to = replace(
        TO,
        headers=(("x-route", "it's"), ("X-Api-Key", None)),
        query=(("api-version", "2024 $x"), ("sig", None)),
        key_variable="MY_KEY",
    )
    words, _ = handed_over(curl(ex.case(), to))
    assert "x-route: it's" in words
    assert "X-Api-Key: hush" in words
    assert f"{URL}?api-version=2024%20%24x&sig=a" in words
    assert "Authorization: Bearer other" in words
    snippet = python(ex.case(), to)
    assert 'default_headers={"x-route": "it\'s", "X-Api-Key": os.environ["X_API_KEY"]}' in snippet
    assert 'default_query={"api-version": "2024 $x", "sig": os.environ["SIG"]}' in snippet
    assert 'os.environ.get("MY_KEY", "none")' in snippet


def test_secret_header_fields_follow_the_credential_of_the_case():
    to = replace(TO, headers=(("X-Api-Key", None),))
    without, _ = handed_over(curl(ex.case(credential=Credential.NONE), to))
    wrong, _ = handed_over(curl(ex.case(credential=Credential.WRONG), to))
    assert not any("X-Api-Key" in word for word in without)
    assert "X-Api-Key: wrong-key" in wrong


def test_a_run_without_a_key_has_none_in_its_commands():
    to = replace(TO, key_variable="")
    assert "uthorization" not in curl(ex.case(), to)
    assert 'api_key="none"' in python(ex.case(), to)
    assert "Bearer wrong-key" in curl(ex.case(credential=Credential.WRONG), to)


def test_conformance_send_is_given_all_that_it_needs():
    target = {
        "name": "gateway", "base_url": "http://h/v1", "model": "m", "path": "/completions", "key_variable": "MY_KEY",
        "headers": [["x-route", "a b"], ["X-Api-Key", None], ["x-pass", None]], "query": [["v", "1"]],
    }  # fmt: skip
    found = {
        "provider": "mine",
        "target": target,
        "profile": "gate",
        "send": {"out": "elsewhere", "specs": ["my specs"]},
    }
    assert shlex.split(again(found, "row/1")) == [
        "conformance", "send", "mine", "row/1", "--base-url", "http://h/v1", "--model", "m", "--name", "gateway",
        "--api-key-env", "MY_KEY", "--specs", "my specs", "--out", "elsewhere", "--header", "x-route: a b",
        "--header", "X-Api-Key: ${X_API_KEY}", "--header", "x-pass: ${X_PASS}", "--credential", "x-pass",
        "--query", "v=1",
    ]  # fmt: skip
    embedded = {**found, "target": {**target, "kind": "embedded reference", "headers": [], "query": []}}
    assert "--base-url" not in again(embedded, "row/1")
    assert again({**found, "profile": "recorded"}, "har/1") == ""


def test_the_python_snippet_calls_the_client_with_the_same_body():
    case = ex.case({"stream": True, "min_p": 0.1, "stop": ["\u202e'\"", "\ud83d\ude00"]})
    seen = {}

    class Completions:
        def create(self, **given):
            extra = given.pop("extra_body")
            seen.update(given, **extra)
            return []

    class OpenAI:
        def __init__(self, **given):
            assert given["base_url"] == "http://127.0.0.1:9/v1"
            assert given["api_key"] == "k"
            self.completions = Completions()

    snippet = python(case, TO)
    assert snippet.isascii()
    lines = [line for line in snippet.splitlines() if not line.startswith(("import", "from"))]
    environment = type("os", (), {"environ": {"CONFORMANCE_API_KEY": "k"}})
    exec("\n".join(lines), {"OpenAI": OpenAI, "os": environment})
    assert dumps({key: seen[key] for key in case.body}) == case.content.decode()


def test_the_python_snippet_works_where_no_key_is_set():
    given = {}
    environment = type("os", (), {"environ": {}})
    snippet = python(ex.case(b'{"model":"m"}'), TO)
    client = next(line for line in snippet.splitlines() if line.startswith("client = "))
    exec(client, {"OpenAI": lambda **more: given.update(more), "os": environment})
    assert given["api_key"] == "none"


def test_the_python_snippet_goes_below_the_typed_method_where_that_demands_more():
    snippet = python(ex.case(b'{"model":"m"}'), TO)
    assert 'client.post("/completions", cast_to=object, body={"model": "m"})' in snippet
    compile(snippet, "snippet", "exec")


@pytest.mark.parametrize(
    "case", [ex.case(b"[1]"), ex.case(b"{"), ex.case(method="GET"), ex.case(credential=Credential.NONE)]
)
def test_there_is_no_snippet_for_what_the_client_cannot_send(case):
    assert python(case, TO) == ""


@pytest.mark.parametrize(
    "body", [{"n": 2}, {"stream": True, "stop": ["(\n    ", ",\n)", "for chunk in "]}, {"ignore_eos": True}]
)
def test_both_fit_on_one_line_for_a_terminal(body):
    command, snippet = curl(ex.case(body), TO), python(ex.case(body), TO)
    assert handed_over(one_line(command)) == handed_over(command)
    line = one_line(snippet)
    assert "\n" not in line
    assert calls(line) == calls(snippet)


def calls(source):
    """What the client is called with."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.keywords]
    return sorted(ast.unparse(one) for one in found if "print" not in ast.unparse(one.func))


def test_what_is_nested_too_deep_for_source_has_no_snippet():
    deep = b'{"model":"m","prompt":' + b"[" * 900 + b"]" * 900 + b"}"
    assert python(ex.case(deep), TO) == ""
