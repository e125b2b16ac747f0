"""The command line says what it found in its output, and what went wrong in one line and its exit code."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import cli, recording
from conformance.cli import COMMANDS, _guarded
from conformance.cli.run import most_severe
from conformance.config.settings import OPTIONS, SettingsError, settings
from conformance.judge.fixtures import case
from conformance.model import Phase
from conformance.plan import Plan, plan_context
from conformance.plan.learned_target import LearnedTarget
from tests import hostile
from tests.hostile import says, serving

KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("CONFORMANCE_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def planned(monkeypatch):
    """A plan of three requests."""

    def phases(contract, checks, options):
        bodies = ({"model": options.model, "max_tokens": 2, "seed": index} for index in range(3))
        cases = (replace(case(body), id=f"scenario/a{body['seed']}", origin="scenario") for body in bodies)
        yield Phase("only", tuple(cases))

    monkeypatch.setattr("conformance.plan.phases", phases)
    monkeypatch.setattr(
        "conformance.plan.plan",
        lambda contract, checks, options: Plan(
            plan_context(contract, checks, options), tuple(phases(contract, checks, options)), (), LearnedTarget()
        ),
    )


# Asking


def test_help_is_quick_and_names_each_command():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-c", "from conformance.cli import main; main()", "--help"], capture_output=True, text=True
    )
    # of the processor: what else a machine does is no fault of ours
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 0.6  # 0.05 s
    assert done.returncode == 0
    for name in ("run", "plan", "list", "explain", "send", "serve"):
        assert f"  {name} " in done.stdout
    assert "3 incomplete" in " ".join(done.stdout.split())


def test_help_does_not_import_what_it_does_not_need():
    code = "import sys; from conformance.cli import commands; commands(None); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert not {"httpx", "yaml", "jsonschema", "starlette", "pytest", "hypothesis"} & set(modules)


def test_each_module_is_a_command_or_shared_by_commands():
    shared = {
        "options",
        "selected_targets",
        "target_processes",
        "pytest_session",
        "progress",
        "certificates",
        "printing",
    }
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    assert modules - {"__init__"} - shared == {name.replace("-", "_") for name in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(conformance, command):
    code, out, _ = conformance(command, "--help")
    assert code == 0
    assert out.startswith(f"Usage: conformance {command}")


def test_requirements_are_listed_and_narrowed(conformance):
    code, out, err = conformance("list", "openai", "--select", "usage.*", "--level", "MUST")
    assert code == 0
    assert out
    assert all(line.startswith("usage.") and " MUST " in line for line in out.splitlines())
    assert "requirements of" in err


def test_a_requirement_is_explained_with_both_examples(conformance):
    _, listed, _ = conformance("list", "openai", "--select", "usage.*")
    name = listed.split()[0]
    code, out, _ = conformance("explain", name)
    assert code == 0
    for part in (f"### {name}", "Why it matters", "How to fix a server", "**Good example", "**Bad example"):
        assert part in out


def test_the_input_model_is_listed(conformance):
    code, out, _ = conformance("plan", "nebius", "--classes")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["input", "class", "expected", "gate", "full"]
    column = lines[0].index("expected")
    assert {line[column:].split()[0] for line in lines[1:-1]} == {"valid", "invalid", "unspecified"}
    (row,) = [line for line in lines if line.startswith("echo ") and " 1 for true " in line]
    assert row.split()[-1].startswith("invalid/")
    assert lines[-1].startswith("classes: gate ")


def test_two_lists_at_once_are_a_mistake(conformance):
    code, _, err = conformance("plan", "nebius", "--classes", "--cases")
    assert code == 2
    assert "expected one of them" in err


def test_faults_are_listed(conformance):
    code, out, _ = conformance("serve", "openai", "--faults")
    assert code == 0
    assert len(out.splitlines()) >= 15


def test_a_plan_is_shown_without_sending(conformance):
    code, out, err = conformance("plan", "openai", "--price-out", "1000000", "--requests-per-minute", "10")
    assert code == 0, err
    total = int(re.search(r"(\d+)  requests in \d+ phases", out).group(1))
    assert 50 < total <= 120
    assert sum(int(one) for one in re.findall(r"^ +(\d+)  [a-z]+$", out, re.MULTILINE)) == total
    assert "at most 120 with retries" in out
    planned, most = (int(one.replace(",", "")) for one in re.findall(r"([\d,]+) completion tokens", out))
    assert planned <= most == 2000
    assert f"at most {most:.4f} USD at these prices" in out
    assert f"{total / 10:.1f} minutes" in out
    assert re.search(r"pairs of values covered: [\d,]+ of [\d,]+ \(\d+\.\d%\)", out)
    assert conformance("plan", "openai", "--price-out", "1000000", "--requests-per-minute", "10")[1] == out


def test_the_cases_of_a_plan_are_listed(conformance, planned):
    code, out, _ = conformance("plan", "openai", "--cases")
    assert code == 0
    assert out == "scenario/a0  valid\nscenario/a1  valid\nscenario/a2  valid\n"


# Wrong usage: one line, exit code 2


@pytest.mark.parametrize(
    ("arguments", "says_so"),
    [
        (["nonsense"], "No such command"),
        (["run"], "give a PROVIDER"),
        (["run", "nobody"], "there is no provider 'nobody'; expected one of"),
        (["list", "../../etc"], "there is no provider"),
        (["explain", "usage.nothing"], "there is no requirement 'usage.nothing'"),
        (["run", "openai", "--base-url", "http://127.0.0.1:9"], "no model is named"),
        (["run", "openai", "--base-url", "localhost:9", "--model", "m"], "expected http://"),
        (["run", "openai", "--base-url", "http://u:p@h", "--model", "m"], "put the key into the environment"),
        (["run", "openai", "--base-url", "http://h", "--model", "m", "--api-key-env", "NO_SUCH"], "NO_SUCH is not set"),
        (["run", "openai", "--model", "m", "--base-url", ""], "an empty --base-url, --model is given"),
        (["run", "openai", "--model", "m"], "--model is given, but no base URL of a target"),
        (["run", "all", "--header", "x-route: a"], "--header is given, but no base URL"),
        (["run", "openai", "--api-key-env", "HOME"], "--api-key-env is given, but no base URL"),
        (["send", "openai", "scenario/a0", "--model", "m"], "--model is given, but no base URL"),
        (["run", "openai", "--header", KEY], "expected 'Name: value'"),
        (["run", "openai", "--query", KEY], "expected name=value"),
        (["run", "openai", "--max-requests", "0"], "expected a number above 0"),
        (["run", "openai", "--max-tokens", "many"], "not a valid integer"),
        (["run", "openai", "--profile", "huge"], "huge"),
        (["run", "openai", "--select", "nothing.*"], "matches none of"),
        (["run", "openai", "--name", "../x"], "because it names a folder"),
        (["run", "all", "--name", "x"], "--name needs one provider"),
        (["run", "openai", "--out", "/proc/nowhere"], "/proc/nowhere"),
        (["serve", "openai", "--fault", "nonsense"], "there is no fault"),
        (["serve", "openai", "--port", "99999"], "99999"),
        (["send", "openai", "nothing/0"], "there is no case 'nothing/0'"),
        (
            ["send", "openai", "nothing/0", "--base-url", "http://127.0.0.1:9", "--model", "m x", "--seed", "3"],
            "`conformance plan openai --cases --model 'm x' --seed 3` shows ids",
        ),
        (["drift", "openai", "--against", "none.yaml"], "none.yaml"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(conformance, planned, arguments, says_so):
    code, out, err = conformance(*arguments)
    assert code == 2, err
    assert says_so in err
    assert err.count("\n") == 1
    assert err.startswith("conformance: ")
    assert KEY not in out + err


def test_a_key_with_a_line_break_is_not_printed(conformance, planned, monkeypatch):
    monkeypatch.setenv("MY_KEY", f"{KEY}\n{KEY}")
    code, out, err = conformance("run", "openai", "--base-url", "http://h", "--model", "m", "--api-key-env", "MY_KEY")
    assert code == 2
    assert KEY not in out + err


def test_a_port_that_is_taken_is_told_in_one_line(conformance):
    with serving(says()) as server:
        code, _, err = conformance("serve", "openai", "--port", server.base_url.rpartition(":")[2])
    assert code == 2
    assert "choose another --host or --port" in err


def test_a_fault_of_the_suite_is_one_line_and_exit_code_4(conformance, monkeypatch):
    def broken(*_, **__):
        raise ExceptionGroup("several", [RuntimeError("first line\nsecond line")])

    monkeypatch.setattr("conformance.run.launch.load_contract", broken)
    code, _, err = conformance("list", "openai")
    assert code == 4
    assert err == "conformance: RuntimeError: first line; internal error of the suite: --debug shows where\n"
    with pytest.raises(ExceptionGroup):
        _guarded(["list", "openai"], debug=True)


def test_an_interrupt_is_exit_code_3(conformance, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.run.launch.load_contract", interrupted)
    assert conformance("list", "openai")[0] == 3


def test_output_that_nobody_reads_is_not_green():
    code = "from conformance.cli import main; main(['list', 'openai'])"
    listing = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listing.stdout is not None
    assert listing.stderr is not None
    listing.stdout.close()
    err = listing.stderr.read()
    assert listing.wait(20) == 3
    assert b"Traceback" not in err


# Running


def test_a_run_on_the_embedded_reference_needs_no_key_and_leaves_its_recording(conformance, planned):
    code, out, err = conformance("run", "openai", "--seed", "5")
    assert code in {0, 3}, out + err
    results = json.loads(Path("reports/openai/results.json").read_text())
    assert results["seed"] == 5
    assert results["totals"]["requests"] == 3
    found = recording.read(Path("reports/openai/exchanges.ndjson"))
    assert {x.status for x in found.exchanges} == {200}
    assert "openai:" in out


def test_an_empty_variable_for_the_base_url_does_not_mean_the_embedded_reference(conformance, planned, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_BASE_URL", "")
    code, out, err = conformance("run", "openai")
    assert (code, out) == (2, "")
    assert "an empty CONFORMANCE_BASE_URL is given" in err
    assert not Path("reports").exists()


def test_each_output_says_that_the_embedded_reference_was_judged(conformance, planned):
    _, out, _ = conformance("run", "openai")
    folder = Path("reports/openai")
    assert "openai: The embedded reference" in out
    for name in ("report.html", "summary.md", "badge.svg", "badge.json", "results.json", "junit.xml", "ctrf.json"):
        assert "embedded reference" in (folder / name).read_text("utf-8"), name
    assert "The embedded reference keeps " in Path("reports/index.html").read_text("utf-8")
    assert recording.read(folder / "exchanges.ndjson").header["target"]["kind"] == "embedded reference"


def test_the_user_s_key_is_not_sent_to_the_embedded_reference(conformance, planned, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_API_KEY", KEY)
    sent = []
    from conformance.send.target import Target

    monkeypatch.setattr(Target, "__post_init__", lambda self: sent.append(self.key))
    conformance("run", "openai")
    assert sent
    assert KEY not in sent


def test_the_key_goes_to_the_target_and_into_no_file(conformance, planned, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_KEY", KEY)
    echo = b'{"error":{"message":"no key like ' + KEY.encode() + b'"}}'
    with serving(hostile.in_turn(says(), says("401 No", body=echo))) as server:
        code, out, err = conformance(
            "run",
            "openai",
            "--base-url",
            server.base_url,
            "--model",
            "m",
            "--api-key-env",
            "MY_KEY",
            "--header",
            "X-A: b",
        )
    assert code in {1, 3}
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert server.requests[0].headers["x-a"] == "b"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert all(KEY.encode() not in path.read_bytes() for path in files)
    assert KEY not in out + err


@pytest.mark.parametrize(
    ("answer", "says_so"),
    [
        (says("401 Unauthorized", body=b"{}"), "and no key was sent"),
        (says("200 OK", body=b"<html>", media="text/html"), "with HTML"),
    ],
)
def test_a_target_that_is_no_api_is_exit_code_3_with_a_partial_report(conformance, planned, answer, says_so):
    with serving(answer) as server:
        code, out, _ = conformance("run", "openai", "--base-url", server.base_url, "--model", "m")
    assert code == 3
    assert says_so in out
    assert json.loads(Path("reports/openai/results.json").read_text())["incomplete"]


def test_the_most_severe_exit_code_of_several_runs_counts():
    assert most_severe([0, 0]) == 0
    assert most_severe([0, 3]) == 3
    assert most_severe([3, 1, 4]) == 1
    assert most_severe([3, 4, 0]) == 4


# Sending again


def test_a_case_of_the_last_run_is_sent_again_and_shown_whole(conformance, planned, monkeypatch):
    conformance("run", "openai")
    monkeypatch.setattr("conformance.plan.plan", None)
    code, out, err = conformance("send", "openai", "scenario/a1")
    assert code == 0, out + err
    assert "> POST http://127.0.0.1:" in out
    assert "> authorization: Bearer xxxx" in out
    assert '"seed":1' in out
    assert "< HTTP/1.1 200" in out
    assert '"object":"text_completion"' in out.replace(" ", "")
    assert "requirements were examined" in out


def test_a_broken_case_shows_what_it_breaks(conformance, planned):
    wrong = hostile.BODY.replace(b'"total_tokens":5', b'"total_tokens":9').replace(b" 4", "\u202e".encode())
    with serving(says(body=wrong)) as server:
        code, out, _ = conformance("send", "openai", "scenario/a0", "--base-url", server.base_url, "--model", "m")
    assert code == 1
    assert "total_tokens is 9" in out
    assert "\u202e" not in out


def test_a_case_that_gets_no_response_is_incomplete(conformance, planned):
    code, out, err = conformance("send", "openai", "scenario/a0", "--base-url", "http://127.0.0.1:9", "--model", "m")
    assert code == 3
    assert "broken" not in out
    assert "no response, so nothing could be judged" in err


def test_a_target_that_is_down_is_an_error_in_every_file(conformance, planned):
    code, out, _ = conformance("run", "openai", "--base-url", "http://127.0.0.1:9", "--model", "m")
    assert code == 3
    assert out.startswith("openai: Not judged. http://127.0.0.1:9 gave no reply")
    assert out.count("gave no reply") == 1
    folder = Path("reports/openai")
    summary = (folder / "summary.md").read_text("utf-8")
    assert "were not sent" not in summary
    assert summary.count("gave no reply") == 1
    assert "<h1>Not judged</h1>" in (folder / "report.html").read_text("utf-8")
    assert 'errors="1"' in (folder / "junit.xml").read_text("utf-8")
    tests = json.loads((folder / "ctrf.json").read_text("utf-8"))["results"]["tests"]
    assert [test["name"] for test in tests if test["status"] == "failed"] == ["target"]
    assert "Not judged" in Path("reports/index.html").read_text("utf-8")


def test_an_unclear_or_unknown_case_is_told(conformance, planned):
    assert "3 cases begin with 'scenario/'" in conformance("send", "openai", "scenario/")[2]
    assert "--cases" in conformance("send", "openai", "x")[2]


# Settings


def test_settings_have_the_defaults_of_the_table():
    found = settings("p", {})
    assert (found.profile, found.concurrency, found.target, str(found.folder)) == ("gate", 8, "p", "reports/p")
    assert found.budget.requests == 120
    assert settings("p", {"max_requests": 7}).budget.requests == 7
    assert settings("p", {"max_requests": 7}).budget.completion_tokens == 2000
    assert settings("p", {"profile": "full"}).budget.requests == 1_000
    assert len({one.name for one in OPTIONS}) == len(OPTIONS)


def test_headers_and_queries_are_split_once():
    found = settings("p", {"header": ("X-A: b: c",), "query": ("a=b=c",)})
    assert found.headers == (("X-A", "b: c"),)
    assert found.query == (("a", "b=c"),)
    assert "b=c" not in repr(found)


def test_a_key_variable_that_is_named_must_be_set(monkeypatch):
    with pytest.raises(SettingsError, match="NO_SUCH is not set"):
        _ = settings("p", {"api_key_env": "NO_SUCH"}).key
    assert settings("p", {}).key == ""
    monkeypatch.setenv("CONFORMANCE_API_KEY", f" {KEY}\n")
    assert settings("p", {}).key == KEY


# Interrupted


def started(*arguments):
    code = "from conformance.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_attempts(path, number):
    deadline = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b'"record":"attempt"') < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_the_middle_leaves_a_partial_report_and_exit_code_3(number):
    with serving(hostile.slow(0.15, says())) as server:
        running = started("run", "openai", "--base-url", server.base_url, "--model", "m", "--concurrency", "2")
        wait_for_attempts(Path("reports/openai/exchanges.ndjson"), 4)
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
    assert running.returncode in {1, 3}, out + err  # this target may have broken something by then
    assert "Traceback" not in out + err
    assert "interrupted before the end" in out
    results = json.loads(Path("reports/openai/results.json").read_text())
    assert "interrupted" in results["incomplete"][0]
    assert Path("reports/openai/report.html").stat().st_size > 10_000
    assert recording.read(Path("reports/openai/exchanges.ndjson")).footer is not None


def test_a_run_that_was_killed_goes_on_and_sends_nothing_twice():
    path = Path("reports/openai/exchanges.ndjson")
    with serving(hostile.slow(0.05, says())) as server:
        arguments = ("run", "openai", "--base-url", server.base_url, "--model", "m", "--concurrency", "2")
        running = started(*arguments)
        wait_for_attempts(path, 10)
        running.kill()
        running.communicate(timeout=30)
        before = recording.read(path)
        assert before.footer is None
        came = len(server.requests)
        resumed = started(*arguments, "--resume")
        out, err = resumed.communicate(timeout=60)
    assert "Traceback" not in out + err
    found = recording.read(path)
    assert found.footer is not None
    assert found.exchanges[: len(before.exchanges)] == before.exchanges
    attempts = sum(len(tried) for tried in found.attempts.values()) - len(before.lost)
    assert len(server.requests) - came == attempts - len(before.attempts)
    again = [x for x in found.exchanges if x.case.id in before.lost]
    assert again
    assert all([attempt.status for attempt in x.attempts] == [None, 200] for x in again)


@pytest.mark.parametrize(
    ("name", "text", "arguments"),
    [
        ("conformance.toml", "a = " + "[" * 100_000, ("run",)),
        ("x/results.json", '{"schema":' + "[" * 100_000, ("diff", "x", "x")),
        ("x/results.json", '{"schema":' + "[" * 100_000, ("report", "x")),
        ("x/results.json", '{"schema":' + "[" * 100_000, ("history", "x")),
        ("x.har", '{"log":' + "[" * 100_000, ("audit", "openai", "x.har")),
        ("p/p/openapi.yaml", "openapi: " + "[" * 100_000, ("list", "p", "--specs", "p")),
        ("p/p/openapi.yaml", "- " * 100_000, ("list", "p", "--specs", "p")),
    ],
)
def test_a_file_that_nests_beyond_reason_is_told_in_one_line(conformance, name, text, arguments):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, "utf-8")
    if name.endswith(".yaml"):
        Path(name).with_name("contract.yaml").write_text("provider: p", "utf-8")
    code, _, err = conformance(*arguments)
    assert (code, err.count("\n")) == (2, 1), err
    assert Path(name).name in err
