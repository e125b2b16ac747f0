"""What a run is to judge: a provider's contract, all contracts, or the targets of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.cli.options import FILE
from conformance.config.settings import Settings, SettingsError

Job: TypeAlias = tuple[Settings, Mapping[str, Any]]
"""What is to be judged, and the options that say so."""
MOST_AT_ONCE: Final = 4


def of_provider(provider: str, given: Mapping[str, Any]) -> list[Job]:
    """One contract, or all of them."""
    from conformance import contract
    from conformance.run import launch

    named = launch.resolve_settings(provider, given)
    if provider == "all" and named.name:
        raise SettingsError("--name goes with one provider; targets of `all` are named after their providers")
    names = contract.providers(named.specs) if provider == "all" else (provider,)
    chosen = [launch.resolve_settings(name, given) for name in names]
    for one in chosen:
        launch.check(one)
    return [(one, given) for one in chosen]


def of_file(config: Path | None, globs: tuple[str, ...], given: Mapping[str, Any]) -> tuple[list[Job], int]:
    """The chosen targets, all looked at before anything is sent, and how many to judge at once."""
    from conformance.config import targets, waivers
    from conformance.run import launch

    found = targets.read(config or Path(FILE))
    chosen = found.chosen(globs)
    targets.refuse_for_several(given, len(chosen))
    everybody = {one.name for one in found.entries}
    jobs: list[Job] = []
    for entry in chosen:
        try:
            options = targets.merged(entry, given)
            one = launch.resolve_settings(entry.provider, options)
            launch.check(one)
            waivers.check_targets(launch.waived(one), everybody | {one.target})
        except SettingsError as error:
            raise SettingsError(f"{found.path}, target {entry.name}: {error}") from None
        jobs.append((one, options))
    return jobs, found.at_once or MOST_AT_ONCE


def named(provider: str | None, config: Path | None, globs: tuple[str, ...], given: Mapping[str, Any]) -> list[Job]:
    """PROVIDER, or the chosen targets of the file; nothing but the file is looked at."""
    from conformance.config import targets
    from conformance.run.launch import resolve_settings

    if provider is not None:
        refuse_both(config, globs)
        return [(resolve_settings(provider, given), given)]
    found = targets.read(config or Path(FILE))
    chosen = found.chosen(globs)
    targets.refuse_for_several(given, len(chosen))
    made: list[Job] = []
    for entry in chosen:
        try:
            options = targets.merged(entry, given)
            made.append((resolve_settings(entry.provider, options), options))
        except SettingsError as error:
            raise SettingsError(f"{found.path}, target {entry.name}: {error}") from None
    return made


def only(found: list[Job], what: str) -> Job:
    """The one target that was chosen."""
    if len(found) > 1:
        names = ", ".join(one.target for one, _ in found)
        raise SettingsError(f"{what} is for one target, but {len(found)} are chosen ({names}); give --target NAME")
    return found[0]


def refuse_both(*of_file: Any) -> None:
    """A PROVIDER and targets of a file exclude one another."""
    if any(of_file):
        raise SettingsError("a PROVIDER and targets of a file are both named; leave out PROVIDER, or the rest")
