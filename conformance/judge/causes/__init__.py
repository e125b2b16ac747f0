"""Verdicts and exchanges in, causes out: requirements that break together are shown as one cause, with its rows.

Pure: the same verdicts and exchanges give the same causes. No cause is known beforehand; each is one of a few kinds
(`kinds`), found by what the failing requests have in common and the passing ones lack (`request_settings`), by the
status of the replies, and by what changes when a parameter is left out (`exchange_index`).

`find` first looks for causes that many requirements share: replies that do not come or cannot be used
(`unusable_replies`), requests that are accepted or refused against the contract (`leniency`, `refusals`). What is left
concerns the content of replies (`content`). Last, it names what cannot be judged because of these causes (`blocked`).
"""

from conformance.judge.causes.cause import Cause
from conformance.judge.causes.find import causes

__all__ = ["Cause", "causes"]
