"""Mutation scores: counted, printed as tables, and stored with the build that they were measured on."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from conformance.selftest.mutation_score import FILE, source_hash, stored
from conformance.selftest.mutation_testing import Trial

Scores = Mapping[str, Mapping[str, Mapping[str, Any]]]


def merged(trials: Iterable[Trial]) -> dict[str, dict[str, dict[str, Any]]]:
    """Provider → profile → faults killed, of all, both by area, the survivors, causes, legal variants accepted."""
    by_column: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_column[trial.provider, trial.profile].append(trial)
    scores: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for (provider, profile), members in sorted(by_column.items()):
        faults = [trial for trial in members if trial.check]
        variants = [trial for trial in members if not trial.check]
        scores[provider][profile] = {
            "killed": sum(trial.killed for trial in faults),
            "of": len(faults),
            "areas": _counts(faults, lambda trial: trial.area),
            "input_classes": _counts(faults, lambda trial: trial.input_class),
            "survivors": sorted(trial.name for trial in faults if not trial.killed),
            "causes": cause_counts(faults),
            "legal_variants": [sum(trial.accepted for trial in variants), len(variants)],
        }
    return dict(scores)


FEW: Final = 2
"""The most causes that one defect should be shown as: more are noise to a reader."""


def cause_counts(trials: Iterable[Trial]) -> dict[str, int]:
    """Of the faults that were killed, how many are shown as few causes, and how many with the right one first."""
    killed = [trial for trial in trials if trial.check and trial.killed]
    return {
        "few": sum(trial.causes <= FEW for trial in killed),
        "right_first": sum(trial.cause_is_first for trial in killed),
        "of": len(killed),
    }


def _counts(faults: Sequence[Trial], name: Callable[[Trial], str]) -> dict[str, list[int]]:
    """How many faults were killed, of how many, by this property."""
    of = Counter(map(name, faults))
    killed = Counter(name(trial) for trial in faults if trial.killed)
    return {key: [killed[key], of[key]] for key in sorted(of)}


def table(trials: Iterable[Trial]) -> str:
    """The scores as text: a line for each area and class of input, a column for each provider and profile."""
    scores = merged(trials)
    columns = [(provider, profile) for provider, profiles in scores.items() for profile in profiles]
    cells = [scores[provider][profile] for provider, profile in columns]
    areas = sorted({area for score in cells for area in score["areas"]})
    rows = [["", *(f"{provider[:11]} {profile}" for provider, profile in columns)]]
    rows.extend([area, *(_fraction(score["areas"].get(area)) for score in cells)] for area in areas)
    classes = sorted({name for score in cells for name in score["input_classes"]})
    rows.append(["shown by:", *("" for _ in cells)])
    rows.extend([f"  {name}", *(_fraction(score["input_classes"].get(name)) for score in cells)] for name in classes)
    rows.append(["all faults", *(_fraction([score["killed"], score["of"]]) for score in cells)])
    rows.append(
        ["killed, %", *(f"{100 * score['killed'] / score['of']:.1f}" if score["of"] else "" for score in cells)]
    )
    rows.append([f"at most {FEW} causes", *(_fraction([s["causes"]["few"], s["causes"]["of"]]) for s in cells)])
    rows.append(["right cause first", *(_fraction([s["causes"]["right_first"], s["causes"]["of"]]) for s in cells)])
    rows.append(["legal variants accepted", *(_fraction(score["legal_variants"]) for score in cells)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _fraction(counts: Sequence[int] | None) -> str:
    return f"{counts[0]}/{counts[1]}" if counts else ""


def wire_table(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """The scores of wire mutations as text, a line for each contract; faults do not count here."""
    head = f"{'wire mutations':<20}  detected  accepted  gaps"
    rows = [
        f"{name:<20}  {score['detected']}/{score['of']}   {score['accepted']:<8}  {score['gaps']}"
        for name, score in sorted(counts.items())
    ]
    return "\n".join([head, *rows])


def write(scores: Scores) -> None:
    """Store these scores as those of this build, and keep the stored ones of other contracts and profiles."""
    everything = stored()
    for provider, profiles in scores.items():
        of_this_build = {profile: {**score, "build": source_hash()} for profile, score in profiles.items()}
        everything["scores"][provider] = {**everything["scores"].get(provider, {}), **of_this_build}
    _store(everything)


def write_wire(counts: Mapping[str, Mapping[str, Any]]) -> None:
    """Store how many wire mutations were detected, and which were not."""
    everything = stored()
    of_this_build = {name: {"gate": {**score, "build": source_hash()}} for name, score in counts.items()}
    everything["wire"] = {**everything.get("wire", {}), **of_this_build}
    _store(everything)


def _store(everything: Mapping[str, Any]) -> None:
    FILE.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n", "utf-8")
