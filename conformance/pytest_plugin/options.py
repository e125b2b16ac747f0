"""The options of `conformance run` as pytest options: always with a prefix, without it where the name is free."""

from __future__ import annotations

from argparse import ArgumentError
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from conformance.config.settings import OPTIONS, Option, Settings
from conformance.run.launch import resolve_settings

# Plugins that cost time on each item or at the end, and have nothing to report about items that look up a verdict.
_DISABLED: Final = ("logging", "unraisableexception", "threadexception", "faulthandler")


def add(group: pytest.OptionGroup) -> None:
    """Declare `--provider`, and all other options with a prefix."""
    group.addoption(
        "--provider", dest="conformance_provider", metavar="NAME", help="Judge against this provider's contract."
    )
    for option in OPTIONS:
        group.addoption(f"--conformance-{option.name}", **_declared(option))


def add_short(group: pytest.OptionGroup) -> None:
    """Declare the options under the names of the command line as well, unless another plugin uses a name."""
    for option in OPTIONS:
        with suppress(ValueError, ArgumentError):
            group.addoption(f"--{option.name}", **_declared(option))


def settings_of(config: pytest.Config) -> Settings | None:
    """The settings in pytest's options; None without `--provider`."""
    provider = config.option.conformance_provider
    if not provider:
        return None
    given = {option.key: getattr(config.option, f"conformance_{option.key}") for option in OPTIONS}
    return resolve_settings(provider, given)


def _declared(option: Option) -> dict[str, Any]:
    common: dict[str, Any] = {"dest": f"conformance_{option.key}", "help": option.help, "default": None}
    if option.kind is bool:
        return {**common, "action": "store_true"}
    values = {"metavar": option.metavar} if option.metavar else {"choices": option.choices}
    return {**common, **values, "type": option.kind, "action": "append" if option.many else "store"}


def arguments(provider: str, given: Mapping[str, Any]) -> list[str]:
    """The pytest arguments for a run with these options; the keys are those of OPTIONS."""
    words = [
        "--pyargs",
        "conformance.suite",
        "-p",
        "conformance.plugin",
        *(f"-pno:{name}" for name in _DISABLED),
        f"--provider={provider}",
    ]
    for option in OPTIONS:
        value = given.get(option.key)
        if option.kind is bool:
            words += [f"--conformance-{option.name}"] if value else []
        else:
            values = value if option.many else [value]
            words += [f"--conformance-{option.name}={item}" for item in values or () if item is not None]
    return words
