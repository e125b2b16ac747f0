"""Drawn bodies that failed in some run, kept beside the reports of a target so that the next run sends them first.

What hypothesis' database is for hypothesis, in a form that does not depend on how its versions draw: the bodies
themselves. The model is left out, and filled in by the run that sends them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from conformance.model.json_text import dumps, loads
from conformance.recording.canonical_json import canonical

NAME: Final = "drawn-failures.json"
FORMAT: Final = "conformance-drawn-failures/1"
MOST: Final = 500
"""The newest failures are kept, this many: a target that refuses everything adds a hundred in one run."""


@dataclass(frozen=True)
class DrawnFailure:
    """A body that failed, as JSON text without its model, and the requirements that it broke in its last run.

    `control` is the accepted body from which an invalid one differs in one member; empty for a valid one.
    """

    body: str
    control: str
    broke: tuple[str, ...]
    first_seen: str
    last_seen: str


def without_model(body: Mapping[str, Any]) -> str:
    """A body as it is kept."""
    return dumps({**body, "model": ""})


def read(path: Path) -> tuple[DrawnFailure, ...]:
    """The failures in a file; none where there is no file, a ValueError where it is another one."""
    if not path.exists():
        return ()
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != FORMAT:
            raise ValueError
        failures = [DrawnFailure(**{**entry, "broke": tuple(entry["broke"])}) for entry in document["failures"]]
        bodies(failures, "")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"{path} is no {FORMAT} file; delete it, or bring it back as a run wrote it") from None
    return tuple(failures)


def write(path: Path, failures: Sequence[DrawnFailure]) -> None:
    """Write the file, or nothing where nothing ever failed."""
    if failures or path.exists():
        path.write_bytes(canonical({"format": FORMAT, "failures": [asdict(failure) for failure in failures]}) + b"\n")


def merged(known: Iterable[DrawnFailure], new: Iterable[DrawnFailure]) -> tuple[DrawnFailure, ...]:
    """The known failures and those of the run that just ended; those that were first seen last come first."""
    by_body = {failure.body: failure for failure in known}
    for failure in new:
        earlier = by_body.get(failure.body)
        by_body[failure.body] = replace(failure, first_seen=earlier.first_seen) if earlier else failure
    by_text = sorted(by_body.values(), key=lambda failure: failure.body)
    return tuple(sorted(by_text, key=lambda failure: failure.first_seen, reverse=True)[:MOST])


def known_before(failures: Iterable[DrawnFailure], when: str) -> tuple[DrawnFailure, ...]:
    """The failures that were known before a moment, which is given as runs write it."""
    return tuple(failure for failure in failures if failure.first_seen < when)


def bodies(failures: Iterable[DrawnFailure], model: str) -> tuple[dict[str, Any], ...]:
    """The bodies as a plan takes them, for this model: an invalid one follows its control."""
    by_control: dict[str, list[str]] = {}
    for failure in failures:
        by_control.setdefault(failure.control or failure.body, []).extend([failure.body] if failure.control else [])
    texts = (text for control, invalid in by_control.items() for text in (control, *invalid))
    return tuple({**loads(text.encode()), "model": model} for text in texts)
