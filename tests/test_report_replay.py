"""Requests to paste: curl is run by a real shell, Python is compiled."""

import ast
import shlex
import subprocess

import pytest

from conformance.judge import fixtures as ex
from conformance.model import Credential
from conformance.model.json_text import dumps
from conformance.report.replay_commands import curl, one_line, python

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
        env={"CONFORMANCE_API_KEY": "k", "PATH": "/usr/bin:/bin"},
    )
    return done.stderr.decode().splitlines(), done.stdout


def test_curl_sends_the_body_byte_for_byte():
    case = ex.case({"prompt": 'it\'s $HOME `id` "x" \\ é'})
    words, _ = handed_over(curl(case, URL))
    assert words[words.index("--data-raw") + 1] == case.content.decode()
    assert "Authorization: Bearer k" in words
    assert "content-type: application/json" in words
    assert URL in words


@pytest.mark.parametrize("content", [b"\x00\xff%s\\'\n", b"-e\n", "\u202e".encode(), bytes(range(256))])
def test_bytes_that_no_argument_can_hold_are_piped_in(content):
    words, given = handed_over(curl(ex.case(content), URL))
    assert given == content
    assert words[-2:] == ["--data-binary", "@-"]


def test_curl_shows_a_stream_as_it_comes():
    assert curl(ex.case({"stream": True}), URL).startswith("curl -sSNi ")
    assert curl(ex.case(), URL).startswith("curl -sSi ")


@pytest.mark.parametrize(
    ("credential", "says"),
    [
        (Credential.KEY, "Authorization: Bearer k"),
        (Credential.LOWERCASE_SCHEME, "Authorization: bearer k"),
        (Credential.WRONG, "Authorization: Bearer wrong-key"),
    ],
)
def test_curl_carries_the_credential_of_the_case(credential, says):
    assert says in handed_over(curl(ex.case(credential=credential), URL))[0]


def test_curl_without_a_key_sends_none():
    assert "uthorization" not in curl(ex.case(credential=Credential.NONE), URL)


def test_curl_keeps_an_odd_method_and_a_missing_content_type():
    words = shlex.split(curl(ex.case(method="PUT", headers=()), URL))
    assert words[words.index("-X") + 1] == "PUT"
    assert "Content-Type:" in words
    assert "-X POST" in curl(ex.case(b""), URL)


def test_a_megabyte_is_named_and_not_printed():
    case = ex.case({"prompt": "x" * 1_000_000})
    assert len(curl(case, URL)) < 500
    assert f"{len(case.content):,} bytes" in curl(case, URL)
    assert python(case, URL) == ""


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

    snippet = python(case, "http://127.0.0.1:9/v1")
    assert snippet.isascii()
    lines = [line for line in snippet.splitlines() if not line.startswith(("import", "from"))]
    environment = type("os", (), {"environ": {"CONFORMANCE_API_KEY": "k"}})
    exec("\n".join(lines), {"OpenAI": OpenAI, "os": environment})
    assert dumps({key: seen[key] for key in case.body}) == case.content.decode()


def test_the_python_snippet_works_where_no_key_is_set():
    given = {}
    environment = type("os", (), {"environ": {}})
    snippet = python(ex.case(b'{"model":"m"}'), "http://127.0.0.1:9/v1")
    client = next(line for line in snippet.splitlines() if line.startswith("client = "))
    exec(client, {"OpenAI": lambda **more: given.update(more), "os": environment})
    assert given["api_key"] == "none"


def test_the_python_snippet_goes_below_the_typed_method_where_that_demands_more():
    snippet = python(ex.case(b'{"model":"m"}'), "http://127.0.0.1:9/v1")
    assert 'client.post("/completions", cast_to=object, body={"model": "m"})' in snippet
    compile(snippet, "snippet", "exec")


@pytest.mark.parametrize(
    "case", [ex.case(b"[1]"), ex.case(b"{"), ex.case(method="GET"), ex.case(credential=Credential.NONE)]
)
def test_there_is_no_snippet_for_what_the_client_cannot_send(case):
    assert python(case, URL) == ""


@pytest.mark.parametrize(
    "body", [{"n": 2}, {"stream": True, "stop": ["(\n    ", ",\n)", "for chunk in "]}, {"ignore_eos": True}]
)
def test_both_fit_on_one_line_for_a_terminal(body):
    command, snippet = curl(ex.case(body), URL), python(ex.case(body), "http://127.0.0.1:9/v1")
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
    assert python(ex.case(deep), URL) == ""
