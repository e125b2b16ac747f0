"""YAML for contracts: dates stay text, a key occurs once, and an error names file, line and column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

DEEPEST: Final = 500
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_MARKS_IN_A_ROW: Final = re.compile(rf"^[ \t]*(?:[-?:][ \t]+){{{DEEPEST}}}", re.MULTILINE)


class ContractError(ValueError):
    """Bad data: what is wrong, in which file and at which place, and what to do."""

    def __init__(self, file: Path | str, at: str, message: str) -> None:
        super().__init__(f"{file}: {at}: {message}" if at else f"{file}: {message}")
        self.file = str(file)
        self.at = at


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """Safe, and stricter."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a key is a list or map; expected a name", key.start_mark
            )
        name = loader.construct_object(key, deep=True)
        if name in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} occurs twice", key.start_mark)
        seen.add(name)
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node, deep=True))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read_yaml(path: Path) -> Any:
    """The one value of a YAML file; a ContractError with line and column where it cannot be read."""
    try:
        return parse_yaml(path.read_text("utf-8"), path)
    except OSError as error:
        raise ContractError(path, "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ContractError(path, "", "is not UTF-8; save it as UTF-8") from None


def parse_yaml(text: str, path: Path) -> Any:
    """The one value of a YAML (or JSON) text that came from `path`."""
    if _too_deep(text):
        raise ContractError(path, "", f"is nested deeper than {DEEPEST} levels; expected fewer")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, made stricter
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        position = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or (error if str(error) else "nested too deeply")
        raise ContractError(path, position, f"is not YAML: {problem}") from None


@dataclass(frozen=True, slots=True)
class Written:
    """A value of a YAML text with its place there; a member of an object begins with its name."""

    start: int
    end: int
    text: str = ""  # of a scalar
    members: Mapping[str, Written] = field(default_factory=dict)
    items: tuple[Written, ...] = ()


def written(text: str) -> Written:
    """The positions of all values of a text that `parse_yaml` has read as an object."""
    return _written(yaml.compose(text, Loader=_Loader))


def _written(node: Any, start: int | None = None) -> Written:
    first, last = node.start_mark.index if start is None else start, node.end_mark.index
    if isinstance(node, yaml.MappingNode):
        members = {str(key.value): _written(value, key.start_mark.index) for key, value in node.value}
        return Written(first, last, members=members)
    if isinstance(node, yaml.SequenceNode):
        return Written(first, last, items=tuple(map(_written, node.value)))
    return Written(first, last, node.value)


def _too_deep(text: str) -> bool:
    """Whether the text nests so deep that libyaml, which calls itself for each level, would crash the process."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth = max(0, depth + (1 if bracket.group() in "[{" else -1))
        if depth > DEEPEST:
            return True
    return _MARKS_IN_A_ROW.search(text) is not None
