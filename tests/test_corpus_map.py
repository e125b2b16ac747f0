"""Public defects, and what became of each: every name in the map exists, and no entry is missing."""

import os
from pathlib import Path

import pytest
import yaml

from conformance.judge.catalogue import load as checks
from conformance.selftest.faults import FAULTS
from conformance.selftest.legal_variants import LEGAL_VARIANTS
from conformance.selftest.mutation_testing import applying

MAP = yaml.safe_load((Path(__file__).parents[1] / "conformance" / "selftest" / "corpus_map.yaml").read_text("utf-8"))
FOLDER = os.environ.get("CONFORMANCE_CORPUS")


@pytest.mark.parametrize("entry", MAP)
def test_what_the_map_names_is_there(entry):
    told = MAP[entry]
    assert told.keys() <= {"check", "faults", "oddities", "plain", "unseen"}
    assert told.keys() & {"faults", "oddities", "plain", "unseen"}, "neither caught, nor left alone, nor excused"
    assert ("check" in told) == ("faults" in told)
    for name in told.get("faults", ()):
        assert name in FAULTS
        assert applying(FAULTS[name]), f"{name} has an occasion under no contract"
    for name in told.get("oddities", ()):
        assert name in LEGAL_VARIANTS
        assert applying(LEGAL_VARIANTS[name]), f"{name} is legal under no contract"


@pytest.mark.parametrize("entry", [name for name, told in MAP.items() if "check" in told])
def test_the_check_is_the_first_to_see_the_fault(entry):
    told = MAP[entry]
    assert told["check"] in checks()
    assert FAULTS[told["faults"][0]].check == told["check"]


@pytest.mark.parametrize("entry", [name for name, told in MAP.items() if "unseen" in told])
def test_an_excuse_is_a_sentence_and_stands_alone(entry):
    assert MAP[entry].keys() == {"unseen"}
    assert MAP[entry]["unseen"].endswith(".")


@pytest.mark.skipif(not FOLDER, reason="CONFORMANCE_CORPUS names no folder with defects.yaml")
def test_no_entry_is_missing_and_none_is_on_the_wrong_side():
    found = {one["id"]: one for one in yaml.safe_load((Path(FOLDER) / "defects.yaml").read_text("utf-8"))}
    assert found.keys() == MAP.keys()
    for name, one in found.items():
        told = MAP[name]
        if one["expect"] == "fail":
            assert told.keys() & {"faults", "unseen"}, f"{name} must be caught, or excused"
        if one["expect"] == "tolerate":
            assert told.keys() & {"oddities", "plain"}, f"{name} must be shown to be left alone"
