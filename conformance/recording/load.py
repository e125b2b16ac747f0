"""Loads recorded traffic of any supported kind, file by file, as exchanges that can be judged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.model import Contract, RequestCase
from conformance.model.exchange import Exchange
from conformance.recording import foreign
from conformance.recording.foreign import OtherOperationError, RecordedEndpoint
from conformance.recording.formats import Format, format_of
from conformance.recording.hash_chain import RecordingError
from conformance.recording.reader import read
from conformance.recording.recorded import LeftOut, Recorded, Source

OWN_NAME: Final = "exchanges.ndjson"
"""The recording in the folder of a report. Beside it, nothing else is a recording."""


@dataclass(frozen=True)
class OwnRecording:
    """A recording of this suite, which also states what was planned and why it may be incomplete."""

    name: str
    header: Mapping[str, Any]
    exchanges: tuple[Exchange, ...]
    planned: tuple[RequestCase, ...]
    incomplete: tuple[str, ...]
    plan_sha256: str


@dataclass(frozen=True, slots=True)
class ForeignExchange:
    """One exchange of a foreign recording. `endpoint` is None if this suite wrote the file; `file` then names it."""

    exchange: Exchange
    endpoint: RecordedEndpoint | None
    file: str


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A message that is not judged, and why. `other_operation`: it is none of the contract's operation."""

    reason: str
    other_operation: bool = False


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that is not a recording, or ends in the middle of one. `partly`: what came before was read."""

    reason: str
    partly: bool = False


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file in a folder that is no recording."""

    name: str


Loaded: TypeAlias = OwnRecording | ForeignExchange | NotJudged | Damaged | OtherFile
Watch: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a file, the number of bytes that were read of all files, and their sum."""


def load(paths: Sequence[str | Path], contract: Contract, watch: Watch = lambda *_: None) -> Iterator[Loaded]:
    """Everything in the files, in their order: only what was yielded last is in memory."""
    sources = list(_sources(paths))
    total, before = sum(source.size for source in sources if isinstance(source, Source)), 0
    for source in sources:
        if isinstance(source, Damaged):
            yield source
            continue
        for item in _items(source, contract):
            yield item
            watch(source.name, before + source.position, total)
        before += source.size
        watch(source.name, before, total)


def _items(source: Source, contract: Contract) -> Iterator[Loaded]:
    try:
        kind = format_of(source)
        if not isinstance(kind, Format):
            yield _own(source, contract)
            return
    except RecordingError as error:
        yield Damaged(str(error)) if source.named else OtherFile(source.name)
        return
    try:
        for item in kind.read(source):
            yield _loaded(item, source, kind, contract)
    except RecordingError as error:
        yield Damaged(str(error), partly=True)


def _loaded(item: Recorded | Exchange | LeftOut, source: Source, kind: Format, contract: Contract) -> Loaded:
    if isinstance(item, LeftOut):
        return NotJudged(f"{source.name} {item.position}: {item.reason}")
    if isinstance(item, Exchange):
        return ForeignExchange(item, None, source.name)
    try:
        exchange, endpoint = foreign.exchange(contract, item, kind.origin, source.name)
    except OtherOperationError as error:
        return NotJudged(f"{source.name} {item.unit} {item.number}: {error}", other_operation=True)
    except ValueError as error:
        return NotJudged(f"{source.name} {item.unit} {item.number}: {error}")
    return ForeignExchange(exchange, endpoint, source.name)


def _own(source: Source, contract: Contract) -> OwnRecording:
    recording = read(source.path)
    footer = recording.footer or {}
    incomplete = [*footer.get("incomplete", ())]
    if recording.footer is None:
        torn = f"; {recording.torn}" if recording.torn else ""
        incomplete.append(f"{source.name} has no footer: the run was cut off{torn}")
    recorded = recording.header.get("contract", {}).get("sha256")
    if recorded != contract.sha256:
        incomplete.append(
            f"{source.name} was recorded under another contract ({recorded!s:.12}…); expected {contract.sha256:.12}…"
        )
    return OwnRecording(
        name=source.name,
        header=recording.header,
        exchanges=recording.exchanges,
        planned=recording.planned,
        incomplete=tuple(incomplete),
        plan_sha256=str(footer.get("plan_sha256", "")),
    )


def _sources(paths: Sequence[str | Path]) -> Iterator[Source | Damaged]:
    """The files that the paths, folders and patterns name, each once."""
    files: dict[Path, bool] = {}  # and whether the file itself was named
    missing: list[Damaged] = []
    for path in map(Path, paths):
        if path.is_dir():
            files = dict.fromkeys(_in_folder(path), False) | files
        elif path.exists():
            files[path] = True
        else:
            matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if _is_pattern(path) else []
            matching_files = [file for match in matches for file in (_in_folder(match) if match.is_dir() else [match])]
            files = dict.fromkeys(matching_files, False) | files
            if not matching_files:
                missing.append(Damaged(f"{path}: there is no such file or folder"))
    yield from missing
    common_folder = Path(os.path.commonpath([file.absolute().parent for file in files])) if files else Path()
    for file, is_named in files.items():
        yield Source(file, file.absolute().relative_to(common_folder).as_posix(), is_named)


def _is_pattern(path: Path) -> bool:
    return any(char in str(path) for char in "*?[")


def _in_folder(folder: Path) -> Iterator[Path]:
    """All files below a folder but hidden ones; of the folder of a report its recording only."""
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if OWN_NAME in names:
            names, folders[:] = [OWN_NAME], []
        for name in sorted(names):
            path = Path(above) / name
            beside_stream = path.suffix == ".json" and path.with_suffix(".sse").name in names
            if not name.startswith(".") and not beside_stream:
                yield path
