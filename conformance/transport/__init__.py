"""RequestCase → Exchange: the only package that touches the network. It sends, keeps, and never judges."""

from __future__ import annotations

from conformance.model.redaction import Redaction
from conformance.transport.pace import Pace, Patience
from conformance.transport.sending import Sender, Watcher
from conformance.transport.target import Target

__all__ = ["Pace", "Patience", "Redaction", "Sender", "Target", "Watcher"]
