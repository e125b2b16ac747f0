"""The tampering table: whatever is changed, by whomever, `verify` names it with its own code.

A change is made by somebody without a key (`case` only), by somebody with a key of their own, or by the signer, who
signs whatever they like. What the signer's own hand cannot be caught at stands in docs/certification.md.
"""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.certificate import bundle, examine, trust
from conformance.certificate.reasons import REASONS
from conformance.certificate.statement import OURS, signed_for
from conformance.certificate.verify import Verified, VerifierKnowledge, verify
from conformance.contract import load
from conformance.model.clock import today
from conformance.recording import plan_lock as lock
from conformance.recording import read
from conformance.recording.plan_lock import canary
from conformance.report import results
from tests.certificates import NONCE, RECORDING, Case, certified, copied

TODAY = today()
NAMED: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def whole() -> Case:
    return certified()


@pytest.fixture
def case(tmp_path) -> Case:
    return copied(tmp_path)


def verified(case: Case, *, evidence: bool = True, day: date = TODAY, **known) -> Verified:
    known = {"trusted": trust.trusted(case.trust), **known}
    found = verify(case.certificate, case.bundle if evidence else None, VerifierKnowledge(**known), day, case.specs)
    NAMED.update(one.code for one in found.faults)
    assert all("\n" not in str(one) for one in found.faults)
    return found


def codes(found: Verified) -> set[str]:
    return {one.code for one in found.faults}


def flipped(path: Path, place: int = -40) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def test_what_nobody_touched_holds():
    found = verified(certified())
    assert (found.faults, found.unexamined, found.signer) == ((), (), "The vendor")


# One byte, anywhere


@given(name=st.sampled_from([*sorted(bundle.NEEDED), "report.html", "badge.svg"]), data=st.data())
@settings(max_examples=60)
def test_no_byte_of_the_bundle_can_be_changed_unseen(name, data):
    whole = certified()
    content = (whole.bundle / name).read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(1, 255))
    changed = content[:place] + bytes([content[place] ^ other]) + content[place + 1 :]
    signed = signed_for(whole.told)
    with_change = {**bundle.hashes(whole.bundle), name: bundle.digest(changed)}
    assert {one for one in signed if signed[one] != with_change[one]} == {name}


@given(data=st.data())
@settings(max_examples=80)
def test_no_byte_of_the_certificate_can_be_changed_unseen(data, tmp_path_factory):
    whole = certified()
    content = whole.certificate.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "flipped.json"
    path.write_bytes(content[:place] + bytes([content[place] ^ other]) + content[place + 1 :])
    for trusted in (trust.trusted(whole.trust), None):
        found = verify(path, None, VerifierKnowledge(trusted), TODAY)
        assert codes(found) & {"ENVELOPE_MALFORMED", "SIGNATURE_INVALID", "STATEMENT_UNKNOWN"}


@pytest.mark.parametrize(
    ("name", "also"),
    [
        (RECORDING, {"CHAIN_BROKEN"}),
        ("plan.lock", {"PLAN_CHANGED"}),
        ("results.json", set()),
        ("report.html", set()),
        ("junit.xml", set()),
    ],
)
def test_a_changed_file_is_named(case, name, also):
    flipped(case.bundle / name)
    found = verified(case)
    assert {"FILE_CHANGED", *also} <= codes(found)
    assert any(one.code == "FILE_CHANGED" and one.message.startswith(f"{name} ") for one in found.faults)


# Without a key


def drop_a_record(case):
    lines = (case.bundle / RECORDING).read_bytes().splitlines(keepends=True)
    (case.bundle / RECORDING).write_bytes(b"".join(lines[:30] + lines[31:]))


def reorder_records(case):
    lines = (case.bundle / RECORDING).read_bytes().splitlines(keepends=True)
    lines[30], lines[31] = lines[31], lines[30]
    (case.bundle / RECORDING).write_bytes(b"".join(lines))


def mix_in_another_run(case):
    lines = (case.bundle / RECORDING).read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if number > 30 and b'"elapsed":' in line)
    lines[place] = lines[place].replace(b'"elapsed":', b'"elapsed":1')
    (case.bundle / RECORDING).write_bytes(b"".join(lines))


def cut_the_end(case):
    data = (case.bundle / RECORDING).read_bytes()
    (case.bundle / RECORDING).write_bytes(data[:-200])


def chain_it_anew(case):
    records = case.records()
    next(one for one in records if one["record"] == "attempt")["elapsed"] += 0.5
    case.rechained(records)


def swap_the_plan(case):
    case.resealed(lambda told: told.update(nonce="another-nonce-entirely"))


def edit_the_results(case):
    def edit(told):
        row = next(row for row in told["requirements"] if row["outcome"] == "pass")
        row |= {"outcome": "not_applicable", "examined": 0, "exchanges": 0}

    rewritten(case, edit)


def rewritten(case, edit):
    path = case.bundle / "results.json"
    told = json.loads(path.read_bytes())
    edit(told)
    path.write_text(results.dumps(told), "utf-8")


def add_a_file(case):
    (case.bundle / "exchanges-2.ndjson").write_bytes(b"{}\n")


def take_a_file_away(case):
    (case.bundle / "junit.xml").unlink()


def take_the_recording_away(case):
    (case.bundle / RECORDING).unlink()


def draw_another_page(case):
    page = case.certificate.with_name("certificate.html")
    page.write_text(page.read_text("utf-8").replace("117", "217"), "utf-8")


def extend_the_expiry(case):
    edited_payload(case, lambda told: told["predicate"][OURS].update(expires_on="2099-01-01"))


def edited_payload(case, edit):
    told, envelope = case.told, json.loads(case.certificate.read_bytes())
    edit(told)
    envelope["payload"] = b64encode(canonical(told)).decode()
    case.certificate.write_bytes(canonical(envelope) + b"\n")


def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (drop_a_record, {"FILE_CHANGED", "CHAIN_BROKEN"}),
        (reorder_records, {"FILE_CHANGED", "CHAIN_BROKEN"}),
        (mix_in_another_run, {"FILE_CHANGED", "CHAIN_BROKEN"}),
        (cut_the_end, {"FILE_CHANGED", "EVIDENCE_TORN"}),
        (chain_it_anew, {"FILE_CHANGED", "EVIDENCE_DIFFERS"}),
        (swap_the_plan, {"FILE_CHANGED", "PLAN_SWAPPED", "NONCE_DIFFERS"}),
        (edit_the_results, {"FILE_CHANGED", "VERDICT_DIFFERS"}),
        (add_a_file, {"FILE_STRANGE"}),
        (take_a_file_away, {"FILE_MISSING"}),
        (take_the_recording_away, {"FILE_MISSING"}),
        (draw_another_page, {"PAGE_DIFFERS"}),
        (extend_the_expiry, {"SIGNATURE_INVALID", "EXPIRY_TOO_FAR"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_without_a_key(case, tamper, expected):
    tamper(case)
    assert codes(verified(case)) == expected


# With another key


def test_signed_again_by_another_key(case):
    case.resigned(key=case.other)
    assert codes(verified(case)) == {"KEY_UNTRUSTED"}


def test_extended_and_signed_again_by_another_key(case):
    case.resigned(lambda told: told["predicate"][OURS].update(expires_on="2027-06-01"), case.other)
    assert codes(verified(case)) == {"KEY_UNTRUSTED"}


def test_another_key_that_gives_itself_the_name_of_a_trusted_one(case):
    case.resigned(key=case.other)
    envelope = json.loads(case.certificate.read_bytes())
    envelope["signatures"][0]["keyid"] = trust.trusted(case.trust)[0].key.id
    case.certificate.write_bytes(canonical(envelope) + b"\n")
    assert codes(verified(case)) == {"KEY_UNTRUSTED", "SIGNATURE_INVALID"}


# By the signer, who signs what the bundle holds now


def first_answer(records, after=40):
    return next(one for one in records[after:] if one["record"] == "attempt" and one["status"] == 200)


def recorded(change):
    def tamper(case):
        records = case.records()
        records = change(records) or records
        case.rechained(records)
        case.resigned()

    tamper.__name__ = change.__name__
    return tamper


@recorded
def drop_an_outcome(records):
    records.remove(first_answer(records))


@recorded
def drop_an_exchange(records):
    gone = first_answer(records)["case"]
    return [one for one in records if one.get("case") != gone]


@recorded
def move_an_outcome_ahead(records):
    attempt = first_answer(records)
    records.remove(attempt)
    start = next(one for one in records if one["record"] == "start" and one["case"] == attempt["case"])
    records.insert(records.index(start), attempt)


@recorded
def take_an_answer_of_an_earlier_run(records):
    records[-2]["started_at"] -= 3600


@recorded
def take_an_answer_of_a_later_run(records):
    first_answer(records, 0)["started_at"] += 3600


@recorded
def end_with_an_answer_of_a_later_run(records):
    [one for one in records if one["record"] == "attempt"][-1]["started_at"] += 60


@recorded
def send_something_else(records):
    phase = next(one for one in records if one["record"] == "wave" and one["name"] == "rows")
    next(one for one in phase["cases"] if isinstance(one["content"], str))["content"] += " "


@recorded
def send_something_more(records):
    phase = [one for one in records if one["record"] == "wave"][-1]
    more = {**phase, "name": "repeat 1", "cases": [{**phase["cases"][0], "id": "extra/0"}]}
    attempt = {**[one for one in records if one["record"] == "attempt"][-1], "case": "extra/0"}
    return [*records[:-1], more, {"record": "start", "case": "extra/0"}, attempt, records[-1]]


@recorded
def mend_an_answer(records):
    attempt = first_answer(records)
    attempt["pieces"] = [
        [at, re.sub(r'"total_tokens":\d+', '"total_tokens":7777', data)] for at, data in attempt["pieces"]
    ]


@recorded
def name_no_plan(records):
    del records[0]["plan"]


@recorded
def claim_more(records):
    records[0]["claims"] = []


@recorded
def leave_the_nonce(records):
    records[0]["plan"]["nonce"] = "another-nonce-entirely"


@recorded
def write_nonsense(records):
    first_answer(records)["started_at"] = "yesterday"
    records[0]["target"] = ["nobody"]


@recorded
def own_up_to_a_gap(records):
    records[-1]["incomplete"] = ["interrupted before the end: 3 of 294 requests were not sent"]


@recorded
def keep_a_secret(records):
    first_answer(records)["headers"].append(["x-echo", canary(NONCE)])


@recorded
def keep_a_credential(records):
    phase = next(one for one in records if one["record"] == "wave")
    phase["cases"][0]["headers"] = [["content-type", "application/json"], ["authorization", "Bearer abc"]]


def plan_afterwards(case):
    case.resealed(lambda told: told.update(planned_at=f"{TODAY + timedelta(days=1)}T00:00:00+00:00"))
    mark = {"sha256": json.loads((case.bundle / "plan.lock").read_bytes())["sha256"], "nonce": NONCE}
    records = case.records()
    records[0]["plan"] = mark
    case.rechained(records)
    case.resigned(lambda told: told["predicate"][OURS]["plan"].update(sha256=mark["sha256"]))


def require_less(case):
    case.resealed(lambda told: told["requirements"].update(sha256="0" * 64))
    case.resigned()


def turn_a_verdict(case):
    edit_the_results(case)
    case.resigned()


def count_better(case):
    path = case.bundle / "results.json"
    path.write_text(path.read_text("utf-8").replace('"examined": ', '"examined": 1', 1), "utf-8")
    case.resigned()


def waive(case):
    waiver = {"requirement": "a", "reason": "b", "owner": "c", "link": "https://d", "expires": "2030-01-01"}
    path = case.bundle / "results.json"
    path.write_text(path.read_text("utf-8").replace('"waiver": null', f'"waiver": {json.dumps(waiver)}', 1), "utf-8")
    case.resigned()


def say_something_else(case):
    case.resigned(lambda told: told["predicate"][OURS]["areas"]["core"].update(passed=1000))


def hold_for_ever(case):
    case.resigned(lambda told: told["predicate"][OURS].update(expires_on="2099-01-01"))


def call_itself_independent(case):
    case.resigned(lambda told: told["predicate"][OURS].update(assurance="independent"))


def issue_tomorrow(case):
    later = f"{TODAY + timedelta(days=9)}T00:00:00+00:00"
    case.resigned(lambda told: told["predicate"][OURS].update(issued_at=later))


def speak_of_another_format(case):
    case.resigned(lambda told: told.update(predicateType="https://slsa.dev/provenance/v1"))


def choose_the_seed(case):
    def edit(told):
        told["predicate"][OURS] |= {"assurance": "audited"}
        told["predicate"][OURS]["plan"]["seed"] = 1

    case.resigned(edit)


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (drop_an_outcome, {"ATTEMPT_MISSING", "RUN_INCOMPLETE"}),
        (drop_an_exchange, {"RUN_INCOMPLETE"}),
        (move_an_outcome_ahead, {"RECORDS_DISORDERED"}),
        (take_an_answer_of_an_earlier_run, {"TIMES_DISORDERED"}),
        (take_an_answer_of_a_later_run, {"TIMES_DISORDERED"}),
        (end_with_an_answer_of_a_later_run, {"TIMES_DISORDERED"}),
        (send_something_else, {"PLAN_DEPARTED"}),
        (send_something_more, {"PLAN_DEPARTED"}),
        (mend_an_answer, {"VERDICT_DIFFERS", "STATEMENT_DIFFERS"}),
        (name_no_plan, {"PLAN_MISSING"}),
        (claim_more, {"PLAN_DEPARTED"}),
        (leave_the_nonce, {"NONCE_DIFFERS"}),
        (write_nonsense, {"BUNDLE_MALFORMED"}),
        (own_up_to_a_gap, {"RUN_INCOMPLETE"}),
        (keep_a_secret, {"SECRET_FOUND"}),
        (keep_a_credential, {"SECRET_FOUND"}),
        (plan_afterwards, {"PLAN_LATE"}),
        (require_less, {"SET_DIFFERS"}),
        (turn_a_verdict, {"VERDICT_DIFFERS"}),
        (count_better, {"RESULTS_DIFFER"}),
        (waive, {"WAIVED"}),
        (say_something_else, {"STATEMENT_DIFFERS"}),
        (hold_for_ever, {"EXPIRY_TOO_FAR"}),
        (call_itself_independent, {"ASSURANCE_EXCEEDED"}),
        (issue_tomorrow, {"NOT_YET_VALID"}),
        (speak_of_another_format, {"STATEMENT_UNKNOWN"}),
        (choose_the_seed, {"SEED_CHOSEN", "ASSURANCE_EXCEEDED", "STATEMENT_DIFFERS"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_by_the_signer(case, tamper, expected):
    tamper(case)
    found = verified(case)
    assert expected <= codes(found), [str(one) for one in found.faults]
    assert "SIGNATURE_INVALID" not in codes(found)


# What only the reader can know


def test_an_expired_certificate():
    last = date.fromisoformat(certified().ours["expires_on"])
    assert codes(verified(certified(), evidence=False, day=last)) == set()
    assert codes(verified(certified(), evidence=False, day=last + timedelta(days=1))) == {"EXPIRED"}


@pytest.mark.parametrize("what", ["certificate", "key", "nonce"])
def test_what_was_taken_back(what, tmp_path):
    found = verified(certified(), evidence=False)
    name = {"certificate": found.id, "key": certified().ours["keyid"], "nonce": NONCE}[what]
    (tmp_path / "revoked").write_text(f"# taken back\n\n{name} the key was lost\n")
    again = verified(certified(), evidence=False, revoked=trust.revoked(tmp_path / "revoked"))
    assert [str(one) for one in again.faults] == [f"REVOKED: {name[:16]}… is revoked: the key was lost"]


def test_a_nonce_that_was_used_before(case, tmp_path):
    registry = tmp_path / "registry"
    shutil.copytree(certified().certificate.parent, registry / "first")
    assert codes(verified(certified(), evidence=False, seen=trust.seen(registry))) == set(), "it may know itself"
    case.resigned(lambda told: told["predicate"][OURS].update(issuer="somebody else"))
    assert codes(verified(case, evidence=False, seen=trust.seen(registry))) == {"NONCE_REUSED"}
    (tmp_path / "ledger").write_text(f"{NONCE} {'0' * 64}\n")
    assert codes(verified(certified(), evidence=False, seen=trust.seen(tmp_path / "ledger"))) == {"NONCE_REUSED"}


# What the suite itself could not settle


def test_a_verdict_that_is_open_and_a_check_that_crashed(case, monkeypatch):
    honest = examine.verdicts.derived

    def spoilt(recording, contract):
        found = honest(recording, contract)
        one, other = found["requirements"][:2]
        one |= {"outcome": "not_run", "incomplete": True, "reason": "nobody asked"}
        other |= {"outcome": "error", "reason": "the check raised"}
        del found["requirements"][2]
        return found

    monkeypatch.setattr(examine.verdicts, "derived", spoilt)
    assert {"REQUIREMENT_OPEN", "SUITE_FAULT", "VERDICT_DIFFERS"} <= codes(verified(case))


def test_what_replies_lead_to_has_limits(case):
    case.resealed(lambda told: told.update(adaptive={"waves": ["base"], "most": -1}))
    messages = examine.replan.departures(
        read(case.bundle / RECORDING), lock.read(case.bundle / "plan.lock"), load("madeup", case.specs)
    )
    assert list(messages) == [
        "there is a phase 'values'; the plan allows base",
        "0 requests follow from replies; the plan allows -1",
    ]


def test_each_code_was_seen(request):
    ours = [item for item in request.session.items if item.module.__name__ == __name__]
    if len(ours) < 50:
        pytest.skip("speaks of the whole table")
    assert REASONS.keys() - NAMED <= {"ENVELOPE_MALFORMED", "SUITE_DIFFERS"}, "a code without a test"
