"""ctrf.json: the Common Test Report Format (ctrf.io), one test for each requirement."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from conformance.report.findings import message
from conformance.report.tally import Row, embedded, scored, shown_as, unjudged, waived, waiver_text
from conformance.report.terminal import block
from conformance.report.text import visible
from conformance.report.verdict_words import word
from conformance.run import EMBEDDED

SPECIFICATION: Final = "0.1.0"
STATUSES: Final = ("passed", "failed", "skipped", "pending", "other")
_STATUS: Final = {"failure": "failed", "error": "other", "expected": "other", "skipped": "skipped", "passed": "passed"}


def render(results: Mapping[str, Any]) -> str:
    """The document as JSON, one test a line. The same results give the same document, ids included."""
    report = document(results)
    tests = ",\n   ".join(json.dumps(test) for test in report["results"]["tests"])
    frame = json.dumps({**report, "results": {**report["results"], "tests": []}}, indent=1)
    # quotes inside strings are escaped, so only the member itself matches
    return frame.replace('"tests": []', f'"tests": [\n   {tests}\n  ]', 1) + "\n"


def document(results: Mapping[str, Any]) -> dict[str, Any]:
    """The report: what gates is `failed`, what was planned and not sent `pending`, other verdicts `other`."""
    began = datetime.fromisoformat(results["started_at"])
    ended = began + timedelta(seconds=results["duration_s"])
    tests = [*_target(results), *(_test(row, results) for row in results["requirements"])]
    counts = Counter(test["status"] for test in tests)
    target = results["target"]
    identity = "/".join((target["name"], results["started_at"], results["plan_sha256"]))
    return {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION,
        "reportId": str(uuid5(NAMESPACE_URL, visible(identity))),
        "timestamp": ended.isoformat(timespec="milliseconds"),
        "generatedBy": "completions-conformance",
        "results": {
            "tool": {"name": "completions-conformance", "version": results["suite_version"]},
            "summary": {
                "tests": len(tests),
                **{status: counts[status] for status in STATUSES},
                "flaky": sum(row["outcome"] == "flaky" for row in results["requirements"]),
                "suites": len({row["area"] for row in results["requirements"]}),
                "start": _milliseconds(began),
                "stop": _milliseconds(ended),
                "duration": round(results["duration_s"] * 1000),
                "extra": {name: results[name] for name in ("verdict", "exit_code", "index", "score")},
            },
            "tests": tests,
            "environment": {
                "appName": visible(target["name"]) + (f" ({EMBEDDED})" if embedded(results) else ""),
                "extra": {
                    "base_url": visible(target["base_url"]),
                    "model": visible(target["model"]),
                    "incomplete": [visible(reason) for reason in results["incomplete"]],
                    "waiver_faults": [visible(fault) for fault in results.get("waiver_faults", ())],
                    "claims": [visible(claim) for claim in results["claims"]],
                    **{name: results[name] for name in ("contract_sha256", "plan_sha256", "profile", "seed")},
                },
            },
        },
    }


def _target(results: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A target that could not be judged has failed: a report of skipped and pending tests alone would look fine."""
    reason = unjudged(results)
    if reason:
        yield {
            "id": str(uuid5(NAMESPACE_URL, f"{results['provider']}/target")),
            "name": "target",
            "status": "failed",
            "rawStatus": "error",
            "duration": 0,
            "suite": [results["provider"], "target"],
            "tags": [],
            "flaky": False,
            "message": visible(reason),
        }


def _test(row: Row, results: Mapping[str, Any]) -> dict[str, Any]:
    appearance = shown_as(row, strict=results["strict"])
    test: dict[str, Any] = {
        "id": str(uuid5(NAMESPACE_URL, f"{results['provider']}/{row['id']}")),
        "name": row["id"],
        "status": "pending" if row["outcome"] == "not_run" else _STATUS[appearance],
        "rawStatus": row["outcome"],
        "duration": 0,  # a requirement is judged on many requests, so it has no duration of its own
        "suite": [results["provider"], row["area"]],
        "tags": [row["level"], row["layer"]],
        "flaky": row["outcome"] == "flaky",
        "extra": {name: row[name] for name in ("check", "promise", "source", "examined", "violations")},
    }
    if waived(row):
        test["tags"].append("waived")
        test["extra"]["waiver"] = visible(waiver_text(row))
    if not scored(row):
        test["tags"].append("not scored")
    if appearance != "passed":
        test["message"] = visible(message(row)) or word(row["outcome"])
    if appearance in {"failure", "error", "expected"}:
        test["trace"] = visible(block(row, results), lines=True)
        commands = [source["curl"] for source in (row.get("smallest"), *row["evidence"][:1]) if source]
        if any(commands):
            test["snippet"] = visible(next(filter(None, commands)), lines=True)
    return test


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
