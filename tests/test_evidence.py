"""One whole run whose target betrays the key at every turn: what is left of it is safe, and can be judged again."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from conformance.cli import _guarded
from conformance.config.settings import settings
from conformance.recording import read
from conformance.reference import Reference, serve, server
from conformance.reference.messages import Portion
from conformance.report import outputs, results
from conformance.report.diff_formats import FORMATS
from conformance.run.launch import load_contract
from tests.test_report_page import Tree

CANARY = "sk-canary-/7f3A9b2C+d==x"
SECOND = "canary-query-5e1f&Z"
DERIVED = {"report.html", *outputs.MADE}


def forms(secret):
    """The ways in which a key is written down: as it is, escaped, URL-encoded, hex, base64 wherever it begins."""
    raw = secret.encode()
    yield from (secret, quote(secret, safe=""), "".join(f"%{byte:02x}" for byte in raw), raw.hex())
    yield from (json.dumps(secret)[1:-1].replace("/", "\\/"), "".join(f"\\u{byte:04x}" for byte in raw))
    for shift in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            whole = encode(bytes(shift) + raw).decode().rstrip("=")
            yield whole[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]


def leaks(data: bytes) -> list[str]:
    lowered = data.lower()
    return [form for key in (CANARY, SECOND) for form in forms(key) if form.lower().encode() in lowered]


def betrayal(response):
    """The response, with the keys in a header and at the beginning of each JSON text, cut in the middle of a key."""
    said = json.dumps([form for key in (CANARY, SECOND) for form in forms(key)]).encode()
    data = re.sub(
        rb"(^|\ndata: |^data: )\{(?=\")", rb'\1{"echo":' + said.replace(b"\\", rb"\\") + b",", response.content
    )
    middle = data.find(CANARY.encode()) + len(CANARY) // 2
    delay = response.portions[-1].delay if response.portions else 0.0
    portions = tuple(Portion(part, delay) for part in (data[:middle], data[middle:]) if part)
    headers = (*response.headers, ("x-echo", CANARY), ("x-echo-64", b64encode(CANARY.encode()).decode()))
    return replace(response, headers=headers, portions=portions)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run through the command line, and every other command on what it left."""
    folder = tmp_path_factory.mktemp("evidence")
    context = load_contract(settings("openai", {}))
    betrayed = []
    honest = server.respond

    def respond(provider, request):
        found = honest(provider, request)
        if found.status is None or not found.portions:
            return found
        betrayed.append(request)
        return betrayal(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CONFORMANCE_API_KEY", CANARY)
        patch.setenv("GITHUB_STEP_SUMMARY", str(folder / "step.md"))
        patch.setattr(server, "respond", respond)
        with serve(Reference(context, key=CANARY)) as base_url:
            where = ("--base-url", base_url, "--model", "reference", "--query", f"api_key={SECOND}")
            code = _guarded(["run", "openai", *where, "--out", "reports"], debug=True)
    return SimpleNamespace(folder=folder, code=code, betrayed=betrayed, target=folder / "reports" / "openai")


@pytest.fixture
def conformance(capsys, made, monkeypatch):
    monkeypatch.chdir(made.folder)
    monkeypatch.delenv("CONFORMANCE_API_KEY", raising=False)

    def call(*arguments):
        code = _guarded([str(one) for one in arguments], debug=True)
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("form", [*forms(CANARY), *forms(SECOND)])
def test_the_search_for_keys_finds_them_in_each_form(form):
    assert leaks(f"anything {form} anything".encode())
    assert leaks(f"ANYTHING {form.upper()}".encode())
    assert not leaks(form[:-3].encode() + b"xxx")


def test_keys_that_a_target_repeats_everywhere_are_in_no_file(made, conformance):
    assert len(made.betrayed) > 80
    recorded = (made.target / "exchanges.ndjson").read_bytes()
    assert recorded.count(b"x" * len(CANARY)) > 2 * len(made.betrayed)
    told = [conformance("report", "reports", "--har"), conformance("history", "reports")]
    told.append(conformance("audit", "openai", made.target / "exchanges.ndjson", "--out", "audited"))
    told += [conformance("diff", made.target, made.target, "--format", name) for name in FORMATS]
    told.append(conformance("audit", "openai", made.target / "traffic.har"))
    assert [one[0] for one in told[:2]] == [0, 0]
    files = [path for path in made.folder.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert names >= DERIVED | {
        "results.json",
        "exchanges.ndjson",
        "traffic.har",
        "index.html",
        "history.html",
        "step.md",
    }
    assert {path.name: found for path in files if (found := leaks(path.read_bytes()))} == {}
    assert not leaks(json.dumps(told).encode()) + leaks(repr(told).encode())
    assert not [path for path in files if leaks(os.fsencode(path))]


def test_the_audit_of_a_run_s_recording_is_the_run_again(made, conformance):
    code, out, err = conformance("audit", "openai", made.target / "exchanges.ndjson", "--out", "again")
    first, again = (results.checked(made.folder / name / "openai/results.json") for name in ("reports", "again"))
    assert code == made.code == first["exit_code"]
    for name in first.keys() - {"duration_s", "send"}:
        assert again[name] == first[name], name
    silent = [row["id"] for row in first["requirements"] if not row["examined"] and not row["observations"]]
    assert f"shows nothing about {len(silent)} of {len(first['requirements'])} requirements" in out
    assert all(f"  {name} (" in out for name in silent)
    assert err == ""


def test_an_audit_of_a_part_says_what_that_part_is_silent_about(made, conformance, tmp_path):
    lines = (made.target / "exchanges.ndjson").read_bytes().splitlines(keepends=True)
    part = tmp_path / "part.ndjson"
    part.write_bytes(b"".join(lines[:12]))
    code, out, _ = conformance("audit", "openai", part)
    assert code == 3
    number = int(re.search(r"shows nothing about (\d+) of", out).group(1))
    whole = conformance("audit", "openai", made.target / "exchanges.ndjson")[1]
    assert number > int(re.search(r"shows nothing about (\d+) of", whole).group(1))


# Drawn again


def report_of(path):
    """Our report as a reader sees it, wherever it is embedded: its rows and words, and nothing of pytest-html's."""
    html = path.read_text("utf-8")
    begin = html.index('<div class="cf" id="conformance">')
    return html[begin : html.index('<section class="legend"', begin)]


def timeless(path):
    """The whole page, pytest-html's own table included, but for when and how fast it was made."""
    changing = r"Report generated on [^<]*|tests? took [^<]*"
    return re.sub(changing, "", path.read_text("utf-8")).splitlines()


def test_a_report_is_rebuilt_from_results_and_recording(made, conformance, tmp_path):
    copytree(made.target, tmp_path / "openai")
    before = {path.name: path.read_bytes() for path in (tmp_path / "openai").iterdir()}
    for name in DERIVED:
        (tmp_path / "openai" / name).unlink()
    code, out, err = conformance("report", tmp_path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [str(tmp_path / "openai/report.html"), str(tmp_path / "index.html")]
    for name in {*outputs.MADE, "results.json", "exchanges.ndjson"}:
        assert (tmp_path / "openai" / name).read_bytes() == before[name], name
    assert report_of(tmp_path / "openai/report.html") == report_of(made.target / "report.html")
    assert timeless(tmp_path / "openai/report.html") == timeless(made.target / "report.html")
    assert "openai" in Tree((tmp_path / "index.html").read_text()).text


def test_one_target_can_be_rebuilt_and_the_index_beside_it_stays_right(made, conformance, tmp_path):
    copytree(made.target, tmp_path / "openai")
    assert conformance("report", tmp_path / "openai")[1].splitlines() == [str(tmp_path / "openai/report.html")]
    (tmp_path / "index.html").write_text("old")
    conformance("report", tmp_path / "openai", "--har")
    assert (tmp_path / "index.html").read_text() != "old"
    entries = json.loads((tmp_path / "openai/traffic.har").read_text())["log"]["entries"]
    assert len(entries) == read(tmp_path / "openai/exchanges.ndjson").footer["totals"]["attempts"]


def test_without_a_recording_the_report_says_where_the_bytes_would_be(made, conformance, tmp_path):
    copytree(made.target, tmp_path / "openai")
    (tmp_path / "openai/exchanges.ndjson").unlink()
    assert conformance("report", tmp_path)[0] == 0
    assert "Exchanges cited as evidence" not in (tmp_path / "openai/report.html").read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data.replace(b'"status":200', b'"status":500', 1), "or one before it, was changed"),
        (lambda data: data[: data.rindex(b'{"record":"footer"')], "was never closed"),
    ],
)
def test_a_recording_that_cannot_be_trusted_shows_no_bytes_and_is_told(made, conformance, tmp_path, change, says):
    copytree(made.target, tmp_path / "openai")
    path = tmp_path / "openai/exchanges.ndjson"
    path.write_bytes(change(path.read_bytes()))
    code, _, err = conformance("report", tmp_path)
    assert code == 2
    assert says in err
    assert "Exchanges cited as evidence" not in (tmp_path / "openai/report.html").read_text()


def test_a_recording_of_another_run_is_not_shown_as_this_one_s(made, conformance, tmp_path):
    copytree(made.target, tmp_path / "openai")
    path = tmp_path / "openai/results.json"
    path.write_text(path.read_text().replace(json.loads(path.read_text())["plan_sha256"], "d" * 64))
    code, _, err = conformance("report", tmp_path)
    assert code == 2
    assert "expected the plan dddddddddddd…" in err


def test_a_folder_without_results_is_told(conformance, tmp_path):
    code, _, err = conformance("report", tmp_path)
    assert code == 2
    assert "contains no results.json" in err
    (tmp_path / "a").mkdir()
    (tmp_path / "a/results.json").write_text("{}")
    code, _, err = conformance("report", tmp_path)
    assert code == 2
    assert "a/results.json: schema is null" in err
    assert Path(tmp_path / "index.html").exists()
