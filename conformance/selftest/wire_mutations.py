"""Wire mutations: changes of one place in good replies, made without regard to any check. Which are not detected?

A mutation is applied to every reply of a plain run that has its place, as if the target always did so, at one
occurrence in each reply: the first, the middle or the last. These are three mutations, because the ends of a list
concern other checks than what is between. Then the run is made again with the mutated replies, confirmation included.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from conformance.model import Ending, Phase
from conformance.model.budget import Budget
from conformance.model.exchange import Document, Exchange, Piece
from conformance.run.loop import Plan
from conformance.selftest.in_process_run import driven
from conformance.selftest.json_mutations import CHANGES, Path, changed, differs, general, walk
from conformance.selftest.mutation_testing import Baseline

DATA: Final = b"data: "
OCCURRENCES: Final[Mapping[str, Callable[[int], int]]] = {
    "first": lambda _: 0,
    "middle": lambda number: number // 2,
    "last": lambda number: number - 1,
}


@dataclass(frozen=True)
class Mutator:
    """A change at a place: a JSON path of plain replies, chunks or errors; an event of a stream; a header.

    `occurrence`: at which occurrence in a reply, empty where no reply has several.
    """

    place: str
    change: str
    apply: Callable[[Exchange], Exchange]
    occurrence: str = ""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.place, self.change, self.occurrence)))


def channel(x: Exchange) -> str:
    """The kind of a reply: error, chunk or plain; empty where it cannot be mutated."""
    if x.ending is not Ending.COMPLETE or x.status is None:
        return ""
    if x.status >= 400:
        return "error" if isinstance(x.json, dict) else ""
    return "chunk" if x.streamed else "plain"


def mutators(exchanges: Sequence[Exchange]) -> Iterator[Mutator]:
    """All mutations that these replies have a place for, in a fixed order."""
    offered: dict[tuple[str, str], Counter[str]] = {}
    headers: dict[tuple[str, str], None] = {}
    for x in exchanges:
        reply_channel = channel(x)
        if reply_channel:
            headers |= dict.fromkeys((reply_channel, name.lower()) for name, _ in x.headers)
        for path, changes in _offered(x).items() if reply_channel else ():
            offered[reply_channel, path] = offered.get((reply_channel, path), Counter()) | changes
    for (reply_channel, path), changes in offered.items():
        for change, number in changes.items():
            for occurrence in tuple(OCCURRENCES) if number > 2 else ("first", "last") if number > 1 else ("",):
                yield Mutator(
                    f"{reply_channel} {path}", change, _json(reply_channel, path, change, occurrence), occurrence
                )
    for event in ("first", "middle", "last", "done"):
        yield from (Mutator(f"event {event}", change, _event(event, step)) for change, step in EVENTS.items())
    for reply_channel, name in headers:
        yield Mutator(f"header {reply_channel} {name}", "drop", _header(reply_channel, name, None))
        yield Mutator(f"header {reply_channel} {name}", "change", _header(reply_channel, name, "text/x-other"))


def _offered(x: Exchange) -> dict[str, Counter[str]]:
    """The general paths of a reply, each with the changes that make a difference and at how many places they do."""
    offered: dict[str, Counter[str]] = {}
    for document in x.documents:
        for path, _ in walk(document.value):
            changes = [name for name in CHANGES if differs(document.value, path, name)]
            offered.setdefault(general(path), Counter()).update(changes)
    return offered


@dataclass
class ReplaySender:
    """Answers each case with the exchange that was recorded for it; a repetition with that of its original."""

    recorded: Mapping[str, Exchange]
    finished: Callable[[Exchange], object]
    unsent: dict[str, str] = field(default_factory=dict)
    silent: bool = False

    def resume(self) -> None:
        """Nothing to resume: a recording is always there."""

    async def send(self, phase: Phase) -> tuple[Exchange, ...]:
        exchanges = tuple(
            self.recorded.get(case.id) or Exchange(case, self.recorded[case.repeats].attempts) for case in phase.cases
        )
        for exchange in exchanges:
            self.finished(exchange)
        return exchanges


def detecting_checks(baseline: Baseline, mutation: Mutator) -> tuple[frozenset[str], bool]:
    """The checks that fail because of a mutation, and whether it changed anything."""
    if baseline.plain is None:
        raise ValueError("the baseline has no plain run to change; take it from baseline()")
    plain = baseline.plain
    exchanges = [mutation.apply(exchange) for exchange in plain.exchanges]
    touched = any(mutated is not original for mutated, original in zip(exchanges, plain.exchanges, strict=True))
    recorded = {exchange.case.id: exchange for exchange in exchanges}

    def plan() -> Plan:
        yield Phase("recorded", plain.planned)

    run = driven(
        baseline.contract,
        plan(),
        lambda _, finished: ReplaySender(recorded, finished),
        Budget(),  # what a check can detect, whatever it costs
        baseline.cache.copy(),
    )
    failed = [verdict for verdict in run.verdicts if verdict.requirement.id in run.broken - plain.broken]
    return frozenset(verdict.requirement.check for verdict in failed), touched


def _json(reply_channel: str, path: str, change: str, occurrence: str) -> Callable[[Exchange], Exchange]:
    def apply(x: Exchange) -> Exchange:
        if channel(x) != reply_channel:
            return x
        matching: list[tuple[Document, Path]] = [
            (document, json_path)
            for document in x.documents
            for json_path, _ in walk(document.value)
            if general(json_path) == path and differs(document.value, json_path, change)
        ]
        if not matching:
            return x
        document, json_path = matching[OCCURRENCES[occurrence or "first"](len(matching))]
        value = changed(document.value, json_path, change)
        content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if reply_channel != "chunk":
            return _with(x, content)
        frames = _frames(x)
        frames[document.number] = DATA + content
        return _with(x, _joined(frames))

    return apply


def _swapped(frames: list[bytes], at: int) -> list[bytes]:
    return [*frames[: at - 1], frames[at], frames[at - 1], *frames[at + 1 :]]


EVENTS: Final[Mapping[str, Callable[[list[bytes], int], list[bytes]]]] = {
    "drop": lambda frames, at: [*frames[:at], *frames[at + 1 :]],
    "repeat": lambda frames, at: [*frames[: at + 1], *frames[at:]],
    "reorder": lambda frames, at: _swapped(frames, max(at, 1)),
    "split": lambda frames, at: [*frames[:at], frames[at][:9], DATA + frames[at][9:], *frames[at + 1 :]],
    "corrupt": lambda frames, at: [*frames[:at], frames[at][:-1], *frames[at + 1 :]],
}


def _event(position: str, change: Callable[[list[bytes], int], list[bytes]]) -> Callable[[Exchange], Exchange]:
    def apply(x: Exchange) -> Exchange:
        frames = _frames(x) if channel(x) == "chunk" else []
        if len(frames) < 3:
            return x
        at = {"first": 0, "middle": (len(frames) - 1) // 2, "last": len(frames) - 2, "done": len(frames) - 1}[position]
        return _with(x, _joined(change(frames, at)))

    return apply


def _header(reply_channel: str, name: str, value: str | None) -> Callable[[Exchange], Exchange]:
    def apply(x: Exchange) -> Exchange:
        if channel(x) != reply_channel or x.header(name) is None:
            return x
        others = tuple(header for header in x.headers if header[0].lower() != name)
        headers = others if value is None else (*others, (name, value))
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
