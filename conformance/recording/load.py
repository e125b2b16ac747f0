"""Recorded traffic of any kind → exchanges that can be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.model import Contract, RequestCase
from conformance.model.exchange import Exchange
from conformance.recording import har, transcripts
from conformance.recording.hash_chain import RecordingError
from conformance.recording.reader import read


@dataclass(frozen=True)
class Gathered:
    """What files hold. `left_out` says of each message that is not judged why; `headers` are our own recordings'."""

    exchanges: tuple[Exchange, ...]
    planned: tuple[RequestCase, ...]
    left_out: tuple[str, ...]
    headers: tuple[Mapping[str, Any], ...]
    incomplete: tuple[str, ...]
    plan_sha256: str = ""


def gather(paths: Sequence[Path], contract: Contract) -> Gathered:
    """The traffic of all paths: our NDJSON, HAR files, folders of transcripts."""
    found = [_gathered(path, contract) for path in paths]
    exchanges = tuple(_apart(x for one in found for x in one.exchanges))
    return Gathered(
        exchanges,
        tuple(case for one in found for case in one.planned),
        tuple(reason for one in found for reason in one.left_out),
        tuple(header for one in found for header in one.headers),
        tuple(reason for one in found for reason in one.incomplete),
        found[0].plan_sha256 if len(found) == 1 else "",
    )


def _gathered(path: Path, contract: Contract) -> Gathered:
    if path.is_dir():
        return _sorted(list(transcripts.read(path, contract)), path)
    if path.suffix == ".ndjson":
        return _ours(path, contract)
    if path.suffix in {".har", ".json"}:
        return _sorted(list(har.read(path, contract)), path)
    raise RecordingError(
        f"{path}: unknown kind of recording; expected .ndjson, .har, or a folder of .http or .sse files"
    )


def _sorted(found: list[Exchange | str], path: Path) -> Gathered:
    exchanges = tuple(one for one in found if isinstance(one, Exchange))
    left_out = tuple(one for one in found if isinstance(one, str))
    if not exchanges:
        why = f" ({left_out[0]})" if left_out else ""
        raise RecordingError(f"{path}: holds no exchange of this operation{why}; expected at least one")
    return Gathered(exchanges, tuple(x.case for x in exchanges), left_out, (), ())


def _ours(path: Path, contract: Contract) -> Gathered:
    """Our own recording: with it goes what was planned, and why it may be incomplete."""
    recording = read(path)
    incomplete = [*(recording.footer or {}).get("incomplete", ())]
    if recording.footer is None:
        incomplete.append(
            f"{path} was not closed: the run was cut off{f'; {recording.torn}' if recording.torn else ''}"
        )
    there = recording.header.get("contract", {}).get("sha256")
    if there != contract.sha256:
        incomplete.append(f"{path} was recorded under another contract ({there!s:.12}…, now {contract.sha256:.12}…)")
    plan = str((recording.footer or {}).get("plan_sha256", ""))
    return Gathered(recording.exchanges, recording.planned, (), (recording.header,), tuple(incomplete), plan)


def _apart(exchanges: Iterable[Exchange]) -> Iterable[Exchange]:
    """Exchanges with ids of their own: two files must not be taken for one."""
    seen: set[str] = set()
    for x in exchanges:
        if x.case.id in seen:
            raise RecordingError(f"the case {x.case.id} is in two of the files; give recordings of one run at a time")
        seen.add(x.case.id)
        yield x
