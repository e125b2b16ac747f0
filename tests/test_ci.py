"""What CI systems are given works as it stands: the action's shell parts, the nightly script, the snippets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from conformance import contract
from conformance.cli import commands
from conformance.config import waivers
from conformance.model.exit_codes import ExitCode
from conformance.reference import serve
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
NIGHTLY = yaml.safe_load((ROOT / "docs" / "nightly.yml").read_text("utf-8"))
GUIDE = (ROOT / "docs" / "ci.md").read_text("utf-8")
STEPS = {step.get("name", step.get("uses")): step for step in ACTION["runs"]["steps"]}
ALL_STEPS = [*ACTION["runs"]["steps"], *NIGHTLY["jobs"]["judge"]["steps"]]
GOOD = """
[[target]]
name = "good"
provider = "openai"
select = ["usage.*"]
"""


@pytest.fixture
def machine(tmp_path):
    """A runner's environment: files for outputs and summary, `conformance` and a `gh` that notes what it is told."""
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / "conformance", f'exec "{sys.executable}" -m conformance "$@"')
    script(tools / "gh", f'printf "%s\\n" "$*" >> "{tmp_path}/gh.txt"\n[[ "$*" != *--edit-last* ]]')
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CONFORMANCE_"))}
    return {
        **clean,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output.txt"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_REPOSITORY": "a/b",
    }


def script(path, text):
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", "utf-8")
    path.chmod(0o755)


def bash(text, folder, env, **more):
    """Run as GitHub does: `shell: bash` is bash --noprofile --norc -eo pipefail."""
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(words, cwd=folder, env={**env, **more}, capture_output=True, text=True, timeout=120)


def judged(folder, env, **more):
    inputs = {"CONFIG": "conformance.toml", "PROVIDER": "", "ARGUMENTS": "", "OUT": "reports", **more}
    return bash(STEPS["Judge"]["run"], folder, env, **inputs)


def faulty():
    fault = FAULTS["total_is_one_too_many_when_plain"]
    return serve(altered_reference(contract.load("openai"), models=("reference",), faults=(fault,)))


# The action


def test_each_step_is_named_and_takes_what_users_say_from_the_environment_only():
    for step in ALL_STEPS:
        assert ("run" in step) != ("uses" in step)
        assert "${{" not in step.get("run", ""), "text from outside must not become part of a script"
    for step in ACTION["runs"]["steps"]:
        assert "uses" in step or step["shell"] == "bash"
        for value in step.get("env", {}).values():
            assert re.fullmatch(r"\$\{\{ [\w.-]+ \}\}", value)


def test_each_input_is_described_and_used_and_each_that_is_used_is_there():
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])
    assert all(one["description"] and isinstance(one["default"], str) for one in ACTION["inputs"].values())
    for name in re.findall(r"steps\.(\w+)\.outputs", json.dumps(ACTION)):
        assert any(step.get("id") == name for step in ACTION["runs"]["steps"])


def test_each_action_of_others_is_pinned_to_a_version():
    for step in ALL_STEPS:
        assert re.search(r"@v\d", step.get("uses", "@v1"))


@pytest.mark.parametrize("text", [*(step["run"] for step in ALL_STEPS if "run" in step),
                                  (ROOT / "docs" / "nightly.sh").read_text("utf-8"),
                                  *re.findall(r"^```bash\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)])  # fmt: skip
def test_each_script_is_one(text):
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_gate_judges_writes_the_summary_and_hands_on_the_code(tmp_path, machine):
    (tmp_path / "conformance.toml").write_text(GOOD, "utf-8")
    done = judged(tmp_path, machine)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output.txt").read_text() == "exit-code=0\n"
    assert (tmp_path / "summary.md").read_text("utf-8").count("## good: the embedded reference conforms") == 1
    assert (tmp_path / "reports" / "good" / "report.html").exists()


def test_a_broken_promise_does_not_stop_the_upload_and_fails_at_the_end(tmp_path, machine):
    with faulty() as address:
        lines = f"--base-url={address}\n--model=reference\n\n--select=usage.*"
        done = judged(tmp_path, machine, PROVIDER="openai", ARGUMENTS=lines)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output.txt").read_text() == "exit-code=1\n"
    assert "does not conform" in (tmp_path / "summary.md").read_text("utf-8")
    gate = bash(STEPS["Gate"]["run"], tmp_path, machine, CODE="1")
    assert (gate.returncode, "::error title=Conformance::a MUST is broken" in gate.stdout) == (1, True)


def test_what_a_target_says_is_no_command_to_the_runner(tmp_path, machine):
    (tmp_path / "conformance.toml").write_text(GOOD, "utf-8")
    tokens = set()
    for _ in range(2):
        first, *between, last = judged(tmp_path, machine).stdout.splitlines()
        (token,) = re.findall(r"^::stop-commands::([0-9a-f]{32})$", first)
        assert (last, token in "".join(between)) == (f"::{token}::", False)
        assert any("good: The embedded reference conforms" in line for line in between)
        tokens.add(token)
    assert len(tokens) == 2


def test_an_argument_is_an_argument_whatever_stands_in_it(tmp_path, machine):
    (tmp_path / "conformance.toml").write_text(GOOD, "utf-8")
    done = judged(tmp_path, machine, ARGUMENTS="--claim=no $(touch owned) `touch owned`; touch owned")
    assert (tmp_path / "output.txt").exists(), done.stderr
    assert not (tmp_path / "owned").exists()


def test_a_gate_without_a_file_is_misuse(tmp_path, machine):
    done = judged(tmp_path, machine)
    assert (done.returncode, (tmp_path / "output.txt").read_text()) == (0, "exit-code=2\n")
    assert "conformance.toml does not exist" in done.stderr


@pytest.mark.parametrize("code", ExitCode)
def test_the_gate_ends_with_the_code_that_came(tmp_path, machine, code):
    done = bash(STEPS["Gate"]["run"], tmp_path, machine, CODE=str(code))
    assert done.returncode == code
    assert ("::error" in done.stdout) == (code != ExitCode.CONFORMANT)


def test_a_gate_that_never_judged_is_not_green(tmp_path, machine):
    assert bash(STEPS["Gate"]["run"], tmp_path, machine, CODE="").returncode == ExitCode.SUITE_FAULT


def test_the_comment_replaces_the_last_one_or_is_the_first_and_fits(tmp_path, machine):
    reports = tmp_path / "reports" / "a"
    reports.mkdir(parents=True)
    began(machine)
    (reports / "summary.md").write_text("x" * 100_000, "utf-8")
    (reports.parent / "summary.md").write_text("## Conformance\n", "utf-8")
    done = bash(STEPS["Comment"]["run"], tmp_path, machine, OUT="reports", NUMBER="7")
    assert done.returncode == 0, done.stderr
    first, second = (tmp_path / "gh.txt").read_text().splitlines()
    assert first.startswith("pr comment 7 --repo a/b --edit-last --body-file ")
    assert second.startswith("pr comment 7 --repo a/b --body-file ")
    told = Path(second.partition("--body-file ")[2]).read_text("utf-8")
    assert (told.startswith("## Conformance\n"), len(told)) == (True, 60_000)


def began(machine):
    """The step Judge has begun, a second ago."""
    stamp = Path(machine["RUNNER_TEMP"]) / "conformance-began"
    stamp.write_text("")
    os.utime(stamp, (time.time() - 1,) * 2)


def test_what_the_checkout_brought_is_not_commented(tmp_path, machine):
    for name in ("old", "evil"):
        (tmp_path / "reports" / name).mkdir(parents=True)
    (tmp_path / "secret").write_text("GH_TOKEN=abc")
    (tmp_path / "reports" / "old" / "summary.md").write_text("Conforms, says the checkout")
    os.utime(tmp_path / "reports" / "old" / "summary.md", (1, 1))
    began(machine)
    (tmp_path / "reports" / "evil" / "summary.md").symlink_to(tmp_path / "secret")
    assert bash(STEPS["Comment"]["run"], tmp_path, machine, OUT="reports", NUMBER="7").returncode == 0
    assert not (tmp_path / "gh.txt").exists()
    (tmp_path / "reports" / "summary.md").write_text("## Conformance\n")
    assert bash(STEPS["Comment"]["run"], tmp_path, machine, OUT="reports", NUMBER="7").returncode == 0
    posted = (tmp_path / "gh.txt").read_text().splitlines()[-1].partition("--body-file ")[2]
    assert Path(posted).read_text() == "## Conformance\n"


def test_without_a_summary_nothing_is_commented(tmp_path, machine):
    assert bash(STEPS["Comment"]["run"], tmp_path, machine, OUT="reports", NUMBER="7").returncode == 0
    assert not (tmp_path / "gh.txt").exists()


# Every night


def test_two_nights_are_compared_and_only_what_is_newly_broken_fails(tmp_path, machine):
    path = tmp_path / "conformance.toml"
    script = (ROOT / "docs" / "nightly.sh").read_text("utf-8")
    path.write_text(GOOD, "utf-8")
    judged(tmp_path, machine)
    first = bash(script, tmp_path, machine)
    assert first.returncode == 0, first.stdout + first.stderr
    nights = list((tmp_path / "history").iterdir())
    assert len(nights) == 1
    nights[0].rename(tmp_path / "history" / "2000-01-01T00-00-00Z")
    with faulty() as address:
        path.write_text(f'{GOOD}base_url = "{address}"\nmodel = "reference"\n', "utf-8")
        judged(tmp_path, machine)
        second = bash(script, tmp_path, machine)
    assert second.returncode == 1, second.stdout + second.stderr
    assert "newly broken" in (tmp_path / "reports" / "changes.md").read_text("utf-8")
    assert "newly broken" in (tmp_path / "summary.md").read_text("utf-8")
    assert (tmp_path / "reports" / "history.html").stat().st_size > 1000
    (night,) = (one for one in (tmp_path / "history").iterdir() if not one.name.startswith("2000"))
    night.rename(tmp_path / "history" / "2000-01-02T00-00-00Z")
    third = bash(script, tmp_path, machine)
    assert third.returncode == 0, "what was broken the night before is not newly broken"


def test_a_night_keeps_the_drawn_bodies_that_failed_and_the_next_begins_with_them(tmp_path, machine):
    (tmp_path / "conformance.toml").write_text(GOOD, "utf-8")
    judged(tmp_path, machine)
    failures = tmp_path / "reports" / "good" / "drawn-failures.json"
    failures.write_text("{}", "utf-8")
    done = bash((ROOT / "docs" / "nightly.sh").read_text("utf-8"), tmp_path, machine)
    assert done.returncode == 0, done.stdout + done.stderr
    failures.unlink()
    (step,) = (one for one in NIGHTLY["jobs"]["judge"]["steps"] if "failures" in one.get("run", ""))
    assert bash(step["run"], tmp_path, machine).returncode == 0
    assert failures.read_text("utf-8") == "{}"


def test_each_night_has_a_seed_of_its_own():
    (judge,) = (one for one in NIGHTLY["jobs"]["judge"]["steps"] if "arguments" in one.get("with", {}))
    assert "--seed=${{ github.run_number }}" in judge["with"]["arguments"].splitlines()


def test_a_night_without_results_fails(tmp_path, machine):
    (tmp_path / "reports").mkdir()
    assert bash((ROOT / "docs" / "nightly.sh").read_text("utf-8"), tmp_path, machine).returncode != 0


def test_the_nightly_goes_on_to_compare_after_a_red_gate():
    steps = NIGHTLY["jobs"]["judge"]["steps"]
    after = steps[[step.get("name") for step in steps].index("Judge all targets") + 1 :]
    assert after
    assert all("!cancelled()" in step["if"] for step in after)


# The guide


def test_the_snippets_are_what_they_say_they_are(tmp_path):
    for text in re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL):
        assert isinstance(yaml.safe_load(text), dict)
    (text,) = re.findall(r"^```toml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    (tmp_path / "waivers.toml").write_text(text, "utf-8")
    (found,) = waivers.read(tmp_path / "waivers.toml")
    assert found.expires > datetime(2026, 1, 1, tzinfo=UTC).date()


def test_each_command_of_the_guide_is_there():
    told = re.findall(r"(?:^|[\s`/])conformance (\w+)", GUIDE + (ROOT / "docs" / "nightly.sh").read_text("utf-8"))
    known = set(commands(None).commands)
    assert {"run", "init", "config", "waivers", "diff", "history"} <= set(told)
    assert set(told) <= known, set(told) - known
