"""Exchanges ⇄ disk: one JSON record a line, appended as it happens, each chained by SHA-256 to the one before.

A line is written whole or it is torn: what was recorded before a crash stays good. Records: `header` first, `phase`
(what is planned), `start` and `attempt` (what happened), `unsent` (what did not, and why), `footer` last.
Foreign traffic (HAR, raw transcripts) comes in here as well, and becomes the same exchanges.
Never imports the judge or `send`: a recording is the same whoever made it and whoever judges it.
"""

from __future__ import annotations

from conformance.recording.hash_chain import FORMAT, RecordingError
from conformance.recording.reader import Recording, read
from conformance.recording.writer import Recorder, write

__all__ = ["FORMAT", "Recorder", "Recording", "RecordingError", "read", "write"]
