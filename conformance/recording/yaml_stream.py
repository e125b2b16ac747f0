"""Reads the items of one list in a YAML file one by one, as strings, bytes, lists and objects.

Other types do not matter in recordings, and tags that name classes are not followed: nothing is ever constructed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator
from typing import Any, Final

import yaml

from conformance.recording.recorded import BinaryStream

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_PYTHON: Final = "tag:yaml.org,2002:python/"


def items(file: BinaryStream, names: Collection[str]) -> Iterator[tuple[int, Any]]:
    """Each item of the top-level list that has one of these names, with its line; ValueError where it is not YAML."""
    try:
        events = yaml.parse(file, Loader=_LOADER)
        yield from _items(events, names)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = f" at line {mark.line + 1}" if mark else ""
        raise ValueError(f"not YAML{position}: {getattr(error, 'problem', None) or error}") from None


def _items(events: Iterator[Any], names: Collection[str]) -> Iterator[tuple[int, Any]]:
    anchors: dict[str, Any] = {}
    for event in events:
        if isinstance(event, yaml.MappingStartEvent):
            break
        if isinstance(event, (yaml.SequenceStartEvent, yaml.ScalarEvent)):
            return
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            return
        name = _value(event, events, anchors)
        start = next(events)
        if name not in names or not isinstance(start, yaml.SequenceStartEvent):
            _value(start, events, anchors)
            continue
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            yield item.start_mark.line + 1, _value(item, events, anchors)


class _Open:
    """A list or an object whose end has not been read."""

    def __init__(self, start: Any) -> None:
        self.start = start
        self.values: list[Any] = []

    def closed(self) -> Any:
        if isinstance(self.start, yaml.MappingStartEvent):
            keys, values = self.values[::2], self.values[1::2]
            return {key if isinstance(key, str) else str(key): value for key, value in zip(keys, values, strict=False)}
        # the arguments of a Python constructor: the one of a string type is the string
        unwrapped = (self.start.tag or "").startswith(_PYTHON) and len(self.values) == 1
        return self.values[0] if unwrapped else self.values


def _value(event: Any, events: Iterator[Any], anchors: dict[str, Any]) -> Any:
    """The value that begins with this event. Nesting takes no Python stack, so no file is too deep."""
    above: list[_Open] = []
    while True:
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            above.append(_Open(event))
            event = next(events)
            continue
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            ended = above.pop()
            value, anchor = ended.closed(), ended.start.anchor
        elif isinstance(event, yaml.AliasEvent):
            value, anchor = anchors.get(event.anchor or ""), None
        else:
            value, anchor = _scalar(event), event.anchor
        if anchor:
            anchors[anchor] = value
        if not above:
            return value
        above[-1].values.append(value)
        event = next(events)


def _scalar(event: Any) -> Any:
    if (event.tag or "").endswith("binary"):
        try:
            return base64.b64decode(event.value)
        except (ValueError, binascii.Error):
            return event.value
    plain = event.implicit[0] and not event.style
    return None if plain and event.value in _NULLS else event.value
