"""TOML files that people write: read, and held against a JSON Schema of this package; what is wrong is one line."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from conformance.config.settings import SettingsError


def schema(name: str) -> dict[str, Any]:
    """A JSON Schema of this package, by the name of its file."""
    found: dict[str, Any] = json.loads(files("conformance").joinpath(name).read_text("utf-8"))
    return found


def read(path: Path, name: str) -> dict[str, Any]:
    """The content of a TOML file that the schema allows; dates are ISO 8601 text."""
    try:
        found = _plain(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
    wrong = best_match(Draft202012Validator(schema(name)).iter_errors(found))
    if wrong is not None:
        raise SettingsError(f"{path}: {_told(wrong, found)}")
    return dict(found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, date) else value


def _told(error: ValidationError, found: dict[str, Any]) -> str:
    """Where, what stands there, what is expected. A value may be a secret, so only short words are shown."""
    at, known = _place(error, found), error.schema
    wanted: Any = error.validator_value
    if error.validator == "additionalProperties" and isinstance(known, dict) and isinstance(error.instance, dict):
        names = sorted(known.get("properties", {}))
        strange = sorted(error.instance.keys() - set(names))
        return f"{at}has {', '.join(map(repr, strange))}; expected only {', '.join(names)}"
    if error.validator == "required" and isinstance(error.instance, dict):
        lacking = [name for name in wanted if name not in error.instance]
        return f"{at}lacks {', '.join(lacking)}; add {'it' if len(lacking) == 1 else 'them'}"
    described = known.get("description", "") if isinstance(known, dict) else ""
    if error.validator == "minLength":
        return f"{at}is empty; expected {described or 'text'}"
    if error.validator == "enum":
        return f"{at}is {_short(error.instance)}; expected one of {', '.join(map(str, wanted))}"
    expected = described or f"{error.validator} {json.dumps(wanted)}"
    return f"{at}is {_short(error.instance)}; expected {expected}"


def _place(error: ValidationError, found: dict[str, Any]) -> str:
    """`target 2 ("staging"), budget.requests `: tables of a list are counted from 1, as people do."""
    told, steps, inside = [], list(error.absolute_path), found
    if len(steps) > 1 and isinstance(steps[1], int):
        inside = found[str(steps[0])][steps[1]]
        names = [inside.get(key) for key in ("name", "requirement")] if isinstance(inside, dict) else []
        named = next((f' "{name}"' for name in names if isinstance(name, str) and name.isprintable() and name), "")
        told.append(f"{steps[0]} {steps[1] + 1}{named}")
        steps = steps[2:]
    if steps:
        told.append(".".join(map(str, steps)))
    return f"{', '.join(told)} " if told else ""


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    shown = json.dumps(value)
    return shown if len(shown) <= 16 else f"{len(shown)} characters"
