"""RequestCase → Exchange: the only package that touches the network. It sends, keeps, and never judges."""

from __future__ import annotations

from conformance.model.redaction import Redaction
from conformance.send.rate_limits import RateLimits, TimeoutPolicy
from conformance.send.sender import Sender, Watcher
from conformance.send.target import Target

__all__ = ["RateLimits", "Redaction", "Sender", "Target", "TimeoutPolicy", "Watcher"]
