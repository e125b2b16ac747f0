"""Six targets, two nights: one target is broken and waived, the second night is killed in its middle and goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conformance import contract, recording
from conformance.cli import _guarded
from conformance.reference import serve
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS

ROOT = Path(__file__).parents[1]
FAULT = FAULTS["usage_chunk_repeats_a_choice"]
BROKEN = "usage.chunk.empty-choices"
PROVIDERS = ("openai", "nebius", "novita", "fireworks", "interactive")
TODAY = datetime.now(UTC).date()


def targets(address: str) -> str:
    references = "".join(f'[[target]]\nname = "{name}"\nprovider = "{name}"\n' for name in PROVIDERS)
    gateway = f'[[target]]\nname = "gateway"\nprovider = "novita"\nmodel = "m"\nbase_url = "{address}"\n'
    return f'at_once = 3\n[defaults]\nwaivers = "waivers.toml"\n{gateway}{references}'


def waiver(expires: object) -> str:
    return (
        f'[[waiver]]\nrequirement = "{BROKEN}"\ntarget = "gateway"\nreason = "the gateway repeats a choice"\n'
        f'owner = "ana"\nlink = "https://tracker.example.org/7"\nexpires = {expires}\n'
    )


def conformance(folder: Path, *words: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CONFORMANCE_", "GITHUB_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "conformance", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def results(folder: Path) -> dict[str, dict[str, object]]:
    return {path.parent.name: json.loads(path.read_text("utf-8")) for path in folder.glob("*/results.json")}


def until(met, seconds=60.0):
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.02)


def recorded(folder: Path) -> dict[str, int]:
    """How many attempts stand in each recording."""
    found = folder.glob("reports/*/exchanges.ndjson")
    return {path.parent.name: path.read_bytes().count(b'"record":"attempt"') for path in found}


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """What two nights said, by what they left; the second has an expired waiver."""
    folder = tmp_path_factory.mktemp("nights")
    with serve(altered_reference(contract.load("novita"), faults=(FAULT,), models=("m",))) as address:
        (folder / "conformance.toml").write_text(targets(address), "utf-8")
        (folder / "waivers.toml").write_text(waiver(TODAY + timedelta(days=1)), "utf-8")
        first = conformance(folder, "run")
        said, _ = first.communicate(timeout=240)
        shutil.copytree(folder / "reports", folder / "first")
        shutil.rmtree(folder / "reports")

        (folder / "waivers.toml").write_text(waiver(TODAY - timedelta(days=1)), "utf-8")
        killed = conformance(folder, "run")
        until(lambda: recorded(folder).get("gateway", 0) > 40)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=60)
        until(lambda: all(unlocked(path) for path in folder.glob("reports/*/exchanges.ndjson")))
        before = recorded(folder)
        second = conformance(folder, "run", "--resume")
        said_again, _ = second.communicate(timeout=240)
    return folder, (first.returncode, said), before, (second.returncode, said_again)


def unlocked(path: Path) -> bool:
    """Whether nobody writes to a recording any more."""
    try:
        recording.Recorder.resume(path, recording.read(path)).abandon()
    except recording.RecordingError:
        return False
    return True


def test_five_references_and_a_waived_target_conform(nights):
    folder, (code, said), _, _ = nights
    assert code == 0, said
    assert "1 of 1 target conforms; the embedded reference keeps 5 of 5 contracts" in said
    assert {name: found["exit_code"] for name, found in results(folder / "first").items()} == dict.fromkeys(
        (*PROVIDERS, "gateway"), 0
    )


def test_targets_end_when_the_run_that_began_them_is_killed_and_what_was_recorded_is_not_sent_again(nights):
    folder, _, before, _ = nights
    assert 40 < before["gateway"] < 114
    assert len(before) < 6
    after = recorded(folder)
    assert all(after[name] >= number for name, number in before.items())
    gateway = recording.read(folder / "reports" / "gateway" / "exchanges.ndjson")
    assert gateway.footer is not None
    whole = recording.read(folder / "first" / "gateway" / "exchanges.ndjson")
    assert {x.case.id for x in gateway.exchanges} >= {x.case.id for x in whole.exchanges if not x.case.repeats}


def test_a_killed_night_that_goes_on_has_the_verdicts_of_an_unbroken_one(nights):
    folder, _, _, (_, said) = nights
    first, second = results(folder / "first"), results(folder / "reports")
    assert first.keys() == second.keys(), said
    for name in first:
        outcomes = [{row["id"]: row["outcome"] for row in found[name]["requirements"]} for found in (first, second)]
        assert outcomes[0] == outcomes[1], name
        assert second[name]["incomplete"] == []


def test_an_expired_waiver_fails_the_night_with_a_line_that_says_so(nights):
    folder, _, _, (code, said) = nights
    assert code == 1, said
    assert f"the waiver of {BROKEN} for gateway (ana) expired on {TODAY - timedelta(days=1)}" in said
    assert "0 of 1 target conforms; the embedded reference keeps 5 of 5 contracts" in said
    assert "expired" in (folder / "reports" / "gateway" / "summary.md").read_text("utf-8")


def test_both_nights_compared_show_nothing_that_is_newly_broken(nights, capsys):
    folder = nights[0]
    for name in (*PROVIDERS, "gateway"):
        code = _guarded(["diff", str(folder / "first" / name), str(folder / "reports" / name)], debug=False)
        assert (code, "No new failure" in capsys.readouterr().out) == (0, True), name
