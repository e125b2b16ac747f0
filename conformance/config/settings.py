"""The settings of a run: one table of options, shared by the command line, pytest and targets files."""

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
_OF_A_TARGET: Final = ("model", "header", "query", "api_key_env")
_FLAGS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class SettingsError(ValueError):
    """A flag, variable or file is wrong: one line that says what to change. Exit code 2."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `kind` is str, int, float or bool (a flag); one with `many` may be repeated."""

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
        """The environment variable that sets it; an option that may be repeated takes one value per line."""
        return f"CONFORMANCE_{self.key.upper()}"


OPTIONS: Final = (
    Option(
        "base-url",
        str,
        "The target's URL, without the operation's path. [the embedded reference]",
        "URL",
    ),
    Option("model", str, "The model to request.", "NAME"),
    Option(
        "profile",
        str,
        "gate: quick, for CI; full: everything; certify: for a certificate.",
        default="gate",
        choices=(*PROFILES, CERTIFY),
    ),
    Option("seed", int, "Random seed; the same seed gives the same requests.", "N", default=0),
    Option("concurrency", int, "The most requests in flight at once.", "K", default=8),
    Option("max-requests", int, "The most attempts, including retries.", "N"),
    Option("max-tokens", int, "The most completion tokens.", "N"),
    Option("max-prompt-tokens", int, "The most prompt tokens.", "N"),
    Option("max-seconds", float, "The longest duration of the run, in seconds.", "S"),
    Option("requests-per-minute", float, "The most requests per minute.", "N"),
    Option("tokens-per-minute", float, "The most tokens per minute.", "N"),
    Option("timeout", float, "Seconds to wait for the first byte of a response.", "S", default=60.0),
    Option("header", str, "A header field to add to every request.", "'NAME: VALUE'", many=True),
    Option("query", str, "A query parameter to add to every request.", "NAME=VALUE", many=True),
    Option("credential", str, "A header or query parameter that is a credential despite its name.", "NAME", many=True),
    Option("keep-undecodable", bool, "Keep bytes that cannot be decoded, although they could hide the key."),
    Option("api-key-env", str, f"The environment variable that holds the key. [{KEY_VARIABLE}]", "NAME"),
    Option("proxy-from-env", bool, "Use the proxy from HTTP_PROXY, HTTPS_PROXY or ALL_PROXY."),
    Option("select", str, "Judge only requirements whose id matches this pattern.", "GLOB", many=True),
    Option("requirements", str, "Judge by the requirements that were in force on this date.", "DATE"),
    Option("waivers", str, "A file of waivers: broken requirements that are accepted until a date.", "FILE"),
    Option("claim", str, "A capability that the target does not claim to have, such as 'no echo'.", "TEXT", many=True),
    Option("no-hostile", bool, "Leave out adversarial requests, which may crash a fragile server."),
    Option("allow-large", bool, "Send a prompt of a megabyte too, which may cost 400,000 tokens and more."),
    Option("no-shrink", bool, "Do not search for the smallest request that shows each failure."),
    Option("strict", bool, "Count a broken SHOULD as a broken MUST."),
    Option("plan", str, "Send exactly what this plan lock fixes; `conformance plan --lock` makes one.", "FILE"),
    Option("resume", bool, "Continue the run that is recorded in the output folder."),
    Option("specs", str, "A folder with further providers.", "DIR", many=True),
    Option("name", str, "The target's name in reports. [the provider's name]", "NAME"),
    Option("out", str, "The folder for reports.", "DIR", default="reports"),
)


@dataclass(frozen=True)
class Settings:
    """The settings of one run against one provider's contract."""

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
    credentials: tuple[str, ...] = ()
    keep_undecodable: bool = False
    api_key_env: str = ""
    without_base_url: tuple[str, ...] = ()  # the options that describe a target, where none is named
    proxy_from_env: bool = False
    select: tuple[str, ...] = ()
    requirements: str = ""
    waivers: Path | None = None
    claims: tuple[str, ...] = ()
    hostile: bool = True
    allow_large: bool = False
    shrink: bool = True
    strict: bool = False
    plan: Path | None = None
    resume: bool = False
    specs: tuple[Path, ...] = ()
    name: str = ""
    out: Path = Path("reports")

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.name or self.provider

    @property
    def folder(self) -> Path:
        """The folder that everything about this target is written to."""
        return self.out / self.target

    @property
    def key(self) -> str:
        """The key, read from the environment each time and never stored."""
        if self.api_key_env and self.api_key_env not in os.environ:
            raise SettingsError(
                f"the environment variable {self.api_key_env} is not set; set it, or drop --api-key-env"
            )
        return os.environ.get(self.key_variable, "").strip()

    @property
    def key_variable(self) -> str:
        """The environment variable that the key is read from."""
        return self.api_key_env or KEY_VARIABLE


def settings(provider: str, given: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> Settings:
    """Settings from options by key, as OPTIONS declares them, then from the environment, then from defaults.

    `fixed` has the options that a plan lock fixes; `conformance.run.launch.resolve_settings` reads them from it.
    """
    values = {option.key: option.default for option in OPTIONS} | set_options(given)
    if values["plan"] and fixed is None:
        raise ValueError("a plan lock was given without the options that it fixes; call resolve_settings")
    values |= fixed or {}
    for key in _ABOVE_ZERO:
        if values[key] is not None and not 0 < values[key] < math.inf:
            raise SettingsError(f"--{key.replace('_', '-')} is {values[key]}; expected a number above 0")
    if planned_as(values["profile"]) not in PROFILES:
        known = ", ".join((*PROFILES, CERTIFY))
        raise SettingsError(f"--profile is {values['profile']!r}; expected one of {known}")
    for path in map(Path, values["specs"] or ()):
        if not path.is_dir():
            raise SettingsError(f"--specs {path} is no folder; expected one that contains a folder for each provider")
        if (path / "contract.yaml").is_file():
            raise SettingsError(f"--specs {path} is a provider's own folder; expected its parent, {path.parent}")
    name = values["name"] or ""
    if name and not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise SettingsError(
            f"--name is {name!r}; expected letters, digits, '-', '_' and '.', because it names a folder"
        )
    return Settings(
        provider=provider,
        base_url=(values["base_url"] or "").strip(),
        model=values["model"] or "",
        profile=values["profile"],
        seed=values["seed"],
        concurrency=values["concurrency"],
        budget=_budget(usual(values["profile"]), values),
        requests_per_minute=values["requests_per_minute"],
        tokens_per_minute=values["tokens_per_minute"],
        timeout=values["timeout"],
        headers=_pairs("--header", ":", values["header"]),
        query=_pairs("--query", "=", values["query"]),
        credentials=tuple(values["credential"] or ()),
        keep_undecodable=bool(values["keep_undecodable"]),
        api_key_env=values["api_key_env"] or "",
        without_base_url=_without_base_url(values),
        proxy_from_env=bool(values["proxy_from_env"]),
        select=tuple(values["select"] or ()),
        requirements=values["requirements"] or "",
        waivers=Path(values["waivers"]) if values["waivers"] else None,
        claims=tuple(values["claim"] or ()),
        hostile=not values["no_hostile"],
        allow_large=bool(values["allow_large"]),
        shrink=not values["no_shrink"],
        strict=bool(values["strict"]),
        plan=Path(values["plan"]) if values["plan"] else None,
        resume=bool(values["resume"]),
        specs=tuple(map(Path, values["specs"] or ())),
        name=name,
        out=Path(values["out"]),
    )


def _without_base_url(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Options that make no sense without a target, where no base URL names one; an empty base URL is one of them.

    A plan lock is exempt: it names the embedded reference and its model.
    """
    if (values["base_url"] or "").strip() or values["plan"]:
        return ()
    empty = ["an empty --base-url"] if values["base_url"] is not None else []
    variable = next(option.variable for option in OPTIONS if option.key == "base_url")
    if not empty and variable in os.environ:
        empty = [f"an empty {variable}"]
    return (*empty, *(f"--{key.replace('_', '-')}" for key in _OF_A_TARGET if values[key]))


def set_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given or set in the environment, by key."""
    return from_environment() | given_options(given)


def given_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: one that was left out is None, or empty if it may be repeated."""
    keys = {option.key for option in OPTIONS}
    return {key: value for key, value in given.items() if key in keys and value is not None and value not in ((), [])}


def from_environment() -> dict[str, Any]:
    """The options that are set in the environment, by key."""
    texts = {option: os.environ.get(option.variable, "").strip() for option in OPTIONS}
    return {option.key: _parse(option, text) for option, text in texts.items() if text}


def _parse(option: Option, text: str) -> Any:
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


def _budget(usual: Budget, values: Mapping[str, Any]) -> Budget:
    """The ceilings of the profile, each replaced by the one that was given."""
    return Budget(
        requests=values["max_requests"] or usual.requests,
        completion_tokens=values["max_tokens"] or usual.completion_tokens,
        prompt_tokens=values["max_prompt_tokens"] or usual.prompt_tokens,
        seconds=values["max_seconds"] or usual.seconds,
    )


def _pairs(option: str, separator: str, texts: tuple[str, ...] | None) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts or ():
        name, separated, value = text.partition(separator)
        if not separated or not name.strip():
            shape = "'Name: value'" if separator == ":" else "name=value"
            # the value may be a secret, so only its length is shown
            problem = f"{option} has {len(text)} characters and no name before a {separator!r}"
            raise SettingsError(f"{problem}; expected {shape}")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)
