"""conformance.toml: the targets that a run without a provider judges, and where each of their settings comes from."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.config.settings import OPTIONS, SettingsError, from_environment, present
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
_MARKS: Final = {"headers": ("header", ": "), "query": ("query", "=")}
_ALONE: Final = ("name", "base_url")

Given: TypeAlias = Mapping[str, Any]
"""Options by key, as settings.OPTIONS declares them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One target of the file; `defaults` is what the file says for all of them."""

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
            if not any(fnmatchcase(one.name, glob) for one in self.entries):
                names = ", ".join(one.name for one in self.entries)
                raise SettingsError(f"--target {glob!r} matches none of {self.path}; expected one of {names}")
        return tuple(one for one in self.entries if not globs or any(fnmatchcase(one.name, glob) for glob in globs))


def read(path: Path) -> Targets:
    """The targets of a file. SettingsError says in one line what is wrong with it."""
    if not path.exists():
        raise SettingsError(f"{path} is not there; name a PROVIDER, or write one with `conformance init`")
    data = read_toml(path, SCHEMA)
    defaults = data.get("defaults", {})
    for name in ("name", "model", "models"):
        if name in defaults:
            raise SettingsError(f"{path}: defaults has {name!r}; it belongs to a target")
    top = {"out": str(path.parent / data["out"])} if "out" in data else {}
    usual = {**_options(defaults, path), **top}
    entries = [
        one for place, table in enumerate(data["target"], 1) for one in _entries(table, defaults, usual, place, path)
    ]
    twice = [name for name, times in Counter(one.name.lower() for one in entries).items() if times > 1]
    if twice:
        raise SettingsError(f"{path}: {twice[0]!r} is the name of several targets; give each its own, for its reports")
    return Targets(path, tuple(entries), data.get("at_once"))


def _entries(table: Given, defaults: Given, usual: Given, place: int, path: Path) -> Iterator[Entry]:
    """One entry for each model."""
    name, provider = table["name"], table.get("provider", defaults.get("provider"))
    if not provider:
        raise SettingsError(f'{path}: target {place} "{name}" lacks provider; add it, or set it in [defaults]')
    if "model" in table and "models" in table:
        raise SettingsError(f'{path}: target {place} "{name}" has model and models; keep one of them')
    merged = {key: {**defaults[key], **table[key]} for key in _MARKS if key in table and key in defaults}
    given = _options({**table, **merged}, path)
    models = table.get("models", ())
    for model in models:
        called = f"{name}-{re.sub(r'[^A-Za-z0-9._]+', '-', model).strip('-')}" if len(models) > 1 else name
        yield Entry(called, provider, path, {**given, "model": model, "name": called}, usual)
    if not models:
        yield Entry(name, provider, path, {**given, "name": name}, usual)


def _options(table: Given, path: Path) -> dict[str, Any]:
    """A table of the file as options by key; paths are seen from the file, and no secret may stand there."""
    from conformance.send.target import is_secret

    keys = {one.key for one in OPTIONS}
    found = {name: value for name, value in table.items() if name in keys and name not in {"name", *_MARKS}}
    for name, inner in _TABLES.items():
        found |= {inner[key]: value for key, value in table.get(name, {}).items()}
    for name, (key, _) in _MARKS.items():
        for one, value in table.get(name, {}).items():
            if isinstance(value, str) and is_secret(one):
                raise SettingsError(
                    f'{path}: {name}.{one} looks like a secret in a file; write {{env = "NAME"}} instead'
                )
        if name in table:
            found[key] = tuple(table[name].items())
    for name, key in (("claims", "claim"), ("select", "select")):
        if name in table:
            found[key] = tuple(table[name])
    if "waivers" in table:
        found["waivers"] = str(path.parent / table["waivers"])
    if "specs" in table:
        found["specs"] = tuple(str(path.parent / one) for one in table["specs"])
    return found


def _filled(given: Given, path: Path) -> Iterator[tuple[str, Any]]:
    """Options with the values that come from the environment, which only a target that is chosen needs."""
    for key, value in given.items():
        mark = next((mark for one, mark in _MARKS.values() if one == key), None)
        if mark is None:
            yield key, value
            continue
        for name, told in value:
            if not isinstance(told, str) and told["env"] not in os.environ:
                raise SettingsError(f"{path}: {key} {name} is to come from {told['env']}, which is not set; set it")
        yield (
            key,
            tuple(f"{name}{mark}{told if isinstance(told, str) else os.environ[told['env']]}" for name, told in value),
        )


def merged(entry: Entry, flags: Given) -> dict[str, Any]:
    """What holds for a target: flags, then the environment, then its table, then the defaults."""
    return {key: value for key, (value, _) in sources(flags, entry).items()}


def sources(flags: Given, entry: Entry | None = None) -> dict[str, tuple[Any, str]]:
    """Each option that is set somewhere, with its value and the place that it comes from."""
    names = {one.key: (f"--{one.name}", one.variable) for one in OPTIONS}
    layers = [
        {key: (value, f"flag {names[key][0]}") for key, value in present(flags).items()},
        {key: (value, f"environment {names[key][1]}") for key, value in from_environment().items()},
    ]
    if entry is not None:
        for given, whose in ((entry.given, f'target "{entry.name}"'), (entry.defaults, "for all targets")):
            layers.append({key: (value, f"{entry.path}, {whose}") for key, value in _filled(given, entry.path)})
    return {key: value for layer in reversed(layers) for key, value in layer.items()}


def everything(flags: Given, entry: Entry | None = None) -> dict[str, tuple[Any, str]]:
    """As `sources`, with every option: what is set nowhere has its default, or the profile's budget."""
    held = {one.key: (one.default, "default") for one in OPTIONS} | sources(flags, entry)
    profile = str(held["profile"][0])
    ceilings = usual(profile) if planned_as(profile) in PROFILES else None
    named = {"requests": "max_requests", "completion_tokens": "max_tokens", "prompt_tokens": "max_prompt_tokens"}
    for field, key in named.items():
        if ceilings is not None and held[key][0] is None:
            held[key] = (getattr(ceilings, field), f"profile {profile}")
    return held


def refuse_for_several(flags: Given, number: int) -> None:
    """What can only be true of one target is refused where several are chosen."""
    for key in _ALONE if number > 1 else ():
        found = sources(flags).get(key)
        if found is not None:
            raise SettingsError(
                f"{found[1]} speaks of one target, but {number} are chosen; choose one with --target NAME"
            )
