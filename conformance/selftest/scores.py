"""Scores of the kill matrix: counted, printed, kept beside the hash of what they were earned with."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.selftest.faults import FAULTS
from conformance.selftest.legal_variants import LEGAL_VARIANTS
from conformance.selftest.mutation_score import FILE, stored
from conformance.selftest.mutation_testing import Trial

Scores = Mapping[str, Mapping[str, Mapping[str, Any]]]


def catalogue() -> str:
    """A hash over all that a score depends on by name: faults with their checks, oddities, checks, requirements."""
    told = [
        sorted([name, one.check, one.says, *sorted(one.also)] for name, one in FAULTS.items()),
        sorted([name, one.says] for name, one in LEGAL_VARIANTS.items()),
        sorted(checks()),
        [
            [name, sorted(f"{row.id} {row.check} {row.level}" for row in load(name).requirements)]
            for name in providers()
        ],
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def merged(trials: Iterable[Trial]) -> dict[str, dict[str, dict[str, Any]]]:
    """Provider → profile → faults killed, faults in all, the same by area, survivors, and oddities left in peace."""
    sorted_out: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for one in trials:
        sorted_out[one.provider, one.profile].append(one)
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for (provider, profile), members in sorted(sorted_out.items()):
        faults = [one for one in members if one.check]
        variants = [one for one in members if not one.check]
        found[provider][profile] = {
            "killed": sum(one.killed for one in faults),
            "of": len(faults),
            "areas": {area: [kills, of] for area, (kills, of) in sorted(_areas(faults).items())},
            "survivors": sorted(one.name for one in faults if not one.killed),
            "oddities": [sum(not one.fell and not one.broke for one in variants), len(variants)],
        }
    return dict(found)


def _areas(faults: Sequence[Trial]) -> dict[str, tuple[int, int]]:
    of, killed = Counter(one.area for one in faults), Counter(one.area for one in faults if one.killed)
    return {area: (killed[area], number) for area, number in of.items()}


def table(trials: Iterable[Trial]) -> str:
    """The scores as text: an area a line, a provider and profile a column."""
    scores = merged(trials)
    columns = [(provider, profile) for provider, profiles in scores.items() for profile in profiles]
    areas = sorted({area for one in columns for area in scores[one[0]][one[1]]["areas"]})
    rows = [["", *(f"{provider[:11]} {profile}" for provider, profile in columns)]]
    each = [scores[provider][profile] for provider, profile in columns]
    rows.extend([area, *(_share(one["areas"].get(area)) for one in each)] for area in areas)
    rows.append(["all faults", *(_share([one["killed"], one["of"]]) for one in each)])
    rows.append(["killed, %", *(f"{100 * one['killed'] / one['of']:.1f}" if one["of"] else "" for one in each)])
    rows.append(["oddities in peace", *(_share(one["oddities"]) for one in each)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _share(told: Sequence[int] | None) -> str:
    return f"{told[0]}/{told[1]}" if told else ""


def wire_table(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """The score on the wire as text, a contract a line: no part of the score of the faults."""
    head = f"{'changes on the wire':<20}  noticed  rightly not  gaps"
    rows = [
        f"{name:<20}  {one['noticed']}/{one['of']}  {one['rightly_not']:<11}  {one['gaps']}"
        for name, one in sorted(counts.items())
    ]
    return "\n".join([head, *rows])


def write(scores: Scores) -> None:
    """Keep these scores, and of the stored ones those that were earned with the same catalogue."""
    now, whole = catalogue(), stored()
    if whole["catalogue"] != now:
        whole |= {"catalogue": now, "scores": {}}
    for provider, profiles in scores.items():
        whole["scores"][provider] = {**whole["scores"].get(provider, {}), **profiles}
    _keep(whole)


def write_wire(counts: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep how many changes of good replies were noticed, and which were not: a score apart, which no fault touches."""
    whole = stored()
    whole["wire"] = {**whole.get("wire", {}), **{name: {"gate": dict(one)} for name, one in counts.items()}}
    _keep(whole)


def _keep(whole: Mapping[str, Any]) -> None:
    FILE.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", "utf-8")
