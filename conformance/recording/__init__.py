"""Writes exchanges to disk and reads them back: one JSON record per line, each chained to the one before by SHA-256.

A record is appended as soon as it exists, so a crash damages at most the last line. Records: `header` first, `wave`
(the cases of a phase), `start` and `attempt` (what was sent and received), `unsent` (what was not sent, and why),
`footer` last.
Traffic that other tools recorded is read by one reader for each format (`har`, `interactions`, `transcripts`), which
`formats` chooses by content; `foreign` makes exchanges of what they yield, and `load` goes through files and folders.
Never imports the judge or `send`: the format does not depend on who made a recording or who judges it.
"""

from __future__ import annotations

from conformance.recording.hash_chain import FORMAT, RecordingError
from conformance.recording.reader import Recording, read
from conformance.recording.writer import Recorder, write

__all__ = ["FORMAT", "Recorder", "Recording", "RecordingError", "read", "write"]
