"""Loads recorded traffic of any supported kind as exchanges that can be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.model import Contract, RequestCase
from conformance.model.exchange import Exchange
from conformance.recording import har, transcripts
from conformance.recording.foreign import unjudged
from conformance.recording.hash_chain import RecordingError
from conformance.recording.reader import read


@dataclass(frozen=True)
class Gathered:
    """The traffic of one or more files.

    `left_out` has one reason for each message that is not judged, `unjudged` for each exchange that is not judged as a
    completion; `headers` are those of the suite's own recordings.
    """

    exchanges: tuple[Exchange, ...]
    planned: tuple[RequestCase, ...]
    left_out: tuple[str, ...]
    headers: tuple[Mapping[str, Any], ...]
    incomplete: tuple[str, ...]
    plan_sha256: str = ""
    unjudged: tuple[str, ...] = ()


def gather(paths: Sequence[Path], contract: Contract) -> Gathered:
    """The traffic of all paths: the suite's own NDJSON, HAR files, folders of transcripts."""
    loaded = [_load(path, contract) for path in paths]
    exchanges = tuple(exchange for file in loaded for exchange in file.exchanges)
    _require_distinct_ids(exchanges)
    return Gathered(
        exchanges=exchanges,
        planned=tuple(case for file in loaded for case in file.planned),
        left_out=tuple(reason for file in loaded for reason in file.left_out),
        headers=tuple(header for file in loaded for header in file.headers),
        incomplete=tuple(reason for file in loaded for reason in file.incomplete),
        unjudged=tuple(reason for file in loaded for reason in file.unjudged),
        plan_sha256=loaded[0].plan_sha256 if len(loaded) == 1 else "",
    )


def _load(path: Path, contract: Contract) -> Gathered:
    if path.is_dir():
        return _from_foreign(list(transcripts.read(path, contract)), path)
    if path.suffix == ".ndjson":
        return _from_recording(path, contract)
    if path.suffix in {".har", ".json"}:
        return _from_foreign(list(har.read(path, contract)), path)
    raise RecordingError(
        f"{path}: unknown kind of recording; expected .ndjson, .har, or a folder of .http or .sse files"
    )


def _from_foreign(results: Sequence[Exchange | str], path: Path) -> Gathered:
    """Separates exchanges from reasons for leaving a message out; without any exchange, raises RecordingError."""
    exchanges = tuple(result for result in results if isinstance(result, Exchange))
    reasons = tuple(result for result in results if isinstance(result, str))
    if not exchanges:
        first_reason = f" ({reasons[0]})" if reasons else ""
        raise RecordingError(f"{path}: contains no exchange of this operation{first_reason}; expected at least one")
    return Gathered(
        exchanges=exchanges,
        planned=tuple(exchange.case for exchange in exchanges),
        left_out=reasons,
        headers=(),
        incomplete=(),
        unjudged=tuple(f"{x.case.id}: {reason}" for x in exchanges if (reason := unjudged(x))),
    )


def _from_recording(path: Path, contract: Contract) -> Gathered:
    """The suite's own recording, which also states what was planned and why it may be incomplete."""
    recording = read(path)
    footer = recording.footer or {}
    incomplete = [*footer.get("incomplete", ())]
    if recording.footer is None:
        torn = f"; {recording.torn}" if recording.torn else ""
        incomplete.append(f"{path} has no footer: the run was cut off{torn}")
    recorded = recording.header.get("contract", {}).get("sha256")
    if recorded != contract.sha256:
        incomplete.append(
            f"{path} was recorded under another contract ({recorded!s:.12}…); expected {contract.sha256:.12}…"
        )
    return Gathered(
        exchanges=recording.exchanges,
        planned=recording.planned,
        left_out=(),
        headers=(recording.header,),
        incomplete=tuple(incomplete),
        plan_sha256=str(footer.get("plan_sha256", "")),
    )


def _require_distinct_ids(exchanges: Iterable[Exchange]) -> None:
    """Raises RecordingError for a repeated case id: exchanges of different runs must not be merged."""
    seen: set[str] = set()
    for exchange in exchanges:
        if exchange.case.id in seen:
            raise RecordingError(
                f"case {exchange.case.id} is in two of the files; give recordings of one run at a time"
            )
        seen.add(exchange.case.id)
