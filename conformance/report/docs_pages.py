"""The generated pages: `python -m conformance.report.docs_pages docs` writes them, and a test compares."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.contract import load, providers
from conformance.contract.derived_rows import fields
from conformance.model import Contract, Requirement
from conformance.report.requirement_card import card


def pages() -> Mapping[str, str]:
    """Every generated page by its path below `docs/`."""
    found = {}
    for provider in providers():
        contract = load(provider)
        found[f"requirements/{provider}.md"] = _requirements(contract)
        found[f"coverage/{provider}.md"] = coverage(contract)
    return found


def _requirements(contract: Contract) -> str:
    """What is required of a provider, area by area."""
    lines = [f"# {contract.title}: requirements", "", f"Revision {contract.revision}. Generated; do not edit.", ""]
    areas: dict[str, list[Requirement]] = {}
    for row in contract.requirements:
        areas.setdefault(row.area, []).append(row)
    lines += ["| area | MUST | SHOULD | MAY |", "|---|---|---|---|"]
    for area, rows in areas.items():
        levels = Counter(str(row.level) for row in rows)
        lines.append(f"| [{area}](#{area}) | {levels['MUST']} | {levels['SHOULD']} | {levels['MAY']} |")
    for area, rows in areas.items():
        lines += ["", f"## {area}", ""]
        for row in rows:
            lines += [card(contract, row), ""]
    lines += _left_open(contract)
    return "\n".join(lines).rstrip() + "\n"


def _left_open(contract: Contract) -> Iterator[str]:
    yield "## What the document leaves open\n"
    for one in contract.ambiguities:
        yield f"### {one.id}\n\n{one.point}\n"
        yield from (f"- reading {number}: {reading}" for number, reading in enumerate(one.readings, 1))
        yield f"- instead of a verdict: {one.observed}\n- source: {one.source.at} ({one.source.page})\n"
    yield "## Promised, and not observable by a client\n"
    for exclusion in contract.exclusions:
        yield f"- {exclusion.promise} ({exclusion.source.page or exclusion.source.at}): {exclusion.reason}"


def coverage(contract: Contract) -> str:
    """Each path of the request and response schemas, and the requirements that are bound to it."""
    lines = [
        f"# {contract.title}: coverage",
        "",
        "Each documented field, and where it is bound. Generated; do not edit.",
        "",
    ]
    for part, schema in (("request", contract.request), ("response", contract.response), ("chunk", contract.chunk)):
        lines += [f"## {part}", "", "| field | bound by |", "|---|---|"]
        for field in fields(schema):
            bound = bound_to(contract, part, field.path)
            lines.append(f"| `{field.path}` | {'; '.join(bound) or '**nothing**'} |")
        lines.append("")
    for status, schema in contract.errors.items():
        lines += [f"## error {status}", "", "| field | bound by |", "|---|---|"]
        for field in fields(schema):
            bound = bound_to(contract, f"error.{status}", field.path)
            lines.append(f"| `{field.path}` | {'; '.join(bound) or '**nothing**'} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def bound_to(contract: Contract, part: str, path: str) -> list[str]:
    """The ids of the requirements that speak of a field, derived rows first; then what is said of it in statements."""
    rows = [row for row in contract.requirements if row.id.startswith(f"{part}.") and _speaks(row, path)]
    notes = [
        f"ambiguity {one.id}" for one in contract.ambiguities if one.source.at.endswith(f"/{path.rpartition('.')[2]}")
    ]
    if not rows and part == "request":  # a nested field is exercised through the values of its parameter
        top = path.partition(".")[0].partition("[")[0]
        rows = [row for row in contract.requirements if row.id == f"request.{top}.accepts"]
    return [row.id for row in rows] + notes


def _speaks(row: Requirement, path: str) -> bool:
    return path in {row.params.get("path"), row.params.get("parameter"), str(row.params.get("parameter")).rstrip("[]")}


def write(folder: Path) -> None:
    """Write all pages below a folder."""
    for name, text in pages().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
