"""conformance.toml: the targets of a run without a PROVIDER argument, and where each setting comes from."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.config.settings import OPTIONS, SettingsError, from_environment, given_options
from conformance.config.toml_file import read as read_toml
from conformance.model.budget import PROFILES, planned_as, usual

FILE: Final = "conformance.toml"
SCHEMA: Final = "config/targets.schema.json"
_TABLES: Final = {
    "rate": {"requests_per_minute": "requests_per_minute", "tokens_per_minute": "tokens_per_minute"},
    "budget": {
        "requests": "max_requests",
        "tokens": "max_tokens",
        "prompt_tokens": "max_prompt_tokens",
        "seconds": "max_seconds",
    },
}
_PAIRS: Final = {"headers": ("header", ": "), "query": ("query", "=")}
_OF_ONE_TARGET: Final = ("name", "base_url")

Given: TypeAlias = Mapping[str, Any]
"""Options by key, as settings.OPTIONS declares them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One target of the file; `defaults` has the options of all targets."""

    name: str
    provider: str
    path: Path
    given: Given
    defaults: Given


@dataclass(frozen=True, slots=True)
class Targets:
    """The content of a targets file."""

    path: Path
    entries: tuple[Entry, ...]
    at_once: int | None = None

    def chosen(self, globs: Sequence[str]) -> tuple[Entry, ...]:
        """The targets whose name matches, or all; SettingsError for a glob that matches none."""
        for glob in globs:
            if not any(fnmatchcase(entry.name, glob) for entry in self.entries):
                names = ", ".join(entry.name for entry in self.entries)
                raise SettingsError(f"--target {glob!r} matches none of {self.path}; expected one of {names}")
        return tuple(
            entry for entry in self.entries if not globs or any(fnmatchcase(entry.name, glob) for glob in globs)
        )


def read(path: Path) -> Targets:
    """The targets of a file. SettingsError says in one line what is wrong with it."""
    if not path.exists():
        raise SettingsError(f"{path} does not exist; give a PROVIDER, or write the file with `conformance init`")
    data = read_toml(path, SCHEMA)
    defaults = data.get("defaults", {})
    for name in ("name", "model", "models"):
        if name in defaults:
            raise SettingsError(f"{path}: defaults has {name!r}; set it in a [[target]]")
    top = {"out": str(path.parent / data["out"])} if "out" in data else {}
    usual = {**_options(defaults, path), **top}
    entries = [
        entry
        for number, table in enumerate(data["target"], 1)
        for entry in _entries(table, defaults, usual, number, path)
    ]
    repeated = [name for name, count in Counter(entry.name.lower() for entry in entries).items() if count > 1]
    if repeated:
        raise SettingsError(f"{path}: {repeated[0]!r} is the name of several targets; give each a name of its own")
    return Targets(path, tuple(entries), data.get("at_once"))


def _entries(table: Given, defaults: Given, usual: Given, number: int, path: Path) -> Iterator[Entry]:
    """One entry for each model."""
    name, provider = table["name"], table.get("provider", defaults.get("provider"))
    if not provider:
        raise SettingsError(f'{path}: target {number} "{name}" lacks provider; add it, or set it in [defaults]')
    if "model" in table and "models" in table:
        raise SettingsError(f'{path}: target {number} "{name}" has model and models; remove one of them')
    merged = {key: {**defaults[key], **table[key]} for key in _PAIRS if key in table and key in defaults}
    given = _options({**table, **merged}, path)
    models = table.get("models", ())
    for model in models:
        model_name = f"{name}-{re.sub(r'[^A-Za-z0-9._]+', '-', model).strip('-')}" if len(models) > 1 else name
        yield Entry(model_name, provider, path, {**given, "model": model, "name": model_name}, usual)
    if not models:
        yield Entry(name, provider, path, {**given, "name": name}, usual)


def _options(table: Given, path: Path) -> dict[str, Any]:
    """A table of the file as options by key; paths are relative to the file, and secrets are refused."""
    from conformance.model.redaction import is_secret

    keys = {option.key for option in OPTIONS}
    options = {name: value for name, value in table.items() if name in keys and name not in {"name", *_PAIRS}}
    for name, inner in _TABLES.items():
        options |= {inner[key]: value for key, value in table.get(name, {}).items()}
    for name, (key, _) in _PAIRS.items():
        for field, value in table.get(name, {}).items():
            if isinstance(value, str) and is_secret(field, value):
                raise SettingsError(f'{path}: {name}.{field} looks like a secret; write {{env = "NAME"}} instead')
        if name in table:
            options[key] = tuple(table[name].items())
    for name, key in (("claims", "claim"), ("credentials", "credential"), ("select", "select")):
        if name in table:
            options[key] = tuple(table[name])
    if "waivers" in table:
        options["waivers"] = str(path.parent / table["waivers"])
    if "specs" in table:
        options["specs"] = tuple(str(path.parent / folder) for folder in table["specs"])
    return options


def _filled(given: Given, path: Path) -> Iterator[tuple[str, Any]]:
    """Options with the values that come from the environment, which are read for chosen targets only."""
    for key, value in given.items():
        separator = dict(_PAIRS.values()).get(key)
        if separator is None:
            yield key, value
            continue
        pairs = []
        for name, text in value:
            if not isinstance(text, str) and text["env"] not in os.environ:
                raise SettingsError(f"{path}: {key} {name} comes from {text['env']}, which is not set; set it")
            pairs.append(f"{name}{separator}{text if isinstance(text, str) else os.environ[text['env']]}")
        yield key, tuple(pairs)


def merged(entry: Entry, flags: Given) -> dict[str, Any]:
    """The options of a target: from flags, then the environment, then its table, then the defaults."""
    return {key: value for key, (value, _) in option_sources(flags, entry).items()}


def option_sources(flags: Given, entry: Entry | None = None) -> dict[str, tuple[Any, str]]:
    """Each option that is set somewhere, with its value and where it comes from."""
    names = {option.key: (f"--{option.name}", option.variable) for option in OPTIONS}
    layers = [
        {key: (value, f"flag {names[key][0]}") for key, value in given_options(flags).items()},
        {key: (value, f"environment {names[key][1]}") for key, value in from_environment().items()},
    ]
    if entry is not None:
        for options, table in ((entry.given, f'target "{entry.name}"'), (entry.defaults, "all targets")):
            layers.append({key: (value, f"{entry.path}, {table}") for key, value in _filled(options, entry.path)})
    values = {key: value for layer in reversed(layers) for key, value in layer.items()}
    if entry is not None and (secret := _secret_pairs(entry)):
        names_of_credentials, origin = values.get("credential", ((), f"{entry.path}, values from the environment"))
        values["credential"] = tuple(dict.fromkeys((*names_of_credentials, *secret))), origin
    return values


def _secret_pairs(entry: Entry) -> tuple[str, ...]:
    """Headers and query parameters whose value comes from the environment: secrets, whatever their names are."""
    tables = (entry.given, entry.defaults)
    return tuple(
        name
        for given in tables
        for key, _ in _PAIRS.values()
        for name, value in given.get(key, ())
        if not isinstance(value, str)
    )


def all_options(flags: Given, entry: Entry | None = None) -> dict[str, tuple[Any, str]]:
    """As `option_sources`, with every option: one that is set nowhere has its default, or the budget of the profile."""
    options = {option.key: (option.default, "default") for option in OPTIONS} | option_sources(flags, entry)
    profile = str(options["profile"][0])
    ceilings = usual(profile) if planned_as(profile) in PROFILES else None
    budget = {"requests": "max_requests", "completion_tokens": "max_tokens", "prompt_tokens": "max_prompt_tokens"}
    for field, key in budget.items():
        if ceilings is not None and options[key][0] is None:
            options[key] = (getattr(ceilings, field), f"profile {profile}")
    return options


def refuse_for_several(flags: Given, number: int) -> None:
    """Refuse an option that can only hold for one target when several are chosen."""
    for key in _OF_ONE_TARGET if number > 1 else ():
        option = option_sources(flags).get(key)
        if option is not None:
            raise SettingsError(
                f"{option[1]} is for one target, but {number} are chosen; choose one with --target NAME"
            )
