"""Sends the cases of a phase and returns exchanges, with all attempts, all received bytes and their arrival times.

Enforces rate limits, time-outs, size limits and the budget, retries transient failures, and masks secrets.
Imports only `model`, and is the only package that uses httpx. It never imports the judge or interprets a reply.
"""

from __future__ import annotations

from conformance.model.redaction import Redaction
from conformance.send.rate_limits import RateLimits, TimeoutPolicy
from conformance.send.sender import Sender, Watcher
from conformance.send.target import Target

__all__ = ["RateLimits", "Redaction", "Sender", "Target", "TimeoutPolicy", "Watcher"]
