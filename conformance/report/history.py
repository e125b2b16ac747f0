"""All results.json files of a folder → one page: the trend of each target, and what changed between runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from conformance.report.diff import BROKEN, FIXED, Difference, compare
from conformance.report.findings import message
from conformance.report.index import REPORT, RESULTS
from conformance.report.page import rendered, shell
from conformance.report.results import checked, dumps
from conformance.report.run_facts import when
from conformance.report.tally import broken, headline, plural, scored, unjudged
from conformance.report.trend import Point, draw

MOST_DRAWN: Final = 200
MOST_LISTED: Final = 60
MOST_NAMED: Final = 6
MOST_GAPS: Final = 2
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
    targets.sort(key=_urgency)
    title = _latest_changes(targets)
    body = rendered(
        "history.jinja2",
        title=title,
        counted=f"{plural(len(runs), 'run')} of {plural(len(targets), 'target')}",
        verdict="broken" if any(_ids(target, BROKEN) for target in targets) else "",
        changed=[target for target in targets if target["latest"]["step"] or target["latest"]["point"].gap],
        targets=targets,
        left_out=left_out,
    )
    return shell(f"Conformance: {title}", body)


def _target(run: Run) -> tuple[str, str]:
    return run[1]["target"]["name"], run[1]["provider"]


def _ids(target: Mapping[str, Any], kind: str) -> int:
    """How many requirements of a target are of this kind in its latest run."""
    return sum(len(ids) + unlisted for step_kind, ids, unlisted in target["latest"]["step"] or () if step_kind == kind)


def _urgency(target: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """Targets that broke something since their last run come first, then those without an answer, then changed ones."""
    return not _ids(target, BROKEN), not target["latest"]["point"].gap, not target["latest"]["step"]


def _latest_changes(targets: Sequence[Mapping[str, Any]]) -> str:
    """What changed in the latest run of each target, in one line."""
    counts = [(kind, sum(_ids(target, kind) for target in targets)) for kind in (BROKEN, FIXED)]
    words = [f"{number} {kind}" for kind, number in counts if number]
    unanswered = sum(bool(target["latest"]["point"].gap) for target in targets)
    words += [f"{plural(unanswered, 'target')} not judged"] * bool(unanswered)
    text = ", ".join(words) or "nothing broken or fixed"
    return f"{text[:1].upper()}{text[1:]} in the latest {'run' if len(targets) == 1 else 'runs'}"


def _section(name: str, runs: list[Run]) -> dict[str, Any]:
    steps = list(_steps([results for _, results in runs]))
    points = [_point(results, step) for (_, results), step in zip(runs, steps, strict=True)]
    entries = [
        {
            "link": link,
            "results": results,
            "headline": headline(results),
            "point": point,
            "first": first,
            "step": [*_broken_and_fixed(step)] if step else [],
        }
        for (link, results), point, step, first in zip(runs, points, steps, _firsts(points), strict=True)
    ]
    return {
        "name": name,
        "provider": runs[-1][1]["provider"],
        "drawing": draw(points[-MOST_DRAWN:]),
        "undrawn": max(len(points) - MOST_DRAWN, 0),
        "latest": entries[-1],
        "runs": entries[::-1][:MOST_LISTED],
        "unlisted": max(len(entries) - MOST_LISTED, 0),
        "caption": _caption(points),
        "failures": list(_drawn_failures(runs))[:MOST_LISTED],
    }


def _steps(runs: Sequence[Mapping[str, Any]]) -> Iterator[Difference | None]:
    """What changed in each run since the one before that was judged; None for runs that have nothing to compare."""
    before: Mapping[str, Any] | None = None
    for results in runs:
        judged = not unjudged(results)
        yield compare(before, results) if before is not None and judged else None
        before = results if judged else before


def _firsts(points: Sequence[Point]) -> Iterator[bool]:
    """Which run is the first that was judged."""
    seen = False
    for point in points:
        yield not seen and not point.gap
        seen = seen or not point.gap


def _drawn_failures(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Each drawn body that failed in some run: what it broke, in how many runs, and since when."""
    by_body: dict[str, list[tuple[str, list[str]]]] = {}
    for _, results in runs:
        for failed in (results.get("drawn") or {}).get("failed", ()):
            by_body.setdefault(failed["body"], []).append((when(results), failed["broke"]))
    for body, failures in sorted(by_body.items(), key=lambda item: item[1][-1][0], reverse=True):
        broke = list(dict.fromkeys(row for _, rows in failures for row in rows))
        yield {"body": body, "broke": broke, "runs": len(failures), "first": failures[0][0], "last": failures[-1][0]}


def _point(results: Mapping[str, Any], step: Difference | None) -> Point:
    rows = [row for row in results["requirements"] if scored(row) and not row.get("waiver")]
    changed = [text for name, text in _MARKS.items() if step is not None and step.before[name] != step.after[name]]
    return Point(
        when(results),
        sum(broken(row) and row["level"] == "MUST" for row in rows),
        sum(broken(row) and row["level"] == "SHOULD" for row in rows),
        not results["incomplete"] and not any(row["incomplete"] or row["outcome"] == "error" for row in rows),
        ", ".join(changed),
        unjudged(results),
    )


def _broken_and_fixed(step: Difference) -> Iterator[tuple[str, list[tuple[str, str]], int]]:
    """Newly broken and fixed: kind, the first requirements with what was observed, and how many more there are."""
    for kind in (BROKEN, FIXED):
        changes = step.of(kind)
        if changes:
            first_changes = [
                (change.id, message(change.row) if kind == BROKEN else "") for change in changes[:MOST_NAMED]
            ]
            yield kind, first_changes, max(len(changes) - MOST_NAMED, 0)


def _caption(points: Sequence[Point]) -> str:
    """The drawing in words, for readers who cannot see it, with the caveats that apply."""
    gaps = sum(bool(point.gap) for point in points)
    unsettled = sum(not point.settled and not point.gap for point in points)
    last = points[-1]
    since, until = points[0].when[:10], last.when[:10]
    words = [plural(len(points), "run"), f"on {until}" if since == until else f"from {since} to {until}"]
    highest = max(point.musts + point.shoulds for point in points)
    words.append(
        f"at most {plural(highest, 'broken requirement')} in one run" if highest else "no requirement seen broken"
    )
    if unsettled:
        words.append(f"{unsettled} incomplete: hollow, and numbers with + because more may be broken")
    if gaps:
        reasons = dict.fromkeys(point.gap for point in reversed(points) if point.gap)
        words.append(f"{gaps} not judged, drawn as empty frames ({'; '.join(list(reasons)[:MOST_GAPS])})")
    if any(point.changed for point in points):
        words.append("dotted lines where contract, suite or profile changed and numbers are not comparable")
    return ", ".join(words)
