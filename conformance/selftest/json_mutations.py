"""Places in a JSON value, and the changes that can be made at one: what generic mutators are written in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

Path = tuple[str | int, ...]
Step = Callable[[Any, Any], None]
MAPS: Final = frozenset({"top_logprobs"})  # objects whose member names are data
ALIKE: Final = 0.01  # two evaluations of one log probability differ by more


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every place in a JSON value, from the outside in."""
    for step, item in _members(value):
        yield (*path, step), item
        yield from walk(item, (*path, step))


def _members(value: Any) -> list[tuple[str | int, Any]]:
    return list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())


def general(path: Path) -> str:
    """A path with its numbers and data left out: `choices[].logprobs.top_logprobs[].*`."""
    told = ""
    for number, step in enumerate(path):
        if isinstance(step, int):
            told += "[]"
        else:
            data = number > 1 and path[number - 2] in MAPS and isinstance(path[number - 1], int)
            told += ("." if told else "") + ("*" if data else step)
    return told


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
    steps = [one for one, _ in _members(holder)]
    place = steps.index(step)
    if place:
        one, other = holder[step], holder[steps[place - 1]]
        if (isinstance(holder, list) or type(one) is type(other)) and not _alike(one, other):
            holder[step], holder[steps[place - 1]] = other, one


def _alike(one: Any, other: Any) -> bool:
    """Whether two measurements, or maps of them, are so close that to swap them changes nothing."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= ALIKE
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    return bool(one == other)


CHANGES: Final[Mapping[str, Step]] = {
    "delete": _delete,
    "null": _null,
    "other type": _retyped,
    "+1": _more(1),
    "-1": _more(-1),
    "swap": _swap,
}


def changed(root: Any, path: Path, change: str) -> Any:
    """The value with one change made at one place."""
    whole = deepcopy(root)
    holder = whole
    for step in path[:-1]:
        holder = holder[step]
    CHANGES[change](holder, path[-1])
    return whole


def differs(root: Any, path: Path, change: str) -> bool:
    """Whether that change is one there."""
    holder = root
    for step in path[:-1]:
        holder = holder[step]
    copy = list(holder) if isinstance(holder, list) else dict(holder)
    CHANGES[change](copy, path[-1])
    return bool(json.dumps(copy) != json.dumps(holder))
