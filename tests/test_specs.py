"""The data under specs/ is whole: it loads, it validates, and no sentence of a document is left out."""

import hashlib
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from conformance.contract.derived_rows import fields
from conformance.contract.loader import folders, load, providers, read_yaml
from conformance.contract.openapi import follow
from conformance.contract.validity import combines, validity
from conformance.judge.catalogue import load as catalogue
from conformance.model import Contract, Layer, Level, Validity

SPECS = folders()[-1]
PROVIDERS = providers()
LINES = re.compile(r"\d+(?:-\d+)?")
PAGE = re.compile(rf"[^:\s]+\.txt:{LINES.pattern}(?:,{LINES.pattern})*")
SEEDS = Path(os.environ.get("CONFORMANCE_SEEDS", "/nonexistent"))
SECTION = re.compile(r"RFC \d+ §\d|OpenAPI 3\.1\.0 §\d|WHATWG HTML, 9\.2")
CLIENTS = re.compile(r"clients: \w|clients behind|RFC \d+ §\d")
COPIED = 9  # so many words in a row are no coincidence

documents = pytest.mark.skipif(not SEEDS.is_dir(), reason="CONFORMANCE_SEEDS names no folder with the source documents")


@cache
def contract(provider: str) -> Contract:
    return load(provider)


@cache
def raw(provider: str) -> dict[str, Any]:
    return read_yaml(SPECS / provider / "contract.yaml")


def matches(pattern: str, identity: str) -> bool:
    return fnmatchcase(identity, pattern.replace("[", "[[]"))


def strings(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Every string with the names of the members that lead to it."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from strings(one, f"{at}/{name}")
    elif isinstance(value, list):
        for one in value:
            yield from strings(one, at)


def members(provider: str, name: str) -> list[str]:
    return [text for at, text in strings(raw(provider)) if at.endswith(f"/{name}")]


def test_all_five_providers_are_there():
    assert set(PROVIDERS) >= {"fireworks", "interactive", "nebius", "novita", "openai"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_document_is_valid_openapi(provider):
    validate(read_yaml(SPECS / provider / "openapi.yaml"))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_row_is_bound_to_a_check_that_exists(provider):
    told = [*raw(provider)["requirements"], *read_yaml(SPECS / "common.yaml")["requirements"]]
    assert [row["id"] for row in told if row["check"] not in catalogue()] == []


def test_every_check_is_bound_by_some_provider():
    bound = {row.check for provider in PROVIDERS for row in contract(provider).requirements}
    assert sorted(catalogue().keys() - bound) == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_ids_stand_once(provider):
    ids = [row.id for row in contract(provider).requirements]
    assert len(ids) == len(set(ids))


def test_ids_of_common_rows_stand_once():
    ids = [row["id"] for row in read_yaml(SPECS / "common.yaml")["requirements"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_only_clients_expect_never_fails_a_target(provider):
    rows = contract(provider).requirements
    assert [row.id for row in rows if row.layer is Layer.ECOSYSTEM and row.level is Level.MUST] == []


CITES = {
    Layer.CONTRACT: r"#/",
    Layer.STANDARD: r"(RFC \d+|OpenAPI 3|WHATWG)",
    Layer.ECOSYSTEM: r"(clients|.*; clients)",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_layer_is_told_by_what_is_cited(provider):
    """The document by a place in it, a standard by its name, a habit by the clients that have it."""
    rows = contract(provider).requirements
    assert [(row.id, row.source.at) for row in rows if not re.match(CITES[row.layer], row.source.at)] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_whoever_follows_a_row_to_the_document_arrives(provider):
    for row in contract(provider).requirements:
        if row.source.at.startswith("#"):
            follow(contract(provider).openapi, row.source.at)  # raises where there is nothing


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_rests_on_sampling_is_at_most_a_warning(provider):
    """Relations of texts hold as far as sampling repeats; lost structure, or a token that is excluded, is more."""
    structural = {"relations.twin.choices", "effects.json", "effects.ignore-eos"}
    structural |= {"effects.filter.top-p", "effects.filter.top-k", "effects.filter.min-p"}
    rows = [row for row in contract(provider).requirements if row.area in {"effects", "relations"}]
    assert [row.id for row in rows if row.level is Level.MUST and row.id not in structural] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_the_schema_says_in_passing_is_at_most_a_warning(provider):
    passing = [
        row for row in contract(provider).requirements if row.area == "request" and row.check == "invalid_is_refused"
    ]
    for row in passing:
        word, name = row.params.get("keyword"), row.params.get("parameter")
        optional = name in contract(provider).parameters and not contract(provider).parameters[name].required
        if word == "coercion" or (word == "nullable" and optional):
            assert row.level is not Level.MUST, row.id


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_left_open_is_never_judged(provider):
    rows = contract(provider).requirements
    assert [row.id for row in rows if row.check == "edge_is_observed" and row.level is not Level.MAY] == []
    unclear = {rule.id for rule in contract(provider).combinations if rule.validity is Validity.UNSPECIFIED}
    assert unclear <= {row.id for row in rows if row.level is Level.MAY}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_level_than_the_derived_one_has_a_reason_and_a_place(provider):
    for change in raw(provider).get("derived", ()):
        assert change["reason"].endswith("."), change["id"]
    for name in ("request", "response", "chunk"):
        assert raw(provider).get(name, {"reason": "."})["reason"].endswith("."), name


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_promise_is_one_sentence(provider):
    promises = [row.promise for row in contract(provider).requirements]
    assert [one for one in promises if not one.endswith(".") or re.search(r"\.\s+[A-Z]", one)] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_contract_row_names_its_place(provider):
    rows = [row for row in contract(provider).requirements if row.layer is Layer.CONTRACT]
    assert [row.id for row in rows if not row.source.at] == []
    for one in (*members(provider, "page"),):
        assert PAGE.fullmatch(one), one


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_pointer_leads_somewhere(provider):
    openapi = contract(provider).openapi
    for at in [one for one in members(provider, "at") if one.startswith("#/")]:
        follow(openapi, at)  # raises where there is nothing


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_parameter_has_rows_on_accepting_and_refusing(provider):
    found = contract(provider)
    checks = {
        name: {r.check for r in found.requirements if r.params.get("parameter") == name} for name in found.parameters
    }
    lacking = [name for name, bound in checks.items() if not bound >= {"valid_is_accepted", "invalid_is_refused"}]
    assert lacking == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_field_of_a_reply_has_a_row(provider):
    found = contract(provider)
    rows = {(row.params.get("channel"), row.params.get("path")) for row in found.requirements}
    lacking = [one.path for one in fields(found.response) if ("plain", one.path) not in rows]
    lacking += [one.path for one in fields(found.chunk) if ("chunk", one.path) not in rows]
    assert lacking == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_combination_is_shown_by_its_example(provider):
    found = contract(provider)
    for rule in found.combinations:
        body = {"model": "m", "prompt": "One", **rule.example}
        assert combines(found, rule, body), rule.id
        assert validity(found, body) is rule.validity, rule.id


@pytest.mark.parametrize("provider", PROVIDERS)
def test_examples_are_valid(provider):
    found = contract(provider)
    for name, values in found.examples.items():
        way = {"stream": True} if name == "stream_options" else {}
        for value in values:
            assert validity(found, {"model": "m", "prompt": "One", **way, name: value}) is Validity.VALID, (name, value)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_statement_leads_to_something(provider):
    found = contract(provider)
    ids = [row.id for row in found.requirements]
    named = {
        "limit": {limit.parameter for limit in found.limits},
        "ambiguity": {one.id for one in found.ambiguities},
        "exclusion": {str(number) for number in range(len(found.exclusions))},
    }
    lost = []
    for statement in found.statements:
        for bound in statement.bound:
            kind, colon, rest = bound.partition(":")
            if not (rest in named[kind] if colon else any(matches(bound, identity) for identity in ids)):
                lost.append((statement.page, bound))
    assert lost == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_is_promised_that_no_statement_says(provider):
    found = contract(provider)
    bound = {one for statement in found.statements for one in statement.bound}
    promised = [row.id for row in found.requirements if row.layer is Layer.CONTRACT]
    assert [one for one in promised if not any(matches(pattern, one) for pattern in bound)] == []
    assert [one.id for one in found.ambiguities if f"ambiguity:{one.id}" not in bound] == []
    assert [one for number, one in enumerate(found.exclusions) if f"exclusion:{number}" not in bound] == []


@documents
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_page_and_line_exists(provider):
    for page in (*members(provider, "page"), *(one.page for one in contract(provider).statements)):
        name, _, spans = page.partition(":")
        lines = (SEEDS / name).read_text("utf-8").splitlines()
        for span in spans.split(","):
            first, _, last = span.partition("-")
            assert 1 <= int(first) <= int(last or first) <= len(lines), page
            assert any(line.strip() for line in lines[int(first) - 1 : int(last or first)]), page


@documents
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_line_that_binds_is_covered_by_a_statement(provider):
    """Lines that speak of a duty, a bound or a type stand inside some statement."""
    name = raw(provider)["document"]["file"]
    covered = set()
    for statement in contract(provider).statements:
        for span in statement.page.partition(":")[2].split(","):
            first, _, last = span.partition("-")
            covered |= set(range(int(first), int(last or first) + 1))
    lines = (SEEDS / name).read_text("utf-8").splitlines()
    words = re.compile(r"required|\bmust\b|cannot|always|Required range|minimum:|maximum:|enum|Up to 4", re.IGNORECASE)
    assert [number for number, line in enumerate(lines, 1) if words.search(line) and number not in covered] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_requirement_shows_the_words_the_section_or_the_clients_that_it_rests_on(provider):
    without = [row for row in contract(provider).requirements if not row.source.quote]
    assert [row.id for row in without if row.layer is Layer.CONTRACT] == []
    assert [row.id for row in without if row.layer is Layer.STANDARD and not SECTION.search(row.source.at)] == []
    assert [row.id for row in without if row.layer is Layer.ECOSYSTEM and not CLIENTS.match(row.source.at)] == []


@documents
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_quote_is_printed_in_the_document_or_written_in_its_vendored_text(provider):
    printed = folded((SEEDS / contract(provider).document.file).read_text("utf-8"))
    written = folded((SPECS / provider / "openapi.yaml").read_text("utf-8"))
    quotes = {row.source.quote for row in contract(provider).requirements} | set(members(provider, "quote"))
    assert [quote for quote in quotes if quote not in printed and quote not in written] == []
    assert [quote for quote in members(provider, "quote") if quote not in printed] == []


@documents
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_document_is_the_one_whose_title_address_and_hash_are_stated(provider):
    document = contract(provider).document
    page = (SEEDS / document.file).read_bytes()
    assert document.sha256 == hashlib.sha256(page).hexdigest()
    assert all(
        words in folded(page.decode()).replace(" / ", " /") for words in (document.title, document.url, document.index)
    )


def folded(text: str) -> str:
    return " ".join(text.split())


@documents
@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_but_quotes_is_copied(provider):
    document = (SEEDS / raw(provider)["document"]["file"]).read_text("utf-8")
    theirs = set(_runs(document))
    own = [*strings(raw(provider)), *strings(read_yaml(SPECS / provider / "openapi.yaml"))]
    told = [text for at, text in own if "/example" not in at and not at.endswith(("/url", "/quote"))]
    assert [text for text in told if theirs & set(_runs(text))] == []


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return (tuple(words[start : start + COPIED]) for start in range(len(words) - COPIED + 1))
