"""A submission folder, gone through by the reviewer's checklist."""

from __future__ import annotations

import shutil

import pytest

from conformance.certificate.statement import OURS
from conformance.cli import _guarded
from tests.certificates import CLAIMS, NONCE, Case, certified, copied

README = f"""# Made-up

## How to reproduce

Claims: {", ".join(CLAIMS)}

    conformance plan madeup --profile certify --lock plan.lock
    conformance run madeup --plan plan.lock
"""


@pytest.fixture(scope="module", autouse=True)
def whole() -> Case:
    return certified()


@pytest.fixture
def case(tmp_path) -> Case:
    return copied(tmp_path)


def product(case: Case, **more) -> str:
    target = case.ours["target"]
    told = {
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
    return "".join(f'{name} = "{value}"\n' for name, value in told.items() if value)


@pytest.fixture
def submitted(case):
    """What a vendor hands in."""
    folder = case.home / "submission"
    folder.mkdir()
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
        code = _guarded([str(one) for one in arguments], debug=False)
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out

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
    case.resigned(lambda told: told["predicate"][OURS].update(issuer="again"))
    shutil.copy(case.certificate, submitted)
    code, out = check()
    assert code == 1
    assert f"NONCE_REUSED: the nonce {NONCE} was used" in out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "README.md").unlink(), "README.md is missing"),
        (lambda folder: (folder / "product.toml").unlink(), "product.toml is missing"),
        (lambda folder: shutil.rmtree(folder / "bundle"), "bundle is missing"),
        (lambda folder: (folder / "certificate.json").unlink(), "certificate.json is missing"),
        (lambda folder: (folder / "my.key").write_text("x"), "my.key does not belong here"),
        (lambda folder: (folder / "badge.svg").write_text("<svg/>"), "PAGE_DIFFERS"),
        (
            lambda folder: (folder / "README.md").write_text("# Made-up\n"),
            "lacks a heading such as '## How to reproduce'",
        ),
        (lambda folder: (folder / "README.md").write_text(README.replace("no seed", "")), "the claim 'no seed'"),
        (lambda folder: (folder / "bundle/junit.xml").write_text(""), "FILE_CHANGED: junit.xml"),
        (lambda folder: (folder / "bundle/link").symlink_to("/etc/hostname"), "bundle/link is a link"),
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
    ],
)
def test_a_product_that_is_not_what_was_certified(check, submitted, case, more, says):
    (submitted / "product.toml").write_text(product(case, **more))
    code, out = check()
    assert code == 1
    assert any(line.startswith("NO") and says in line for line in out.splitlines()), out
