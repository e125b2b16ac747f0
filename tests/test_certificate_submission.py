"""A submission folder, gone through by the reviewer's checklist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from conformance.certificate.reasons import REASONS
from conformance.certificate.statement import CERTIFIED
from conformance.certificate.submission import SCHEMA
from conformance.cli import COMMANDS, _guarded
from conformance.config.toml_file import read as read_toml
from tests.certificates import CLAIMS, NONCE, Case, certified, copied, examine_each_bundle_once

ROOT = Path(__file__).parents[1]
README = f"""# Made-up

## How to reproduce

Claims: {", ".join(CLAIMS)}

    conformance plan madeup --profile certify --lock plan.lock
    conformance run madeup --plan plan.lock
"""


@pytest.fixture(scope="module", autouse=True)
def whole() -> Case:
    return certified()


@pytest.fixture(autouse=True)
def examined_once(monkeypatch):
    examine_each_bundle_once(monkeypatch)


@pytest.fixture
def case(tmp_path) -> Case:
    return copied(tmp_path)


def product(case: Case, **more) -> str:
    target = case.certified["target"]
    members = {
        "name": "Made-up text",
        "vendor": "Made-up Ltd",
        "version": "9",
        "contact": "conformance@madeup.example",
        "website": "https://madeup.example",
        "contract": "madeup",
        "endpoint": target["base_url"],
        "model": target["model"],
        **more,
    }
    return "".join(f'{name} = "{value}"\n' for name, value in members.items() if value)


@pytest.fixture
def submitted(case):
    """What a vendor hands in."""
    folder = case.home / "submission"
    folder.mkdir()
    signed = tomllib.loads(product(case))
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(product=signed))
    shutil.copytree(case.bundle, folder / "bundle", ignore=lambda *_: ["certificate"])
    for path in case.certificate.parent.iterdir():
        shutil.copy(path, folder)
    (folder / "product.toml").write_text(product(case))
    (folder / "README.md").write_text(README)
    (case.home / "registry").mkdir()
    return folder


@pytest.fixture
def check(submitted, case, capsys):
    """The checklist's lines by point, and the exit code."""

    def checked(*more):
        seen = () if more else ("--seen", case.home / "registry")
        arguments = ("submit-check", submitted, "--specs", case.specs[0], "--trust", case.trust, *seen, *more)
        code = _guarded([str(argument) for argument in arguments], debug=False)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        return code, printed.out

    return checked


def test_a_submission_that_is_in_order(check):
    code, out = check()
    assert code == 3, "a registry without certificates cannot know of nonces"
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["ok", "files"],
        ["ok", "certificate"],
        ["ok", "level"],
        ["ok", "assurance"],
        ["ok", "product"],
        ["ok", "readme"],
        ["open", "nonce"],
    ]
    assert f"full; claimed: {', '.join(CLAIMS)}" in out


def test_a_registry_that_knows_others(check, case):
    (case.home / "registry" / "ledger").mkdir()
    (case.home / "ledger").write_text(f"another-nonce-of-somebody {'0' * 64}\n")
    code, out = check("--seen", case.home / "ledger")
    assert (code, out.splitlines()[-1].split()[:2]) == (0, ["ok", "nonce"])


def test_a_nonce_that_the_registry_knows(check, case, submitted):
    shutil.copytree(case.certificate.parent, case.home / "registry" / "first")
    assert check()[0] == 0, "the same certificate may be looked at again"
    case.resigned(lambda statement: statement["predicate"][CERTIFIED].update(issuer="again"))
    shutil.copy(case.certificate, submitted)
    code, out = check()
    assert code == 1
    assert f"NONCE_REUSED: the nonce {NONCE} was already used" in out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "README.md").unlink(), "README.md is missing"),
        (lambda folder: (folder / "product.toml").unlink(), "product.toml is missing"),
        (lambda folder: shutil.rmtree(folder / "bundle"), "bundle is missing"),
        (lambda folder: (folder / "certificate.json").unlink(), "certificate.json is missing"),
        (lambda folder: (folder / "my.key").write_text("x"), "my.key does not belong in a submission"),
        (lambda folder: (folder / ".gitattributes").write_text("x"), ".gitattributes does not belong in a submission"),
        (lambda folder: (folder / "bundle/certificate").write_text("x"), "bundle/certificate is not covered"),
        (lambda folder: (folder / "badge.svg").write_text("<svg/>"), "PAGE_DIFFERS"),
        (
            lambda folder: (folder / "README.md").write_text("# Made-up\n"),
            "lacks a heading such as '## How to reproduce'",
        ),
        (lambda folder: (folder / "README.md").write_text(README.replace("no seed", "")), "the claim 'no seed'"),
        (lambda folder: (folder / "bundle/junit.xml").write_text(""), "FILE_CHANGED: junit.xml"),
        (lambda folder: (folder / "bundle/link").symlink_to("/etc/hostname"), "bundle/link is a symbolic link"),
    ],
)
def test_what_is_not_in_order_is_named(check, submitted, change, says):
    change(submitted)
    code, out = check()
    assert code == 1
    assert any(line.startswith("NO") and says in line for line in out.splitlines()), out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"model": "other"}, "model is 'other'; certified was 'reference'"),
        ({"endpoint": "https://elsewhere.example"}, "endpoint is 'https://elsewhere.example'; certified was "),
        ({"contract": "openai"}, "contract is 'openai'; certified was 'madeup'"),
        ({"contact": "somebody"}, "expected an e-mail address or an https page"),
        ({"website": "javascript:alert"}, "expected an https address"),
        ({"vendor": ""}, "lacks vendor"),
        ({"price": "1"}, "has 'price'"),
        ({"vendor": "Mallory Inc"}, "vendor is 'Mallory Inc'; certified was 'Made-up Ltd'"),
        ({"name": "Another text"}, "name is 'Another text'; certified was 'Made-up text'"),
    ],
)
def test_a_product_that_is_not_what_was_certified(check, submitted, case, more, says):
    (submitted / "product.toml").write_text(product(case, **more))
    code, out = check()
    assert code == 1
    assert any(line.startswith("NO") and says in line for line in out.splitlines()), out


def test_a_certificate_of_no_product_is_nobodys(check, submitted, case):
    shutil.copy(certified().certificate, submitted)
    code, out = check()
    assert code == 1
    assert "the certificate names no product; sign one with `certify --product product.toml`" in out


def test_a_product_is_signed_with_the_certificate(case, submitted, tmp_path):
    given = ("--key", case.key, "--specs", case.specs[0], "--out", tmp_path / "out", "--product")
    arguments = [str(argument) for argument in ("certify", case.bundle, *given)]
    assert _guarded([*arguments, str(submitted / "product.toml")], debug=False) == 0
    signed = json.loads(b64decode(json.loads((tmp_path / "out" / "certificate.json").read_bytes())["payload"]))
    assert signed["predicate"][CERTIFIED]["product"]["vendor"] == "Made-up Ltd"
    assert "Made-up Ltd: Made-up text 9" in (tmp_path / "out" / "certificate.html").read_text("utf-8")


# What a registry is given


@pytest.fixture
def registry(submitted, case, tmp_path):
    """A registry's checkout, and one with a submission on top."""
    there, with_submission = tmp_path / "base", tmp_path / "submitted"
    (there / "certificates").mkdir(parents=True)
    shutil.copy(case.trust, there / "keys.txt")
    (there / "revoked.txt").write_text("# nothing yet\n")
    shutil.copytree(there, with_submission)
    shutil.copytree(submitted, with_submission / "certificates" / "madeup")
    tools = tmp_path / "tools"
    tools.mkdir()
    script = tools / "conformance"
    script.write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" -m conformance "$@" --specs "{case.specs[0]}"\n')
    script.chmod(0o755)

    def gone_through():
        path = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", ROOT / "docs" / "registry.sh", there, with_submission],
            cwd=tmp_path, env=path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    return SimpleNamespace(there=there, submitted=with_submission, gone_through=gone_through)


def test_a_registry_goes_through_what_is_new(registry, case):
    code, out = registry.gone_through()
    assert code == 3, "the first certificate of all: nobody can know of its nonce"
    assert "## madeup" in out
    assert "ok    certificate" in out
    shutil.copytree(registry.submitted / "certificates" / "madeup", registry.there / "certificates" / "madeup")
    assert registry.gone_through() == (0, "0 submissions\n")
    shutil.rmtree(registry.submitted / "certificates" / "madeup")
    code, out = registry.gone_through()
    assert (code, out.splitlines()[0].split(";")[0]) == (1, "madeup is gone")


def test_a_submission_that_brings_its_own_keys_is_stopped(registry, case):
    (registry.submitted / "keys.txt").write_text("ed25519 mine\n")
    (registry.submitted / "certificates/madeup/bundle/junit.xml").write_text("")
    code, out = registry.gone_through()
    assert code == 1
    assert "changes nothing outside of certificates/" in out
    assert "FILE_CHANGED: junit.xml" in out


def test_the_guide_has_each_reason_each_command_and_a_product_that_fits(tmp_path):
    guide = (ROOT / "docs" / "certification.md").read_text("utf-8")
    for code, meaning in REASONS.items():
        assert f"| `{code}` | {meaning} |" in guide
    for name in ("keygen", "certify", "verify", "submit-check"):
        assert name in COMMANDS
        assert name in guide
    (text,) = re.findall(r"^```toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "product.toml").write_text(text)
    assert read_toml(tmp_path / "product.toml", SCHEMA)["contract"] == "openai"


def test_the_registry_s_workflow_gives_a_stranger_nothing():
    workflow = yaml.safe_load((ROOT / "docs" / "registry.yml").read_text("utf-8"))
    assert workflow[True] == "pull_request"
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["check"]["steps"]
    checkouts = [step["with"] for step in steps if step.get("uses", "").startswith("actions/checkout")]
    assert [checkout["persist-credentials"] for checkout in checkouts] == [False, False]
    assert "secrets." not in (ROOT / "docs" / "registry.yml").read_text("utf-8")
    assert steps[-1]["run"] == "bash registry/registry.sh registry submitted", "the script is the registry's own"
