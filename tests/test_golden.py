"""A refactoring changes neither what is sent nor what is concluded: plans and verdicts match the recorded ones.

An intended change is recorded with `UPDATE_GOLDEN=1 pytest tests/test_golden.py`; its diff belongs in the review.
"""

import json
import os
from pathlib import Path

import pytest
import test_traffic

from conformance import plan as planning
from conformance.config.settings import settings
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.run.launch import launch
from conformance.selftest.mutation_testing import baseline

HERE = Path(__file__).parent / "golden"
PLANS = [(provider, profile, seed) for provider in providers() for profile in ("gate", "full") for seed in (0, 1)]


def compare(name, actual):
    """Hold `actual` against tests/golden/<name>.json, or record it where UPDATE_GOLDEN is set."""
    path = HERE / f"{name}.json"
    text = json.dumps(actual, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert json.loads(path.read_text("utf-8")) == json.loads(text)


def rows(verdicts):
    return {
        verdict.requirement.id: f"{verdict.outcome} {verdict.examined}/{verdict.exchanges}/{verdict.violations}"
        for verdict in verdicts
    }


@pytest.mark.parametrize(("provider", "profile", "seed"), PLANS)
def test_a_plan_has_the_same_requests(provider, profile, seed):
    options = planning.PlanOptions(model="m", profile=profile, seed=seed, has_key=True)
    plan = planning.plan(load(provider), checks(), options)
    phases = {
        f"{place} {phase.name}": " ".join(case.id for case in phase.cases) for place, phase in enumerate(plan.phases)
    }
    compare(f"plan-{provider}-{profile}-{seed}", {"sha256": plan.sha256, **phases})


@pytest.mark.parametrize("provider", providers())
def test_a_run_against_the_reference_has_the_same_outcomes(provider, tmp_path):
    """On a real socket, where the number of chunks depends on timing."""
    run = launch(settings(provider, {"out": str(tmp_path)}))
    outcomes = {verdict.requirement.id: verdict.outcome.value for verdict in run.verdicts}
    compare(f"run-{provider}", {"plan_sha256": run.plan_sha256, "verdicts": outcomes})


@pytest.mark.parametrize("profile", ["gate", "full"])
@pytest.mark.parametrize("provider", providers())
def test_a_run_in_process_has_the_same_verdicts(provider, profile):
    """With a clock that stands still: every count of occurrences is compared as well."""
    compare(f"verdicts-{provider}-{profile}", rows(baseline(provider, profile).plain.verdicts))


@pytest.mark.skipif(not test_traffic.FOLDER, reason="set CONFORMANCE_TRAFFIC to a folder of recorded exchanges")
def test_recorded_traffic_has_the_same_verdicts():
    found = {}
    for one in test_traffic.recordings():
        kept = rows(test_traffic.verdicts_on(one))
        found[str(one["n"])] = {name: row for name, row in kept.items() if not row.startswith("not_applicable 0/")}
    compare("traffic", found)
