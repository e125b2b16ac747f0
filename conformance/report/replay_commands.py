"""A recorded request as a curl command, as a snippet for openai-python, and as `conformance send`.

Secrets are read from the environment. A body that is too long for a command is read from a file beside the report.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from conformance.model import Credential, RequestCase
from conformance.model.json_text import has_repeated_names
from conformance.model.redaction import is_secret, variable_name
from conformance.report.text import visible
from conformance.run import EMBEDDED

KEY: Final = "CONFORMANCE_API_KEY"
WRONG: Final = "wrong-key"
OPERATION: Final = "/completions"
"""The path that openai-python appends to its base URL."""
BODIES: Final = "bodies"
"""The folder of long request bodies, beside the report."""
FOREIGN: Final = "recorded"
"""The profile of traffic that this suite did not send."""
DEFAULT_OUT: Final = "reports"
LONGEST: Final = 6_000
"""The longest body, in bytes, that is put into a command."""
_AUTHORIZATION: Final = {
    Credential.KEY: f'"Authorization: Bearer ${KEY}"',
    Credential.LOWERCASE_SCHEME: f'"Authorization: bearer ${KEY}"',
    Credential.WRONG: f"'Authorization: Bearer {WRONG}'",
    Credential.CUT_SHORT: f'"Authorization: Bearer ${{{KEY}%?}}"',
    Credential.PROLONGED: f'"Authorization: Bearer ${{{KEY}}}x"',
    Credential.OTHER_CASE: f'"Authorization: Bearer $(printf %s "${KEY}" | tr A-Za-z a-zA-Z)"',
    Credential.EMPTY: "'Authorization: Bearer'",
    Credential.OTHER_SCHEME: f'"Authorization: Basic ${KEY}"',
    Credential.NO_SCHEME: f'"Authorization: ${KEY}"',
    Credential.TWICE: f"'Authorization: Bearer {WRONG}' -H \"Authorization: Bearer ${KEY}\"",
}
_SDK: Final = frozenset(
    {
        "model", "prompt", "best_of", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n",
        "presence_penalty", "seed", "stop", "stream", "stream_options", "suffix", "temperature", "top_p", "user",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Destination:
    """Where commands send a request, and what every request has besides its case: `target` of results.json.

    A None in `headers` or `query` is a secret value. `key_variable` is the environment variable of the key, empty where
    no key was sent. `folder` is the report's folder, as a command finds it.
    """

    base_url: str
    path: str
    headers: tuple[tuple[str, str | None], ...] = ()
    query: tuple[tuple[str, str | None], ...] = ()
    key_variable: str = KEY
    folder: str = ""

    @classmethod
    def of(cls, target: Mapping[str, Any], folder: str = "") -> Destination:
        """The destination that results.json describes."""
        headers, query = (
            tuple((name, value) for name, value in target.get(member, ())) for member in ("headers", "query")
        )
        return cls(target["base_url"], target["path"], headers, query, target.get("key_variable", KEY), folder)

    def url(self, case: RequestCase) -> str:
        """The address without the query."""
        return self.base_url.rstrip("/") + (case.path or self.path)

    def body_file(self, case: RequestCase) -> str:
        """The file of a body that is too long for a command."""
        return f"{self.folder.rstrip('/')}/{body_file(case)}" if self.folder else body_file(case)


def is_long(case: RequestCase) -> bool:
    """Whether the body is read from a file and not part of a command."""
    return len(case.content) > LONGEST


def body_file(case: RequestCase) -> str:
    """The file of a long body, from the folder of the report."""
    return f"{BODIES}/{re.sub(r'[^A-Za-z0-9.-]+', '-', case.id)}.body"


def curl(case: RequestCase, to: Destination) -> str:
    """The request as a shell command; bytes that cannot be quoted are piped from printf."""
    words = ["curl -sS" + ("N" if _streams(case) else "") + "i"]
    if case.method != "POST" or not case.content:
        words[0] += f" -X {shlex.quote(case.method)}"
    words[0] += f" {_address(case, to)}"
    words += [f"-H {field}" for field in _fields(case, to)]
    given = {name.lower() for name, _ in case.headers}
    words += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in case.headers]
    if case.content and "content-type" not in given:
        words.append("-H 'Content-Type:'")  # otherwise curl sends that of a form
    prefix = ""
    if is_long(case):
        words.append(f"--data-binary {shlex.quote('@' + to.body_file(case))}")
    elif case.content:
        text = _printable(case.content)
        if text is None:
            prefix = f"printf '{_octal(case.content)}' | "
            words.append("--data-binary @-")
        else:
            words.append(f"--data-raw {shlex.quote(text)}")
    return prefix + " \\\n  ".join(words)


def _address(case: RequestCase, to: Destination) -> str:
    """The quoted URL with its query; secret values come from the environment."""
    secret = {name: f"${{{variable_name(name)}}}" for name, value in to.query if value is None}
    query = "&".join(
        f"{quote(name, safe='')}={secret.get(name) or quote(value or '', safe='')}" for name, value in to.query
    )
    url = to.url(case) + (f"?{query}" if query else "")
    return _double_quoted(url, secret.values()) if secret else shlex.quote(url)


def _double_quoted(text: str, variables: Iterable[str]) -> str:
    """The text between double quotes, where a shell still expands these variables."""
    quoted = re.sub(r'([\\$`"])', r"\\\1", text)
    for variable in variables:
        quoted = quoted.replace("\\" + variable, variable)
    return f'"{quoted}"'


def _fields(case: RequestCase, to: Destination) -> Iterator[str]:
    """The quoted header fields that every request of a run has, with the credential of this one."""
    credential = case.credential
    if credential in _AUTHORIZATION and (to.key_variable or credential.refused):
        yield _AUTHORIZATION[credential].replace(KEY, to.key_variable or KEY)
    for name, value in to.headers:
        if value is not None:
            yield shlex.quote(f"{name}: {value}")
        elif credential is not Credential.NONE:
            secret = f"${{{variable_name(name)}}}"
            yield f"'{name}: {WRONG}'" if credential.refused else _double_quoted(f"{name}: {secret}", [secret])


def again(results: Mapping[str, Any], case: str) -> str:
    """The command that sends a case again to the same target; empty where no recording of ours holds the case."""
    provider, target = results["provider"], results["target"]
    if results["profile"] == FOREIGN:
        return ""
    words = ["conformance", "send", provider, case]
    if target["base_url"].startswith("http") and target.get("kind") != EMBEDDED:
        words += ["--base-url", target["base_url"], "--model", target["model"]]
    if target["name"] != provider:
        words += ["--name", target["name"]]
    if target.get("key_variable", KEY) not in {"", KEY}:
        words += ["--api-key-env", target["key_variable"]]
    found_by = results.get("send", {})
    for folder in found_by.get("specs", ()):
        words += ["--specs", folder]
    if found_by.get("out", DEFAULT_OUT) != DEFAULT_OUT:
        words += ["--out", found_by["out"]]
    return " ".join([visible(shlex.join(words)), *_added(target)])


def _added(target: Mapping[str, Any]) -> Iterator[str]:
    """The options for the header fields and query parameters of every request."""
    for option, member, separator in (("--header", "headers", ": "), ("--query", "query", "=")):
        for name, value in target.get(member, ()):
            secret = f"${{{variable_name(name)}}}"
            text = f"{name}{separator}{secret if value is None else value}"
            yield f"{option} {_double_quoted(text, [secret]) if value is None else shlex.quote(visible(text))}"
            if value is None and not is_secret(name):
                yield f"--credential {shlex.quote(visible(name))}"


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


def python(case: RequestCase, to: Destination) -> str:
    """The request with openai-python; empty where that client cannot send it."""
    body, url = case.body, to.url(case)
    media = [value for name, value in case.headers if name.lower() == "content-type"]
    others = [name for name, _ in case.headers if name.lower() != "content-type"]
    if (
        not isinstance(body, Mapping)
        or case.method != "POST"
        or case.credential not in _KEYS
        or not url.endswith(OPERATION)
        or not all(value.startswith("application/json") for value in media or [""])
        or others
        or has_repeated_names(case.content)
    ):
        return ""
    arguments = [f"base_url={_text(url.removesuffix(OPERATION))}", f"api_key={_key(case, to)}", "max_retries=0"]
    headers = [(name, WRONG if value is None and case.credential.refused else value) for name, value in to.headers]
    for argument, pairs in (("default_headers", headers), ("default_query", to.query)):
        members = ", ".join(f"{_text(name)}: {_value(name, value)}" for name, value in pairs)
        arguments += [f"{argument}={{{members}}}"] if members else []
    client = f"client = OpenAI({', '.join(arguments)})"
    try:
        call = _call_with_file(to.body_file(case)) if is_long(case) else _call(body)
    except RecursionError:  # nested too deeply to print
        return ""
    modules = [name for name in ("json", "os") if f"{name}." in client or (name == "json" and is_long(case))]
    imports = "".join(f"import {name}\n" for name in modules)
    return f"{imports}from openai import OpenAI\n\n{client}\n{call}\n"


_KEYS: Final = frozenset({Credential.KEY, Credential.WRONG})


def _key(case: RequestCase, to: Destination) -> str:
    """The key as Python source; the client demands one where the run had none."""
    if case.credential is Credential.WRONG:
        return repr(WRONG)
    return f'os.environ.get("{to.key_variable}", "none")' if to.key_variable else '"none"'


def _value(name: str, value: str | None) -> str:
    return f'os.environ["{variable_name(name)}"]' if value is None else _text(value)


def _call_with_file(path: str) -> str:
    return f'print(client.post("{OPERATION}", cast_to=object, body=json.load(open({_text(path)}))))'


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
    if snippet.startswith(("curl ", "printf ")):
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
