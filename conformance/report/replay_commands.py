"""A recorded request as a curl command and as a snippet for openai-python; the key is read from the environment."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from conformance.model import Credential, RequestCase
from conformance.report.text import visible

KEY: Final = "CONFORMANCE_API_KEY"
WRONG: Final = "wrong-key"
LONGEST: Final = 6_000
"""The longest body, in bytes, that is put into a command."""
_AUTHORIZATION: Final = {
    Credential.KEY: f'"Authorization: Bearer ${KEY}"',
    Credential.LOWERCASE_SCHEME: f'"Authorization: bearer ${KEY}"',
    Credential.WRONG: f"'Authorization: Bearer {WRONG}'",
    Credential.CUT_SHORT: f'"Authorization: Bearer ${{{KEY}%?}}"',
    Credential.PROLONGED: f'"Authorization: Bearer ${{{KEY}}}x"',
    Credential.OTHER_CASE: f'"Authorization: Bearer $(printf %s "${KEY}" | tr A-Za-z a-zA-Z)"',
    Credential.EMPTY: "'Authorization: Bearer '",
}
_SDK: Final = frozenset(
    {
        "model", "prompt", "best_of", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n",
        "presence_penalty", "seed", "stop", "stream", "stream_options", "suffix", "temperature", "top_p", "user",
    }
)  # fmt: skip


def curl(case: RequestCase, url: str) -> str:
    """The request as a shell command; bytes that cannot be quoted are piped from printf."""
    words = ["curl -sS" + ("N" if _streams(case) else "") + "i"]
    if case.method != "POST" or not case.content:
        words[0] += f" -X {shlex.quote(case.method)}"
    words[0] += f" {shlex.quote(url)}"
    if case.credential in _AUTHORIZATION:
        words.append(f"-H {_AUTHORIZATION[case.credential]}")
    given = {name.lower() for name, _ in case.headers}
    words += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in case.headers]
    if case.content and "content-type" not in given:
        words.append("-H 'Content-Type:'")  # otherwise curl sends that of a form
    prefix = ""
    if len(case.content) > LONGEST:
        words.append("--data-binary @body.json")
        prefix = f"# body.json: the {len(case.content):,} bytes of {case.id}, from exchanges.ndjson\n"
    elif case.content:
        text = _printable(case.content)
        if text is None:
            prefix = f"printf '{_octal(case.content)}' | "
            words.append("--data-binary @-")
        else:
            words.append(f"--data-raw {shlex.quote(text)}")
    return prefix + " \\\n  ".join(words)


def again(results: Mapping[str, Any], case: str) -> str:
    """The command that sends a case again to the same target."""
    provider, target = results["provider"], results["target"]
    words = ["conformance", "send", provider, case]
    if target["base_url"].startswith("http"):
        words += ["--base-url", target["base_url"], "--model", target["model"]]
    if target["name"] != provider:
        words += ["--name", target["name"]]
    return visible(shlex.join(words))


def _streams(case: RequestCase) -> bool:
    return isinstance(case.body, Mapping) and case.body.get("stream") is True


def _printable(content: bytes) -> str | None:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _octal(content: bytes) -> str:
    literal = b' !#$&()*+,./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"'
    return "".join(chr(byte) if byte in literal else f"\\{byte:03o}" for byte in content)


def python(case: RequestCase, base_url: str) -> str:
    """The request with openai-python; empty where that client cannot send it."""
    body = case.body
    if (
        len(case.content) > LONGEST
        or not isinstance(body, Mapping)
        or case.method != "POST"
        or case.credential not in _KEYS
    ):
        return ""
    client = f"client = OpenAI(base_url={_text(base_url)}, api_key={_KEYS[case.credential]}, max_retries=0)"
    imports = "import os\n" if case.credential is Credential.KEY else ""
    try:
        return f"{imports}from openai import OpenAI\n\n{client}\n{_call(body)}\n"
    except RecursionError:  # nested too deeply to print
        return ""


_KEYS: Final = {Credential.KEY: f'os.environ.get("{KEY}", "none")', Credential.WRONG: repr(WRONG)}


def _call(body: Mapping[str, Any]) -> str:
    if not {"model", "prompt"} <= body.keys():  # the typed method requires both
        return f'print(client.post("/completions", cast_to=object, body={_literal(body)}))'
    arguments = {name: value for name, value in body.items() if name in _SDK}
    others = {name: value for name, value in body.items() if name not in _SDK}
    lines = [f"    {name}={_literal(value)}," for name, value in arguments.items()]
    if others:
        lines.append(f"    extra_body={_literal(others)},")
    create = "client.completions.create(\n" + "\n".join(lines) + "\n)"
    if body.get("stream") is True:
        return f"for chunk in {create}:\n    print(chunk)"
    return f"print({create})"


def one_line(snippet: str) -> str:
    """A command or snippet of this module on one line, to be copied from a terminal."""
    if snippet.startswith("curl "):
        return snippet.replace(" \\\n  ", " ")
    joined = snippet.replace("(\n    ", "(").replace(",\n    ", ", ").replace(",\n)", ")")
    head, loop, stream = joined.partition("for chunk in ")
    if loop:
        joined = f'{head}print(*{stream.partition(chr(10))[0].removesuffix(":")}, sep="\\n")'
    return "; ".join(filter(None, joined.splitlines()))


def _literal(value: Any) -> str:
    """The value as Python source in printable ASCII."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(name)}: {_literal(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return ascii(value)


def _text(value: str) -> str:
    return json.dumps(value) if value.isascii() and value.isprintable() else ascii(value)
