"""The ways in which a target can send a key back: none is kept, neither as it is nor so that it can be read again."""

from __future__ import annotations

import base64
import codecs
import gzip
import html
import json
import re
import zlib
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cli import _guarded
from conformance.config import targets
from conformance.config.settings import settings
from conformance.contract import load
from conformance.model.exchange import Attempt, Piece
from conformance.model.redaction import Redaction, without_userinfo
from conformance.model.secret_forms import CODINGS, LEAST_PART, is_common
from conformance.run import locked_run
from conformance.run.launch import target_from_settings
from conformance.send import Target

KEY = "sk-proj-A1b2+C3d4/E5f6_G7h8.J9k0"
PARTS = [KEY[at : at + LEAST_PART] for at in range(len(KEY) - LEAST_PART + 1)]
BARE = re.sub(r"[^A-Za-z0-9]", "", KEY)


def lines(text, width=9):
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def escaped(text, every=1):
    return "".join(f"\\u{ord(char):04x}" if at % every == 0 else char for at, char in enumerate(text))


def packed(text, wbits):
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(text.encode()) + packer.flush()


def b64(text):
    return base64.b64encode(text.encode()).decode()


def b32(text):
    return base64.b32encode(text.encode()).decode()


def hexed(text, separator=""):
    return text.encode().hex(separator) if separator else text.encode().hex()


IN_A_TEXT = {
    "as it is": (KEY, str),
    "upper case": (KEY.upper(), lambda text: text.swapcase()),
    "after Bearer": (f"Bearer {KEY}", str),
    "all escaped for JSON": (escaped(KEY), lambda text: json.loads(f'"{text}"')),
    "some characters escaped for JSON": (escaped(KEY, 4), lambda text: json.loads(f'"{text}"')),
    "as .NET escapes": (KEY.replace("+", "\\u002B"), lambda text: json.loads(f'"{text}"')),
    "slashes escaped": (KEY.replace("/", "\\/"), lambda text: json.loads(f'"{text}"')),
    "escaped as in Python": ("".join(f"\\x{ord(c):02x}" for c in KEY), lambda t: codecs.decode(t, "unicode_escape")),
    "escaped in octal": ("".join(f"\\{ord(c):03o}" for c in KEY), lambda t: codecs.decode(t, "unicode_escape")),
    "percent, as quoted": (quote(KEY, safe=""), unquote),
    "percent, every character": ("".join(f"%{ord(char):02x}" for char in KEY), unquote),
    "percent, some characters": (KEY.replace("-", "%2D"), unquote),
    "percent, twice": (quote(quote(KEY, safe=""), safe=""), lambda text: unquote(unquote(text))),
    "quoted-printable": ("".join(f"={ord(char):02X}" for char in KEY), lambda text: unquote(text.replace("=", "%"))),
    "entities, decimal": ("".join(f"&#{ord(char)};" for char in KEY), html.unescape),
    "entities, hexadecimal": ("".join(f"&#x{ord(char):x};" for char in KEY), html.unescape),
    "entities, some characters": (KEY.replace("-", "&#45;").replace("/", "&sol;"), html.unescape),
    "entities of percent": (quote(KEY, safe="").replace("%", "&#37;"), lambda text: unquote(html.unescape(text))),
    "hex": (hexed(KEY), lambda text: bytes.fromhex(text).decode()),
    "hex in capitals": (hexed(KEY).upper(), lambda text: bytes.fromhex(text).decode()),
    "hex with spaces": (hexed(KEY, " "), lambda text: bytes.fromhex(text).decode()),
    "hex with colons": (hexed(KEY, ":"), lambda text: bytes.fromhex(text.replace(":", "")).decode()),
    "hex numbers": (" ".join(f"0x{ord(c):02x}" for c in KEY), lambda t: "".join(chr(int(n, 16)) for n in t.split())),
    "decimal numbers": (" ".join(str(ord(char)) for char in KEY), lambda t: "".join(chr(int(n)) for n in t.split())),
    "base64": (b64(KEY), lambda text: base64.b64decode(text).decode("latin-1")),
    "base64, one byte later": (b64(f"a{KEY}"), lambda text: base64.b64decode(text).decode("latin-1")),
    "base64, two bytes later": (b64(f"ab{KEY}cd"), lambda text: base64.b64decode(text).decode("latin-1")),
    "base64 for URLs": (
        base64.urlsafe_b64encode(f"??>{KEY}".encode()).decode(),
        lambda text: base64.urlsafe_b64decode(text).decode("latin-1"),
    ),
    "base64 without padding": (b64(KEY).rstrip("="), lambda text: base64.b64decode(f"{text}==").decode("latin-1")),
    "base64 with line breaks": (lines(b64(KEY)), lambda text: base64.b64decode(text).decode("latin-1")),
    "base64 with escaped line breaks": (
        lines(b64(KEY)).replace("\n", "\\n"),
        lambda text: base64.b64decode(text.replace("\\n", "")).decode("latin-1"),
    ),
    "base64, twice": (
        b64(b64(f"x{KEY}")),
        lambda text: base64.b64decode(base64.b64decode(text) + b"==").decode("latin-1"),
    ),
    "base64 of hex": (b64(hexed(KEY)), lambda text: base64.b64decode(text).decode("latin-1")),
    "base64 of JSON": (b64(json.dumps({"key": KEY})), lambda text: base64.b64decode(text).decode("latin-1")),
    "base64 of gzip": (base64.b64encode(gzip.compress(KEY.encode())).decode(), str),
    "a token of three parts": (f"{b64('{}')}.{b64(json.dumps({'sub': KEY}))}.c2ln", str),
    "base32": (b32(KEY), lambda text: base64.b32decode(text).decode("latin-1")),
    "base32, three bytes later": (b32(f"abc{KEY}"), lambda text: base64.b32decode(text).decode("latin-1")),
    "base32 with line breaks": (lines(b32(KEY)), lambda t: base64.b32decode(t.replace("\n", "")).decode("latin-1")),
    "base32, in lower case": (b32(KEY).lower(), lambda text: base64.b32decode(text.upper()).decode("latin-1")),
    "base85": (base64.b85encode(KEY.encode()).decode(), lambda text: base64.b85decode(text).decode("latin-1")),
    "Ascii85": (base64.a85encode(KEY.encode()).decode(), lambda text: base64.a85decode(text).decode("latin-1")),
    "ROT13": (codecs.encode(KEY, "rot13"), lambda text: codecs.encode(text, "rot13")),
    "reversed": (KEY[::-1], lambda text: text[::-1]),
    "with spaces between": (" ".join(KEY), lambda text: text.replace(" ", "")),
    "with hyphens between": ("-".join(BARE), lambda text: text.replace("-", "")),
    "with line breaks": (lines(KEY), lambda text: text.replace("\n", "")),
    "UTF-16, big end first": (KEY.encode("utf-16-be").decode(), lambda text: text.replace("\0", "")),
    "UTF-16, escaped": ("".join(f"\\u0000{char}" for char in KEY), lambda text: text.replace("\\u0000", "")),
    "with zero bytes escaped as in Python": ("\\x00".join(KEY), lambda text: text.replace("\\x00", "")),
    "without its prefix": (KEY.removeprefix("sk-"), str),
    "its first sixteen characters": (KEY[:16], str),
    "its last sixteen characters": (KEY[-16:], str),
    "all but its last character": (KEY[:-1], str),
    "in a sentence": (f"Incorrect API key provided: {KEY}. You can find your key at https://a.example", str),
    "in the query of a link": (f"https://a.example/?key={quote(KEY, safe='')}&b=1", unquote),
}  # fmt: skip
"""Name -> what the target writes, and how it is read again. Where reading fails, nothing can be read again."""


def read_again(text, reader):
    try:
        return reader(text)
    except ValueError:
        return ""


def recovered(text):
    """The parts of the key that stand in a text, in either case or without punctuation."""
    bare = re.sub(r"[^A-Za-z0-9]", "", text).lower()
    return [part for part in PARTS if part.lower() in text.lower()] + [BARE for _ in "x" if BARE.lower() in bare]


def kept(*pieces, headers=(), error="", **options):
    attempt = Attempt(0.0, 200, tuple(headers), tuple(Piece(0.1, data) for data in pieces), error=error)
    return Redaction([KEY], **options).attempt(attempt)


def body(attempt):
    return b"".join(piece.data for piece in attempt.pieces)


@pytest.mark.parametrize("name", IN_A_TEXT)
@pytest.mark.parametrize("where", ["error", "text", "header", "message", "event"])
def test_a_key_is_masked_in_every_coding_and_nothing_else_is(name, where):
    written, reader = IN_A_TEXT[name]
    before, after = {
        "error": ('{"error":{"message":"no such key: ', ' here","code":401}}'),
        "text": ('{"id":"cmpl-8f14e45f","choices":[{"text":" ', ' it is","index":0}]}'),
        "event": ('data: {"choices":[{"text":" ', ' it is","index":0}]}\n\ndata: [DONE]\n\n'),
        "header": ("", ""),
        "message": ("ConnectError: ", " refused"),
    }[where]
    if where == "header":
        clean = kept(headers=[("x-request-id", "8f14e45f-ceea"), ("x-echo", written)]).headers
        assert clean[0] == ("x-request-id", "8f14e45f-ceea")
        masked = clean[1][1]
    elif where == "message":
        masked = kept(error=before + written + after).error
    else:
        masked = body(kept((before + written + after).encode())).decode()
    assert len(masked) == len(before + written + after)
    assert masked.startswith(before)
    assert masked.endswith(after)
    masked = masked[len(before) : len(masked) - len(after)]
    assert written not in masked
    assert not recovered(masked)
    assert not recovered(read_again(masked, reader))


def choice(text, index=0):
    return {"text": text, "index": index, "logprobs": None, "finish_reason": None}


def events(*chunks):
    return b"".join(b"data: %s\n\n" % json.dumps({"id": "c", "choices": chunk}).encode() for chunk in chunks)


def texts(data):
    """All texts that events or a body hold, by choice and in order."""
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in data.splitlines() if line.strip()]
    parts = [part for chunk in chunks for part in chunk["choices"]]
    by_choice = ["".join(part["text"] for part in parts if part["index"] == index) for index in range(4)]
    return ["".join(part["text"] for part in parts), *by_choice]


HALF = len(KEY) // 2
ASSEMBLED = {
    "two events": events([choice(KEY[:HALF])], [choice(KEY[HALF:])]),
    "one character an event": events(*([choice(char)] for char in KEY)),
    "escaped characters, one an event": events(*([choice("§")] for char in KEY)),
    "two choices of an event": events([choice(KEY[:HALF]), choice(KEY[HALF:], 1)]),
    "two choices of two events": events([choice(KEY[:HALF])], [choice(KEY[HALF:], 1)]),
    "choices that take turns": events(
        *([choice(char if turn == 0 else "b", turn)] for char in KEY for turn in range(2))
    ),
    "choices that take turns within an event": events(*([choice("b"), choice(char, 1)] for char in KEY)),
    "a body of two choices": json.dumps({"choices": [choice(KEY[:9]), choice(KEY[9:], 1)]}).encode(),
}
ASSEMBLED["escaped characters, one an event"] = b"".join(
    events([choice("§")]).replace(b"\\u00a7", b"\\u%04x" % ord(char)) for char in KEY
)


@pytest.mark.parametrize("name", ASSEMBLED)
def test_a_key_in_several_parts_is_masked_in_all_of_them(name):
    data = ASSEMBLED[name]
    assert any(KEY in text for text in texts(data)), "the target sends it"
    masked = body(kept(data))
    assert len(masked) == len(data)
    assert not any(recovered(text) for text in texts(masked))


def tokens_of(data):
    part = json.loads(data)["choices"][0]["logprobs"]
    numbers = [chr(number) for number in part.get("bytes", [])]
    return [
        "".join(part.get("tokens", [])),
        "".join(name for top in part.get("top_logprobs", []) for name in top),
        "".join(numbers),
    ]


@pytest.mark.parametrize(
    "logprobs",
    [
        {"tokens": [KEY[:7], KEY[7:]], "token_logprobs": [-1.5, -2.5]},
        {"tokens": list(KEY), "token_logprobs": [-1.5] * len(KEY)},
        {"tokens": ["a"], "top_logprobs": [{KEY[:7]: -1.5}, {KEY[7:]: -2.5}]},
        {"tokens": ["a"], "top_logprobs": [{char: -1.5} for char in KEY]},
        {"tokens": ["a"], "bytes": list(KEY.encode())},
    ],
)
def test_a_key_in_tokens_is_masked_and_the_reply_stays_json(logprobs):
    data = json.dumps({"choices": [{"text": "a", "index": 0, "logprobs": logprobs}]}).encode()
    assert KEY in tokens_of(data)
    masked = body(kept(data))
    assert len(masked) == len(data)
    assert not any(recovered(text) for text in tokens_of(masked))


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({"a": KEY[:HALF], "b": KEY[HALF:]}).encode(),
        json.dumps({"error": {"message": f"key {KEY[:HALF]}", "param": KEY[HALF:]}}).encode(),
        b"".join(b": %s\n\n" % char.encode() for char in KEY),
    ],
)
def test_a_key_in_two_fields_or_comments_is_masked(data):
    strings = re.findall(rb'"((?:[^"\\]|\\.)*)"(?!:)|^: (.)$', body(kept(data)), re.MULTILINE)
    assert not recovered(b"".join(first or second for first, second in strings).decode())


def test_a_key_in_two_header_fields_is_masked():
    clean = kept(headers=[("x-a", KEY[:HALF]), ("x-b", KEY[HALF:])]).headers
    assert not recovered("".join(value for _, value in clean))
    assert not recovered(kept(headers=[(KEY.replace("/", "-"), "1")]).headers[0][0])


REPLY = json.dumps({"error": {"message": f"no such key {KEY}"}})
GZIP, DEFLATE, RAW = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS


def inflated(data):
    """All that can be read of compressed data, however it is marked."""
    told = [data]
    for _ in range(3):
        for wbits in (zlib.MAX_WBITS | 32, RAW):
            with_rest = b""
            rest = told[-1]
            while rest:
                reader = zlib.decompressobj(wbits)
                try:
                    with_rest += reader.decompress(rest)
                except zlib.error:
                    break
                rest = reader.unused_data
            told.append(with_rest or told[-1])
    return b"\n".join(told).decode("latin-1")


@pytest.mark.parametrize(
    ("codings", "data"),
    [
        (["gzip"], packed(REPLY, GZIP)),
        (["x-gzip"], packed(REPLY, GZIP)),
        (["deflate"], packed(REPLY, DEFLATE)),
        (["deflate"], packed(REPLY, RAW)),
        (["gzip"], packed("{", GZIP) + packed(REPLY, GZIP)),
        (["gzip"], packed(REPLY, GZIP)[:-6]),
        (["gzip, gzip"], gzip.compress(packed(REPLY, GZIP))),
        (["gzip", "gzip"], gzip.compress(packed(REPLY, GZIP))),
        (["identity", "gzip"], packed(REPLY, GZIP)),
        ([], packed(REPLY, GZIP)),
        ([], packed(REPLY, DEFLATE)),
        ([], packed(REPLY, RAW)),
        (["br"], bytes(range(256)) * 2),
        ([], bytes(range(256)) * 2),
        (["gzip"], packed("{", GZIP) * 100 + packed(REPLY, GZIP)),
    ],
)
def test_a_key_in_a_compressed_body_is_masked_or_the_body_cut(codings, data):
    masked = body(kept(data, headers=[("content-encoding", value) for value in codings]))
    assert masked != data
    assert not recovered(inflated(masked))


def test_what_cannot_be_decoded_is_kept_on_demand():
    data = bytes(range(256)) * 2
    assert body(kept(data, keep_undecodable=True)) == data
    assert body(kept(data)) == data[:4] + b"\xff" * (len(data) - 4)


@pytest.mark.parametrize(
    "data", [b'{"text":"\xff\xfe"}', "Größe 😀 日本語".encode(), b"", b"\x00\x01", b'data: {"a":"\xf0\x9f"}']
)
def test_text_with_a_few_bad_bytes_is_kept_as_it_came(data):
    assert body(kept(data)) == data


@pytest.mark.parametrize("word", ["object", "create", "text_completion", "EMPTY", "none", "x", "", "my-local-key"])
def test_a_word_is_no_secret_for_it_would_change_what_replies_say(word):
    assert is_common(word)
    attempt = Attempt(0.0, 200, (), (Piece(0.1, b'{"object":"text_completion","create":"my-local-key EMPTY none x"}'),))
    assert Redaction([word]).attempt(attempt) == attempt


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("htp://user:KEY@h", "htp://…@h"),
        ("http://user:KEY@h:99999", "http://…@h:99999"),
        ("user:KEY@h", "…@h"),
        ("https://h/v1?key=KEY", "https://h/v1…"),
        ("https://h/v1#KEY", "https://h/v1…"),
        ("https://h:8443/v1", "https://h:8443/v1"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_key(url, shown, capsys):
    assert without_userinfo(url) == shown
    for arguments in (("run", "openai", "--base-url", url, "--model", "m"), ("config", "openai", "--base-url", url)):
        _guarded(list(arguments), debug=False)
        told = capsys.readouterr()
        assert "KEY" not in (told.out + told.err).replace("API_KEY", "")


def test_a_value_from_the_environment_is_secret_whatever_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HX", "qwerty-12345-uiop")
    monkeypatch.setenv("SIG", "asdfgh-67890-jkl")
    (tmp_path / "conformance.toml").write_text(
        '[defaults]\nprovider = "openai"\nheaders = {"x-auth" = {env = "HX"}}\n'
        '[[target]]\nname = "a"\nbase_url = "https://h/v1"\nmodel = "m"\ncredentials = ["x-other"]\n'
        'query = {"code" = {env = "SIG"}}\n'
    )
    (entry,) = targets.read(tmp_path / "conformance.toml").entries
    for flags in ({}, {"credential": ("x-third",)}):
        chosen = settings("openai", targets.merged(entry, flags))
        target = target_from_settings(chosen, load("openai"))
        assert {"qwerty-12345-uiop", "asdfgh-67890-jkl"} <= set(target.secrets)
        assert locked_run.locked_pairs(target.headers, target.credentials) == [["x-auth", "(secret)"]]
        assert locked_run.locked_pairs(target.query, target.credentials) == [["code", "(secret)"]]


def test_a_key_that_is_a_word_is_named_since_it_is_not_masked():
    headers = (("X-Api-Key", "create"), ("X-Auth", "Bearer 8f14e45fceea167a"))
    assert Target("https://h/v1", "/", key="object", headers=headers).common_secrets == ("the key", "X-Api-Key")
    assert Target("https://h/v1", "/", key="EMPTY").common_secrets == ()


@given(st.lists(st.sampled_from([*r"\\\ux1074abfnrt/", '"', "\xff", "\0", "é"])).map("".join), st.binary())
def test_escapes_that_are_undone_kind_after_kind_are_undone_as_one_after_another(text, other):
    coding = CODINGS[0]
    for data in (text.encode("latin-1"), text.encode("utf-8"), other):
        assert coding.undone(data) == coding.unit.sub(coding.decode, data)
