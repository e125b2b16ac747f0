"""junit.xml: one testcase for each requirement, so that any CI system shows promises by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from conformance.report.tally import Row, accepted, scored, shown_as, waived
from conformance.report.terminal import block
from conformance.report.text import visible


def render(results: Mapping[str, Any]) -> str:
    """The document. What gates is a failure, our fault an error; what shows nothing is skipped, with its reason."""
    rows = results["requirements"]
    cases = [*(_case(row, results) for row in rows), *_waivers(results)]
    tally = {
        "tests": str(len(cases)),
        "failures": str(sum(one.find("failure") is not None for one in cases)),
        "errors": str(sum(one.find("error") is not None for one in cases)),
        "skipped": str(sum(one.find("skipped") is not None for one in cases)),
        "time": str(results["duration_s"]),
    }
    # what consumes this format knows no count of skipped cases above the suite
    suites = Element(
        "testsuites", {"name": "conformance", **{name: tally[name] for name in tally if name != "skipped"}}
    )
    named = {"name": _clean(results["target"]["name"]), **tally, "timestamp": results["started_at"]}
    suite = SubElement(suites, "testsuite", named)
    properties = SubElement(suite, "properties")
    for name in ("provider", "suite_version", "contract_sha256", "plan_sha256", "seed", "profile", "verdict"):
        SubElement(properties, "property", {"name": name, "value": _clean(str(results[name]))})
    for one in cases:
        suite.append(one)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, "unicode") + "\n"


def _case(row: Row, results: Mapping[str, Any]) -> Element:
    provider = results["provider"]
    case = Element("testcase", {"classname": f"{provider}.{row['area']}", "name": row["id"], "time": "0"})
    properties = SubElement(case, "properties")
    for name in ("level", "layer", "outcome", "check", "promise", "examined"):
        SubElement(properties, "property", {"name": name, "value": _clean(str(row[name]))})
    if waived(row):
        SubElement(properties, "property", {"name": "waiver", "value": _clean(accepted(row))})
    if not scored(row):
        SubElement(properties, "property", {"name": "not scored", "value": row["not_scored"]})
    first = _clean(row["reason"]) or row["outcome"]
    kind = shown_as(row, strict=results["strict"])
    if kind in {"error", "failure"}:
        SubElement(case, kind, {"message": first, "type": row["outcome"]}).text = _clean(block(row, results))
    elif kind == "skipped":
        SubElement(case, kind, {"message": f"{row['outcome']}: {first}"})
    elif kind == "warning":
        SubElement(case, "system-out").text = _clean(block(row, results))
    return case


def _waivers(results: Mapping[str, Any]) -> Iterator[Element]:
    """A waiver that no longer fits fails the run, so a testcase says it."""
    for number, fault in enumerate(results.get("waiver_faults", ()), 1):
        case = Element(
            "testcase", {"classname": f"{results['provider']}.waivers", "name": f"waiver {number}", "time": "0"}
        )
        SubElement(case, "failure", {"message": _clean(fault), "type": "waiver"})
        yield case


def _clean(text: str) -> str:
    """XML 1.0 has no place for most control characters, not even escaped; what else hides is spelled out as well."""
    return visible(text, lines=True)
