"""TOML files written by users: read and validated against a JSON Schema of this package, with one-line messages."""

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
    document: dict[str, Any] = json.loads(files("conformance").joinpath(name).read_text("utf-8"))
    return document


def read(path: Path, name: str) -> dict[str, Any]:
    """The content of a TOML file, which must match the schema; dates are ISO 8601 text."""
    try:
        content = _plain(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    invalid = best_match(Draft202012Validator(schema(name)).iter_errors(content))
    if invalid is not None:
        raise SettingsError(f"{path}: {_message(invalid, content)}")
    return dict(content)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _message(error: ValidationError, content: dict[str, Any]) -> str:
    """The place, the value and what is expected. A value may be a secret, so only short ones are shown."""
    at, schema_part = _place(error, content), error.schema
    allowed: Any = error.validator_value
    if error.validator == "additionalProperties" and isinstance(schema_part, dict) and isinstance(error.instance, dict):
        names = sorted(schema_part.get("properties", {}))
        unknown = sorted(error.instance.keys() - set(names))
        return f"{at}has {', '.join(map(repr, unknown))}; expected only {', '.join(names)}"
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [name for name in allowed if name not in error.instance]
        return f"{at}lacks {', '.join(missing)}; add {'it' if len(missing) == 1 else 'them'}"
    described = schema_part.get("description", "") if isinstance(schema_part, dict) else ""
    if error.validator == "minLength":
        return f"{at}is empty; expected {described or 'text'}"
    if error.validator == "enum":
        return f"{at}is {_short(error.instance)}; expected one of {', '.join(map(str, allowed))}"
    expected = described or f"{error.validator} {json.dumps(allowed)}"
    return f"{at}is {_short(error.instance)}; expected {expected}"


def _place(error: ValidationError, content: dict[str, Any]) -> str:
    """The place in words, such as `target 2 "staging", budget.requests `: tables of a list are numbered from 1."""
    parts, steps = [], list(error.absolute_path)
    if len(steps) > 1 and isinstance(steps[1], int):
        table = content[str(steps[0])][steps[1]]
        names = [table.get(key) for key in ("name", "requirement")] if isinstance(table, dict) else []
        label = next((f' "{name}"' for name in names if isinstance(name, str) and name.isprintable() and name), "")
        parts.append(f"{steps[0]} {steps[1] + 1}{label}")
        steps = steps[2:]
    if steps:
        parts.append(".".join(map(str, steps)))
    return f"{', '.join(parts)} " if parts else ""


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= 16 else f"{len(text)} characters"
