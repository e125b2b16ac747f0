"""The options of `conformance run` as pytest's: with a prefix always, by their own names where these are free."""

from __future__ import annotations

from argparse import ArgumentError
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from conformance.config.settings import OPTIONS, Option, Settings
from conformance.run.launch import resolve_settings

# what costs time on each item, or at the end, and shows nothing for items that only look up a verdict
LEAN: Final = tuple(f"-pno:{name}" for name in ("logging", "unraisableexception", "threadexception", "faulthandler"))


def add(group: pytest.OptionGroup) -> None:
    """`--provider`, and the rest with a prefix."""
    group.addoption(
        "--provider", dest="conformance_provider", metavar="NAME", help="Judge by this provider's contract."
    )
    for option in OPTIONS:
        group.addoption(f"--conformance-{option.name}", **_declared(option))


def add_short(group: pytest.OptionGroup) -> None:
    """The command line's own names as well, where no plugin has taken them."""
    for option in OPTIONS:
        with suppress(ValueError, ArgumentError):
            group.addoption(f"--{option.name}", **_declared(option))


def asked(config: pytest.Config) -> Settings | None:
    """The settings that were asked for; None where no contract is named."""
    provider = config.option.conformance_provider
    if not provider:
        return None
    return resolve_settings(provider, {one.key: getattr(config.option, f"conformance_{one.key}") for one in OPTIONS})


def _declared(option: Option) -> dict[str, Any]:
    declared: dict[str, Any] = {"dest": f"conformance_{option.key}", "help": option.help, "default": None}
    if option.kind is bool:
        return {**declared, "action": "store_true"}
    shape = {"metavar": option.metavar} if option.metavar else {"choices": option.choices}
    return {**declared, **shape, "type": option.kind, "action": "append" if option.many else "store"}


def arguments(provider: str, given: Mapping[str, Any]) -> list[str]:
    """The pytest arguments for a run with these options, by key as OPTIONS declares them."""
    words = ["--pyargs", "conformance.suite", "-p", "conformance.plugin", *LEAN, f"--provider={provider}"]
    for option in OPTIONS:
        value = given.get(option.key)
        if option.kind is bool:
            words += [f"--conformance-{option.name}"] if value else []
        else:
            listed = value if option.many else [value]
            words += [f"--conformance-{option.name}={one}" for one in listed or () if one is not None]
    return words
