"""Changes of good replies that know nothing of any check: which of them does nobody notice?

Each is applied to every reply of a plain run in which its place occurs, at one occurrence a reply, as if the target did
it always; then the traffic is judged again, what is in doubt sent again included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from conformance.exchange import Exchange, Piece
from conformance.judge import Traffic, judge_all
from conformance.model import BROKEN, Ending, Verdict, Wave
from conformance.reference.proof import Ground
from conformance.runner.repeats import repeats

Path = tuple[str | int, ...]
MAPS: Final = frozenset({"top_logprobs"})  # objects whose member names are data
DATA: Final = b"data: "
Step = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Mutator:
    """A change at a place: of a JSON path on a channel, an event of a stream, a header of a channel."""

    place: str
    change: str
    apply: Callable[[Exchange], Exchange]

    @property
    def name(self) -> str:
        return f"{self.place} {self.change}"


def channel(x: Exchange) -> str:
    """What kind of reply this is; empty where it is none that can be changed."""
    if x.ending is not Ending.COMPLETE or x.status is None:
        return ""
    if x.status >= 400:
        return "error" if isinstance(x.json, dict) else ""
    return "chunk" if x.streamed else "plain"


def mutators(exchanges: Sequence[Exchange]) -> Iterator[Mutator]:
    """All changes that these replies offer a place for, in a fixed order."""
    paths: dict[tuple[str, str], dict[str, None]] = {}
    headers: dict[tuple[str, str], None] = {}
    for x in exchanges:
        where = channel(x)
        if where:
            headers |= dict.fromkeys((where, name.lower()) for name, _ in x.headers)
        for document in x.documents if where else ():
            for path, value in walk(document.value):
                found = paths.setdefault((where, general(path)), {})
                found |= dict.fromkeys(name for name in CHANGES if _differs(document.value, path, value, name))
    for (where, path), changes in paths.items():
        yield from (Mutator(f"{where} {path}", change, _json(where, path, change)) for change in changes)
    for place in ("first", "middle", "last", "done"):
        yield from (Mutator(f"event {place}", change, _event(place, step)) for change, step in EVENTS.items())
    for where, name in headers:
        yield Mutator(f"header {where} {name}", "drop", _header(where, name, None))
        yield Mutator(f"header {where} {name}", "change", _header(where, name, "text/x-other"))


def notice(where: Ground, mutator: Mutator) -> tuple[frozenset[str], bool]:
    """The checks that fall because of it, and whether it changed anything."""
    if where.plain is None:
        raise ValueError("the ground has no plain run to change; take it from ground()")
    exchanges = [mutator.apply(x) for x in where.plain.exchanges]
    changed = any(a is not b for a, b in zip(exchanges, where.plain.exchanges, strict=True))
    original = {x.case.id: x for x in exchanges}
    waves = [Wave("recorded", where.plain.planned)]
    verdicts: tuple[Verdict, ...] = ()
    for _ in range(3):
        planned = tuple(case for wave in waves for case in wave.cases)
        verdicts = judge_all(where.contract, Traffic(exchanges, planned))
        again = repeats(verdicts, waves, exchanges)
        if not again:
            break
        waves += again
        exchanges += [Exchange(case, original[case.repeats].attempts) for wave in again for case in wave.cases]
    new = [one for one in verdicts if one.outcome in BROKEN and one.requirement.id not in where.plain.broken]
    return frozenset(one.requirement.check for one in new), changed


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
        other = steps[place - 1]
        if isinstance(holder, list) or type(holder[other]) is type(holder[step]):
            holder[step], holder[other] = holder[other], holder[step]


CHANGES: Final[Mapping[str, Step]] = {
    "delete": _delete,
    "null": _null,
    "other type": _retyped,
    "+1": _more(1),
    "-1": _more(-1),
    "swap": _swap,
}


def _changed(root: Any, path: Path, change: str) -> Any:
    whole = deepcopy(root)
    holder = whole
    for step in path[:-1]:
        holder = holder[step]
    CHANGES[change](holder, path[-1])
    return whole


def _differs(root: Any, path: Path, value: Any, change: str) -> bool:
    holder = root
    for step in path[:-1]:
        holder = holder[step]
    copy = list(holder) if isinstance(holder, list) else dict(holder)
    CHANGES[change](copy, path[-1])
    return bool(json.dumps(copy) != json.dumps(holder))


def _json(where: str, path: str, change: str) -> Callable[[Exchange], Exchange]:
    def apply(x: Exchange) -> Exchange:
        if channel(x) != where:
            return x
        places = [
            (document, found)
            for document in x.documents
            for found, value in walk(document.value)
            if general(found) == path and _differs(document.value, found, value, change)
        ]
        if not places:
            return x
        document, found = places[len(places) // 2]
        content = json.dumps(
            _changed(document.value, found, change), ensure_ascii=False, separators=(",", ":")
        ).encode()
        if where != "chunk":
            return _with(x, content)
        frames = _frames(x)
        frames[document.number] = DATA + content
        return _with(x, _joined(frames))

    return apply


EVENTS: Final[Mapping[str, Callable[[list[bytes], int], list[bytes]]]] = {
    "drop": lambda frames, at: [*frames[:at], *frames[at + 1 :]],
    "repeat": lambda frames, at: [*frames[: at + 1], *frames[at:]],
    "reorder": lambda frames, at: [
        *frames[: max(at - 1, 0)],
        *reversed(frames[max(at - 1, 0) : at + 1]),
        *frames[at + 1 :],
    ],
    "split": lambda frames, at: [*frames[:at], frames[at][:9], DATA + frames[at][9:], *frames[at + 1 :]],
    "corrupt": lambda frames, at: [*frames[:at], frames[at][:-1], *frames[at + 1 :]],
}


def _event(place: str, change: Callable[[list[bytes], int], list[bytes]]) -> Callable[[Exchange], Exchange]:
    def apply(x: Exchange) -> Exchange:
        frames = _frames(x) if channel(x) == "chunk" else []
        if len(frames) < 3:
            return x
        at = {"first": 0, "middle": (len(frames) - 1) // 2, "last": len(frames) - 2, "done": len(frames) - 1}[place]
        return _with(x, _joined(change(frames, at)))

    return apply


def _header(where: str, name: str, value: str | None) -> Callable[[Exchange], Exchange]:
    def apply(x: Exchange) -> Exchange:
        if channel(x) != where or x.header(name) is None:
            return x
        kept = tuple(one for one in x.headers if one[0].lower() != name)
        headers = kept if value is None else (*kept, (name, value))
        return Exchange(x.case, (*x.attempts[:-1], replace(x.last, headers=headers)))

    return apply


def _frames(x: Exchange) -> list[bytes]:
    """The events of a stream as the reference writes them: one line of data each."""
    return [frame for frame in x.content.split(b"\n\n") if frame]


def _joined(frames: Sequence[bytes]) -> bytes:
    return b"".join(frame + b"\n\n" for frame in frames)


def _with(x: Exchange, content: bytes) -> Exchange:
    last = replace(x.last, pieces=(Piece(x.pieces[0].at if x.pieces else 0.0, content),))
    return Exchange(x.case, (*x.attempts[:-1], last))
