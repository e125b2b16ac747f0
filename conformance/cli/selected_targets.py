"""The targets that a command was given: one provider, all providers, or the targets of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from conformance.cli.options import FILE
from conformance.config.settings import Settings, SettingsError

if TYPE_CHECKING:
    from conformance.model import Contract

Job: TypeAlias = tuple[Settings, Mapping[str, Any]]
"""The settings of one target, and the options that they were made from."""
AT_ONCE: Final = 4
"""How many targets of a file are judged at the same time, unless the file says otherwise."""


def contract_of(provider: str, given: dict[str, Any]) -> Contract:
    """The contract of a provider, with the settings of a command."""
    from conformance.run import launch
    from conformance.run.launch import load_contract

    return load_contract(launch.resolve_settings(provider, given))


def of_provider(provider: str, given: Mapping[str, Any]) -> list[Job]:
    """The job for one provider, or one for each provider if it is `all`."""
    from conformance import contract
    from conformance.run import launch

    common = launch.resolve_settings(provider, given)
    if provider == "all" and common.name:
        raise SettingsError("--name needs one provider; the targets of `all` are named after their providers")
    names = contract.providers(common.specs) if provider == "all" else (provider,)
    chosen = [launch.resolve_settings(name, given) for name in names]
    for target in chosen:
        launch.checked_contract(target)
    return [(target, given) for target in chosen]


def of_file(config: Path | None, globs: tuple[str, ...], given: Mapping[str, Any]) -> tuple[list[Job], int]:
    """The chosen targets, all checked before anything is sent, and how many to judge at the same time."""
    from conformance.config import targets, waivers
    from conformance.run import launch

    file = targets.read(config or Path(FILE))
    chosen = file.chosen(globs)
    targets.refuse_for_several(given, len(chosen))
    names = {entry.name for entry in file.entries}
    jobs: list[Job] = []
    for entry in chosen:
        try:
            options = targets.merged(entry, given)
            target = launch.resolve_settings(entry.provider, options)
            launch.checked_contract(target)
            waivers.check_targets(launch.waivers_from_settings(target), names | {target.target})
        except SettingsError as error:
            raise SettingsError(f"{file.path}, target {entry.name}: {error}") from None
        jobs.append((target, options))
    return jobs, file.at_once or AT_ONCE


def selected_jobs(
    provider: str | None, config: Path | None, globs: tuple[str, ...], given: Mapping[str, Any]
) -> list[Job]:
    """The job for PROVIDER, or the chosen targets of the file; neither contract nor address is checked."""
    from conformance.config import targets
    from conformance.run import launch

    if provider is not None:
        refuse_both(config, globs)
        return [(launch.resolve_settings(provider, given), given)]
    file = targets.read(config or Path(FILE))
    chosen = file.chosen(globs)
    targets.refuse_for_several(given, len(chosen))
    jobs: list[Job] = []
    for entry in chosen:
        try:
            options = targets.merged(entry, given)
            jobs.append((launch.resolve_settings(entry.provider, options), options))
        except SettingsError as error:
            raise SettingsError(f"{file.path}, target {entry.name}: {error}") from None
    return jobs


def single_job(jobs: list[Job], purpose: str) -> Job:
    """The single chosen target."""
    if len(jobs) > 1:
        names = ", ".join(target.target for target, _ in jobs)
        raise SettingsError(f"{len(jobs)} targets are chosen ({names}); {purpose} needs one: give --target NAME")
    return jobs[0]


def refuse_both(*file_options: Any) -> None:
    """Raise SettingsError if options for a file of targets are given together with PROVIDER."""
    if any(file_options):
        raise SettingsError("PROVIDER and options for a file of targets are both given; leave out one of them")
