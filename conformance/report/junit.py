"""junit.xml: one testcase for each requirement, so that any CI system shows requirements by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from conformance.report.findings import message
from conformance.report.tally import Row, embedded, scored, shown_as, unjudged, waived, waiver_text
from conformance.report.terminal import block
from conformance.report.text import visible
from conformance.report.verdict_words import word
from conformance.run import EMBEDDED


def render(results: Mapping[str, Any]) -> str:
    """The document: what gates is a failure, a verdict that is missing an error; others but passes are skipped."""
    rows = results["requirements"]
    cases = [*_target(results), *(_case(row, results) for row in rows), *_waivers(results)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": str(results["duration_s"]),
    }
    # the format has no attribute `skipped` on `testsuites`
    above = {name: number for name, number in counts.items() if name != "skipped"}
    suites = Element("testsuites", {"name": "conformance", **above})
    target = _clean(results["target"]["name"]) + (f" ({EMBEDDED})" if embedded(results) else "")
    suite = SubElement(suites, "testsuite", {"name": target, **counts, "timestamp": results["started_at"]})
    properties = SubElement(suite, "properties")
    for name in ("provider", "suite_version", "contract_sha256", "plan_sha256", "seed", "profile", "verdict"):
        SubElement(properties, "property", {"name": name, "value": _clean(str(results[name]))})
    suite.extend(cases)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, "unicode") + "\n"


def _case(row: Row, results: Mapping[str, Any]) -> Element:
    provider = results["provider"]
    case = Element("testcase", {"classname": f"{provider}.{row['area']}", "name": row["id"], "time": "0"})
    properties = SubElement(case, "properties")
    for name in ("level", "layer", "outcome", "check", "promise", "examined"):
        SubElement(properties, "property", {"name": name, "value": _clean(str(row[name]))})
    if waived(row):
        SubElement(properties, "property", {"name": "waiver", "value": _clean(waiver_text(row))})
    if not scored(row):
        SubElement(properties, "property", {"name": "not scored", "value": row["not_scored"]})
    reason = _clean(message(row)) or word(row["outcome"])
    kind = shown_as(row, strict=results["strict"])
    if kind in {"error", "failure"}:
        SubElement(case, kind, {"message": reason, "type": row["outcome"]}).text = _clean(block(row, results))
    elif kind == "skipped":
        SubElement(case, kind, {"message": f"{word(row['outcome'])}: {reason}"})
    elif kind == "expected":
        SubElement(case, "skipped", {"message": f"{word(row['outcome'])}: {reason}", "type": "expected failure"})
        SubElement(case, "system-out").text = _clean(block(row, results))
    return case


def _target(results: Mapping[str, Any]) -> Iterator[Element]:
    """A target that could not be judged is an error: a report of skipped test cases alone would look fine."""
    reason = unjudged(results)
    if reason:
        case = Element("testcase", {"classname": f"{results['provider']}.target", "name": "target", "time": "0"})
        SubElement(case, "error", {"message": _clean(reason), "type": "not judged"})
        yield case


def _waivers(results: Mapping[str, Any]) -> Iterator[Element]:
    """An invalid waiver fails the run, so it is a testcase of its own."""
    for number, fault in enumerate(results.get("waiver_faults", ()), 1):
        case = Element(
            "testcase", {"classname": f"{results['provider']}.waivers", "name": f"waiver {number}", "time": "0"}
        )
        SubElement(case, "failure", {"message": _clean(fault), "type": "waiver"})
        yield case


def _clean(text: str) -> str:
    """XML 1.0 forbids most control characters, even escaped; other invisible characters are spelled out as well."""
    return visible(text, lines=True)
