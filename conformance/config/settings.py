"""How a run is to be made: one table of options, which the command line, pytest and files share."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from conformance.model.budget import CERTIFY, PROFILES, Budget, planned_as, usual

KEY_VARIABLE: Final = "CONFORMANCE_API_KEY"
_ABOVE_ZERO: Final = (
    *("concurrency", "max_requests", "max_tokens", "max_prompt_tokens", "max_seconds", "timeout"),
    *("requests_per_minute", "tokens_per_minute"),
)
_FLAGS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class SettingsError(ValueError):
    """What was asked for cannot be done as asked: one line that says what to change. Exit code 2."""


@dataclass(frozen=True, slots=True)
class Option:
    """`kind` is str, int, float or bool (a flag); `many` may be repeated; `key` names the setting where it differs."""

    name: str
    kind: type
    help: str
    metavar: str = ""
    default: Any = None
    many: bool = False
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that sets it; where it may be repeated, one value a line."""
        return f"CONFORMANCE_{self.key.upper()}"


OPTIONS: Final = (
    Option(
        "base-url", str, "Where the target is; replaces the document's server. Absent: the embedded reference.", "URL"
    ),
    Option("model", str, "The model to ask for.", "NAME"),
    Option("profile", str, "How thorough: a CI gate, or everything.", default="gate", choices=(*PROFILES, CERTIFY)),
    Option("seed", int, "Draws other values, the same ones for the same number.", "N", default=0),
    Option("concurrency", int, "Requests in flight at once.", "K", default=8),
    Option("max-requests", int, "Attempts at most, retries included.", "N"),
    Option("max-tokens", int, "Completion tokens at most.", "N"),
    Option("max-prompt-tokens", int, "Prompt tokens at most.", "N"),
    Option("max-seconds", float, "Seconds at most.", "S"),
    Option("requests-per-minute", float, "Requests a minute at most.", "N"),
    Option("tokens-per-minute", float, "Tokens a minute at most.", "N"),
    Option("timeout", float, "Seconds to wait for the first byte of a response.", "S", default=60.0),
    Option("header", str, "A header for every request.", "'NAME: VALUE'", many=True),
    Option("query", str, "A query parameter for every request.", "NAME=VALUE", many=True),
    Option("api-key-env", str, f"The environment variable that holds the key; {KEY_VARIABLE} by default.", "NAME"),
    Option("proxy-from-env", bool, "Use the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY name."),
    Option("select", str, "Judge only requirements whose id matches.", "GLOB", many=True),
    Option("requirements", str, "Judge by the requirements that were in force on this date.", "DATE"),
    Option("waivers", str, "A file of accepted failures.", "FILE"),
    Option("claim", str, "A capability that the target does not claim to have, such as 'no echo'.", "TEXT", many=True),
    Option("no-hostile", bool, "Leave out requests that a fragile server may not survive."),
    Option("no-shrink", bool, "Do not look for the smallest request that shows a failure."),
    Option("strict", bool, "A broken SHOULD counts as a broken MUST."),
    Option("plan", str, "Send what this plan fixes, and nothing else; `conformance plan --lock` makes one.", "FILE"),
    Option("resume", bool, "Go on with the run that is recorded in the output folder."),
    Option("specs", str, "A folder of further providers.", "DIR", many=True),
    Option("name", str, "The target's name in reports; the provider's by default.", "NAME"),
    Option("out", str, "Where reports are written.", "DIR", default="reports"),
)


@dataclass(frozen=True)
class Settings:
    """One run of one provider's contract."""

    provider: str
    base_url: str = ""
    model: str = ""
    profile: str = "gate"
    seed: int = 0
    concurrency: int = 8
    budget: Budget = field(default_factory=Budget)
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_key_env: str = ""
    proxy_from_env: bool = False
    select: tuple[str, ...] = ()
    requirements: str = ""
    waivers: Path | None = None
    claims: tuple[str, ...] = ()
    hostile: bool = True
    shrink: bool = True
    strict: bool = False
    plan: Path | None = None
    resume: bool = False
    specs: tuple[Path, ...] = ()
    name: str = ""
    out: Path = Path("reports")

    @property
    def target(self) -> str:
        """What the target is called."""
        return self.name or self.provider

    @property
    def folder(self) -> Path:
        """Where everything about this target is written."""
        return self.out / self.target

    @property
    def key(self) -> str:
        """The key from the environment; never kept anywhere."""
        if self.api_key_env and self.api_key_env not in os.environ:
            raise SettingsError(
                f"the environment variable {self.api_key_env} is not set; set it, or drop --api-key-env"
            )
        return os.environ.get(self.api_key_env or KEY_VARIABLE, "").strip()


def settings(provider: str, given: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> Settings:
    """Settings from options by key, as OPTIONS declares them; then from the environment, then defaults.

    `fixed` are the options that the plan fixes; `conformance.run.launch.resolve_settings` reads them from it.
    """
    told = {one.key: one.default for one in OPTIONS} | chosen(given)
    if told["plan"] and fixed is None:
        raise ValueError("a plan is named without the options that it fixes; call resolve_settings")
    told |= fixed or {}
    for key in _ABOVE_ZERO:
        if told[key] is not None and not 0 < told[key] < math.inf:
            raise SettingsError(f"--{key.replace('_', '-')} is {told[key]}; expected a number above 0")
    if planned_as(told["profile"]) not in PROFILES:
        known = ", ".join((*PROFILES, CERTIFY))
        raise SettingsError(f"--profile is {told['profile']!r}; expected one of {known}")
    for path in map(Path, told["specs"] or ()):
        if not path.is_dir():
            raise SettingsError(f"--specs {path} is no folder; give one that holds a folder for each provider")
        if (path / "contract.yaml").is_file():
            raise SettingsError(f"--specs {path} is a provider's own folder; give the one above it, {path.parent}")
    name = told["name"] or ""
    if name and not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise SettingsError(
            f"--name is {name!r}; expected letters, digits, '-', '_' and '.', since a folder is named so"
        )
    return Settings(
        provider,
        (told["base_url"] or "").strip(),
        told["model"] or "",
        told["profile"],
        told["seed"],
        told["concurrency"],
        _budget(usual(told["profile"]), told),
        told["requests_per_minute"],
        told["tokens_per_minute"],
        told["timeout"],
        _pairs("--header", ":", told["header"]),
        _pairs("--query", "=", told["query"]),
        told["api_key_env"] or "",
        bool(told["proxy_from_env"]),
        tuple(told["select"] or ()),
        told["requirements"] or "",
        Path(told["waivers"]) if told["waivers"] else None,
        tuple(told["claim"] or ()),
        not told["no_hostile"],
        not told["no_shrink"],
        bool(told["strict"]),
        Path(told["plan"]) if told["plan"] else None,
        bool(told["resume"]),
        tuple(map(Path, told["specs"] or ())),
        name,
        Path(told["out"]),
    )


def chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given or set in the environment, by key."""
    return from_environment() | present(given)


def present(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given indeed: an option that was left out is None, or empty where it may be repeated."""
    keys = {one.key for one in OPTIONS}
    return {key: value for key, value in given.items() if key in keys and value is not None and value not in ((), [])}


def from_environment() -> dict[str, Any]:
    """What the environment sets, by key."""
    return {one.key: _read(one, text) for one in OPTIONS if (text := os.environ.get(one.variable, "").strip())}


def _read(option: Option, text: str) -> Any:
    if option.many:
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    if option.kind is bool:
        if text.lower() not in _FLAGS:
            raise SettingsError(f"{option.variable} is {text!r}; expected 1 or 0")
        return _FLAGS[text.lower()]
    try:
        return option.kind(text)
    except ValueError:
        kind = "a whole number" if option.kind is int else "a number"
        raise SettingsError(f"{option.variable} is {text!r}; expected {kind}") from None


def _budget(usual: Budget, told: Mapping[str, Any]) -> Budget:
    """The profile's ceilings, each replaced by the one that was given."""
    return Budget(
        told["max_requests"] or usual.requests,
        told["max_tokens"] or usual.completion_tokens,
        told["max_prompt_tokens"] or usual.prompt_tokens,
        told["max_seconds"] or usual.seconds,
    )


def _pairs(option: str, mark: str, given: tuple[str, ...] | None) -> tuple[tuple[str, str], ...]:
    found = []
    for one in given or ():
        name, separator, value = one.partition(mark)
        if not separator or not name.strip():
            shape = "'Name: value'" if mark == ":" else "name=value"
            # the value may be a secret, so only the length is shown
            raise SettingsError(f"{option} has {len(one)} characters and no name before a {mark!r}; expected {shape}")
        found.append((name.strip(), value.strip()))
    return tuple(found)
