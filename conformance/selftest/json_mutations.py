"""Places in a JSON value, and the mutations that can be made at one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

Path = tuple[str | int, ...]
Step = Callable[[Any, Any], None]
MAPS: Final = frozenset({"top_logprobs"})
"""Lists of objects whose member names are data."""
ALIKE: Final = 0.01
"""Log probabilities that differ by less are alike: two evaluations of one differ by more."""


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every path in a JSON value with the value there, outer ones first."""
    for step, item in _members(value):
        yield (*path, step), item
        yield from walk(item, (*path, step))


def _members(value: Any) -> list[tuple[str | int, Any]]:
    return list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())


def general(path: Path) -> str:
    """A path without indexes and data: `choices[].logprobs.top_logprobs[].*`."""
    text = ""
    for depth, step in enumerate(path):
        if isinstance(step, int):
            text += "[]"
        else:
            is_data = depth > 1 and path[depth - 2] in MAPS and isinstance(path[depth - 1], int)
            text += ("." if text else "") + ("*" if is_data else step)
    return text


def _delete(holder: Any, step: Any) -> None:
    del holder[step]


def _null(holder: Any, step: Any) -> None:
    holder[step] = None


def _retyped(holder: Any, step: Any) -> None:
    value = holder[step]
    text = isinstance(value, str) or value is None
    holder[step] = 7 if text else {} if isinstance(value, list) else [] if isinstance(value, dict) else f"{value} "


def _more(by: int) -> Step:
    def change(holder: Any, step: Any) -> None:
        if isinstance(holder[step], (int, float)) and not isinstance(holder[step], bool):
            holder[step] += by

    return change


def _swap(holder: Any, step: Any) -> None:
    steps = [member for member, _ in _members(holder)]
    index = steps.index(step)
    if index:
        value, before = holder[step], holder[steps[index - 1]]
        if (isinstance(holder, list) or type(value) is type(before)) and not _alike(value, before):
            holder[step], holder[steps[index - 1]] = before, value


def _alike(first: Any, second: Any) -> bool:
    """Whether two measurements, or maps of them, are so close that swapping them changes nothing."""
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) <= ALIKE
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_alike(first[name], second[name]) for name in first)
    return bool(first == second)


CHANGES: Final[Mapping[str, Step]] = {
    "delete": _delete,
    "null": _null,
    "other type": _retyped,
    "+1": _more(1),
    "-1": _more(-1),
    "swap": _swap,
}


def changed(root: Any, path: Path, change: str) -> Any:
    """The value with one change made at one path."""
    copy = deepcopy(root)
    holder = copy
    for step in path[:-1]:
        holder = holder[step]
    CHANGES[change](holder, path[-1])
    return copy


def differs(root: Any, path: Path, change: str) -> bool:
    """Whether the change makes a difference there."""
    holder = root
    for step in path[:-1]:
        holder = holder[step]
    copy = list(holder) if isinstance(holder, list) else dict(holder)
    CHANGES[change](copy, path[-1])
    return bool(json.dumps(copy) != json.dumps(holder))
