"""The tampering table: whatever is changed, by whomever, `verify` names it with its own code.

A change is made by somebody without a key (`case` only), by somebody with a key of their own, or by the signer, who
signs whatever they like. What the signer's own hand cannot be caught at stands in docs/certification.md.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from base64 import b64encode
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.certificate import bundle, dsse, examine, keys, trust
from conformance.certificate.reasons import REASONS
from conformance.certificate.statement import CERTIFIED, signed_for
from conformance.certificate.verify import Verified, VerifierKnowledge, verify
from conformance.contract import load
from conformance.model.clock import today
from conformance.recording import plan_lock as lock
from conformance.recording import read
from conformance.recording.canonical_json import digest
from conformance.recording.hash_chain import GENESIS
from conformance.recording.plan_lock import canary
from conformance.report import results
from tests.certificates import NONCE, RECORDING, Case, call, certified, copied, examine_each_bundle_once

TODAY = today()
NAMED: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def whole() -> Case:
    return certified()


@pytest.fixture(autouse=True)
def examined_once(monkeypatch):
    examine_each_bundle_once(monkeypatch)


@pytest.fixture
def case(tmp_path) -> Case:
    return copied(tmp_path)


def verified(case: Case, *, evidence: bool = True, day: date = TODAY, **known) -> Verified:
    known = {"trusted": trust.trusted(case.trust), **known}
    result = verify(case.certificate, case.bundle if evidence else None, VerifierKnowledge(**known), day, case.specs)
    NAMED.update(fault.code for fault in result.faults)
    assert all("\n" not in str(fault) for fault in result.faults)
    return result


def codes(result: Verified) -> set[str]:
    return {fault.code for fault in result.faults}


def flipped(path: Path, place: int = -40) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def test_what_nobody_touched_holds():
    result = verified(certified())
    assert (result.faults, result.unexamined, result.signer.name) == ((), (), "The vendor")


# One byte, anywhere


@given(name=st.sampled_from([*sorted(bundle.NEEDED), "report.html", "badge.svg"]), data=st.data())
@settings(max_examples=60)
def test_no_byte_of_the_bundle_can_be_changed_unseen(name, data):
    whole = certified()
    content = (whole.bundle / name).read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(1, 255))
    changed = content[:place] + bytes([content[place] ^ other]) + content[place + 1 :]
    signed = signed_for(whole.statement)
    with_change = {**bundle.hashes(whole.bundle), name: digest(changed)}
    assert {file for file in signed if signed[file] != with_change[file]} == {name}


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
        result = verify(path, None, VerifierKnowledge(trusted), TODAY)
        assert codes(result) & {"ENVELOPE_MALFORMED", "SIGNATURE_INVALID", "STATEMENT_UNKNOWN"}


@pytest.mark.parametrize("name", [RECORDING, "plan.lock", "results.json", "report.html", "junit.xml"])
def test_a_changed_file_is_named_and_not_read(case, name, monkeypatch):
    flipped(case.bundle / name)
    monkeypatch.setattr("conformance.certificate.verify.examine", lambda *_: pytest.fail("it was read"))
    result = verified(case)
    assert [fault.code for fault in result.faults] == ["FILE_CHANGED"]
    assert result.faults[0].message.startswith(f"{name} ")


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
    next(record for record in records if record["record"] == "attempt")["elapsed"] += 0.5
    case.rechained(records)


def swap_the_plan(case):
    case.resealed(lambda plan: plan.update(nonce="another-nonce-entirely"))


def edit_the_results(case):
    def edit(document):
        row = next(row for row in document["requirements"] if row["outcome"] == "pass")
        row |= {"outcome": "not_applicable", "examined": 0, "exchanges": 0}

    rewritten(case, edit)


def rewritten(case, edit):
    path = case.bundle / "results.json"
    document = json.loads(path.read_bytes())
    edit(document)
    path.write_text(results.dumps(document), "utf-8")


def add_a_file(case):
    (case.bundle / "exchanges-2.ndjson").write_bytes(b"{}\n")


def take_a_file_away(case):
    (case.bundle / "junit.xml").unlink()


def take_the_recording_away(case):
    (case.bundle / RECORDING).unlink()


def draw_another_page(case):
    page = case.certificate.with_name("certificate.html")
    count = case.certified["index"]["of"]
    page.write_text(page.read_text("utf-8").replace(f"{count}", f"{count + 100}"), "utf-8")


def extend_the_expiry(case):
    edited_payload(case, lambda statement: statement["predicate"][CERTIFIED].update(expires_on="2099-01-01"))


def edited_payload(case, edit):
    statement, envelope = case.statement, json.loads(case.certificate.read_bytes())
    edit(statement)
    envelope["payload"] = b64encode(canonical(statement)).decode()
    case.certificate.write_bytes(canonical(envelope) + b"\n")


def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (drop_a_record, {"FILE_CHANGED"}),
        (reorder_records, {"FILE_CHANGED"}),
        (mix_in_another_run, {"FILE_CHANGED"}),
        (cut_the_end, {"FILE_CHANGED"}),
        (chain_it_anew, {"FILE_CHANGED"}),
        (swap_the_plan, {"FILE_CHANGED"}),
        (edit_the_results, {"FILE_CHANGED"}),
        (add_a_file, {"FILE_STRANGE"}),
        (take_a_file_away, {"FILE_MISSING"}),
        (take_the_recording_away, {"FILE_MISSING"}),
        (draw_another_page, {"PAGE_DIFFERS"}),
        (extend_the_expiry, {"SIGNATURE_INVALID", "EXPIRY_TOO_FAR"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_without_a_key(case, tamper, expected):
    tamper(case)
    assert codes(verified(case)) == expected


# With another key


def test_signed_again_by_another_key(case):
    case.resigned(key=case.other)
    assert codes(verified(case)) == {"KEY_UNTRUSTED"}


def test_extended_and_signed_again_by_another_key(case):
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(expires_on="2027-06-01"), case.other)
    assert codes(verified(case)) == {"KEY_UNTRUSTED"}


def test_another_key_that_gives_itself_the_name_of_a_trusted_one(case):
    case.resigned(key=case.other)
    envelope = json.loads(case.certificate.read_bytes())
    envelope["signatures"][0]["keyid"] = trust.trusted(case.trust)[0].key.id
    case.certificate.write_bytes(canonical(envelope) + b"\n")
    assert codes(verified(case)) == {"KEY_UNTRUSTED", "SIGNATURE_INVALID"}


# By the signer, who signs what the bundle holds now, or forgets to sign what was changed


def sign_another_recording(case):
    """The hash of the file is signed, the end of its chain is that of the recording before."""
    last = case.certified["evidence"]["last"]
    chain_it_anew(case)
    case.resigned(lambda statement: statement["predicate"][CERTIFIED]["evidence"].update(last=last))


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (drop_a_record, "CHAIN_BROKEN"),
        (reorder_records, "CHAIN_BROKEN"),
        (mix_in_another_run, "CHAIN_BROKEN"),
        (cut_the_end, "EVIDENCE_TORN"),
        (sign_another_recording, "EVIDENCE_DIFFERS"),
        (swap_the_plan, "PLAN_SWAPPED"),
        (lambda case: flipped(case.bundle / "plan.lock"), "PLAN_CHANGED"),
    ],
)
def test_what_was_changed_is_named_although_it_is_signed(case, tamper, expected):
    tamper(case)
    if tamper is not sign_another_recording:
        case.signed_as_it_is()
    assert expected in codes(verified(case))


def first_answer(records, after=40):
    return next(record for record in records[after:] if record["record"] == "attempt" and record["status"] == 200)


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
    return [record for record in records if record.get("case") != gone]


@recorded
def move_an_outcome_ahead(records):
    attempt = first_answer(records)
    records.remove(attempt)
    start = next(record for record in records if record["record"] == "start" and record["case"] == attempt["case"])
    records.insert(records.index(start), attempt)


@recorded
def take_an_answer_of_an_earlier_run(records):
    records[-2]["started_at"] -= 3600


@recorded
def take_an_answer_of_a_later_run(records):
    first_answer(records, 0)["started_at"] += 3600


@recorded
def end_with_an_answer_of_a_later_run(records):
    [record for record in records if record["record"] == "attempt"][-1]["started_at"] += 60


@recorded
def send_something_else(records):
    phase = next(record for record in records if record["record"] == "wave" and record["name"] == "rows")
    next(sent for sent in phase["cases"] if isinstance(sent["content"], str))["content"] += " "


@recorded
def send_something_more(records):
    phase = [record for record in records if record["record"] == "wave"][-1]
    more = {**phase, "name": "repeat 1", "cases": [{**phase["cases"][0], "id": "extra/0"}]}
    attempt = {**[record for record in records if record["record"] == "attempt"][-1], "case": "extra/0"}
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
    phase = next(record for record in records if record["record"] == "wave")
    phase["cases"][0]["headers"] = [["content-type", "application/json"], ["authorization", "Bearer abc"]]


def plan_afterwards(case):
    case.resealed(lambda plan: plan.update(planned_at=f"{TODAY + timedelta(days=1)}T00:00:00+00:00"))
    mark = {"sha256": json.loads((case.bundle / "plan.lock").read_bytes())["sha256"], "nonce": NONCE}
    records = case.records()
    records[0]["plan"] = mark
    case.rechained(records)
    case.resigned(lambda statement: statement["predicate"][CERTIFIED]["plan"].update(sha256=mark["sha256"]))


def require_less(case):
    case.resealed(lambda plan: plan["requirements"].update(sha256="0" * 64))
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
    case.resigned(lambda statement: statement["predicate"][CERTIFIED]["areas"]["core"].update(passed=1000))


def hold_for_ever(case):
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(expires_on="2099-01-01"))


def call_itself_independent(case):
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(assurance="independent"))


def issue_tomorrow(case):
    later = f"{TODAY + timedelta(days=9)}T00:00:00+00:00"
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(issued_at=later))


def speak_of_another_format(case):
    case.resigned(lambda statement: statement.update(predicateType="https://slsa.dev/provenance/v1"))


def choose_the_seed(case):
    def edit(statement):
        statement["predicate"][CERTIFIED] |= {"assurance": "audited"}
        statement["predicate"][CERTIFIED]["plan"]["seed"] = 1

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
        (choose_the_seed, {"ASSURANCE_EXCEEDED", "STATEMENT_DIFFERS"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_by_the_signer(case, tamper, expected):
    tamper(case)
    result = verified(case)
    assert expected <= codes(result), [str(fault) for fault in result.faults]
    assert "SIGNATURE_INVALID" not in codes(result)


# By the signer, who leaves out what `certify` demands


def planned_as(**members):
    """Another plan, with the recording of the first one under its name."""
    return lambda case: case.replanned(lambda plan: plan.update(members))


def lower_ceiling(case):
    case.replanned(lambda plan: plan["ceilings"].update(requests=450))


def leave_out_a_request(case):
    """Out of the plan and out of the recording, as if it had never been planned."""

    def forget(records):
        phase = next(record for record in records if record["record"] == "wave" and record["name"] == "rows")
        gone = phase["cases"].pop()["id"]
        records[:] = [record for record in records if record.get("case") != gone]

    def edit(plan):
        next(phase for phase in plan["waves"] if phase["name"] == "rows")["cases"].pop()

    case.replanned(edit, forget)


def allow_more_repeats(case):
    case.replanned(lambda plan: plan["repeats"].update(most=9999))


def count_fewer_requirements(case):
    case.replanned(lambda plan: plan["requirements"].update(count=10))


def name_another_revision(case):
    case.replanned(lambda plan: plan["contract"].update(revision="2031-01-01"))


def select_a_seed(case):
    case.replanned(lambda plan: plan.update(seed=1))
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(assurance="independent"))


def again(records, *, final, status=200):
    """A reply that was tried before, with an outcome that is to count no more."""
    attempt = first_answer(records)
    place = records.index(attempt)
    start = {"record": "start", "case": attempt["case"], "at": attempt["started_at"]}
    records[place:place] = [{**attempt, "final": final, "status": status}, start]


@recorded
def try_again_until_it_is_good(records):
    again(records, final=False)


@recorded
def judge_the_second_of_two(records):
    again(records, final=True)


@recorded
def retry_for_ever(records):
    for _ in range(4):
        again(records, final=False, status=503)


@recorded
def receive_before_sending(records):
    first_answer(records)["pieces"][0][0] = -1.0


@recorded
def answer_in_no_time(records):
    first_answer(records).update(elapsed=0.0, pieces=[])


@recorded
def take_no_time(records):
    records[-1]["ended_at"] = records[0]["started_at"]


def never_begin(case):
    """A time that is no number of JSON, as Python writes it."""
    lines, last = [], GENESIS
    for record in case.records():
        body = json.dumps(record, separators=(",", ":"))
        if record["record"] == "attempt":
            body = re.sub(r'"started_at":[0-9.]+', '"started_at":NaN', body)
        last = sha256(last.encode() + body.encode()).hexdigest()
        lines.append(f'{body[:-1]},"chain":"{last}"}}\n')
    (case.bundle / RECORDING).write_text("".join(lines))
    case.signed_as_it_is()


def shifted(days, case, *names):
    """The whole run, moved in time."""
    records = case.records()
    for record in records:
        record.update({name: record[name] + days * 86_400 for name in names if name in record})
    case.rechained(records)
    case.resealed(lambda plan: plan.update(planned_at=f"{TODAY + timedelta(days=days - 1)}T00:00:00+00:00"))
    case.replanned()


def certify_an_old_run(case):
    shifted(-400, case, "started_at", "ended_at", "at")


def certify_before_the_run(case):
    earlier = f"{TODAY - timedelta(days=100)}T00:00:00+00:00"
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(issued_at=earlier))


def add_a_member(case):
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(audited_by="somebody"))


def name_a_level_twice(case):
    payload = canonical(case.statement).replace(b'"level":"full"', b'"level":"none","level":"full"', 1)
    case.certificate.write_bytes(dsse.written(dsse.sign(payload, keys.load(case.key))))


def sign_twice(case):
    envelope = json.loads(case.certificate.read_bytes())
    envelope["signatures"].append({"keyid": "0" * 64, "sig": "AAAA"})
    case.certificate.write_bytes(canonical(envelope) + b"\n")


@recorded
def pack_a_bomb(records):
    """A reply of 65 kB that unpacks to 64 MB, ten times."""
    packed = b64encode(gzip.compress(bytes(64 * 1024 * 1024))).decode()
    for record in [record for record in records if record["record"] == "attempt"][:10]:
        record["headers"].append(["content-encoding", "gzip"])
        record["pieces"] = [[0.0001, {"base64": packed}]]


def write_a_huge_file(case):
    with (case.bundle / "junit.xml").open("ab") as file:
        file.truncate(65 * 1024 * 1024)
    case.resigned()


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (pack_a_bomb, {"BUNDLE_TOO_LARGE"}),
        (write_a_huge_file, {"BUNDLE_TOO_LARGE"}),
        (planned_as(profile="gate"), {"PLAN_DEPARTED"}),
        (planned_as(hostile=False), {"PLAN_DEPARTED"}),
        (lower_ceiling, {"PLAN_DEPARTED"}),
        (leave_out_a_request, {"PLAN_DEPARTED"}),
        (allow_more_repeats, {"PLAN_DEPARTED"}),
        (count_fewer_requirements, {"PLAN_DEPARTED"}),
        (name_another_revision, {"PLAN_DEPARTED"}),
        (planned_as(claims=["no prompt"]), {"PLAN_DEPARTED"}),
        (planned_as(audited_by="somebody"), {"PLAN_DEPARTED"}),
        (select_a_seed, {"SEED_CHOSEN", "ASSURANCE_EXCEEDED"}),
        (try_again_until_it_is_good, {"ATTEMPT_SUPERSEDED"}),
        (judge_the_second_of_two, {"ATTEMPT_SUPERSEDED"}),
        (retry_for_ever, {"ATTEMPT_SUPERSEDED"}),
        (receive_before_sending, {"TIMES_DISORDERED"}),
        (answer_in_no_time, {"TIMES_DISORDERED"}),
        (take_no_time, {"TIMES_DISORDERED"}),
        (never_begin, {"CHAIN_BROKEN"}),
        (certify_an_old_run, {"RUN_TOO_OLD", "DATES_DISORDERED"}),
        (certify_before_the_run, {"DATES_DISORDERED"}),
        (add_a_member, {"STATEMENT_UNKNOWN"}),
        (name_a_level_twice, {"STATEMENT_UNKNOWN"}),
        (sign_twice, {"ENVELOPE_MALFORMED"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_certify_demands_is_demanded_again(case, tamper, expected):
    tamper(case)
    result = verified(case)
    assert expected <= codes(result), [str(fault) for fault in result.faults]
    assert not result.examined


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda plan: plan["suite"].update(version="9.9.9", sha256="ab" * 32), "another build made the plan"),
        (lambda plan: plan["contract"].update(openapi_sha256="0" * 64), "the installed openapi.yaml is"),
        (lambda plan: plan["contract"].update(contract_sha256="0" * 64), "the installed contract.yaml is"),
        (lambda plan: plan["contract"].update(sha256="0" * 64), "the installed contract is"),
        (lambda plan: plan["drawn"].clear(), "this installation draws other bodies"),
    ],
)
def test_what_only_another_build_could_confirm_is_not_examined(case, edit, says, capsys):
    pages = {path.name: path.read_bytes() for path in case.certificate.parent.iterdir() if path != case.certificate}
    case.replanned(edit)
    for name, content in pages.items():
        case.certificate.with_name(name).write_bytes(content)
    result = verified(case)
    assert any(says in line for line in result.unexamined), result
    assert not result.examined
    given = ("--bundle", case.bundle, "--trust", case.trust, "--specs", case.specs[0])
    code = call("verify", case.certificate, *given)
    assert code != 0
    printed = capsys.readouterr().out
    assert "VALID" not in printed.splitlines()
    assert not re.search(rf"\b{case.certified['index']['of']}\b", printed), (
        "no number is shown that was not derived here"
    )


def test_a_revoked_key_goes_by_no_other_id(case, tmp_path):
    private = keys.load(case.key)
    statement = case.statement
    statement["predicate"][CERTIFIED]["keyid"] = "ab" * 32
    signature = private.sign(dsse.pae(dsse.PAYLOAD_TYPE, canonical(statement)))
    envelope = dsse.Envelope(canonical(statement), (("ab" * 32, signature),))
    case.certificate.write_bytes(dsse.written(envelope))
    (tmp_path / "revoked").write_text(f"{private.public.id} stolen\n")
    result = verified(case, evidence=False, revoked=trust.revoked(tmp_path / "revoked"))
    assert codes(result) == {"SIGNATURE_INVALID", "REVOKED"}


@pytest.mark.parametrize("form", [str.upper, "\ufeff{}".format, "{} the key was lost".format])
def test_a_revoked_id_is_understood_in_any_form(form, tmp_path):
    name = certified().certified["keyid"]
    (tmp_path / "revoked").write_text(f"{form(name)}\n", "utf-8")
    assert codes(verified(certified(), evidence=False, revoked=trust.revoked(tmp_path / "revoked"))) == {"REVOKED"}


def test_a_key_itself_can_be_revoked(tmp_path):
    (tmp_path / "revoked").write_text(certified().trust.read_text())
    assert codes(verified(certified(), evidence=False, revoked=trust.revoked(tmp_path / "revoked"))) == {"REVOKED"}


@pytest.mark.parametrize("line", ["{},", '"{}"', "{}…", "ed25519 !!!", "short", "id:{}"])
def test_a_line_of_revocations_that_is_not_understood_is_an_error(line, tmp_path):
    (tmp_path / "revoked").write_text(line.format(certified().certified["keyid"]) + " a reason\n", "utf-8")
    with pytest.raises(keys.KeyFileError, match="line 1"):
        trust.revoked(tmp_path / "revoked")


def test_a_name_gives_no_trust(case, tmp_path):
    with pytest.raises(keys.KeyFileError, match="only a verifier says"):
        keys.generate(tmp_path / "key", "Acme up-to=independent Ltd")
    public = certified().trust.read_text().split()[:2]
    (tmp_path / "trust").write_text(" ".join([*public, "Acme", "up-to=independent", "Ltd"]))
    with pytest.raises(keys.KeyFileError, match="third word"):
        trust.trusted(tmp_path / "trust")


def test_a_nonce_counts_as_used_only_by_a_certificate_of_a_trusted_key(case, tmp_path):
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(issuer="somebody else"), case.other)
    trusted = trust.trusted(case.trust)
    assert trust.seen(case.certificate.parent, trusted) == {}
    assert set(trust.seen(case.certificate.parent)) == {NONCE}, "it is signed, if by nobody known"
    (tmp_path / "made-up").mkdir()
    flipped(case.certificate, -200)
    assert trust.seen(case.certificate.parent) == {}


# What only the reader can know


def test_an_expired_certificate():
    last = date.fromisoformat(certified().certified["expires_on"])
    assert codes(verified(certified(), evidence=False, day=last)) == set()
    assert codes(verified(certified(), evidence=False, day=last + timedelta(days=1))) == {"EXPIRED"}


@pytest.mark.parametrize("what", ["certificate", "key", "nonce"])
def test_what_was_taken_back(what, tmp_path):
    result = verified(certified(), evidence=False)
    name = {"certificate": result.id, "key": certified().certified["keyid"], "nonce": NONCE}[what]
    (tmp_path / "revoked").write_text(f"# taken back\n\n{name} the key was lost\n")
    repeated = verified(certified(), evidence=False, revoked=trust.revoked(tmp_path / "revoked"))
    assert [str(fault) for fault in repeated.faults] == [f"REVOKED: {name[:16]}… is revoked: the key was lost"]


def test_a_nonce_that_was_used_before(case, tmp_path):
    registry = tmp_path / "registry"
    shutil.copytree(certified().certificate.parent, registry / "first")
    assert codes(verified(certified(), evidence=False, seen=trust.seen(registry))) == set(), "it may know itself"
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(issuer="somebody else"))
    assert codes(verified(case, evidence=False, seen=trust.seen(registry))) == {"NONCE_REUSED"}
    (tmp_path / "ledger").write_text(f"{NONCE} {'0' * 64}\n")
    assert codes(verified(certified(), evidence=False, seen=trust.seen(tmp_path / "ledger"))) == {"NONCE_REUSED"}


# What the suite itself could not settle


def test_a_verdict_that_is_open_and_a_check_that_crashed(case, monkeypatch):
    honest = examine.verdicts.derived

    def spoilt(recording, contract):
        document = honest(recording, contract)
        first, second = document["requirements"][:2]
        first |= {"outcome": "not_run", "incomplete": True, "reason": "nobody asked"}
        second |= {"outcome": "error", "reason": "the check raised"}
        del document["requirements"][2]
        return document

    monkeypatch.setattr(examine.verdicts, "derived", spoilt)
    monkeypatch.setattr("conformance.certificate.verify.examine", examine.examine)
    assert {"REQUIREMENT_OPEN", "SUITE_FAULT", "VERDICT_DIFFERS"} <= codes(verified(case))


def test_what_replies_lead_to_has_limits(case):
    case.resealed(lambda plan: plan.update(adaptive={"waves": ["base"], "most": -1}))
    messages = examine.replan.departures(
        read(case.bundle / RECORDING), lock.read(case.bundle / "plan.lock"), load("madeup", case.specs)
    )
    assert list(messages) == [
        "there is a phase 'values'; the plan allows base",
        "0 requests follow from replies; the plan allows -1",
    ]


def test_each_code_was_seen(request):
    tests = [item for item in request.session.items if item.module.__name__ == __name__]
    if len(tests) < 50:
        pytest.skip("speaks of the whole table")
    assert REASONS.keys() - NAMED <= {"SUITE_DIFFERS"}, "a code without a test"
