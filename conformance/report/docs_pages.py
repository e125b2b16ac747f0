"""Generated pages: `python -m conformance.report.docs_pages FOLDER` writes them below FOLDER.

docs/coverage/ is committed and tested; pages of requirements are long and change often, so they are made on demand.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from conformance.contract import load, providers
from conformance.contract.derived_rows import fields
from conformance.model import Contract, Requirement
from conformance.report.requirement_card import card


def coverage_pages() -> dict[str, str]:
    """The page of each provider's documented fields, by its path below `docs/`."""
    return {f"coverage/{provider}.md": coverage(load(provider)) for provider in providers()}


def requirement_pages() -> dict[str, str]:
    """The page of each provider's requirements, by its path below the folder."""
    return {f"requirements/{provider}.md": requirements(load(provider)) for provider in providers()}


def requirements(contract: Contract) -> str:
    """All requirements of a provider, area by area, as Markdown; then what is left open or cannot be observed."""
    areas: dict[str, list[Requirement]] = {}
    for requirement in contract.requirements:
        areas.setdefault(requirement.area, []).append(requirement)
    lines = [f"# {contract.title}: requirements", "", f"Revision {contract.revision}.", ""]
    lines += ["| area | MUST | SHOULD | MAY |", "|---|---|---|---|"]
    for area, members in areas.items():
        levels = Counter(str(requirement.level) for requirement in members)
        lines.append(f"| [{area}](#{area}) | {levels['MUST']} | {levels['SHOULD']} | {levels['MAY']} |")
    for area, members in areas.items():
        lines += ["", f"## {area}", ""]
        for requirement in members:
            lines += [card(contract, requirement), ""]
    lines += _not_judged(contract)
    return "\n".join(lines).rstrip() + "\n"


def _not_judged(contract: Contract) -> Iterator[str]:
    yield "## Ambiguities: what the document leaves open\n"
    for ambiguity in contract.ambiguities:
        yield f"### {ambiguity.id}\n\n{ambiguity.point}\n"
        yield from (f"- reading {number}: {reading}" for number, reading in enumerate(ambiguity.readings, 1))
        yield f"- observed instead of a verdict: {ambiguity.observed}"
        yield f"- source: {ambiguity.source.at} ({ambiguity.source.page})\n"
    yield "## Exclusions: promised, and not observable by a client\n"
    for exclusion in contract.exclusions:
        yield f"- {exclusion.promise} ({exclusion.source.page or exclusion.source.at}): {exclusion.reason}"


def coverage(contract: Contract) -> str:
    """Each path of the request and response schemas, and the requirements that are bound to it."""
    parts = {"request": contract.request, "response": contract.response, "chunk": contract.chunk}
    parts |= {f"error.{status}": schema for status, schema in contract.errors.items()}
    lines = [f"# {contract.title}: coverage", ""]
    lines += ["Each documented field, and the requirements bound to it. Generated; do not edit.", ""]
    for part, schema in parts.items():
        lines += [f"## {part.replace('.', ' ', 1)}", "", "| field | bound by |", "|---|---|"]
        for field in fields(schema):
            bound = bound_to(contract, part, field.path)
            lines.append(f"| `{field.path}` | {'; '.join(bound) or '**nothing**'} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def bound_to(contract: Contract, part: str, path: str) -> list[str]:
    """The ids of the requirements on a field, then of the ambiguities about it."""
    bound = [
        requirement.id
        for requirement in contract.requirements
        if requirement.id.startswith(f"{part}.") and _concerns(requirement, path)
    ]
    if not bound and part == "request":  # a nested field is exercised through the values of its parameter
        parameter = path.partition(".")[0].partition("[")[0]
        accepts = f"request.{parameter}.accepts"
        bound = [requirement.id for requirement in contract.requirements if requirement.id == accepts]
    name = path.rpartition(".")[2]
    return bound + [
        f"ambiguity {ambiguity.id}" for ambiguity in contract.ambiguities if ambiguity.source.at.endswith(f"/{name}")
    ]


def _concerns(requirement: Requirement, path: str) -> bool:
    parameter = requirement.params.get("parameter")
    return path in {requirement.params.get("path"), parameter, str(parameter).rstrip("[]")}


def write(folder: Path) -> None:
    """Write all pages below a folder."""
    for name, text in (coverage_pages() | requirement_pages()).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m conformance.report.docs_pages FOLDER")
    write(Path(sys.argv[1]))
