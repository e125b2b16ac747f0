"""Each fault is caught by its check on one contract, each oddity is left alone: the gate's worth, proved."""

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.model import Level
from conformance.selftest.faults import FAULTS
from conformance.selftest.legal_variants import LEGAL_VARIANTS
from conformance.selftest.mutation_score import stored
from conformance.selftest.mutation_testing import applying, baseline, home, pairs, trial, trials
from conformance.selftest.scores import catalogue, merged, table

DATA = Path(__file__).parents[1] / "conformance" / "selftest"
SURVIVORS = yaml.safe_load((DATA / "survivors.yaml").read_text("utf-8"))
UNPROVED = yaml.safe_load((DATA / "unproved.yaml").read_text("utf-8"))


def homed(planted):
    return [pytest.param(home(one), one.name, id=f"{one.name}-on-{home(one)}") for one in planted.values() if home(one)]


def reason(name, provider, profile):
    for row in SURVIVORS:
        here = row["profile"] == profile and provider in row.get("providers", [provider])
        if here and fnmatchcase(name, row["fault"]):
            return row["reason"]
    return ""


@pytest.mark.parametrize(("provider", "name"), homed(FAULTS))
def test_its_check_catches(provider, name):
    found = trial(baseline(provider, "gate"), FAULTS[name])
    excuse = reason(name, provider, "gate")
    assert not found.broke, f"{name} breaks the suite or the reference instead of the promise: {found.broke[0]}"
    if excuse:
        assert not found.killed, f"{found.check} catches it; take it out of survivors.yaml, which says: {excuse}"
    else:
        assert found.killed, (
            f"{found.check} does not fall on {provider} ({found.why}); mend the check, the plan or the fault, or say "
            "in survivors.yaml why that is right"
        )


@pytest.mark.parametrize(("provider", "name"), homed(LEGAL_VARIANTS))
def test_nobody_minds(provider, name):
    found = trial(baseline(provider, "gate"), LEGAL_VARIANTS[name])
    assert not found.broke, found.broke[0]
    assert not found.fell, f"legal on {provider}, and held against it: {found.why}"


@pytest.mark.parametrize("name", [*FAULTS, *LEGAL_VARIANTS])
def test_there_is_an_occasion_for_it_under_some_contract(name):
    assert home({**FAULTS, **LEGAL_VARIANTS}[name])


def test_every_contract_has_its_share():
    for planted in (FAULTS, LEGAL_VARIANTS):
        assert {home(one) for one in planted.values() if home(one)} == set(providers())


@pytest.mark.parametrize("provider", providers())
def test_the_plain_reference_breaks_nothing(provider):
    plain = baseline(provider, "gate").plain
    assert not plain.broken
    assert not [one.reason for one in plain.verdicts if one.outcome == "error"]


def test_every_check_is_the_first_to_see_some_fault():
    proved = {fault.check for fault in FAULTS.values()}
    assert proved <= checks().keys()
    assert not checks().keys() - proved - UNPROVED.keys(), "write a fault, or say in unproved.yaml why none can be"
    assert not UNPROVED.keys() & proved, "these have a fault by now: take them out of unproved.yaml"
    assert UNPROVED.keys() <= checks().keys()


def test_every_check_was_seen_to_fall():
    survivors = {name: profiles["full"]["survivors"] for name, profiles in stored()["scores"].items()}
    seen = {
        fault.check
        for fault in FAULTS.values()
        for provider in applying(fault)
        if provider in survivors and fault.name not in survivors[provider]
    }
    unseen = {fault.check for fault in FAULTS.values()} - seen
    assert not unseen, "no fault of theirs is caught in the full profile under any contract: run `nox -s mutants`"


def test_a_check_without_a_fault_cannot_fail_anybody():
    for name in UNPROVED:
        for provider in providers():
            bound = [row for row in load(provider).requirements if row.check == name]
            assert all(row.level is Level.MAY for row in bound), f"{name} binds {provider}, so it needs a fault"


def test_every_excuse_has_a_fault():
    for row in SURVIVORS:
        assert any(fnmatchcase(name, row["fault"]) for name in FAULTS), f"{row['fault']} matches no fault"
        assert row["reason"].strip()
        assert set(row.get("providers", [])) <= set(providers())


def test_two_runs_of_the_same_trial_agree():
    wanted = pairs("usage_*", ["gate"], ["openai"])[:4]
    assert wanted
    first, again = list(trials(wanted)), list(trials(wanted, jobs=2))
    assert first == again
    assert "usage" in table(first)
    scores = merged(first)["openai"]["gate"]
    assert scores["of"] + scores["oddities"][1] == len(wanted)


def test_a_fault_that_crashes_is_told_and_survives():
    fault = next(iter(FAULTS.values()))
    crash = replace(fault, alteration=replace(fault.alteration, change=lambda *_: None.no_such_thing))
    found = trial(baseline(home(fault), "gate"), crash)
    assert not found.killed
    assert "AttributeError" in found.why


def test_the_stored_scores_are_of_this_catalogue():
    assert stored()["catalogue"] == catalogue(), "faults, checks or requirements changed since: run `nox -s mutants`"


FLOOR = {"gate": 0.85, "full": 0.98}  # of each contract


def test_the_stored_scores_keep_above_their_floor():
    scores = stored()["scores"]
    assert set(scores) == set(providers())
    for profile, floor in FLOOR.items():
        for provider, score in ((provider, profiles[profile]) for provider, profiles in scores.items()):
            assert score["killed"] >= floor * score["of"], f"{provider} {profile}: {score['survivors']}"
            assert score["oddities"][0] == score["oddities"][1], f"{provider} {profile}: an oddity is held against it"
