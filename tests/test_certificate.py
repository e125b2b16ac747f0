"""A full round as its three roles make it, and what each is refused."""

from __future__ import annotations

import fcntl
import json
import socket
import stat
from base64 import b64decode
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from conformance.certificate import examine, keys, verify
from conformance.certificate.bundle import hashes
from conformance.certificate.dsse import PAYLOAD_TYPE, Envelope, EnvelopeError, pae, read, sign, written
from conformance.certificate.examine import Examined
from conformance.certificate.keys import KeyFileError, PrivateKey
from conformance.certificate.levels import REFUSED, absent, area_of, areas, levels, names, overall
from conformance.certificate.page import drawn
from conformance.certificate.statement import CERTIFIED, StatementError, derived
from conformance.certificate.statement import parse as parse_statement
from conformance.certificate.trust import trusted
from conformance.cli import _guarded
from conformance.config.settings import SettingsError
from conformance.contract import load, providers
from conformance.judge import Traffic, judge
from conformance.judge import fixtures as ex
from conformance.model import Layer, Level, Requirement, Source
from conformance.model.clock import today
from conformance.recording.canonical_json import canonical, seal, sealed
from conformance.recording.plan_lock import LockError, parse, seed_of
from conformance.reference import serve
from conformance.run import locked_run
from conformance.run.launch import resolve_settings
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS
from tests.certificates import CLAIMS, DAY, NONCE, RECORDING, Case, certified, copied


@pytest.fixture(scope="module", autouse=True)
def whole() -> Case:
    return certified()


@pytest.fixture
def case(tmp_path) -> Case:
    return copied(tmp_path)


@pytest.fixture
def conformance(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = _guarded([str(one) for one in arguments], debug=False)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        return code, printed.out, printed.err

    return call


# The round


def test_a_reader_verifies_a_certificate_offline(conformance, whole):
    there = ("--bundle", whole.bundle, "--trust", whole.trust, "--specs", whole.specs[0])
    code, out, err = conformance("verify", whole.certificate, *there)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "VALID"
    assert "madeup (embedded reference): full, self-reported" in out
    assert "signed by The vendor" in out
    assert f"claimed: {', '.join(CLAIMS)}" in out


def test_what_was_not_examined_is_never_called_whole(conformance, whole):
    code, out, err = conformance("verify", whole.certificate)
    assert code == 3
    assert out.splitlines()[-1] == "valid as far as it was examined"
    assert "--trust" in err
    assert "--bundle" in err


def test_a_fault_is_certified_as_what_it_is_with_its_area(conformance, whole, tmp_path):
    context = load("madeup", whole.specs)
    reference = altered_reference(
        context, key=None, faults=(FAULTS["too_high_is_accepted_temperature"],), models=("m",)
    )
    there = ("--specs", whole.specs[0])
    with serve(reference) as base_url:
        where = ("--base-url", base_url, "--model", "m", "--name", "faulty")
        claims = [word for claim in CLAIMS for word in ("--claim", claim)]
        planned = ("plan", "madeup", *there, *where, *claims, "--profile", "certify", "--nonce", NONCE)
        assert conformance(*planned, "--lock", "a.lock")[0] == 0
        assert conformance("run", "madeup", *there, "--plan", "a.lock", "-q")[0] == 1
    code, out, err = conformance("certify", "reports/faulty", "--key", whole.key, *there)
    assert code == 1, err
    assert "left out: no key was given" in out
    assert "faulty: partial" in out
    lacking = {line.split()[0]: line.partition("lacks ")[2] for line in out.splitlines() if "lacks" in line}
    assert lacking == {"errors": "request.drawn.refuses, request.temperature.maximum"}
    certificate = tmp_path / "reports/faulty/certificate"
    verified = conformance("verify", certificate / "certificate.json", "--bundle", "reports/faulty", *there)
    assert verified[0] == 3, "true, but nobody said whose key counts"
    html = (certificate / "certificate.html").read_text("utf-8")
    assert "Conforms in part: something is lacking in errors" in html
    assert "partial, 115 of 117" in (certificate / "badge.svg").read_text("utf-8")


def test_an_independent_certificate_needs_the_nonce_and_a_key_that_may(conformance, case):
    out = case.home / "theirs"
    certify = ("certify", case.bundle, "--key", case.other, "--out", out, "--specs", case.specs[0])
    code, _, err = conformance(*certify, "--assurance", "independent")
    assert code == 3
    assert "NONCE_DIFFERS: independent needs the nonce that the signer gave" in err
    assert conformance(*certify, "--assurance", "independent", "--nonce", "something-else-altogether")[0] == 3
    assert not out.exists(), "nothing is written of what is refused"
    code = conformance(*certify, "--assurance", "independent", "--nonce", NONCE, "--issuer", "Example Labs")[0]
    assert code == 0
    verify = ("verify", out / "certificate.json", "--bundle", case.bundle, "--specs", case.specs[0], "--trust")
    line = (case.home / "other.key.pub").read_text().strip()
    (case.home / "low").write_text(f"{line} Example Labs\n")
    (case.home / "high").write_text(f"# whom we trust\n{line} up-to=independent Example Labs\n")
    assert "ASSURANCE_EXCEEDED" in conformance(*verify, case.home / "low")[2]
    assert conformance(*verify, case.home / "high")[0] == 0
    assert "Example Labs" in (out / "certificate.html").read_text("utf-8")


# What a vendor is refused


def rewritten(case, edit):
    path = case.bundle / "results.json"
    document = json.loads(path.read_bytes())
    edit(document)
    path.write_text(json.dumps(document), "utf-8")


def cut(case):
    path = case.bundle / RECORDING
    path.write_bytes(path.read_bytes()[:-300])


def waive(case):
    row = {"requirement": "a", "reason": "b", "owner": "c", "link": "https://d", "expires": "2030-01-01"}
    rewritten(case, lambda document: document["requirements"][0].update(waiver=row))


def leave_out(case):
    records = case.records()
    records[-1]["incomplete"] = ["the budget is spent: 3 of 294 requests were not sent"]
    case.rechained(records)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (cut, "EVIDENCE_TORN"),
        (lambda case: case.replanned(lambda document: document["suite"].update(version="0.0.9")), "SUITE_DIFFERS"),
        (waive, "WAIVED"),
        (leave_out, "RUN_INCOMPLETE"),
        (lambda case: (case.bundle / "plan.lock").unlink(), "FILE_MISSING"),
        (lambda case: (case.bundle / "notes.txt").write_text("x"), "FILE_STRANGE"),
        (
            lambda case: rewritten(case, lambda document: document.update(index={"verified": 1, "of": 1})),
            "RESULTS_DIFFER",
        ),
    ],
)
def test_nothing_is_certified_of_a_bundle_that_is_not_whole(conformance, case, spoil, code):
    spoil(case)
    exit_code, out, err = conformance("certify", case.bundle, "--key", case.key, "--specs", case.specs[0], "--out", "o")
    assert (exit_code, out) == (3, "")
    assert f"refused: {code}: " in err
    assert err.splitlines()[-1].endswith("no certificate was issued")


def test_a_gate_run_is_no_ground_for_a_certificate(conformance, whole):
    there = ("--specs", whole.specs[0])
    claims = [word for claim in CLAIMS for word in ("--claim", claim)]
    assert conformance("plan", "madeup", *there, *claims, "--lock", "gate.lock")[0] == 0
    assert conformance("run", "madeup", *there, "--plan", "gate.lock", "-q")[0] == 0
    code, _, err = conformance("certify", "reports/madeup", "--key", whole.key, *there)
    assert code == 3
    assert err.startswith("refused: PLAN_DEPARTED: the plan has the profile gate; expected certify")


def test_the_key_of_the_run_is_looked_for_as_well(conformance, case, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_API_KEY", "One, two, three")
    code, _, err = conformance("certify", case.bundle, "--key", case.key, "--specs", case.specs[0])
    assert code == 3
    assert "SECRET_FOUND" in err


# The plan


def test_a_plan_fixes_what_is_sent(whole):
    document = json.loads((whole.home / "plan.lock").read_bytes())
    assert document["sha256"] == seal(document)
    assert (document["nonce"], document["nonce_origin"], document["seed"]) == (NONCE, "given", seed_of(NONCE))
    assert document["requirements"]["date"] == DAY
    assert document["requirements"]["count"] == len(load("madeup", whole.specs).requirements)
    assert document["claims"] == list(CLAIMS)
    assert document["ceilings"]["requests"] == 2000
    header = whole.records()[0]
    assert header["plan"] == {"sha256": document["sha256"], "nonce": NONCE}
    sent = {case["id"]: case for one in whole.records() if one["record"] == "wave" for case in one["cases"]}
    fixed = {case["id"]: case for one in document["waves"] for case in one["cases"]}
    assert {name: sent[name] for name in fixed} == fixed, "this target takes every documented value"


def test_a_plan_is_never_replaced_and_its_nonce_is_fit(conformance, whole):
    there = ("plan", "madeup", "--specs", whole.specs[0], "--profile", "certify")
    code, _, err = conformance(*there, "--lock", whole.home / "plan.lock")
    assert code == 2
    assert "exists and may be in use" in err
    assert "expected 16 to 128" in conformance(*there, "--lock", "b", "--nonce", "short")[2]
    assert "--no-hostile cannot be combined with --lock" in conformance(*there, "--lock", "b", "--no-hostile")[2]
    assert "--nonce needs --lock FILE" in conformance(*there, "--nonce", NONCE)[2]
    assert "has no set that was in force" in conformance(*there, "--lock", "b", "--requirements", "2020-01-01")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--seed", "3"), "--seed is 3, and "),
        (("--profile", "full"), "--profile is 'full', and "),
        (("--model", "other"), "--model is 'other', and "),
        (("--base-url", "http://127.0.0.1:1"), "fixes nothing"),
        (("--claim", "no echo"), "--claim is "),
        (("--max-requests", "10"), "--max-requests is 10, and "),
        (("--no-hostile",), "--no-hostile is True, and "),
        (("--select", "usage.*"), "--select cannot be combined with --plan"),
        (("--resume",), "--resume cannot be combined with --plan"),
        (("--header", "x-a: b"), "--header names 1, others than the 0"),
    ],
)
def test_nothing_departs_from_a_plan(conformance, whole, arguments, says):
    plan = ("run", "madeup", "--specs", whole.specs[0], "--plan", whole.home / "plan.lock")
    code, _, err = conformance(*plan, *arguments)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1


def test_a_plan_for_somebody_else_or_of_another_time_is_refused(conformance, case, whole):
    lock = whole.home / "plan.lock"
    assert "is a plan for 'madeup', not for 'openai'" in conformance("run", "openai", "--plan", lock)[2]
    file = case.specs[0] / "madeup" / "contract.yaml"
    file.write_text(file.read_text("utf-8").replace("high: 1.5", "high: 1.6"), "utf-8")
    code, _, err = conformance("run", "madeup", "--specs", case.specs[0], "--plan", lock)
    assert code == 2
    assert "was made for another contract" in err
    document = json.loads(lock.read_bytes())
    document["waves"][1]["cases"].pop()
    (case.home / "other.lock").write_bytes(canonical(sealed(document)) + b"\n")
    err = conformance("run", "madeup", "--specs", whole.specs[0], "--plan", case.home / "other.lock")[2]
    assert "is not what is planned here" in err


def test_a_run_that_is_refused_leaves_the_plan_of_the_run_that_goes_on(conformance, whole):
    there = ("--specs", whole.specs[0])
    claims = [word for claim in CLAIMS for word in ("--claim", claim)]
    for name in ("first.lock", "second.lock"):
        assert conformance("plan", "madeup", *there, *claims, "--lock", name)[0] == 0
    assert conformance("run", "madeup", *there, "--plan", "first.lock", "-q")[0] == 0
    with (Path("reports/madeup") / RECORDING).open("ab") as going_on:
        fcntl.flock(going_on, fcntl.LOCK_EX)
        code, _, err = conformance("run", "madeup", *there, "--plan", "second.lock", "-q")
    assert (code, "another run is writing to it" in err) == (2, True)
    assert Path("reports/madeup/plan.lock").read_bytes() == Path("first.lock").read_bytes()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"format":"conformance-plan/1"}\n'])
def test_what_is_no_plan_is_told(data):
    with pytest.raises(LockError, match=r"plan\.lock"):
        parse(data)


def test_settings_come_from_the_plan(whole):
    chosen = resolve_settings("madeup", {"plan": whole.home / "plan.lock", "specs": whole.specs})
    assert (chosen.profile, chosen.seed, chosen.claims) == ("certify", seed_of(NONCE), CLAIMS)
    assert chosen.requirements == DAY
    with pytest.raises(SettingsError, match="cannot be read"):
        locked_run.read(whole.home / "nowhere")


# Another version of the suite


def test_what_another_version_judged_is_verified_or_that_version_named(case, monkeypatch):
    older = {"version": "0.0.9", "sha256": "a" * 64}
    known = verify.VerifierKnowledge(trusted(case.trust))
    monkeypatch.setattr(examine, "build", lambda: older)
    monkeypatch.setattr(verify, "build", lambda: older)
    same = verify.verify(case.certificate, case.bundle, known, today(), case.specs)
    assert same.faults == ()
    assert not same.examined
    assert "this build comes to the same result" in same.unexamined[-1], "which code judged is the signer's word"
    honest = examine.verdicts.derived

    def stricter(recording, contract):
        found = honest(recording, contract)
        found["requirements"][0]["outcome"] = "fail"
        return found

    monkeypatch.setattr(examine.verdicts, "derived", stricter)
    other = verify.verify(case.certificate, case.bundle, known, today(), case.specs)
    assert other.faults == ()
    assert "this build gives another result: VERDICT_DIFFERS" in other.unexamined[-1]
    assert "install completions-conformance 0.1.0" in other.unexamined[-1]
    assert [line.partition(":")[0] for line in other.unexamined[:-1]] == ["certificate.html", "badge.svg", "badge.json"]


def test_a_contract_that_has_changed_since_names_the_version(case):
    file = case.specs[0] / "madeup" / "contract.yaml"
    file.write_text(file.read_text("utf-8").replace("high: 1.5", "high: 1.6"), "utf-8")
    found = verify.verify(
        case.certificate, case.bundle, verify.VerifierKnowledge(trusted(case.trust)), today(), case.specs
    )
    assert found.faults == ()
    assert "the installed contract is" in found.unexamined[0]


def test_what_other_libraries_plan_otherwise_is_no_departure(case, monkeypatch):
    honest = examine.replan.planning.phases

    def otherwise(contract, checks, options):
        for phase in honest(contract, checks, replace(options, seed=1)):
            yield replace(phase, name=f"{phase.name}!")

    monkeypatch.setattr(examine.replan.planning, "phases", otherwise)
    known = verify.VerifierKnowledge(trusted(case.trust))
    found = verify.verify(case.certificate, case.bundle, known, today(), case.specs)
    assert [one.code for one in found.faults] == ["PLAN_DEPARTED"], "the plan that is fixed can still be drawn here"
    monkeypatch.undo()
    monkeypatch.setattr(examine.replan.planning, "draw", lambda _: ({"model": "m"},))
    found = verify.verify(case.certificate, case.bundle, known, today(), case.specs)
    assert found.faults == ()
    assert "this installation draws other bodies" in found.unexamined[0]


# Levels


def row(id, outcome="pass", level="MUST", **more):  # noqa: A002
    return {"id": id, "area": id.split(".")[0], "level": level, "outcome": outcome, "reason": "", **more}


def test_each_requirement_counts_in_one_area_and_no_pattern_is_idle():
    ids = {row.id for provider in providers() for row in load(provider).requirements}
    found = {one: area_of(one) for one in ids}
    assert set(found.values()) == set(names())
    for area in areas():
        for glob in area["ids"]:
            assert any(fnmatchcase(one, glob) for one, name in found.items() if name == area["name"]), glob
    assert (found["request.logprobs.maximum"], found["response.choices[].logprobs.type"]) == ("errors", "logprobs")
    assert (found["usage.chunk.last"], found["usage.total"]) == ("streaming", "core")


def test_an_area_is_full_partial_or_none():
    found = levels([row("usage.total"), row("usage.whole", "fail"), row("stream.delta"), row("errors.json", "flaky")])
    assert {name: one["level"] for name, one in found.items()} == {
        "core": "partial", "streaming": "full", "logprobs": "none", "sampling": "none", "errors": "none",
        "robustness": "none",
    }  # fmt: skip
    assert found["core"]["lacking"] == ["usage.whole"]
    assert overall(found) == "partial"
    assert overall(levels([row("usage.total")])) == "full"
    assert overall(levels([row("usage.total", "fail")])) == "none"


def test_a_should_never_decides_and_what_came_later_does_not_count():
    rows = [
        row("usage.total"),
        row("errors.json", "warn", "SHOULD"),
        row("stream.delta", "fail", not_scored="added later"),
    ]
    found = levels(rows)
    assert (overall(found), found["errors"]["warned"], found["streaming"]["of"]) == ("full", ["errors.json"], 0)


def test_claimed_and_absent_is_lacking_and_disclaimed_is_said():
    refused = row("logprobs.returned", "not_applicable", reason=f"{REFUSED}4 requests that ask for it (HTTP 400)")
    found = levels([row("usage.total"), refused])
    assert found["logprobs"]["lacking"] == ["logprobs.returned"]
    assert overall(found) == "partial"
    silent = row("logprobs.returned", "not_applicable", reason="no request that was sent asks for it")
    found = levels([row("usage.total"), silent], ["no logprobs"])
    assert found["logprobs"]["because"] == "no MUST applies: claimed is no logprobs"
    assert overall(found) == "full"


def test_the_judge_says_of_what_was_refused_what_levels_listen_for():
    promise = Requirement(
        "logprobs.returned", "logprobs_are_returned", Level.MUST, Layer.CONTRACT, "They come.", Source("#/a")
    )
    context = ex.contract(requirements=(promise,))
    found = judge(promise, Traffic([ex.error(request={"logprobs": 1})]), context)
    assert absent({"outcome": found.outcome.value, "reason": found.reason})


# Keys


def test_a_private_key_is_for_its_owner_and_never_shown(conformance, tmp_path):
    code, out, err = conformance("keygen", "my.key", "--name", "Some  Body")
    assert (code, err) == (0, "")
    secret = (tmp_path / "my.key").read_text()
    assert stat.S_IMODE((tmp_path / "my.key").stat().st_mode) == 0o600
    assert all(line not in out for line in secret.splitlines())
    assert repr(keys.load(tmp_path / "my.key")) == "PrivateKey()"
    (one,) = trusted(tmp_path / "my.key.pub")
    assert (one.name, one.most) == ("Some Body", "self-reported")
    assert one.key.id in out


@pytest.mark.parametrize("there", ["my.key", "my.key.pub"])
def test_a_key_is_never_replaced(conformance, tmp_path, there):
    (tmp_path / there).write_text("precious")
    code, _, err = conformance("keygen", "my.key")
    assert code == 2
    assert "a key is never replaced" in err
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "precious"


def test_a_key_that_others_can_read_does_not_sign(conformance, case):
    case.key.chmod(0o640)
    code, _, err = conformance("certify", case.bundle, "--key", case.key)
    assert code == 2
    assert "can be read by others (mode 0640)" in err
    path = case.home / "none"
    path.write_text("-----BEGIN")
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="is not a private key"):
        keys.load(path)


@pytest.mark.parametrize("line", ["ed25519", "rsa AAAA", "ed25519 AAAA", "ed25519 !!!", f"ed25519 {'A' * 43}= up-to=x"])
def test_a_list_of_keys_with_a_fault_is_told_by_line(tmp_path, line):
    (tmp_path / "keys").write_text(f"# one\n\n{line}\n")
    with pytest.raises(KeyFileError, match="line 3"):
        trusted(tmp_path / "keys")


# Formats


def test_the_encoding_that_is_signed_is_the_one_of_the_specification():
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_a_certificate_is_an_in_toto_statement_in_a_dsse_envelope(whole):
    envelope = json.loads(whole.certificate.read_bytes())
    assert envelope["payloadType"] == "application/vnd.in-toto+json" == PAYLOAD_TYPE
    assert [sorted(one) for one in envelope["signatures"]] == [["keyid", "sig"]]
    document = whole.statement
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert {one["name"]: one["digest"]["sha256"] for one in document["subject"]} == hashes(whole.bundle)
    predicate = document["predicate"]
    assert predicate["result"] in {"PASSED", "WARNED"}
    assert predicate["failedTests"] == []
    rows = {row.id for row in load("madeup", whole.specs).requirements}
    shown = {*predicate["passedTests"], *predicate["warnedTests"], *predicate[CERTIFIED]["not_applicable"]}
    assert shown <= rows
    assert predicate[CERTIFIED]["index"] == {"verified": 117, "of": 117}
    assert predicate[CERTIFIED]["evidence"]["last"] == whole.records()[-1]["before"]


def test_an_envelope_has_one_form(whole):
    data = whole.certificate.read_bytes()
    assert written(read(data)) == data
    document = json.loads(data)
    for other in (data[:-1], data + b" ", json.dumps(document).encode(), canonical({**document, "extra": 1}) + b"\n"):
        with pytest.raises(EnvelopeError):
            read(other)


def test_a_signature_is_of_type_and_payload_and_key(whole):
    mine, other = keys.load(whole.key), keys.load(whole.other)
    envelope = sign(b"{}", mine)
    assert envelope.signed_by([other.public, mine.public]) == [mine.public]
    assert Envelope(b"[]", envelope.signatures).signed_by([mine.public]) == []
    raw = Envelope(b"{}", (("x", PrivateKey.sign(mine, b"{}")),))
    assert raw.signed_by([mine.public]) == [], "what was signed without its type is no signature"


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b'{"predicate": {"completionsConformance": []}}'])
def test_a_statement_of_another_kind_is_told(payload):
    with pytest.raises(StatementError):
        parse_statement(payload)


def test_one_value_has_one_form():
    assert canonical({"b": [1, None, True], "a": "é\n"}) == b'{"a":"\xc3\xa9\\n","b":[1,null,true]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))
    assert seal({"a": 1, "sha256": "x"}) == seal({"a": 1})


# The page


def test_the_page_loads_nothing_and_hostile_names_stay_text(whole):
    document = whole.statement
    document["predicate"][CERTIFIED]["target"]["name"] = "</title><script>alert(1)</script>\u202e"
    document["predicate"][CERTIFIED]["issuer"] = "<img src=x>"
    files = drawn(document, "a" * 64)
    html = files["certificate.html"].decode()
    assert "<script" not in html
    assert "<img" not in html
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in html
    assert b"<script" not in files["badge.svg"]
    assert json.loads(files["badge.json"])["schemaVersion"] == 1


def test_what_is_not_whole_has_no_statement():
    with pytest.raises(AssertionError):
        derived(Examined(()))


def test_what_was_required_later_is_run_shown_and_not_scored(conformance, case, tmp_path):
    file = case.specs[0] / "madeup" / "frozen" / f"{DAY}.yaml"
    file.write_text(file.read_text("utf-8").replace("  usage.total: MUST\n", ""), "utf-8")
    there = ("--specs", case.specs[0])
    claims = [word for claim in CLAIMS for word in ("--claim", claim)]
    assert conformance("plan", "madeup", *there, *claims, "--profile", "certify", "--lock", "later.lock")[0] == 0
    assert conformance("run", "madeup", *there, "--plan", "later.lock", "-q")[0] == 0
    assert conformance("certify", "reports/madeup", "--key", case.key, *there)[0] == 0
    certificate = tmp_path / "reports/madeup/certificate/certificate.json"
    issued = json.loads(b64decode(json.loads(certificate.read_bytes())["payload"]))["predicate"][CERTIFIED]
    assert (issued["not_scored"], issued["index"]) == (["usage.total"], {"verified": 116, "of": 116})
    assert issued["requirements"]["sha256"] != case.certified["requirements"]["sha256"]
    assert "1 added later are not scored" in certificate.with_name("certificate.html").read_text("utf-8")
    strict = ("verify", certificate, "--bundle", "reports/madeup", "--trust", case.trust)
    assert conformance(*strict, *there)[0] == 0
    code, _, err = conformance(*strict, "--specs", certified().specs[0])
    assert (code, "SET_DIFFERS" in err) == (1, True)


def test_a_reader_needs_no_network(whole, monkeypatch):
    def refuse(*given, **more):
        raise AssertionError("a socket was asked for")

    monkeypatch.setattr(socket, "socket", refuse)
    found = verify.verify(
        whole.certificate, whole.bundle, verify.VerifierKnowledge(trusted(whole.trust)), today(), whole.specs
    )
    assert (found.faults, found.unexamined) == ((), ())
