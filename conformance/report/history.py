"""All results.json files of a folder → one page: the trend of each target, and what changed between runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from conformance.report.diff import BROKEN, FIXED, Difference, compare
from conformance.report.index import REPORT, RESULTS
from conformance.report.page import environment, shell
from conformance.report.results import checked, dumps
from conformance.report.tally import broken, headline, plural
from conformance.report.trend import Point, draw

MOST_DRAWN: Final = 200
MOST_LISTED: Final = 60
MOST_NAMED: Final = 6
_MARKS: Final = {
    "contract_sha256": "the contract changed",
    "suite_version": "the suite changed",
    "profile": "the profile changed",
}

Run = tuple[str, Mapping[str, Any]]
"""The path of a run's report relative to the folder, and its results."""


def collect(folder: Path) -> tuple[list[Run], list[str]]:
    """All runs below the folder, oldest first, each once; and why others are left out."""
    runs: dict[bytes, Run] = {}
    left_out: list[str] = []
    for path in sorted(folder.rglob(RESULTS)):
        try:
            results = checked(path)
            _started(results)
        except ValueError as error:
            left_out.append(str(error))
            continue
        report = path.with_name(REPORT)
        link = quote(report.relative_to(folder).as_posix()) if report.exists() else ""
        identity = sha256(dumps(results).encode("ascii")).digest()  # a copy of a run counts once
        runs.setdefault(identity, (link, results))
    return sorted(runs.values(), key=lambda run: _started(run[1])), left_out


def _started(results: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(results["started_at"]).timestamp()


def render(runs: Sequence[Run], left_out: Sequence[str] = ()) -> str:
    """The page. Links to reports are relative to the folder that was read."""
    by_target = sorted(runs, key=_target)  # stable: the runs of a target remain in order
    targets = [_section(name, list(its_runs)) for (name, _), its_runs in groupby(by_target, key=_target)]
    title = f"{plural(len(runs), 'run')} of {plural(len(targets), 'target')}"
    body = environment().get_template("history.jinja2").render(said=title, targets=targets, left_out=left_out)
    return shell(f"Conformance: {title}", Markup(body))  # noqa: S704 - rendered with escaping on


def _target(run: Run) -> tuple[str, str]:
    return run[1]["target"]["name"], run[1]["provider"]


def _section(name: str, runs: list[Run]) -> dict[str, Any]:
    steps = [None, *(compare(before, after) for (_, before), (_, after) in pairwise(runs))]
    points = [_point(results, step) for (_, results), step in zip(runs, steps, strict=True)]
    listed = [
        {
            "link": link,
            "results": results,
            "headline": headline(results),
            "point": point,
            "step": step and [*_broken_and_fixed(step)],
        }
        for (link, results), point, step in zip(runs, points, steps, strict=True)
    ]
    return {
        "name": name,
        "provider": runs[-1][1]["provider"],
        "drawing": draw(points[-MOST_DRAWN:]),
        "undrawn": max(len(points) - MOST_DRAWN, 0),
        "latest": listed[-1],
        "runs": listed[::-1][:MOST_LISTED],
        "unlisted": max(len(listed) - MOST_LISTED, 0),
        "caption": _caption(points),
        "failures": list(_drawn_failures(runs))[:MOST_LISTED],
    }


def _drawn_failures(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Each drawn body that was ever seen to fail: what it broke, in how many runs, and since when."""
    seen: dict[str, list[tuple[str, list[str]]]] = {}
    for _, results in runs:
        for failed in (results.get("drawn") or {}).get("failed", ()):
            seen.setdefault(failed["body"], []).append((results["started_at"][:16].replace("T", " "), failed["broke"]))
    for body, times in sorted(seen.items(), key=lambda item: item[1][-1][0], reverse=True):
        broke = list(dict.fromkeys(row for _, rows in times for row in rows))
        yield {"body": body, "broke": broke, "runs": len(times), "first": times[0][0], "last": times[-1][0]}


def _point(results: Mapping[str, Any], step: Difference | None) -> Point:
    rows, index, score = results["requirements"], results["index"], results["score"]
    changed = [text for name, text in _MARKS.items() if step is not None and step.before[name] != step.after[name]]
    return Point(
        results["started_at"][:16].replace("T", " "),
        index["verified"] / index["of"] if index["of"] else None,
        score["passed"] / score["of"] if score["of"] else None,
        sum(broken(row) and row["level"] == "MUST" for row in rows),
        sum(broken(row) and row["level"] == "SHOULD" for row in rows),
        not results["incomplete"] and not any(row["incomplete"] or row["outcome"] == "error" for row in rows),
        ", ".join(changed),
    )


def _broken_and_fixed(step: Difference) -> Iterator[tuple[str, list[str], int]]:
    """Newly broken and fixed: kind, the first ids, and how many more there are."""
    for kind in (BROKEN, FIXED):
        ids = [change.id for change in step.of(kind)]
        if ids:
            yield kind, ids[:MOST_NAMED], max(len(ids) - MOST_NAMED, 0)


def _caption(points: Sequence[Point]) -> str:
    """The drawing in words, for readers who cannot see it, with the caveats that apply."""
    unsettled = sum(not point.settled for point in points)
    last = points[-1]
    since, until = points[0].when[:10], last.when[:10]
    words = [plural(len(points), "run"), f"on {until}" if since == until else f"from {since} to {until}"]
    most = max(point.musts + point.shoulds for point in points)
    words.append(f"at most {plural(most, 'broken requirement')} in one run" if most else "no requirement seen broken")
    if unsettled:
        words.append(f"{unsettled} incomplete: hollow points, and numbers with + because more may be broken")
    if any(point.changed for point in points):
        words.append("dotted lines where contract, suite or profile changed and numbers are not comparable")
    return ", ".join(words)
