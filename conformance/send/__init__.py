"""Phases of request cases come in; exchanges go out, each with every attempt and every byte, and the times of both.

It keeps to rate limits, time-outs, size caps and the budget, retries what may pass, and masks secrets.
Imports `model` only, and is the only package that uses httpx. Never the judge: what a reply means is not known here.
"""

from __future__ import annotations

from conformance.model.redaction import Redaction
from conformance.send.rate_limits import RateLimits, TimeoutPolicy
from conformance.send.sender import Sender, Watcher
from conformance.send.target import Target

__all__ = ["RateLimits", "Redaction", "Sender", "Target", "TimeoutPolicy", "Watcher"]
