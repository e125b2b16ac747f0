"""Each fault fails its primary check under one contract, and no check fails because of a legal variant."""

import os
from dataclasses import replace
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.model import Level
from conformance.selftest.faults import FAULTS
from conformance.selftest.legal_variants import LEGAL_VARIANTS
from conformance.selftest.mutation_score import mutation_score, source_hash, stored
from conformance.selftest.mutation_testing import applying, baseline, home, pairs, trial, trials
from conformance.selftest.scores import merged, table
from tests.rotation import rotation

DATA = Path(__file__).parents[1] / "conformance" / "selftest"
SURVIVORS = yaml.safe_load((DATA / "survivors.yaml").read_text("utf-8"))
UNPROVED = yaml.safe_load((DATA / "unproved.yaml").read_text("utf-8"))
NIGHTLY = bool(os.environ.get("CONFORMANCE_NIGHTLY"))
SAMPLE = 24
"""Trials of the full profile in each run of the tests."""


def sample():
    """The trials of the full profile that the hash of their names and the rotation puts first."""
    everything = pairs("*", ["full"])
    return sorted(everything, key=lambda trial: sha256(f"{rotation()} {' '.join(trial)}".encode()).digest())[:SAMPLE]


def at_home(planted):
    return [pytest.param(home(one), one.name, id=f"{one.name}-on-{home(one)}") for one in planted.values() if home(one)]


def listed_reason(name, provider, profile):
    for row in SURVIVORS:
        applies = row["profile"] == profile and provider in row.get("providers", [provider])
        if applies and fnmatchcase(name, row["fault"]):
            return row["reason"]
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "name"), at_home(FAULTS))
def test_its_primary_check_fails(provider, name):
    result = trial(baseline(provider, "gate"), FAULTS[name])
    reason = listed_reason(name, provider, "gate")
    assert not result.crashed, f"{name} crashes the suite or the reference: {result.crashed[0]}"
    if reason:
        assert not result.killed, f"{result.check} fails; remove the fault from survivors.yaml, which says: {reason}"
    else:
        assert result.killed, (
            f"{result.check} does not fail on {provider} ({result.why}); fix the check, the plan or the fault, or give "
            "the reason in survivors.yaml"
        )


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "name"), at_home(LEGAL_VARIANTS))
def test_no_check_fails_because_of_a_legal_variant(provider, name):
    result = trial(baseline(provider, "gate"), LEGAL_VARIANTS[name])
    assert result.accepted, f"{name} is legal on {provider}, and was flagged: {result.why}"


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "profile", "name"), sample())
def test_a_sample_of_the_full_profile_is_killed_or_listed(provider, profile, name):
    planted = {**FAULTS, **LEGAL_VARIANTS}[name]
    result = trial(baseline(provider, profile), planted)
    assert not result.crashed, f"{name} crashes the suite or the reference: {result.crashed[0]}"
    if name in LEGAL_VARIANTS:
        assert result.accepted, f"{name} is legal on {provider}, and was flagged: {result.why}"
    else:
        reason = listed_reason(name, provider, profile)
        assert result.killed or reason, f"{result.check} does not fail on {provider} in full ({result.why})"


def test_every_contract_has_a_share_of_the_trials():
    for planted in (FAULTS, LEGAL_VARIANTS):
        assert {home(one) for one in planted.values() if home(one)} == set(providers())


@pytest.mark.parametrize("provider", providers())
def test_the_unaltered_reference_breaks_nothing(provider):
    plain = baseline(provider, "gate").plain
    assert not plain.broken
    assert not [verdict.reason for verdict in plain.verdicts if verdict.outcome == "error"]


def test_every_check_is_the_primary_check_of_some_fault():
    proved = {fault.check for fault in FAULTS.values()}
    assert proved <= checks().keys()
    assert not checks().keys() - proved - UNPROVED.keys(), "write a fault, or say in unproved.yaml why none can exist"
    assert not UNPROVED.keys() & proved, "these have a fault by now: remove them from unproved.yaml"
    assert UNPROVED.keys() <= checks().keys()


def test_a_check_without_a_fault_judges_nothing():
    for name in UNPROVED:
        for provider in providers():
            bound = [row for row in load(provider).requirements if row.check == name]
            assert all(row.level is Level.MAY for row in bound), f"{name} binds {provider}, so it needs a fault"


def test_every_row_of_the_survivors_has_a_fault_and_a_reason():
    for row in SURVIVORS:
        assert any(fnmatchcase(name, row["fault"]) for name in FAULTS), f"{row['fault']} matches no fault"
        assert row["reason"].strip()
        assert set(row.get("providers", [])) <= set(providers())


def test_two_runs_of_the_same_trial_agree():
    wanted = pairs("usage_*", ["gate"], ["openai"])[:4]
    assert wanted
    first, second = list(trials(wanted)), list(trials(wanted, jobs=2))
    assert first == second
    assert "usage" in table(first)
    scores = merged(first)["openai"]["gate"]
    assert scores["of"] + scores["legal_variants"][1] == len(wanted)


def test_a_fault_that_crashes_survives_and_says_why():
    fault = next(iter(FAULTS.values()))
    crash = replace(fault, alteration=replace(fault.alteration, change=lambda *_: None.no_such_thing))
    result = trial(baseline(home(fault), "gate"), crash)
    assert not result.killed
    assert "AttributeError" in result.why


# The stored scores: measured by `nox -s faults`, and about the build that they were measured on.


def test_a_stored_score_says_on_which_build_it_was_measured():
    for profile in ("gate", "full"):
        score = mutation_score("openai", profile)
        assert 0 < score["killed"] <= score["of"]
        assert score["current"] is (score["build"] == source_hash())
    assert mutation_score("openai", "certify") == mutation_score("openai", "full")
    assert mutation_score("nobody", "full") is None


@pytest.fixture
def scores():
    """The stored scores, where they are of this build; in a nightly run they must be."""
    entries = stored()["scores"]
    assert set(entries) == set(providers())
    builds = {score["build"] for profiles in entries.values() for score in profiles.values()}
    if builds != {source_hash()}:
        message = "the stored scores were measured on another build: run `nox -s faults`"
        if NIGHTLY:
            pytest.fail(message)
        pytest.skip(f"{message} (CONFORMANCE_NIGHTLY=1 makes this a failure)")
    return entries


def test_every_primary_check_fails_under_some_contract_in_full(scores):
    survivors = {name: profiles["full"]["survivors"] for name, profiles in scores.items()}
    seen = {
        fault.check
        for fault in FAULTS.values()
        for provider in applying(fault)
        if fault.name not in survivors[provider]
    }
    assert not {fault.check for fault in FAULTS.values()} - seen


FLOOR = {"gate": 0.85, "full": 0.98}
"""The share of faults that each profile must kill under each contract; an aim of the project, not a derived number."""


def test_the_stored_scores_stay_above_their_floor(scores):
    for profile, floor in FLOOR.items():
        for provider, score in ((provider, profiles[profile]) for provider, profiles in scores.items()):
            assert score["killed"] >= floor * score["of"], f"{provider} {profile}: {score['survivors']}"
            accepted, variants = score["legal_variants"]
            assert accepted == variants, f"{provider} {profile}: a legal variant is flagged"
